//! Which tasks and runs a list has.

use std::sync::Arc;

use tenure_record::id::{RunId, TaskId};
use tenure_record::name::{QueueName, TaskKey, TaskName, WorkerName};
use tenure_record::state::TaskState;

/// Which tasks to list.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Of this queue.
    pub queue: Option<QueueName>,
    /// In this state.
    pub state: Option<TaskState>,
    /// With this name.
    pub name: Option<TaskName>,
    /// With this tag.
    pub tag: Option<(String, String)>,
    /// Leased by this worker.
    pub worker: Option<WorkerName>,
    /// Of this run.
    pub run: Option<RunId>,
    /// Whose last failure has this code.
    pub code: Option<String>,
    /// Whether it waits for the end of its backoff.
    pub retrying: Option<bool>,
    /// Older than this one.
    pub before: Option<TaskId>,
    /// At most so many.
    pub limit: usize,
}

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Of this workflow.
    pub workflow: Option<Arc<str>>,
    /// In this state, as it is written outside: one of [`crate::RUN_STATES`].
    pub state: Option<&'static str>,
    /// With this tag.
    pub tag: Option<(String, String)>,
    /// With this key.
    pub key: Option<TaskKey>,
    /// Older than this one.
    pub before: Option<RunId>,
    /// At most so many.
    pub limit: usize,
}
