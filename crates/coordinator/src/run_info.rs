//! Runs, tokens and workflows as a caller keeps them: copied at the moment of the answer, with
//! values and definitions shared, not copied.

use std::sync::Arc;

use tenure_core::State;
use tenure_core::state::{EndingView, ParkedView, RunView, TokenView, WorkflowView};
use tenure_flow::Definition;
use tenure_record::event::RunState;
use tenure_record::id::{GroupId, Lsn, RunId, TaskId, TokenId};
use tenure_record::time::{Clock, Timestamp, WallOffset};
use tenure_value::Value;

/// The states of a run as they are written outside.
pub const RUN_STATES: [&str; 6] =
    ["RUNNING", "WAITING", "COMPLETED", "FAILED", "CANCELED", "TIMED_OUT"];

/// How many runs there are in each of [`RUN_STATES`].
pub(crate) fn run_counts(state: &State) -> [u64; RUN_STATES.len()] {
    let waiting = state.waiting_runs();
    let mut counts = [0, waiting, 0, 0, 0, 0];
    for (state, count) in state.run_counts() {
        match state {
            RunState::Running => counts[0] = count - waiting,
            RunState::Completed => counts[2] = count,
            RunState::Failed => counts[3] = count,
            RunState::Canceled => counts[4] = count,
            RunState::TimedOut => counts[5] = count,
        }
    }
    counts
}

/// A run.
#[derive(Clone, Debug)]
pub struct RunInfo {
    /// Its number.
    pub id: RunId,
    /// Its workflow's name.
    pub workflow: Arc<str>,
    /// Its workflow's version.
    pub version: u32,
    /// The definition of that version.
    pub definition: Arc<Definition>,
    /// Its state as it is written outside: one of [`RUN_STATES`].
    pub state: &'static str,
    /// What it was given.
    pub input: Value,
    /// Its context, as its root sees it.
    pub context: Value,
    /// What came out, once it is COMPLETED.
    pub output: Option<Value>,
    /// Why it could not go on.
    pub error: Option<Value>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it was over.
    pub finished_at: Option<Timestamp>,
    /// When it must be over.
    pub deadline_at: Option<Timestamp>,
    /// The run and token that wait for it.
    pub parent: Option<(RunId, TokenId)>,
    /// The run at the top of its tree; itself if it has no parent.
    pub root: RunId,
    /// How it is ending, if its end is decided and not yet complete.
    pub ending: Option<EndingInfo>,
    /// Why it is parked, if it is.
    pub parked: Option<ParkedInfo>,
    /// Its key.
    pub key: Option<Arc<str>>,
    /// Its tags, by key.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
    /// How many tokens it has had, and how many of them are live.
    pub tokens: (usize, u32),
    /// How many signals wait for somebody who wants them.
    pub kept_signals: usize,
    /// The last record of its history.
    pub last_lsn: Lsn,
}

impl RunInfo {
    /// A copy of what is seen while the wall clock is that far from log time.
    #[must_use]
    pub fn of(run: &RunView<'_>, offset: WallOffset) -> Self {
        Self {
            id: run.id,
            workflow: Arc::clone(run.workflow()),
            version: run.version(),
            definition: Arc::clone(run.definition()),
            state: run.state(),
            input: run.input().clone(),
            context: run.context().clone(),
            output: run.output().cloned(),
            error: run.error().cloned(),
            started_at: run.started_at(),
            finished_at: run.finished_at(),
            deadline_at: run.deadline_at().map(|at| offset.shown(at)),
            parent: run.parent(),
            root: run.root(),
            ending: run.ending().map(|ending| EndingInfo::of(&ending)),
            parked: run.parked().map(|parked| ParkedInfo::of(&parked)),
            key: run.key().map(Arc::from),
            tags: run.tags().to_vec(),
            tokens: (run.token_count(), run.live_tokens()),
            kept_signals: run.kept_signals(),
            last_lsn: run.last_lsn(),
        }
    }

    /// Whether it has come to an end, whichever.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.finished_at.is_some()
    }
}

/// How a run ends whose end is decided and not yet complete: what is live in it ends over the next
/// records.
#[derive(Clone, Debug)]
pub struct EndingInfo {
    /// The state that it will have.
    pub state: RunState,
    /// The error that it will have.
    pub error: Option<Value>,
    /// When its end was decided.
    pub since: Timestamp,
}

impl EndingInfo {
    fn of(ending: &EndingView<'_>) -> Self {
        Self { state: ending.state, error: ending.error.cloned(), since: ending.since }
    }
}

/// Why a run is parked: it stands still until an operator cancels or unparks it.
#[derive(Clone, Debug)]
pub struct ParkedInfo {
    /// What does not fit one record.
    pub reason: Arc<str>,
    /// Since when.
    pub at: Timestamp,
}

impl ParkedInfo {
    fn of(parked: &ParkedView<'_>) -> Self {
        Self { reason: Arc::clone(parked.reason), at: parked.at }
    }
}

/// A page of runs.
#[derive(Clone, Debug)]
pub struct RunPage {
    /// Newest first. May be fewer than asked for, even none, while `next` is set.
    pub runs: Vec<RunInfo>,
    /// Where to go on: ask for runs before this one.
    pub next: Option<RunId>,
}

/// A token of a run.
#[derive(Clone, Debug)]
pub struct TokenInfo {
    /// Its number in the run.
    pub id: TokenId,
    /// Its node.
    pub node: Arc<str>,
    /// Its scope, printed: `root/bids#1[4]`.
    pub path: String,
    /// The token that it comes from.
    pub parent: Option<TokenId>,
    /// Its state as it is written outside.
    pub state: &'static str,
    /// The transition that it took, by its name, if that has one.
    pub via: Option<Arc<str>>,
    /// The group it is in, its branch there, and how many there are.
    pub branch: Option<(GroupId, u32, u32)>,
    /// Its task.
    pub task_id: Option<TaskId>,
    /// The run that it waits for, or waited for.
    pub child: Option<RunId>,
    /// The signal that it waits for, or waited for, and its correlation.
    pub signal: Option<(String, String)>,
    /// The moment that it waits for, by the wall clock.
    pub wakes_at: Option<Timestamp>,
    /// When it must be done.
    pub deadline_at: Option<Timestamp>,
    /// Why it failed, or the error that it deals with.
    pub error: Option<Value>,
}

impl TokenInfo {
    /// A copy of what is seen while the wall clock is that far from log time.
    #[must_use]
    pub fn of(token: &TokenView<'_>, definition: &Definition, offset: WallOffset) -> Self {
        let via = token.via().and_then(|via| definition.transitions.get(via as usize));
        let signal = token.signal();
        Self {
            id: token.id,
            node: Arc::clone(token.node()),
            path: token.path(),
            parent: token.parent(),
            state: token.state(),
            via: via.and_then(|transition| transition.name.clone()),
            branch: token.branch(),
            task_id: token.task_id(),
            child: token.child(),
            signal: signal.map(|(name, about)| (name.to_owned(), about.to_owned())),
            wakes_at: token.wakes_at().map(|(at, clock)| match clock {
                Clock::Log => offset.shown(at),
                Clock::Wall => at,
            }),
            deadline_at: token.deadline_at().map(|at| offset.shown(at)),
            error: token.error().cloned(),
        }
    }
}

/// A page of tokens.
#[derive(Clone, Debug)]
pub struct TokenPage {
    /// By number.
    pub tokens: Vec<TokenInfo>,
    /// Where to go on: ask for tokens after this one.
    pub next: Option<TokenId>,
}

/// A version of a workflow.
#[derive(Clone, Debug)]
pub struct WorkflowInfo {
    /// Its name.
    pub name: Arc<str>,
    /// Its version.
    pub version: u32,
    /// When it was registered.
    pub registered_at: Timestamp,
    /// The definition, compiled; its source is in it.
    pub definition: Arc<Definition>,
}

impl WorkflowInfo {
    /// A copy of what is seen.
    #[must_use]
    pub fn of(workflow: &WorkflowView<'_>) -> Self {
        Self {
            name: Arc::clone(workflow.name()),
            version: workflow.version(),
            registered_at: workflow.registered_at(),
            definition: Arc::clone(workflow.definition()),
        }
    }
}

/// A page of workflows.
#[derive(Clone, Debug)]
pub struct WorkflowPage {
    /// By name.
    pub workflows: Vec<WorkflowInfo>,
    /// Where to go on: ask for workflows after this one.
    pub next: Option<Arc<str>>,
}
