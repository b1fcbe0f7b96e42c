//! Things as a caller keeps them: copied from the state at the moment of the answer, with payloads
//! shared, not copied.

use std::sync::Arc;

use tenure_core::command::LeaseRef;
use tenure_core::state::{
    Eligibility, Halted, LeaseView, Phase, QueuePosition, SharedBytes, StateBytes, StateCounts,
    TaskError, TaskView,
};
use tenure_record::id::{LeaseId, Lsn, RunId, TaskId, TokenId};
use tenure_record::state::TaskState;
use tenure_record::terms::{Backoff, Budgets, Priority};
use tenure_record::time::{Clock, Timestamp, WallOffset};

use crate::progress::ProgressInfo;
use crate::run_info::RUN_STATES;
use crate::snapshot::Kept;

/// A lease that was given, with all that its worker needs.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The task.
    pub task_id: TaskId,
    /// The lease, and the fence: a later one has a larger number.
    pub lease_id: LeaseId,
    /// How often the task was leased, this time included.
    pub attempt: u32,
    /// The task's queue.
    pub queue: Arc<str>,
    /// What kind of work it is.
    pub name: Option<Arc<str>>,
    /// What is to be done.
    pub payload: SharedBytes,
    /// The task's tags.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
    /// Where the last attempt left off, if it said so.
    pub checkpoint: Option<Arc<[u8]>>,
    /// When the lease ends unless it is extended, by log time.
    pub expires_at: Timestamp,
    /// When the lease ends unless it is extended, by the wall clock as it stands.
    pub wall_expires_at: Timestamp,
    /// What it is for, if a run made it.
    pub run: Option<TaskOfRun>,
    /// The W3C trace context of the task's submit.
    pub traceparent: Option<Arc<str>>,
}

impl Grant {
    /// What a report has to name.
    #[must_use]
    pub fn lease(&self) -> LeaseRef {
        LeaseRef { task_id: self.task_id, lease_id: self.lease_id }
    }
}

/// What a task of a run is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskOfRun {
    /// The run.
    pub run_id: RunId,
    /// Its node.
    pub node: Arc<str>,
    /// The token that waits for the task.
    pub token: TokenId,
}

impl TaskOfRun {
    pub(crate) fn of(task: &TaskView<'_>) -> Option<Self> {
        let (run_id, token) = task.run()?;
        Some(Self { run_id, node: Arc::clone(task.node()?), token })
    }
}

/// A task. All its moments are the wall clock's: those that have passed as it stood then, those that
/// log time will reach as it stands now.
#[derive(Clone, Debug)]
pub struct TaskInfo {
    /// Its number.
    pub id: TaskId,
    /// Its queue.
    pub queue: Arc<str>,
    /// What kind of work it is.
    pub name: Option<Arc<str>>,
    /// Its state.
    pub state: TaskState,
    /// What it waits for, while it is WAITING.
    pub phase: Option<Phase>,
    /// When it may run next, while it waits for that moment.
    pub next_attempt_at: Option<Timestamp>,
    /// How urgent it is.
    pub priority: Priority,
    /// What its worker gets.
    pub payload: SharedBytes,
    /// What its worker gave back; empty if nothing.
    pub output: SharedBytes,
    /// How long a lease lasts.
    pub lease_ms: u32,
    /// How many failures and expired leases end it.
    pub budgets: Budgets,
    /// How it waits between failures.
    pub backoff: Backoff,
    /// How long it may take from submit to end.
    pub total_timeout_ms: Option<u64>,
    /// How long one attempt may take.
    pub attempt_timeout_ms: Option<u64>,
    /// Grants so far.
    pub attempt: u32,
    /// Failures so far.
    pub failures: u16,
    /// Expired leases so far.
    pub expiries: u16,
    /// Whether a client asked it to stop.
    pub cancel_requested: bool,
    /// The lease that holds.
    pub lease: Option<LeaseView>,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// When it was told to run first.
    pub run_at: Option<Timestamp>,
    /// While it waits: when it may run; zero for at once.
    pub not_before: Option<Timestamp>,
    /// The latest grant.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Its idempotency key.
    pub key: Option<Arc<str>>,
    /// Its tags, by key.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
    /// Its last failures, oldest first.
    pub errors: Vec<TaskError>,
    /// Where its next attempt goes on.
    pub checkpoint: Option<Arc<[u8]>>,
    /// How far its worker says that it is; only the coordinator that heard it knows.
    pub progress: Option<ProgressInfo>,
    /// What it is for, if a run made it.
    pub run: Option<TaskOfRun>,
    /// Its copy in a dead letter queue, from when it last ended FAILED or DEAD.
    pub dead_letter: Option<TaskId>,
    /// The task that it is the copy of, in a dead letter queue.
    pub dead_letter_of: Option<TaskId>,
    /// The last record of its history.
    pub last_lsn: Lsn,
}

impl TaskInfo {
    /// A copy of what is seen while the wall clock is that far from log time. What only a running
    /// coordinator knows is left out.
    #[must_use]
    pub fn of(task: &TaskView<'_>, offset: WallOffset) -> Self {
        let lease = task.lease();
        let not_before = task.not_before();
        Self {
            id: task.id,
            queue: Arc::clone(task.queue()),
            name: task.name().map(Arc::clone),
            state: task.state(),
            phase: None,
            next_attempt_at: None,
            priority: task.priority(),
            payload: task.shared_payload(),
            output: task.shared_output(),
            lease_ms: task.lease_ms(),
            budgets: task.budgets(),
            backoff: task.backoff(),
            total_timeout_ms: task.total_timeout_ms(),
            attempt_timeout_ms: task.attempt_timeout_ms(),
            attempt: task.attempt(),
            failures: task.failures(),
            expiries: task.expiries(),
            cancel_requested: task.cancel_requested(),
            lease: lease.map(|it| LeaseView { expires_at: offset.shown(it.expires_at), ..it }),
            created_at: task.created_at(),
            run_at: task.run_at(),
            not_before: match task.not_before_clock() {
                Clock::Log => not_before.map(|at| offset.shown(at)),
                Clock::Wall => not_before,
            },
            started_at: task.started_at(),
            finished_at: task.finished_at(),
            key: task.shared_key(),
            tags: task.tags().to_vec(),
            errors: task.errors().to_vec(),
            checkpoint: task.checkpoint().map(Arc::clone),
            progress: None,
            run: TaskOfRun::of(task),
            dead_letter: task.dead_letter(),
            dead_letter_of: task.dead_letter_of(),
            last_lsn: task.last_lsn(),
        }
    }
}

/// All that says why a task is not done yet.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The task.
    pub task: TaskInfo,
    /// Where it stands in the line of its queue.
    pub position: QueuePosition,
    /// What about its run keeps it from moving, if something does.
    pub halted: Option<Halted>,
    /// Whether leases are given from its queue, and if not, why.
    pub eligibility: Eligibility,
    /// Workers that said they take from its queue, and were heard of lately. Those who only ask
    /// for leases are not among them.
    pub workers: usize,
}

/// A page of tasks.
#[derive(Clone, Debug)]
pub struct TaskPage {
    /// Newest first. May be fewer than asked for, even none, while `next` is set.
    pub tasks: Vec<TaskInfo>,
    /// Where to go on: ask for tasks before this one.
    pub next: Option<TaskId>,
}

/// How things stand.
#[derive(Clone, Debug)]
pub struct Status {
    /// The last record.
    pub lsn: Lsn,
    /// The last record that somebody may be told of.
    pub released: Lsn,
    /// This coordinator's epoch.
    pub epoch: u64,
    /// Log time.
    pub now: Timestamp,
    /// The wall clock.
    pub wall: Timestamp,
    /// How far log time is ahead of the wall clock; zero if it is not.
    pub log_time_ahead_ms: u64,
    /// Tasks by state.
    pub tasks: StateCounts,
    /// Runs by state, in the order of [`crate::RUN_STATES`].
    pub runs: [u64; RUN_STATES.len()],
    /// Runs that are ending over several records, or have branches that are.
    pub ending_runs: u64,
    /// Runs that are parked.
    pub parked_runs: u64,
    /// How many workflows there are.
    pub workflows: usize,
    /// Lease requests that wait for work.
    pub parked_leases: usize,
    /// Readers that wait for a task or a run to end.
    pub parked_readers: usize,
    /// How much memory the parts of the state take, about.
    pub bytes: StateBytes,
    /// What was done since the start.
    pub work: Work,
    /// How snapshots and the log stand.
    pub kept: Kept,
}

/// What was done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Requests that were decided.
    pub requests: u64,
    /// Records that were written.
    pub records: u64,
    /// Frames in which they were written.
    pub frames: u64,
    /// Bytes of those frames.
    pub bytes: u64,
    /// Finished tasks that were forgotten because their time was over.
    pub purged: u64,
    /// Records that were too long and not written: what led to them was refused, or its run parked.
    pub oversized: u64,
    /// What the heaviest record cost, in the units of [`tenure_core::limits::RECORD_WORK_MAX`].
    pub heaviest: u64,
}
