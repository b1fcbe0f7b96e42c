//! The work list: what one thing that happened leads to, first in, first out, never by recursion.

use std::collections::VecDeque;
use std::sync::Arc;

use tenure_flow::Definition;
use tenure_record::artifact::Artifact;
use tenure_record::event::{
    ArtifactItem, Decision, EndScope, FinishRun, MergeBranches, OpenGroup, RunState, SettleBranch,
    Step, StoppedTasks, TokenState,
};
use tenure_record::id::{GroupId, Lsn, RunId, TaskId, TokenId};
use tenure_record::time::Now;
use tenure_value::Value;

use super::error::RunFault;
use crate::apply::precomputed::Precomputed;
use crate::apply::{self, Stamp};
use crate::limits::CASCADE_BYTES_MAX;
use crate::planted::{self, Bug};
use crate::state::{Draft, Ledger, Run, Runs, ScopeRef, Token, Work};

/// A token in its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub run: RunId,
    pub token: TokenId,
}

/// Something that is still to be decided.
#[derive(Debug)]
pub(super) enum Task {
    /// A token begins.
    Start(At),
    /// A node gave its result.
    Accept(At, Value, Source),
    /// A node failed; transitions for errors get a try.
    Fail(At, Value, TokenState),
    /// Nothing may be live in a scope any more.
    Settle(RunId, ScopeRef),
    /// A group may have met.
    CheckSynchronization(RunId, GroupId),
    /// More branches of a group may begin.
    Fill(RunId, GroupId),
    /// A run's parent does not need it any more.
    Cancel(RunId),
}

/// Where a node's result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// In the item to which the cascade belongs.
    Item,
    /// Nowhere else.
    Decision,
}

/// A cascade under way.
pub(crate) struct Cascade<'d, 's> {
    pub(super) draft: &'d mut Draft<'s>,
    pub(super) now: Now,
    decisions: Vec<Decision<'static>>,
    /// What is computed while its decisions are taken.
    pub(super) precomputed: Precomputed,
    /// How much of that the draft has seen.
    recalled: (usize, usize),
    work: VecDeque<Task>,
    /// Tokens routed and children started.
    pub(super) steps: u32,
    /// Tokens, tasks and child runs that ended with a scope around them.
    ended: usize,
    items_max: usize,
    bytes: usize,
    /// Runs in which nothing was live when they were changed last.
    quiet: Vec<RunId>,
    /// Files that the completion handed in, until they are staged.
    pub(super) artifacts: Vec<Artifact>,
}

/// How a task ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TaskEnd<'a> {
    Completed(&'a [u8], &'a [Artifact]),
    Failed { code: &'a str, reason: &'a str },
    Dead,
    Canceled,
}

/// What the end of a task means to its run. The end itself is in the draft already.
pub(crate) fn task_ended(
    draft: &mut Draft<'_>,
    now: Now,
    task_id: TaskId,
    end: TaskEnd<'_>,
) -> Vec<Decision<'static>> {
    let link = Ledger::cold(draft, task_id).and_then(|cold| cold.run);
    let Some((run, token)) = link else { return Vec::new() };
    let attempts = Ledger::task(draft, task_id).map_or(0, |task| task.attempt);
    let at = At { run, token };
    let mut cascade = Cascade::new(draft, now);
    // A result for a token that has ended is dropped.
    if cascade.live_token(at).is_some_and(|token| token.work == Work::Task(task_id)) {
        cascade.take_end(at, attempts, end);
    }
    cascade.finish()
}

impl<'d, 's> Cascade<'d, 's> {
    pub(crate) fn new(draft: &'d mut Draft<'s>, now: Now) -> Self {
        let items_max = match planted::has(Bug::EndInOneRecord) {
            true => usize::MAX,
            false => draft.base().end_items_max(),
        };
        Self {
            draft,
            now,
            decisions: Vec::new(),
            precomputed: Precomputed::default(),
            recalled: (0, 0),
            work: VecDeque::new(),
            steps: 0,
            ended: 0,
            items_max,
            bytes: 0,
            quiet: Vec::new(),
            artifacts: Vec::new(),
        }
    }

    /// A cascade that ends no more than so many items with their scopes.
    pub(crate) fn with_items_max(draft: &'d mut Draft<'s>, now: Now, items_max: usize) -> Self {
        Self { items_max, ..Self::new(draft, now) }
    }

    /// How many more items this record may end with their scopes.
    pub(super) fn items_left(&self) -> usize {
        self.items_max.saturating_sub(self.ended)
    }

    pub(super) fn items_max(&self) -> usize {
        self.items_max
    }

    pub(super) fn spend(&mut self, items: usize) {
        if planted::has(Bug::EndsUncounted) {
            return;
        }
        self.ended += items;
        self.draft.spent.ended += items;
    }

    fn take_end(&mut self, at: At, attempts: u32, end: TaskEnd<'_>) {
        if let TaskEnd::Completed(_, artifacts) = end {
            self.artifacts = artifacts.to_vec();
        }
        let fault = match end {
            TaskEnd::Completed([], _) => {
                return self.push(Task::Accept(at, Value::Null, Source::Item));
            }
            TaskEnd::Completed(text, _) => match Value::from_json_exact(text) {
                Ok(value) => return self.push(Task::Accept(at, value, Source::Item)),
                Err(fault) => RunFault::new("OUTPUT_INVALID", fault.about("the output")),
            },
            TaskEnd::Failed { code, reason } => RunFault::new(code, reason),
            TaskEnd::Dead => {
                RunFault::new("TASK_DEAD", "its workers kept vanishing; look at what they ran into")
            }
            TaskEnd::Canceled => RunFault::new("TASK_CANCELED", "its task was canceled"),
        };
        self.fail_node(at, attempts, &fault, TokenState::Failed);
    }

    /// A node failed.
    pub(crate) fn fail_node(&mut self, at: At, attempts: u32, fault: &RunFault, state: TokenState) {
        let node = self.node_name(at);
        let error = fault.at(Some(&node), attempts, None);
        self.push(Task::Fail(at, error, state));
    }

    /// A node gave its result, which the item of this cascade holds.
    pub(crate) fn accept_item(&mut self, at: At, value: Value) {
        self.push(Task::Accept(at, value, Source::Item));
    }

    /// A node gave its result, which is nowhere else.
    pub(crate) fn accept_value(&mut self, at: At, value: Value) {
        self.push(Task::Accept(at, value, Source::Decision));
    }

    /// Works until nothing is left to do, and gives the decisions.
    pub(crate) fn finish(mut self) -> Vec<Decision<'static>> {
        loop {
            while let Some(task) = self.work.pop_front() {
                self.do_next(task);
            }
            // A run is over only when the whole cascade is: its output sees all of it.
            let Some(run) = self.quiet.pop() else {
                self.draft.precomputed.append(self.precomputed);
                return self.decisions;
            };
            if self.is_over(run) {
                self.complete_run(run);
            }
        }
    }

    fn do_next(&mut self, task: Task) {
        match task {
            Task::Start(at) => self.start(at),
            Task::Accept(at, value, source) => self.accept(at, &value, source),
            Task::Fail(at, error, state) => self.fail(at, error, state),
            Task::Settle(run, scope) => self.settle(run, scope),
            Task::CheckSynchronization(run, group) => self.check_synchronization(run, group),
            Task::Fill(run, group) => self.fill(run, group),
            Task::Cancel(run) => self.cancel_run(run, RunState::Canceled, None),
        }
    }

    pub(super) fn push(&mut self, task: Task) {
        let is_lost = planted::has(Bug::TokenLostInCascade)
            && matches!(task, Task::Start(At { run, token }) if run.0 % 4 == 3 && token.0.is_multiple_of(2));
        if !is_lost {
            self.work.push_back(task);
        }
    }

    /// Takes a decision: it is applied to the draft at once, and joined with the one before if that
    /// is of its kind.
    pub(super) fn emit(&mut self, run_id: RunId, step: Step<'static>) {
        let lsn = self.draft.lsn();
        let last = self.run(run_id).last_lsn;
        let previous = if last == lsn { Lsn::NONE } else { last };
        let decision = Decision { run_id, previous, step };
        let stamp = Stamp::new(lsn, self.now);
        let mut recall = self.precomputed.recall(self.recalled);
        let cause = apply::run::Cause::Nothing;
        apply::run::apply_decision(self.draft, stamp, &decision, cause, &mut recall);
        self.recalled = self.precomputed.mark();
        let bytes = bytes_of(&decision.step);
        self.bytes += bytes;
        self.draft.spent.bytes += bytes;
        self.draft.count_work(1 + bytes / 1_024);
        if self.is_over(run_id) {
            self.quiet.push(run_id);
        }
        match self.decisions.last_mut() {
            Some(before) if before.run_id == run_id => {
                if let Some(step) = join(&mut before.step, decision.step) {
                    self.decisions.push(Decision { run_id, previous, step });
                }
            }
            _ => self.decisions.push(decision),
        }
    }

    /// A run that begins in this record.
    pub(crate) fn begin_run(&mut self, run: RunId) {
        self.first_token(run);
    }

    /// Whether so many more bytes would still fit a record.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.bytes.saturating_add(bytes) <= CASCADE_BYTES_MAX
    }

    pub(super) fn run(&self, id: RunId) -> &Run {
        Runs::run(self.draft, id).expect("a cascade is about runs that exist")
    }

    pub(crate) fn definition(&self, id: RunId) -> Arc<Definition> {
        Arc::clone(self.run(id).workflow.definition())
    }

    pub(super) fn token(&self, at: At) -> &Token {
        Runs::token(self.draft, at.run, at.token).expect("a cascade is about tokens that exist")
    }

    /// A token, if it and its run have not ended and are not ending.
    pub(crate) fn live_token(&self, at: At) -> Option<&Token> {
        let token = Runs::token(self.draft, at.run, at.token)?;
        let is_live = !token.state.is_terminal() && self.draft.goes_on(at.run, token.scope);
        is_live.then_some(token)
    }

    pub(super) fn node_name(&self, at: At) -> Arc<str> {
        let node = self.token(at).node;
        Arc::clone(&self.run(at.run).workflow.nodes[node as usize])
    }

    pub(super) fn next_token(&self, run: RunId) -> TokenId {
        TokenId(self.run(run).tokens + 1)
    }

    fn is_over(&self, id: RunId) -> bool {
        let run = self.run(id);
        // Groups of a scope that is ending may be open when its last token has ended.
        let is_quiet = run.live == 0 && run.unstarted == 0 && run.endings.is_none();
        is_quiet && run.state == RunState::Running
    }
}

/// Adds a decision to the one before, if both are of one kind. Gives it back if they are not.
fn join(before: &mut Step<'static>, after: Step<'static>) -> Option<Step<'static>> {
    match (before, after) {
        (Step::CreateTokens(before), Step::CreateTokens(after)) => {
            before.tokens.extend(after.tokens);
        }
        (Step::UpdateTokenStates(before), Step::UpdateTokenStates(after)) => {
            before.tokens.extend(after.tokens);
        }
        (Step::MarkForDispatch(before), Step::MarkForDispatch(after)) => {
            before.tokens.extend(after.tokens);
        }
        (Step::SetContext(before), Step::SetContext(after))
            if (before.group, before.index) == (after.group, after.index) =>
        {
            before.writes.extend(after.writes);
        }
        (_, after) => return Some(after),
    }
    None
}

/// What decisions take in a record, or a little more.
#[must_use]
pub fn bytes(decisions: &[Decision<'_>]) -> usize {
    decisions.iter().map(|decision| bytes_of(&decision.step)).sum()
}

/// What a decision takes in a record, or a little more.
fn bytes_of(step: &Step<'_>) -> usize {
    const NUMBERS: usize = 48;
    let json =
        |json: &Option<tenure_record::event::Json>| json.as_ref().map_or(0, |json| json.0.bytes());
    let file =
        |it: &ArtifactItem<'_>| 2 * NUMBERS + it.name.as_str().len() + it.media_type.as_str().len();
    let texts = match step {
        Step::CreateTokens(step) => {
            let tokens = step.tokens.iter();
            tokens.map(|new| NUMBERS + new.loops.len() * 12 + json(&new.error)).sum()
        }
        Step::OpenGroup(OpenGroup { spawns, .. }) => {
            spawns.iter().map(|it| NUMBERS + json(&it.items) + json(&it.keys)).sum()
        }
        Step::UpdateTokenStates(step) => {
            step.tokens.iter().map(|update| NUMBERS + json(&update.error)).sum()
        }
        Step::SettleBranch(SettleBranch { values, error, .. }) => {
            values.iter().map(|given| 8 + json(&given.value)).sum::<usize>() + json(error)
        }
        Step::MarkForDispatch(step) => {
            let tasks = step.tokens.iter().filter_map(|item| item.task.as_ref());
            let tasks = tasks.map(|task| task.payload.len() + task.queue.as_str().len() + 160);
            tasks.sum::<usize>() + step.tokens.len() * NUMBERS
        }
        Step::ApplyNodeOutput(step) => json(&step.output),
        Step::SetContext(step) => step.writes.iter().map(|it| 64 + it.value.0.bytes()).sum(),
        Step::MergeBranches(MergeBranches { merges, .. }) => merges.len() * 300,
        Step::CancelTokens(step) => {
            let names = |it: &StoppedTasks<'_>| it.queue.as_str().len() + it.worker.as_str().len();
            let tasks = step.tasks.iter().map(|it| 16 + names(it) + it.tasks.bytes());
            step.tokens.bytes() + tasks.sum::<usize>()
        }
        Step::StartChild(step) => step.run.input.0.bytes() + step.run.context.0.bytes() + 512,
        Step::FinishRun(FinishRun { output, error, artifacts, .. }) => {
            let named = artifacts.iter().map(|it| it.name.as_str().len() + file(&it.artifact));
            json(output) + json(error) + named.sum::<usize>()
        }
        Step::StageArtifact(step) => file(&step.artifact),
        Step::PromoteArtifacts(step) => step.branches.len() * 5,
        Step::CreateFanInToken(_)
        | Step::ActivateFanInToken(_)
        | Step::DropBranches(_)
        | Step::SetTimer(_)
        | Step::TakeSignal(_)
        | Step::CloseScope(_) => 0,
        Step::EndScope(EndScope { error, .. }) => json(error),
    };
    texts + NUMBERS
}
