//! What ends because nothing needs it any more: tokens, their tasks, child runs, groups inside. What
//! is more than one record may end becomes an `EndScope`, and `ending.rs` goes on with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_record::event::{
    BranchOutcome, CancelTokens, DropBranches, EndScope, FinishRun, GroupState, Json, RunState,
    SettleBranch, Step, Stopped, StoppedRows, StoppedTasks, TokenRows,
};
use tenure_record::id::{GroupId, LeaseId, RunId, TaskId, TokenId};
use tenure_record::name::Text;
use tenure_record::state::TaskState;
use tenure_record::terms::Priority;
use tenure_value::Value;

use super::cascade::{At, Cascade, Task};
use crate::limits::END_SCAN_MAX;
use crate::state::{Ledger, Runs, ScopeRef, Token, Work};

/// Rows of branches that are settled one by one; more are settled as the rest of their group.
const SETTLED_ROWS_MAX: usize = 8;

/// What is live in a scope and deeper, as far as one record may end it.
#[derive(Default)]
pub(super) struct Live {
    tokens: Vec<TokenId>,
    /// Groups that close, inner ones first.
    groups: Vec<GroupId>,
    /// Tokens, their tasks and children, and groups.
    items: usize,
    most: usize,
}

impl Live {
    pub(super) fn up_to(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    fn takes(&mut self, items: usize) -> bool {
        let fits = self.items + items <= self.most;
        self.items += if fits { items } else { 0 };
        fits
    }
}

impl Cascade<'_, '_> {
    /// Ends what is live in a branch and deeper; the branch itself is settled by the caller.
    pub(super) fn cancel_scope(&mut self, run: RunId, at: ScopeRef) {
        let mut live = Live::up_to(self.items_left());
        let is_whole =
            self.gather_scope(run, at, &mut live) && self.has_room_for_children(run, &live);
        match is_whole {
            true => self.cancel_live(run, live),
            false => self.end_scope(run, at.group, Some(at.index)),
        }
    }

    /// Ends the branches of a group that have not settled.
    pub(super) fn cancel_branches(&mut self, run: RunId, id: GroupId, outcome: BranchOutcome) {
        let mut live = Live::up_to(self.items_left());
        let is_whole =
            self.gather_group(run, id, &mut live) && self.has_room_for_children(run, &live);
        match is_whole {
            true => self.cancel_live(run, live),
            false => self.end_scope(run, id, None),
        }
        self.settle_open(run, id, outcome);
    }

    fn end_scope(&mut self, run: RunId, group: GroupId, index: Option<u32>) {
        self.spend(1);
        let step = EndScope { group, index, state: RunState::Running, error: None };
        self.emit(run, Step::EndScope(step));
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

    /// Ends a run with all that is live in it: in this record if that is little, else in those that
    /// follow. How it ends is decided here.
    pub(crate) fn cancel_run(&mut self, run: RunId, state: RunState, error: Option<Value>) {
        let head = self.run(run);
        if head.state.is_terminal() || head.ending_root().is_some() {
            return;
        }
        let mut live = Live::up_to(self.items_left());
        if self.gather_run(run, &mut live) && self.has_room_for_children(run, &live) {
            self.cancel_live(run, live);
            self.finish_run(run, state, error);
            return;
        }
        self.spend(1);
        let error = error.map(Json);
        let step = EndScope { group: GroupId::NONE, index: None, state, error };
        self.emit(run, Step::EndScope(step));
    }

    /// Nothing of a run is live any more: it is over.
    pub(super) fn finish_run(&mut self, run: RunId, state: RunState, error: Option<Value>) {
        self.close_scopes(run);
        let artifacts = self.manifest(run, state).unwrap_or_default();
        let finish = FinishRun { state, output: None, error: error.map(Json), artifacts };
        self.emit(run, Step::FinishRun(finish));
        self.tell_parent(run);
    }

    pub(super) fn close_failed(&mut self, run: RunId, group: GroupId) {
        let state = GroupState::Failed;
        self.emit(run, Step::DropBranches(DropBranches { group, state }));
    }

    /// Gathers all that is live in a run. False if it is more than fits, or if the run has made so
    /// many tokens that looking through them takes too long.
    fn gather_run(&self, run: RunId, live: &mut Live) -> bool {
        let head = self.run(run);
        let is_long = head.tokens > END_SCAN_MAX || head.groups > END_SCAN_MAX;
        if is_long || head.live as usize > live.most {
            return false;
        }
        self.gather_tokens(run, (1..=head.tokens).map(TokenId), live)
            && self.gather_groups(run, (1..=head.groups).rev().map(GroupId), live)
    }

    /// Gathers live tokens, in this order. False if they are more than fit.
    pub(super) fn gather_tokens(
        &self,
        run: RunId,
        tokens: impl Iterator<Item = TokenId>,
        live: &mut Live,
    ) -> bool {
        for id in tokens {
            let token = Runs::token(self.draft, run, id);
            let Some(token) = token.filter(|token| !token.state.is_terminal()) else { continue };
            if !live.takes(items_of(token)) {
                return false;
            }
            live.tokens.push(id);
        }
        true
    }

    /// Gathers groups in which something is open, in this order. False if they are more than fit.
    pub(super) fn gather_groups(
        &self,
        run: RunId,
        groups: impl Iterator<Item = GroupId>,
        live: &mut Live,
    ) -> bool {
        for id in groups {
            let group = self.group(run, id);
            if group.state != GroupState::Open && group.open() == 0 {
                continue;
            }
            if !live.takes(1) {
                return false;
            }
            live.groups.push(id);
        }
        true
    }

    /// Gathers what is live in a scope and deeper. Groups are inside of groups at most
    /// [`MAX_DEPTH_MAX`] times, and so often this calls itself. False if it is more than fits.
    ///
    /// [`MAX_DEPTH_MAX`]: tenure_flow::limits::MAX_DEPTH_MAX
    pub(super) fn gather_scope(&self, run: RunId, at: ScopeRef, live: &mut Live) -> bool {
        let Some(scope) = self.draft.scope(run, at) else { return true };
        if !self.gather_tokens(run, scope.tokens.iter().copied(), live) {
            return false;
        }
        scope.groups.iter().all(|group| {
            self.gather_group(run, *group, live)
                && self.gather_groups(run, std::iter::once(*group), live)
        })
    }

    /// Gathers what is live in the branches of a group that have not settled, or are ending.
    pub(super) fn gather_group(&self, run: RunId, id: GroupId, live: &mut Live) -> bool {
        let group = self.group(run, id);
        if group.running == 0 && group.ending == 0 {
            return true;
        }
        let endings = self.run(run).endings.as_ref();
        let branches = self.draft.branches(run, id).into_iter().zip(0..);
        let mut held = branches.filter(|(branch, index)| {
            let at = ScopeRef { group: id, index: *index };
            let is_held = branch.outcome == BranchOutcome::Open
                || endings.is_some_and(|endings| endings.has_branch(at));
            let scope = branch.scope.as_ref().filter(|_| is_held);
            scope.is_some_and(|scope| !scope.tokens.is_empty() || !scope.groups.is_empty())
        });
        held.all(|(_, index)| self.gather_scope(run, ScopeRef { group: id, index }, live))
    }

    /// Whether the child runs of what was gathered would fit too, with all that is below them.
    fn has_room_for_children(&self, run: RunId, live: &Live) -> bool {
        let mut below = Live::up_to(live.most - live.items);
        let mut children = self.children(run, &live.tokens);
        while let Some(child) = children.pop() {
            let head = self.run(child);
            if head.state.is_terminal() || head.ending_root().is_some() {
                continue;
            }
            let first = below.tokens.len();
            if !self.gather_run(child, &mut below) {
                return false;
            }
            children.extend(self.children(child, &below.tokens[first..]));
        }
        true
    }

    /// Whether child runs end with what was gathered.
    pub(super) fn has_children(&self, run: RunId, live: &Live) -> bool {
        !self.children(run, &live.tokens).is_empty()
    }

    fn children(&self, run: RunId, tokens: &[TokenId]) -> Vec<RunId> {
        let child = |id: &TokenId| match Runs::token(self.draft, run, *id)?.work {
            Work::Child(child) => Some(child),
            Work::Nothing | Work::Task(_) | Work::Signal(_) | Work::Timer(..) => None,
        };
        tokens.iter().filter_map(child).collect()
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

    /// Ends what was gathered.
    pub(super) fn cancel_live(&mut self, run: RunId, mut live: Live) {
        self.spend(live.items);
        live.tokens.sort_unstable();
        let children = self.children(run, &live.tokens);
        if !live.tokens.is_empty() {
            let tasks = self.stopped_tasks(run, &live.tokens);
            let tokens = live.tokens.into_iter().collect();
            self.emit(run, Step::CancelTokens(CancelTokens { tasks, tokens }));
        }
        // What is inside ends before what is around it: inner groups have larger numbers.
        live.groups.sort_unstable();
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
        let step = SettleBranch { group: id, outcome, ..SettleBranch::default() };
        let group = self.group(run, id);
        if group.running as usize > self.items_max() || group.ending > 0 {
            let count = group.open();
            if count > 0 {
                self.emit(run, Step::SettleBranch(SettleBranch { count, rest: true, ..step }));
            }
            return;
        }
        let open = self.open_branches(run, id);
        let rows = open.chunk_by(|a, b| a + 1 == *b);
        let mut rows: Vec<_> = rows.map(|row| (row[0], row.len() as u32)).collect();
        let group = self.group(run, id);
        if group.unstarted() > 0 {
            rows.push((group.started, group.unstarted()));
        }
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
        let is_leased = task.name() == TaskState::Leased;
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

/// What the end of a token takes with it: itself, and its task or child run.
fn items_of(token: &Token) -> usize {
    match token.work {
        Work::Task(_) | Work::Child(_) => 2,
        Work::Nothing | Work::Signal(_) | Work::Timer(..) => 1,
    }
}
