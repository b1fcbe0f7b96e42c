//! What ends because nobody needs it any more: tokens, their tasks, their children, groups inside.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_flow::Value;

use super::cascade::{At, Cascade, Task};
use crate::event::{
    BranchOutcome, CancelTokens, DropBranches, FinishRun, GroupState, Json, RunState, SettleBranch,
    Step, Stopped, StoppedRows, StoppedTasks, TokenRows,
};
use crate::id::{GroupId, LeaseId, RunId, TaskId, TokenId};
use crate::name::Text;
use crate::state::{Ledger, Runs, ScopeRef, StateName, Work};
use crate::terms::Priority;

/// Rows of branches that are settled one by one; more are settled as the rest of their group.
const SETTLED_ROWS_MAX: usize = 8;

/// What is live in a scope and deeper.
#[derive(Default)]
struct Live {
    tokens: Vec<TokenId>,
    groups: Vec<GroupId>,
}

impl Cascade<'_, '_> {
    /// Ends what is live in a branch and deeper; the branch itself is settled by the caller.
    pub(super) fn cancel_scope(&mut self, run: RunId, at: ScopeRef) {
        let mut live = Live::default();
        self.gather(run, vec![at], &mut live);
        self.cancel_live(run, live);
    }

    /// Ends the branches of a group that have not settled.
    pub(super) fn cancel_branches(&mut self, run: RunId, id: GroupId, outcome: BranchOutcome) {
        let mut live = Live::default();
        let open = self.open_branches(run, id);
        let scopes = open.iter().map(|index| ScopeRef { group: id, index: *index }).collect();
        self.gather(run, scopes, &mut live);
        self.cancel_live(run, live);
        self.settle_open(run, id, outcome);
    }

    /// Ends what a token waits for, and leaves the token to be dealt with.
    pub(crate) fn stop_work(&mut self, at: At) {
        let tasks = self.stopped_tasks(at.run, &[at.token]);
        if !tasks.is_empty() {
            let tokens = TokenRows::default();
            self.emit(at.run, Step::CancelTokens(CancelTokens { tasks, tokens }));
        }
        if let Work::Child(child) = self.token(at).work {
            self.push(Task::Cancel(child));
        }
    }

    /// Ends a run with all that is live in it.
    pub(crate) fn cancel_run(&mut self, run: RunId, state: RunState, error: Option<Value>) {
        if self.run(run).state.is_terminal() {
            return;
        }
        let tokens = (1..=self.run(run).tokens).map(TokenId);
        let is_live = |id: &TokenId| {
            let token = Runs::token(self.draft, run, *id);
            token.is_some_and(|token| !token.state.is_terminal())
        };
        let tokens = tokens.filter(is_live).collect();
        let groups = (1..=self.run(run).groups).map(GroupId);
        let is_live = |id: &GroupId| {
            let group = self.group(run, *id);
            group.state == GroupState::Open || group.open() > 0
        };
        let groups = groups.filter(is_live).collect();
        self.cancel_live(run, Live { tokens, groups });
        let artifacts = self.manifest(run, state).unwrap_or_default();
        let finish = FinishRun { state, output: None, error: error.map(Json), artifacts };
        self.emit(run, Step::FinishRun(finish));
        self.tell_parent(run);
    }

    pub(super) fn close_failed(&mut self, run: RunId, group: GroupId) {
        let state = GroupState::Failed;
        self.emit(run, Step::DropBranches(DropBranches { group, state }));
    }

    /// Gathers what is live, from the outside in.
    fn gather(&self, run: RunId, mut scopes: Vec<ScopeRef>, live: &mut Live) {
        while let Some(at) = scopes.pop() {
            let Some(scope) = self.draft.scope(run, at) else { continue };
            live.tokens.extend(scope.tokens.iter().copied());
            for group in &scope.groups {
                live.groups.push(*group);
                let open = self.open_branches(run, *group).into_iter();
                scopes.extend(open.map(|index| ScopeRef { group: *group, index }));
            }
        }
        live.tokens.sort_unstable();
        live.groups.sort_unstable();
    }

    /// Branches that began and have not settled.
    fn open_branches(&self, run: RunId, id: GroupId) -> Vec<u32> {
        if self.group(run, id).running == 0 {
            return Vec::new();
        }
        let branches = self.draft.branches(run, id).into_iter().zip(0..);
        let open = branches.filter(|(branch, _)| branch.outcome == BranchOutcome::Open);
        open.map(|(_, index)| index).collect()
    }

    fn cancel_live(&mut self, run: RunId, live: Live) {
        let children: Vec<RunId> = live
            .tokens
            .iter()
            .filter_map(|id| match Runs::token(self.draft, run, *id)?.work {
                Work::Child(child) => Some(child),
                Work::Nothing | Work::Task(_) | Work::Signal(_) | Work::Timer(_) => None,
            })
            .collect();
        if !live.tokens.is_empty() {
            let tasks = self.stopped_tasks(run, &live.tokens);
            let tokens = live.tokens.into_iter().collect();
            self.emit(run, Step::CancelTokens(CancelTokens { tasks, tokens }));
        }
        // What is inside ends before what is around it: inner groups have larger numbers.
        for id in live.groups.into_iter().rev() {
            self.settle_open(run, id, BranchOutcome::Canceled);
            if self.group(run, id).state == GroupState::Open {
                self.close_failed(run, id);
            }
        }
        children.into_iter().for_each(|child| self.push(Task::Cancel(child)));
    }

    /// Settles every branch of a group that has not: row by row, or all in one if there are many.
    fn settle_open(&mut self, run: RunId, id: GroupId, outcome: BranchOutcome) {
        let open = self.open_branches(run, id);
        let rows = open.chunk_by(|a, b| a + 1 == *b);
        let mut rows: Vec<_> = rows.map(|row| (row[0], row.len() as u32)).collect();
        let group = self.group(run, id);
        if group.unstarted() > 0 {
            rows.push((group.started, group.unstarted()));
        }
        let step = SettleBranch { group: id, outcome, ..SettleBranch::default() };
        if rows.len() > SETTLED_ROWS_MAX {
            let count = group.open();
            return self.emit(run, Step::SettleBranch(SettleBranch { count, rest: true, ..step }));
        }
        for (index, count) in rows {
            self.emit(run, Step::SettleBranch(SettleBranch { index, count, ..step.clone() }));
        }
    }

    /// The tasks of tokens that have not ended, by queue, priority and worker, in the order in
    /// which the first of each comes.
    fn stopped_tasks(&self, run: RunId, tokens: &[TokenId]) -> Vec<StoppedTasks<'static>> {
        let mut all: Vec<StoppedTasks<'static>> = Vec::new();
        let mut places: BTreeMap<(Arc<str>, Priority, Arc<str>), usize> = BTreeMap::new();
        let mut last = 0;
        for id in tokens {
            let token = Runs::token(self.draft, run, *id);
            let Some(Work::Task(task_id)) = token.map(|token| &token.work) else { continue };
            let Some((queue, priority, worker, stopped)) = self.stopped(*task_id) else { continue };
            let is_alike = |it: &StoppedTasks<'_>| {
                it.queue == queue && it.priority == priority && it.worker == worker
            };
            if !all.get(last).is_some_and(is_alike) {
                let key = (queue.to_shared(), priority, worker.to_shared());
                last = *places.entry(key).or_insert_with(|| {
                    let tasks = StoppedRows::default();
                    all.push(StoppedTasks { queue, priority, worker, tasks });
                    all.len() - 1
                });
            }
            all[last].tasks.push(stopped);
        }
        all
    }

    fn stopped(
        &self,
        task_id: TaskId,
    ) -> Option<(Text<'static>, Priority, Text<'static>, Stopped)> {
        let task = Ledger::task(self.draft, task_id).filter(|task| !task.is_terminal())?;
        let is_leased = task.name() == StateName::Leased;
        let stopped = Stopped {
            task_id,
            from: task.name(),
            attempt: task.attempt,
            previous: task.last_lsn,
            lease_id: if is_leased { task.lease_id } else { LeaseId::NONE },
        };
        let queue = self.draft.queue_name(task.queue);
        Some((queue, task.priority, self.draft.holder(task), stopped))
    }
}
