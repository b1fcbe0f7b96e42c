//! Commands and their replies. Every field is a parsed type.

mod queue;
mod reply;
mod report;

use std::num::NonZeroU32;
use std::sync::Arc;

use tenure_flow::Definition;
use tenure_record::artifact::Artifact;
use tenure_record::event::SubmitHash;
use tenure_record::id::{LeaseId, Lsn, RunId, TaskId};
use tenure_record::name::{
    FailureCode, QueueName, Reason, SignalText, TaskKey, TaskName, WorkerName,
};
use tenure_record::progress::Checkpoint;
use tenure_record::terms::{Backoff, Budgets, LeaseMs, Payload, Priority, SpanMs, Tags};
use tenure_record::time::Timestamp;
use tenure_record::trace::TraceParent;
use tenure_value::Value;

use crate::decide::request_hash;
use crate::limits::{
    DUE_ITEMS_MAX, ID_JUMP_RESTORE, ID_JUMP_UNCLEAN, RETENTION_MS_DEFAULT, RETENTION_TASKS_DEFAULT,
};

pub use queue::{ConfigureQueue, PauseEnd, PauseQueue, Setting, SettingsChange};
pub use reply::{
    Accepted, Extended, Leased, Registered, Reply, Reported, Rest, Signaled, Started,
    SubmitOutcome, Submitted, Swept,
};
pub use report::{Heartbeat, ReleaseTask};

/// A wish. [`crate::decide`] says what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Take these tasks, all or none.
    SubmitTasks(SubmitTasks),
    /// Give a worker something to do.
    LeaseTasks(LeaseTasks),
    /// The worker is still at it.
    Heartbeat(Heartbeat),
    /// The worker is done.
    CompleteTask(CompleteTask),
    /// The worker's attempt failed.
    FailTask(FailTask),
    /// The worker gives its lease back.
    ReleaseTask(ReleaseTask),
    /// Several of the four above at once; each stands for itself.
    ReportTasks(ReportTasks),
    /// A client wants a task to stop.
    CancelTask(CancelTask),
    /// An operator gives an ended task another round.
    RetryTask(TaskId),
    /// End these leases: their worker's stream closed and did not come back. The reply says whether
    /// the record was full before the list was through; then the same command does the rest.
    DropLeases(Vec<LeaseRef>),
    /// Fire the timers that are due, in the order of their moments: leases end, deadlines pass, and
    /// timer nodes go on. The reply says whether some are left for another record.
    FireTimers,
    /// Give no more leases from a queue.
    PauseQueue(PauseQueue),
    /// Give leases from a queue again.
    ResumeQueue(QueueName),
    /// Change a queue's settings.
    ConfigureQueue(ConfigureQueue),
    /// Delete a queue that has no tasks.
    DeleteQueue(QueueName),
    /// Forget finished tasks and runs whose retention is over.
    PurgeTasks(Retention),
    /// Forget these finished tasks and runs, which are in the archive.
    PurgeArchived(Archived),
    /// Take a definition of a workflow.
    RegisterWorkflow(RegisterWorkflow),
    /// Delete a workflow that nothing needs.
    DeleteWorkflow(DeleteWorkflow),
    /// Begin a run of a workflow.
    StartRun(StartRun),
    /// Begin these runs, all or none.
    StartRuns(StartRuns),
    /// A client wants a run to stop.
    CancelRun(RunId),
    /// News from outside for a run.
    SignalRun(SignalRun),
    /// News from outside for the run that holds a key.
    SignalByKey(SignalByKey),
    /// Begin branches of wide groups that wait for their turn.
    ContinueDispatch,
    /// End more of what is ending.
    ContinueEnding {
        /// Tokens, tasks and child runs, at most [`crate::limits::END_ITEMS_MAX`].
        items_max: usize,
    },
    /// Let a run stand still.
    ParkRun(ParkRun),
    /// Let a parked run go on.
    UnparkRun(RunId),
    /// Give no id that may have been given before. Nothing may be told to anybody before its record
    /// is durable, else the next start would jump to the same ids.
    SkipIds(IdJump),
}

/// Why the ids jump ahead: what may be missing at the end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdJump {
    /// What was not yet durable at an unclean stop, in a mode that answers before the sync.
    UncleanStart,
    /// Everything after the backup that was restored.
    Restore,
}

impl IdJump {
    /// How many ids are left out.
    #[must_use]
    pub fn ids(self) -> u64 {
        match self {
            IdJump::UncleanStart => ID_JUMP_UNCLEAN,
            IdJump::Restore => ID_JUMP_RESTORE,
        }
    }
}

/// Tasks to take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubmitTasks {
    /// At most [`crate::limits::BATCH_ITEMS_MAX`].
    pub tasks: Vec<NewTask>,
}

/// A task to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// Where it waits.
    pub queue: QueueName,
    /// What the worker gets.
    pub payload: Payload,
    /// What kind of work it is.
    pub name: Option<TaskName>,
    /// How urgent it is.
    pub priority: Priority,
    /// When it may run first.
    pub start: Start,
    /// How many failures and expired leases end it.
    pub budgets: Budgets,
    /// How it waits between failures, if not as usual.
    pub backoff: Option<Backoff>,
    /// How long a lease lasts.
    pub lease_ms: LeaseMs,
    /// How long it may take from submit to end.
    pub total_timeout_ms: Option<SpanMs>,
    /// Makes the same submit give the same task.
    pub key: Option<TaskKey>,
    /// How long it holds its key, from submit; as long as it exists if not given.
    pub key_ttl_ms: Option<SpanMs>,
    /// How long one attempt may take, with heartbeats or without.
    pub attempt_timeout_ms: Option<SpanMs>,
    /// Labels for people.
    pub tags: Tags,
    /// The W3C trace context of the submit, for its worker.
    pub traceparent: Option<TraceParent>,
    /// What tells the submit from others under its key: see [`NewTask::sealed`].
    pub seal: Option<SubmitHash>,
}

impl NewTask {
    /// Hashes the submit, if it has a key. To call this where the request is checked keeps the hash off
    /// the writer; a submit that is not sealed is hashed when it is decided. Nothing may be changed
    /// afterwards.
    #[must_use]
    pub fn sealed(self) -> Self {
        let seal = self.key.as_ref().map(|_| request_hash::of_submit(&self));
        Self { seal, ..self }
    }

    /// The hash of the submit, if it has a key.
    pub(crate) fn submit_hash(&self) -> Option<SubmitHash> {
        self.key.as_ref().map(|_| self.seal.unwrap_or_else(|| request_hash::of_submit(self)))
    }

    /// A task with the defaults.
    #[must_use]
    pub fn new(queue: QueueName, payload: Payload) -> Self {
        Self {
            queue,
            payload,
            name: None,
            priority: Priority::default(),
            start: Start::AtOnce,
            budgets: Budgets::default(),
            backoff: None,
            lease_ms: LeaseMs::default(),
            total_timeout_ms: None,
            key: None,
            key_ttl_ms: None,
            attempt_timeout_ms: None,
            tags: Tags::default(),
            traceparent: None,
            seal: None,
        }
    }
}

/// When a task may run first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// Now.
    #[default]
    AtOnce,
    /// So long after it was taken.
    After(SpanMs),
    /// At that moment of the wall clock.
    At(Timestamp),
}

/// A worker that asks for work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseTasks {
    /// Who asks.
    pub worker: WorkerName,
    /// From which queues, at most [`crate::limits::LEASE_QUEUES_MAX`]; their order says nothing.
    pub queues: Vec<QueueName>,
    /// How many it can take, at most [`crate::limits::LEASE_TASKS_MAX`].
    pub tasks_max: NonZeroU32,
    /// For how long, if not as each task says.
    pub lease_ms: Option<LeaseMs>,
}

/// A lease of a task, as its worker knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRef {
    /// The task.
    pub task_id: TaskId,
    /// The lease.
    pub lease_id: LeaseId,
}

/// A task done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteTask {
    /// Under which lease.
    pub lease: LeaseRef,
    /// What came out.
    pub output: Payload,
    /// Files that came out; only for tasks of a run.
    pub artifacts: Vec<Artifact>,
    /// The worker, as it calls itself. It is recorded with a stale report and authorizes nothing.
    pub worker: Option<WorkerName>,
}

impl CompleteTask {
    /// A task that is done, without files.
    #[must_use]
    pub fn plain(lease: LeaseRef, output: Payload) -> Self {
        Self { lease, output, artifacts: Vec::new(), worker: None }
    }
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailTask {
    /// Under which lease.
    pub lease: LeaseRef,
    /// For people.
    pub reason: Reason,
    /// For programs.
    pub code: Option<FailureCode>,
    /// Whether another attempt makes sense, and when.
    pub retry: Retry,
    /// Where the next attempt goes on.
    pub checkpoint: Option<Checkpoint>,
    /// The worker, as it calls itself. It is recorded with a stale report and authorizes nothing.
    pub worker: Option<WorkerName>,
}

/// What a worker thinks of another attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// As the task's backoff says.
    #[default]
    WithBackoff,
    /// After this long.
    After(SpanMs),
    /// It is of no use.
    Never,
}

/// Reports of a worker, decided in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportTasks {
    /// Still at it.
    pub heartbeats: Vec<Heartbeat>,
    /// Done.
    pub completes: Vec<CompleteTask>,
    /// Failed.
    pub fails: Vec<FailTask>,
    /// Given back.
    pub releases: Vec<ReleaseTask>,
    /// So many of them, in that order, were decided by records before.
    pub decided: usize,
    /// Whether one record takes one report only: all that fit by count were too much together.
    pub is_single: bool,
}

/// A client that wants a task to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelTask {
    /// Which task.
    pub task_id: TaskId,
    /// How long a worker may go on before its lease is revoked; for ever if not given.
    pub grace_ms: Option<SpanMs>,
}

/// A definition of a workflow, checked and compiled at the door.
#[derive(Clone, Debug)]
pub struct RegisterWorkflow {
    /// The definition; its name is in it.
    pub definition: Arc<Definition>,
}

impl PartialEq for RegisterWorkflow {
    fn eq(&self, other: &Self) -> bool {
        self.definition.source == other.definition.source
    }
}

impl Eq for RegisterWorkflow {}

/// A run to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartRun {
    /// Of which workflow.
    pub workflow: Arc<str>,
    /// In which version; the newest if not given.
    pub version: Option<u32>,
    /// What it is given.
    pub input: Value,
    /// Makes the same start give the same run.
    pub key: Option<TaskKey>,
    /// Labels for people.
    pub tags: Tags,
}

/// Runs to begin together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartRuns {
    /// At most [`crate::limits::RUN_BATCH_ITEMS_MAX`].
    pub runs: Vec<StartRun>,
}

/// A workflow to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteWorkflow {
    /// Its name.
    pub name: Arc<str>,
    /// One version; all of them if not given.
    pub version: Option<u32>,
}

/// A run that cannot go on by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkRun {
    /// Which run.
    pub run_id: RunId,
    /// Why, for people.
    pub reason: String,
}

/// News from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalRun {
    /// For which run.
    pub run_id: RunId,
    /// The signal's name.
    pub name: Arc<str>,
    /// What it says.
    pub payload: Value,
    /// What tells it from others of the name; empty for none.
    pub correlation: SignalText,
    /// Makes the same signal count once.
    pub signal_id: Option<SignalText>,
}

/// News from outside for the run that holds a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalByKey {
    /// The workflow whose key it is.
    pub workflow: Arc<str>,
    /// The key.
    pub key: TaskKey,
    /// The news. The run that it names does not count: the key says which it is.
    pub signal: SignalRun,
    /// How to begin the run if there is none.
    pub start: Option<SignalStart>,
}

/// A run that a signal begins if there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalStart {
    /// In which version; the newest if not given.
    pub version: Option<u32>,
    /// What it is given.
    pub input: Value,
    /// Labels for people.
    pub tags: Tags,
}

/// How long finished tasks are kept, by age and by number, whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Older ones are forgotten, unless their queue has a retention of its own.
    pub age_ms: u64,
    /// Beyond this many, those whose time is nearest are forgotten.
    pub tasks_max: u64,
    /// No more than so many at a time, and never more than [`crate::limits::DUE_ITEMS_MAX`].
    pub items_max: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            age_ms: RETENTION_MS_DEFAULT,
            tasks_max: RETENTION_TASKS_DEFAULT,
            items_max: DUE_ITEMS_MAX,
        }
    }
}

/// Finished tasks and runs that are in the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archived {
    /// Tasks of no run.
    pub tasks: Vec<TaskId>,
    /// Runs, with their tasks.
    pub runs: Vec<RunId>,
    /// All that had happened to them by this record is in the archive. What something happened to
    /// after it stays.
    pub as_of: Lsn,
}
