//! The request types. Requests that are commands of `core` as they are come from there.

use std::sync::Arc;

use tenure_core::command::{Archived, Command, LeaseRef, NewTask};
use tenure_record::id::{RunId, TaskId, TokenId};
use tenure_record::name::{QueueName, TaskKey, WorkerName};

pub use tenure_core::command::{
    CancelTask, CompleteTask, ConfigureQueue, DeleteWorkflow, FailTask, Heartbeat, LeaseTasks,
    PauseQueue, RegisterWorkflow, ReleaseTask, ReportTasks, SignalByKey, SignalRun, StartRun,
    StartRuns, SubmitTasks,
};

use crate::filter::{RunFilter, TaskFilter};
use crate::names::NameRange;
use crate::workers::Registration;

/// Submits one task and shows it.
#[derive(Clone, Debug)]
pub struct SubmitTask(pub NewTask);

/// Grants leases, and waits for work if there is none.
#[derive(Clone, Debug)]
pub struct Lease {
    /// From which queues, and for which worker.
    pub request: LeaseTasks,
    /// How long to wait, at most [`crate::limits::WAIT_MS_MAX`].
    pub wait_ms: u64,
}

/// Ends leases whose worker's stream closed and did not come back.
#[derive(Clone, Debug)]
pub struct DropLeases(pub Vec<LeaseRef>);

/// Releases all leases of a worker that leaves.
#[derive(Clone, Debug)]
pub struct SignOff(pub WorkerName);

/// Gives an ended task another round.
#[derive(Clone, Copy, Debug)]
pub struct RetryTask(pub TaskId);

/// A task once it has ended, or as it is when the time is up.
#[derive(Clone, Copy, Debug)]
pub struct GetTask {
    /// Which task.
    pub task_id: TaskId,
    /// How long to wait for its end, at most [`crate::limits::WAIT_MS_MAX`].
    pub wait_ms: u64,
}

/// Why a task is not done yet.
#[derive(Clone, Copy, Debug)]
pub struct ExplainTask(pub TaskId);

/// Tasks, newest first.
#[derive(Clone, Debug)]
pub struct ListTasks(pub TaskFilter);

/// A queue, if it exists.
#[derive(Clone, Debug)]
pub struct GetQueue(pub QueueName);

/// Queues, by name.
#[derive(Clone, Debug)]
pub struct ListQueues(pub NameRange);

/// Grants leases from a queue again.
#[derive(Clone, Debug)]
pub struct ResumeQueue(pub QueueName);

/// Deletes a queue that has no tasks.
#[derive(Clone, Debug)]
pub struct DeleteQueue(pub QueueName);

/// Makes a worker known.
#[derive(Clone, Debug)]
pub struct RegisterWorker(pub Registration);

/// Workers that were seen lately, by name.
#[derive(Clone, Debug)]
pub struct ListWorkers(pub NameRange);

/// A version of a workflow.
#[derive(Clone, Debug)]
pub struct GetWorkflow {
    /// Its name.
    pub name: Arc<str>,
    /// Its version; the newest if none is given.
    pub version: Option<u32>,
}

/// The newest version of each workflow, by name.
#[derive(Clone, Debug)]
pub struct ListWorkflows(pub NameRange);

/// Ends a run and everything that is live in it.
#[derive(Clone, Copy, Debug)]
pub struct CancelRun(pub RunId);

/// Lets a parked run go on.
#[derive(Clone, Copy, Debug)]
pub struct UnparkRun(pub RunId);

/// A run once it is over, or as it is when the time is up.
#[derive(Clone, Copy, Debug)]
pub struct GetRun {
    /// Which run.
    pub run_id: RunId,
    /// How long to wait for its end, at most [`crate::limits::WAIT_MS_MAX`].
    pub wait_ms: u64,
}

/// The id of the run that holds a key.
#[derive(Clone, Debug)]
pub struct FindRun {
    /// The workflow.
    pub workflow: Arc<str>,
    /// The key.
    pub key: TaskKey,
}

/// Runs, newest first.
#[derive(Clone, Debug)]
pub struct ListRuns(pub RunFilter);

/// A run's tokens, by number.
#[derive(Clone, Copy, Debug)]
pub struct ListTokens {
    /// Of which run.
    pub run_id: RunId,
    /// After this one.
    pub after: TokenId,
    /// The size of the page.
    pub limit: usize,
}

/// A run's artifacts.
#[derive(Clone, Copy, Debug)]
pub struct ListArtifacts(pub RunId);

/// The tasks and runs whose retention is over, to be archived.
#[derive(Clone, Copy, Debug)]
pub struct ListDue;

/// The tasks of a run, by their tokens.
#[derive(Clone, Copy, Debug)]
pub struct ListRunTasks {
    /// Of which run.
    pub run_id: RunId,
    /// After this token.
    pub after: TokenId,
    /// The number of tokens to look at.
    pub limit: usize,
}

/// Forgets finished tasks and runs that are in the archive.
#[derive(Clone, Debug)]
pub struct PurgeArchived(pub Archived);

/// Counters and positions of the coordinator.
#[derive(Clone, Copy, Debug)]
pub struct GetStatus;

/// A view of the whole state, which does not change while the coordinator goes on.
#[derive(Clone, Copy, Debug)]
pub struct GetFacts;

/// Takes a snapshot of everything that was decided before.
#[derive(Clone, Copy, Debug)]
pub struct TakeSnapshot;

/// Runs a command that the coordinator otherwise gives itself, such as a sweep. The simulation and
/// tests bring such commands at moments of their own.
#[derive(Clone, Debug)]
pub struct Maintain(pub Command);
