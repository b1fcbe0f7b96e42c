//! What is ending: from the decision that a scope ends until the last of it has ended, nothing in
//! it is granted, created or completed, and nothing of a parked run is granted. What is ending goes
//! on, and does not take long.

use std::collections::{BTreeMap, BTreeSet};

use tenure_record::event::{EndScope, Event, Record, RunBegun, Step};
use tenure_record::id::{GroupId, RunId, TaskId, TokenId};

use super::{LawResult, hold};
use crate::item::{End, Item};
use crate::ledger::TaskLedger;
use crate::process::Life;

const STILL: &str = "nothing moves in a scope that is ending";
const PARKED: &str = "nothing of a parked run is granted";
const GOES_ON: &str = "what is ending goes on";

/// How long it may take from one record of an ending to the next, beside the time of the disk.
const GOES_ON_MS: u64 = 2_000;

/// A branch of a group; the root has group zero.
type Scope = (GroupId, u32);

const ROOT: Scope = (GroupId::NONE, 0);

/// What the records say of scopes of runs that are not over.
#[derive(Debug, Default)]
pub(crate) struct EndingLaw {
    runs: BTreeMap<RunId, Known>,
    /// Records in which something began to end or went on ending, and runs that went on.
    parts: u64,
    /// Which part and which start were seen last, and when.
    seen: (u64, u64),
    seen_at: u64,
}

#[derive(Debug, Default)]
struct Known {
    parent: Option<(RunId, TokenId)>,
    is_parked: bool,
    is_ending: bool,
    tokens: BTreeMap<TokenId, Scope>,
    /// The scope around each group.
    groups: BTreeMap<GroupId, Scope>,
    tasks: BTreeMap<TaskId, TokenId>,
    /// Branches that have settled one by one.
    settled: BTreeSet<Scope>,
    /// Branches that end.
    branches: BTreeSet<Scope>,
    /// Groups of which all branches end that had not settled, and those that had.
    rests: BTreeMap<GroupId, BTreeSet<Scope>>,
}

impl Known {
    fn has_ending(&self) -> bool {
        self.is_ending || !self.branches.is_empty() || !self.rests.is_empty()
    }

    /// Whether a scope, or one around it in this run, is ending.
    fn ends_around(&self, mut at: Scope) -> bool {
        while at != ROOT {
            let is_rest = self.rests.get(&at.0).is_some_and(|settled| !settled.contains(&at));
            if is_rest || self.branches.contains(&at) {
                return true;
            }
            // What runs on in a branch that has settled belongs to the run alone.
            let around = self.groups.get(&at.0).filter(|_| !self.settled.contains(&at));
            at = around.copied().unwrap_or(ROOT);
        }
        self.is_ending
    }

    fn end(&mut self, step: &EndScope) {
        match (step.group, step.index) {
            (GroupId::NONE, _) => self.is_ending = true,
            (group, Some(index)) => drop(self.branches.insert((group, index))),
            (group, None) => {
                let settled = self.settled.range((group, 0)..=(group, u32::MAX)).copied();
                self.rests.insert(group, settled.collect());
            }
        }
    }
}

impl EndingLaw {
    pub(super) fn item(
        &mut self,
        ledger: &TaskLedger,
        record: &Record<'_>,
        item: Item<'_>,
    ) -> LawResult {
        let lsn = record.lsn;
        let still = |is_ending: bool| hold(STILL, !is_ending, || format!("record {lsn}: {item:?}"));
        match item {
            Item::Began(run) => {
                let parent = run.parent.is_some().then_some((run.parent, run.parent_token));
                still(parent.is_some_and(|(run, token)| self.is_ending(run, token)))?;
                self.began(run);
                Ok(())
            }
            Item::Created(task) => {
                let Some(link) = &task.run else { return Ok(()) };
                still(self.is_ending(link.run_id, link.token))?;
                let run = self.runs.entry(link.run_id).or_default();
                run.tasks.insert(task.task_id, link.token);
                Ok(())
            }
            Item::Granted { item: granted, .. } => {
                let task_id = granted.about.task_id;
                still(self.is_task_ending(ledger, task_id))?;
                let run = ledger.task(task_id).and_then(|task| self.runs.get(&task.run?));
                hold(PARKED, !run.is_some_and(|run| run.is_parked), || {
                    format!("record {lsn}: {item:?}")
                })
            }
            Item::Ended { about, by: End::Completed { .. } | End::Failed, .. } => {
                still(self.is_task_ending(ledger, about.task_id))
            }
            Item::Finished(id, _) => {
                self.runs.remove(&id);
                Ok(())
            }
            Item::Decided(id, Some(step)) => {
                let is_begun = matches!(step, Step::CreateTokens(new) if new.tokens.iter()
                    .any(|token| self.is_scope_ending(id, (token.group, token.index))));
                still(is_begun)?;
                self.decided(id, step);
                Ok(())
            }
            // A copy belongs to no run.
            Item::Copied { .. }
            | Item::Decided(_, None)
            | Item::Extended(_)
            | Item::Checkpoint(..)
            | Item::Ended { .. }
            | Item::Stale { .. }
            | Item::AskedToStop { .. }
            | Item::EndedWaiting { .. }
            | Item::Retried { .. }
            | Item::Stopped(_)
            | Item::Purged(_)
            | Item::Registered { .. }
            | Item::PurgedRun(_)
            | Item::Configured => Ok(()),
        }
    }

    /// Ends a record.
    pub(super) fn turn(&mut self, record: &Record<'_>) {
        let parked = if let Event::RunParked(parked) = &record.event {
            Some((parked.run_id, true))
        } else if let Event::RunUnparked(unparked) = &record.event {
            Some((unparked.run_id, false))
        } else {
            None
        };
        if let Some((id, is_parked)) = parked
            && let Some(run) = self.runs.get_mut(&id)
        {
            run.is_parked = is_parked;
        }
        let goes_on = matches!(record.event, Event::EndContinued(_));
        self.parts += u64::from(goes_on || parked.is_some());
    }

    /// After a step: what is ending has gone on lately.
    pub(super) fn stepped(&mut self, life: &Life, now: u64) -> LawResult {
        let ending = self.runs.iter().find(|(_, run)| run.has_ending() && !run.is_parked);
        let seen = (self.parts, life.start);
        if self.seen != seen || ending.is_none() || life.is_held() {
            (self.seen, self.seen_at) = (seen, now);
            return Ok(());
        }
        hold(GOES_ON, now <= self.seen_at + GOES_ON_MS + life.slow_ms, || {
            format!("nothing of {ending:?} has ended since {}, at {now}", self.seen_at)
        })
    }

    fn began(&mut self, run: &RunBegun<'_>) {
        let parent = run.parent.is_some().then_some((run.parent, run.parent_token));
        self.runs.insert(run.run_id, Known { parent, ..Known::default() });
    }

    fn decided(&mut self, id: RunId, step: &Step<'_>) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        match step {
            Step::CreateTokens(step) => {
                let tokens = step.tokens.iter().map(|it| (it.token, (it.group, it.index)));
                run.tokens.extend(tokens);
            }
            Step::OpenGroup(step) => {
                let around = run.tokens.get(&step.origin).copied().unwrap_or(ROOT);
                run.groups.insert(step.group, around);
            }
            Step::CreateFanInToken(step) => {
                let around = run.groups.get(&step.group).copied().unwrap_or(ROOT);
                run.tokens.insert(step.token, around);
            }
            Step::SettleBranch(step) if !step.rest => {
                let settled = step.index..step.index + step.count;
                run.settled.extend(settled.map(|index| (step.group, index)));
            }
            Step::EndScope(step) => {
                run.end(step);
                self.parts += 1;
            }
            Step::CloseScope(step) => match step.index {
                Some(index) => drop(run.branches.remove(&(step.group, index))),
                None => drop(run.rests.remove(&step.group)),
            },
            Step::SettleBranch(_)
            | Step::ActivateFanInToken(_)
            | Step::UpdateTokenStates(_)
            | Step::MarkForDispatch(_)
            | Step::ApplyNodeOutput(_)
            | Step::SetContext(_)
            | Step::MergeBranches(_)
            | Step::DropBranches(_)
            | Step::CancelTokens(_)
            | Step::SetTimer(_)
            | Step::StartChild(_)
            | Step::FinishRun(_)
            | Step::TakeSignal(_)
            | Step::StageArtifact(_)
            | Step::PromoteArtifacts(_) => {}
        }
    }

    /// Whether a task belongs to what is ending.
    pub(super) fn is_task_ending(&self, ledger: &TaskLedger, task_id: TaskId) -> bool {
        let Some(id) = ledger.task(task_id).and_then(|task| task.run) else { return false };
        let token = self.runs.get(&id).and_then(|run| run.tasks.get(&task_id));
        token.is_some_and(|token| self.is_ending(id, *token))
    }

    fn is_ending(&self, id: RunId, token: TokenId) -> bool {
        let Some(run) = self.runs.get(&id) else { return false };
        self.is_scope_ending(id, run.tokens.get(&token).copied().unwrap_or(ROOT))
    }

    /// Whether a scope of a run is ending, or one around it in that run or in one above it.
    fn is_scope_ending(&self, id: RunId, at: Scope) -> bool {
        let (mut id, mut at) = (id, at);
        while let Some(run) = self.runs.get(&id) {
            if run.ends_around(at) {
                return true;
            }
            let Some((parent, token)) = run.parent else { return false };
            let Some(above) = self.runs.get(&parent) else { return false };
            (id, at) = (parent, above.tokens.get(&token).copied().unwrap_or(ROOT));
        }
        false
    }
}
