//! The laws of runs that a log shows by itself: what begins, what ends, and that it stays ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenure_record::codec::Malformed;
use tenure_record::event::{
    BranchOutcome, Decision, EndScope, GroupState, OpenGroup, RunBegun, RunState, SettleBranch,
    SignalReceived, Step, Stopped, StoppedTasks,
};
use tenure_record::id::{GroupId, ID_MAX, LeaseId, Lsn, RunId, TaskId, TokenId};
use tenure_record::snapshot::{HeadItem, RunPart, WorkflowItem};
use tenure_record::state::TaskState;
use tenure_record::time::Timestamp;

use super::Audit;
use super::law::{Law, Violation, broken, hold};
use super::lease::is_open;
use super::workflow::Versions;

/// Runs as the records so far have left them.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    pub next: RunId,
    runs: BTreeMap<RunId, Row>,
    pub(super) versions: BTreeMap<Arc<str>, Versions>,
    /// The run whose parts a snapshot gives at present.
    last: RunId,
}

impl Default for Runs {
    fn default() -> Self {
        Self { next: RunId(1), runs: BTreeMap::new(), versions: BTreeMap::new(), last: RunId::NONE }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    workflow: Arc<str>,
    version: u32,
    tokens: u32,
    live: BTreeSet<TokenId>,
    groups: Vec<GroupRow>,
    tasks: BTreeSet<TaskId>,
    is_over: bool,
    /// The run as a whole is ending.
    is_ending: bool,
    /// Branches that are ending.
    ending: BTreeSet<(GroupId, Option<u32>)>,
    is_parked: bool,
    parent: RunId,
    top: RunId,
    descendants: u32,
    last_lsn: Lsn,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupRow {
    total: u32,
    settled: u32,
    is_open: bool,
    fan_in: TokenId,
}

impl Runs {
    /// Takes over a version of a workflow from a snapshot.
    pub(super) fn know_workflow(&mut self, item: &WorkflowItem<'_>) {
        let versions = self.versions.entry(Arc::from(item.name.as_str())).or_default();
        versions.last = item.version;
        if !item.is_deleted {
            versions.kept.insert(item.version);
        }
    }

    /// Whether a run of a workflow exists, in a version that is meant.
    pub(super) fn has_run_of(&self, name: &str, is_meant: impl Fn(u32) -> bool) -> bool {
        let mut runs = self.runs.values();
        runs.any(|run| &*run.workflow == name && is_meant(run.version))
    }

    /// Takes over a part of a run from a snapshot.
    pub(super) fn know_part(&mut self, part: &RunPart<'_>) -> Result<(), Malformed> {
        if let RunPart::Head(item) = part {
            self.runs.insert(item.id, Row::of(item));
            self.last = item.id;
            return Ok(());
        }
        let Some(run) = self.runs.get_mut(&self.last) else {
            return Err(Malformed::new(format!("a {} comes before its run", part.name())));
        };
        run.know(part);
        Ok(())
    }

    /// Says the first difference between what a state has and what the records say.
    pub(super) fn compare(&self, there: &Self) -> Result<(), Violation> {
        hold(Law::StateFollowsLog, there.next == self.next, || "the next run differs".to_owned())?;
        hold(Law::StateFollowsLog, there.versions == self.versions, || {
            "the workflows differ".to_owned()
        })?;
        let ids = there.runs.keys().chain(self.runs.keys());
        let differs = ids.into_iter().find(|id| there.runs.get(id) != self.runs.get(id));
        differs.map_or(Ok(()), |id| {
            let (is, by_log) = (there.runs.get(id), self.runs.get(id));
            Err(broken(
                Law::StateFollowsLog,
                format!("run {id} is {is:?}, and by the log {by_log:?}"),
            ))
        })
    }
}

impl Row {
    /// A run whose tokens and groups are still to come.
    fn of(item: &HeadItem<'_>) -> Self {
        let ending = item.ending_scopes.iter().map(|scope| (scope.group, scope.index));
        Self {
            workflow: item.workflow.to_shared(),
            version: item.version,
            is_over: item.state.is_terminal(),
            is_ending: item.ending.is_some(),
            ending: ending.collect(),
            is_parked: item.parked.is_some(),
            parent: item.parent,
            top: if item.top.is_some() { item.top } else { item.id },
            descendants: item.descendants,
            last_lsn: item.last_lsn,
            ..Self::default()
        }
    }

    fn know(&mut self, part: &RunPart<'_>) {
        match part {
            RunPart::Token(item) => {
                self.tokens += 1;
                if !item.state.is_terminal() {
                    self.live.insert(TokenId(self.tokens));
                }
                if item.task.is_some() {
                    self.tasks.insert(item.task);
                }
            }
            RunPart::Group(item) => {
                let settled =
                    [item.arrived, item.failed, item.canceled, item.timed_out, item.ended];
                self.groups.push(GroupRow {
                    total: item.total,
                    settled: settled.into_iter().fold(0, u32::saturating_add),
                    is_open: item.state == GroupState::Open,
                    fan_in: item.fan_in,
                });
            }
            RunPart::Head(_)
            | RunPart::Branch(_)
            | RunPart::Kept(_)
            | RunPart::Signal(_)
            | RunPart::SignalId(_) => {}
        }
    }
}

impl Audit {
    pub(super) fn run_begun(&mut self, item: &RunBegun<'_>) -> Result<(), Violation> {
        let id = item.run_id;
        hold(Law::RunsGrowInOrder, id == self.runs.next && id.0 <= ID_MAX, || {
            format!("run {id} begins where {} comes next", self.runs.next)
        })?;
        let versions = self.runs.versions.get(item.workflow.as_str());
        let is_known = versions.is_some_and(|known| known.kept.contains(&item.version));
        hold(Law::RunsGrowInOrder, is_known, || {
            let name = item.workflow.as_str();
            format!(
                "run {id} is of workflow {name:?}, version {}, which is not known",
                item.version
            )
        })?;
        hold(Law::KeysAreUnique, item.key.is_some() || item.start_hash.is_none(), || {
            format!("run {id} has the hash of a start under a key, and no key")
        })?;
        self.runs.next = id.next();
        let parent = self.runs.runs.get(&item.parent).map(|parent| parent.top);
        let top = parent.unwrap_or(id);
        hold(Law::RunsGrowInOrder, !item.root.is_some() || item.root == top, || {
            let said = item.root;
            format!("run {id} is said to be in the tree of run {said}, and is in that of {top}")
        })?;
        let row = Row {
            workflow: item.workflow.to_shared(),
            version: item.version,
            last_lsn: self.lsn,
            parent: item.parent,
            top,
            ..Row::default()
        };
        self.runs.runs.insert(id, row);
        if let Some(top) = self.runs.runs.get_mut(&top).filter(|_| top != id) {
            top.descendants += 1;
        }
        Ok(())
    }

    pub(super) fn signaled(&mut self, item: &SignalReceived<'_>) -> Result<(), Violation> {
        let lsn = self.lsn;
        hold(Law::KeysAreUnique, item.signal_id.is_some() || item.signal_hash.is_none(), || {
            format!("a signal for run {} has the hash of one with an id, and no id", item.run_id)
        })?;
        let run = self.live_run(item.run_id)?;
        chain(item.run_id, run, item.previous)?;
        let is_live = item.token == TokenId::NONE || run.live.contains(&item.token);
        run.last_lsn = lsn;
        hold(Law::TheEndedStaysEnded, is_live, || {
            format!("token {} of run {} gets a signal and is not live", item.token, item.run_id)
        })
    }

    /// A run stands still, or goes on.
    pub(super) fn run_parked(
        &mut self,
        id: RunId,
        previous: Lsn,
        is_parked: bool,
    ) -> Result<(), Violation> {
        let lsn = self.lsn;
        let run = self.live_run(id)?;
        chain(id, run, previous)?;
        run.last_lsn = lsn;
        let changes = std::mem::replace(&mut run.is_parked, is_parked) != is_parked;
        hold(Law::RecordsSaySomething, changes, || {
            format!("run {id} is parked or unparked, and was so before")
        })
    }

    /// Whether something of a run, or of one above it, is ending.
    pub(super) fn may_be_ending(&self, mut id: RunId) -> bool {
        while let Some(run) = self.runs.runs.get(&id) {
            if run.is_ending || !run.ending.is_empty() {
                return true;
            }
            id = run.parent;
        }
        false
    }

    pub(super) fn run_purged(&mut self, id: RunId) -> Result<(), Violation> {
        let run = self.runs.runs.remove(&id).filter(|run| run.is_over);
        let Some(run) = run else {
            return Err(broken(
                Law::OnlyTheEndedIsPurged,
                format!("run {id} is purged and not over"),
            ));
        };
        run.tasks.iter().try_for_each(|task| self.purged(*task))
    }

    pub(super) fn cascade(&mut self, decisions: &[Decision<'_>]) -> Result<(), Violation> {
        decisions.iter().try_for_each(|decision| self.decision(decision))
    }

    fn live_run(&mut self, id: RunId) -> Result<&mut Row, Violation> {
        match self.runs.runs.get_mut(&id) {
            Some(run) if !run.is_over => Ok(run),
            Some(_) => {
                Err(broken(Law::TheEndedStaysEnded, format!("run {id} is over and changes")))
            }
            None => Err(broken(Law::RunsGrowInOrder, format!("run {id} never began"))),
        }
    }

    fn decision(&mut self, decision: &Decision<'_>) -> Result<(), Violation> {
        let (id, lsn) = (decision.run_id, self.lsn);
        let run = self.live_run(id)?;
        hold(Law::WhatEndsOnlyEnds, !run.is_ending || only_ends(&decision.step), || {
            format!("run {id} is ending, and there is a {}", decision.step.name())
        })?;
        if run.last_lsn != lsn {
            chain(id, run, decision.previous)?;
            run.last_lsn = lsn;
        }
        match &decision.step {
            Step::CreateTokens(step) => {
                step.tokens.iter().try_for_each(|new| begin_token(id, run, new.token))
            }
            Step::OpenGroup(step) => open_group(id, run, step),
            Step::CreateFanInToken(step) => {
                begin_token(id, run, step.token)?;
                let group = group(id, run, step.group)?;
                let is_first = !std::mem::replace(&mut group.fan_in, step.token).is_some();
                hold(Law::GroupsCloseOnce, is_first && group.is_open, || {
                    format!("group {} of run {id} gets a second fan-in token", step.group)
                })
            }
            Step::ActivateFanInToken(step) => {
                let is_its = group(id, run, step.group)?.fan_in == step.token;
                hold(Law::GroupsCloseOnce, is_its, || {
                    format!("group {} of run {id} activates a token that is not its", step.group)
                })?;
                is_live(id, run, step.token)
            }
            Step::UpdateTokenStates(step) => step.tokens.iter().try_for_each(|update| {
                is_live(id, run, update.token)?;
                if update.state.is_terminal() {
                    run.live.remove(&update.token);
                }
                Ok(())
            }),
            Step::SettleBranch(step) => settle(id, run, step),
            Step::DropBranches(step) => {
                let group = group(id, run, step.group)?;
                let closes = group.is_open && step.state != GroupState::Open;
                group.is_open = false;
                hold(Law::GroupsCloseOnce, closes, || {
                    format!("group {} of run {id} closes a second time", step.group)
                })
            }
            Step::MarkForDispatch(step) => {
                for item in &step.tokens {
                    is_live(id, run, item.token)?;
                    run.tasks.extend(item.task.as_ref().map(|task| task.task_id));
                }
                let tasks = step.tokens.iter().filter_map(|item| item.task.as_ref());
                tasks.into_iter().try_for_each(|task| self.created(task))
            }
            Step::CancelTokens(step) => {
                for token in step.tokens.iter() {
                    is_live(id, run, token)?;
                    run.live.remove(&token);
                }
                for tasks in &step.tasks {
                    tasks.tasks.iter().try_for_each(|it| self.task_stopped(tasks, it))?;
                }
                Ok(())
            }
            Step::StartChild(step) => {
                is_live(id, run, step.token)?;
                self.run_begun(&step.run)
            }
            Step::FinishRun(step) => finish(id, run, step.state),
            Step::EndScope(step) => begin_to_end(id, run, step),
            Step::CloseScope(step) => {
                let was_ending = run.ending.remove(&(step.group, step.index));
                hold(Law::WhatEndsOnlyEnds, was_ending, || {
                    format!("group {} of run {id} is closed, and was not ending", step.group)
                })
            }
            Step::ApplyNodeOutput(step) => is_live(id, run, step.token),
            Step::TakeSignal(step) => is_live(id, run, step.token),
            Step::StageArtifact(step) => is_live(id, run, step.token),
            Step::PromoteArtifacts(step) => {
                let group = group(id, run, step.group)?;
                let is_its = step.branches.iter().all(|index| *index < group.total);
                hold(Law::GroupsCloseOnce, group.is_open && is_its, || {
                    format!("group {} of run {id} promotes what is not its", step.group)
                })
            }
            Step::SetTimer(step) => match step.token.is_some() {
                true => is_live(id, run, step.token),
                false => group(id, run, step.group).map(|_| ()),
            },
            Step::SetContext(_) => Ok(()),
            Step::MergeBranches(step) => group(id, run, step.group).map(|_| ()),
        }
    }

    /// A task that ends with its token: leased or not, it is CANCELED.
    fn task_stopped(&mut self, tasks: &StoppedTasks<'_>, item: Stopped) -> Result<(), Violation> {
        let id = item.task_id;
        let mut row = self.exists(id)?;
        let knows = self.queues.text(row.queue) == tasks.queue.as_str()
            && row.priority == tasks.priority
            && row.state == item.from;
        hold(Law::ItemsKnowTheirTask, knows, || format!("task {id} is not as its run says"))?;
        hold(Law::HistoryIsAChain, item.previous == row.last_lsn, || {
            format!(
                "task {id} was last changed by LSN {}, and is said to be by {}",
                row.last_lsn, item.previous
            )
        })?;
        hold(Law::CountersFollowFacts, item.attempt == row.attempt, || {
            format!("task {id} is at attempt {}, and should be at {}", item.attempt, row.attempt)
        })?;
        match row.state {
            TaskState::Leased => {
                is_open(id, &row, item.lease_id)?;
                self.is_holder(id, &row, &tasks.worker)?;
                self.summary.ends.canceled += 1;
            }
            TaskState::Waiting => {
                hold(Law::OnlyTheOpenLeaseCounts, item.lease_id == LeaseId::NONE, || {
                    format!("task {id} is WAITING, and lease {} is ended", item.lease_id)
                })?;
            }
            TaskState::Completed | TaskState::Failed | TaskState::Dead | TaskState::Canceled => {
                let found = format!("task {id} is {} already, and is to stop", row.state);
                return Err(broken(Law::OnlyLegalSteps, found));
            }
        }
        row.cancel_requested = true;
        self.end(id, row, TaskState::Canceled, Timestamp::ZERO);
        Ok(())
    }
}

fn open_group(id: RunId, run: &mut Row, step: &OpenGroup<'_>) -> Result<(), Violation> {
    hold(Law::RunsGrowInOrder, step.group.0 as usize == run.groups.len() + 1, || {
        format!("group {} of run {id} opens out of order", step.group)
    })?;
    let (total, fan_in) = (step.total, TokenId::NONE);
    run.groups.push(GroupRow { total, settled: 0, is_open: true, fan_in });
    Ok(())
}

fn finish(id: RunId, run: &mut Row, state: RunState) -> Result<(), Violation> {
    run.is_over = state.is_terminal();
    (run.is_ending, run.is_parked) = (false, false);
    hold(Law::WhatEndsOnlyEnds, run.ending.is_empty(), || {
        format!("run {id} is over, and some of it is still ending")
    })?;
    hold(Law::TheEndedStaysEnded, run.is_over && run.live.is_empty(), || {
        format!("run {id} is over with {} live tokens", run.live.len())
    })
}

fn begin_to_end(id: RunId, run: &mut Row, step: &EndScope) -> Result<(), Violation> {
    if step.group == GroupId::NONE {
        let is_first = !std::mem::replace(&mut run.is_ending, true);
        return hold(Law::WhatEndsOnlyEnds, is_first && step.state.is_terminal(), || {
            format!("run {id} begins to end a second time, or as nothing")
        });
    }
    group(id, run, step.group)?;
    let is_new = run.ending.insert((step.group, step.index));
    hold(Law::WhatEndsOnlyEnds, is_new, || {
        format!("group {} of run {id} begins to end a second time", step.group)
    })
}

/// What may still be decided about a run that ends as a whole: its parts end, each once, and then
/// the run itself.
fn only_ends(step: &Step<'_>) -> bool {
    matches!(
        step,
        Step::CancelTokens(_)
            | Step::SettleBranch(_)
            | Step::DropBranches(_)
            | Step::CloseScope(_)
            | Step::FinishRun(_)
    )
}

fn chain(id: RunId, run: &Row, previous: Lsn) -> Result<(), Violation> {
    hold(Law::HistoryIsAChain, previous == run.last_lsn, || {
        format!(
            "run {id} was last changed by LSN {}, and is said to be by {previous}",
            run.last_lsn
        )
    })
}

fn begin_token(id: RunId, run: &mut Row, token: TokenId) -> Result<(), Violation> {
    hold(Law::RunsGrowInOrder, token.0 == run.tokens + 1, || {
        format!("token {token} of run {id} begins where {} comes next", run.tokens + 1)
    })?;
    run.tokens = token.0;
    run.live.insert(token);
    Ok(())
}

fn is_live(id: RunId, run: &Row, token: TokenId) -> Result<(), Violation> {
    hold(Law::TheEndedStaysEnded, run.live.contains(&token), || {
        format!("token {token} of run {id} has ended, or never began, and changes")
    })
}

fn group(id: RunId, run: &mut Row, group: GroupId) -> Result<&mut GroupRow, Violation> {
    let place = (group.0 as usize).checked_sub(1);
    let found = place.and_then(|place| run.groups.get_mut(place));
    found.ok_or_else(|| {
        broken(Law::RunsGrowInOrder, format!("group {group} of run {id} never opened"))
    })
}

fn settle(id: RunId, run: &mut Row, step: &SettleBranch) -> Result<(), Violation> {
    let group = group(id, run, step.group)?;
    let settled = group.settled.saturating_add(step.count);
    let last = if step.rest { step.count } else { step.index.saturating_add(step.count) };
    let is_all = !step.rest || settled == group.total;
    let in_range = last <= group.total && settled <= group.total && is_all;
    let says = in_range && step.count > 0 && step.outcome != BranchOutcome::Open;
    group.settled = settled;
    hold(Law::GroupsCloseOnce, says, || {
        format!("{settled} branches of group {} of run {id} have settled", step.group)
    })
}
