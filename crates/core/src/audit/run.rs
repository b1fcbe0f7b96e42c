//! The laws of runs that a log shows by itself: what begins, what ends, and that it stays ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Audit;
use super::law::{Law, Violation, broken, hold};
use super::lease::is_open;
use crate::event::{
    BranchOutcome, Decision, GroupState, RunBegun, SettleBranch, SignalReceived, Step, Stopped,
    StoppedTasks, WorkflowRegistered,
};
use crate::id::{GroupId, ID_MAX, LeaseId, Lsn, RunId, TaskId, TokenId};
use crate::state::{Facts, StateName, StoredRun, Work};
use crate::time::Timestamp;

/// Runs as the records so far have left them.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    pub next: RunId,
    runs: BTreeMap<RunId, Row>,
    versions: BTreeMap<Arc<str>, u32>,
}

impl Default for Runs {
    fn default() -> Self {
        Self { next: RunId(1), runs: BTreeMap::new(), versions: BTreeMap::new() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    tokens: u32,
    live: BTreeSet<TokenId>,
    groups: Vec<GroupRow>,
    tasks: BTreeSet<TaskId>,
    is_over: bool,
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
    /// What was before the records: workflows and runs as a state has them.
    pub(super) fn of(facts: &Facts) -> Self {
        let versions = facts.workflows.iter();
        let versions = versions.map(|(name, versions)| (Arc::clone(name), versions.len() as u32));
        let runs = facts.runs.iter().map(|(id, stored)| (RunId(id), Row::of(stored)));
        Self { next: facts.next_run_id, runs: runs.collect(), versions: versions.collect() }
    }

    /// Says the first difference between these facts and what the records say.
    pub(super) fn compare(&self, facts: &Facts) -> Result<(), Violation> {
        let there = Self::of(facts);
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
    fn of(stored: &StoredRun) -> Self {
        let live = stored.tokens().filter(|(_, token)| !token.state.is_terminal());
        let tasks = stored.tokens().filter_map(|(_, token)| match token.work {
            Work::Task(id) => Some(id),
            Work::Nothing | Work::Child(_) | Work::Signal(_) | Work::Timer(_) => None,
        });
        let groups = stored.groups.iter().map(|group| GroupRow {
            total: group.head.total,
            settled: group.head.settled(),
            is_open: group.head.state == GroupState::Open,
            fan_in: group.head.fan_in,
        });
        Self {
            tokens: stored.head.tokens,
            live: live.map(|(id, _)| id).collect(),
            groups: groups.collect(),
            tasks: tasks.collect(),
            is_over: stored.head.state.is_terminal(),
            last_lsn: stored.head.last_lsn,
        }
    }
}

impl Audit {
    pub(super) fn registered(&mut self, item: &WorkflowRegistered<'_>) -> Result<(), Violation> {
        let version = self.runs.versions.entry(Arc::from(item.name.as_str())).or_default();
        *version += 1;
        let right = *version;
        hold(Law::RunsGrowInOrder, item.version == right, || {
            let name = item.name.as_str();
            format!(
                "workflow {name:?} is registered as version {} after {}",
                item.version,
                right - 1
            )
        })
    }

    pub(super) fn run_begun(&mut self, item: &RunBegun<'_>) -> Result<(), Violation> {
        let id = item.run_id;
        hold(Law::RunsGrowInOrder, id == self.runs.next && id.0 <= ID_MAX, || {
            format!("run {id} begins where {} comes next", self.runs.next)
        })?;
        let versions = self.runs.versions.get(item.workflow.as_str()).copied();
        let is_known = item.version > 0 && versions.is_some_and(|known| item.version <= known);
        hold(Law::RunsGrowInOrder, is_known, || {
            let name = item.workflow.as_str();
            format!(
                "run {id} is of workflow {name:?}, version {}, which is not known",
                item.version
            )
        })?;
        self.runs.next = id.next();
        self.runs.runs.insert(id, Row { last_lsn: self.lsn, ..Row::default() });
        Ok(())
    }

    pub(super) fn signaled(&mut self, item: &SignalReceived<'_>) -> Result<(), Violation> {
        let lsn = self.lsn;
        let run = self.live_run(item.run_id)?;
        chain(item.run_id, run, item.previous)?;
        let is_live = item.token == TokenId::NONE || run.live.contains(&item.token);
        run.last_lsn = lsn;
        hold(Law::TheEndedStaysEnded, is_live, || {
            format!("token {} of run {} gets a signal and is not live", item.token, item.run_id)
        })
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
        if run.last_lsn != lsn {
            chain(id, run, decision.previous)?;
            run.last_lsn = lsn;
        }
        match &decision.step {
            Step::CreateTokens(step) => {
                step.tokens.iter().try_for_each(|new| begin_token(id, run, new.token))
            }
            Step::OpenGroup(step) => {
                let total = step.total;
                hold(Law::RunsGrowInOrder, step.group.0 as usize == run.groups.len() + 1, || {
                    format!("group {} of run {id} opens out of order", step.group)
                })?;
                run.groups.push(GroupRow {
                    total,
                    settled: 0,
                    is_open: true,
                    fan_in: TokenId::NONE,
                });
                Ok(())
            }
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
            Step::FinishRun(step) => {
                run.is_over = step.state.is_terminal();
                hold(Law::TheEndedStaysEnded, run.is_over && run.live.is_empty(), || {
                    format!("run {id} is over with {} live tokens", run.live.len())
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
            StateName::Leased => {
                is_open(id, &row, item.lease_id)?;
                self.is_holder(id, &row, &tasks.worker)?;
                self.summary.ends.canceled += 1;
            }
            StateName::Waiting => {
                hold(Law::OnlyTheOpenLeaseCounts, item.lease_id == LeaseId::NONE, || {
                    format!("task {id} is WAITING, and lease {} is ended", item.lease_id)
                })?;
            }
            StateName::Completed | StateName::Failed | StateName::Dead | StateName::Canceled => {
                let found = format!("task {id} is {} already, and is to stop", row.state);
                return Err(broken(Law::OnlyLegalSteps, found));
            }
        }
        row.cancel_requested = true;
        self.end(id, row, StateName::Canceled, Timestamp::ZERO);
        Ok(())
    }
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
