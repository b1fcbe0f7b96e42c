//! Tasks as they are shown, listed and canceled.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::payload::encoded_payloads;
use crate::text::text_enum;
use crate::{Encoding, Payload, Timestamp};

text_enum! {
    /// The state of a task.
    #[derive(Default)]
    TaskState {
        /// The task waits for a worker, a time or the end of its backoff; [`Phase`] says which.
        #[default]
        Waiting = "WAITING",
        /// A worker holds a lease on the task.
        Leased = "LEASED",
        /// A worker completed the task.
        Completed = "COMPLETED",
        /// The task failed as often as it may, failed for good or ran out of time.
        Failed = "FAILED",
        /// Leases of the task expired as often as they may.
        Dead = "DEAD",
        /// The task was canceled.
        Canceled = "CANCELED",
    }
}

impl TaskState {
    /// Whether the task has ended. Only a retry changes such a state.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Dead | Self::Canceled)
    }
}

text_enum! {
    /// What a WAITING task waits for.
    Phase {
        /// A worker: the task can be leased now.
        Ready = "ready",
        /// The time that its submit or its last release set.
        Delayed = "delayed",
        /// The end of its backoff after a failed attempt or an expired lease.
        Retrying = "retrying",
        /// Capacity below a limit of its queue.
        Limited = "limited",
        /// Its paused queue to be resumed, or its parked run to be unparked.
        Paused = "paused",
    }
}

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self")]
pub struct Task {
    /// The task's id.
    pub id: u64,
    /// The queue that the task belongs to.
    pub queue: String,
    /// What kind of work the task is.
    pub name: Option<String>,
    /// The task's state.
    pub state: TaskState,
    /// What a WAITING task waits for; `None` in other states.
    pub phase: Option<Phase>,
    /// The task's priority, from -100 to 100; higher is leased first.
    pub priority: i32,
    /// The input of the worker.
    pub payload: Payload,
    /// How `payload` is written in JSON; absent if it is JSON.
    #[serde(default, skip_serializing_if = "Encoding::is_json")]
    pub payload_encoding: Encoding,
    /// The result that the worker reported; empty unless the task is COMPLETED.
    pub output: Payload,
    /// How `output` is written in JSON; absent if it is JSON.
    #[serde(default, skip_serializing_if = "Encoding::is_json")]
    pub output_encoding: Encoding,
    /// The duration of a lease.
    pub lease_ms: u32,
    /// Failures that end the task; `None` if no number of failures alone does.
    pub max_failures: Option<u32>,
    /// Expired leases that end the task; `None` if no number of expiries alone does.
    pub max_expiries: Option<u32>,
    /// Failures and expired leases that together end the task; `None` if no number does.
    pub max_attempts: Option<u32>,
    /// The time limit from submit to end; a task that exceeds it ends FAILED with code `TIMEOUT`.
    pub total_timeout_ms: Option<u64>,
    /// The time limit of one attempt, with heartbeats or without.
    pub attempt_timeout_ms: Option<u64>,
    /// The last error; `None` if there was none or the task is COMPLETED.
    pub error: Option<TaskError>,
    /// The number of leases granted so far.
    pub attempt: u32,
    /// The number of failed attempts so far.
    pub failures: u32,
    /// The number of expired leases so far.
    pub expiries: u32,
    /// Whether a client asked the task to stop.
    pub cancel_requested: bool,
    /// The lease of a LEASED task.
    pub lease: Option<HeldLease>,
    /// When the task was submitted.
    pub created_at: Timestamp,
    /// The start time that the submit asked for.
    pub run_at: Option<Timestamp>,
    /// When the task can be leased next, while it waits for that time.
    pub next_attempt_at: Option<Timestamp>,
    /// When the latest lease was granted.
    pub started_at: Option<Timestamp>,
    /// When the task ended.
    pub finished_at: Option<Timestamp>,
    /// The idempotency key.
    pub key: Option<String>,
    /// Labels for people and filters.
    pub tags: BTreeMap<String, String>,
    /// The run that created the task, if a run did.
    pub run: Option<TaskOfRun>,
    /// The copy in a dead letter queue, if the task ended FAILED or DEAD and its queue has one.
    pub dead_letter: Option<TaskLink>,
    /// The task of which this one is the copy, in a dead letter queue.
    pub dead_letter_of: Option<TaskLink>,
    /// The progress that the worker reported for the current attempt. The server keeps it in memory
    /// only.
    pub progress: Option<Progress>,
    /// Where the next attempt continues, as a worker reported it; empty if none did.
    pub checkpoint: Payload,
    /// How `checkpoint` is written in JSON; absent if it is JSON.
    #[serde(default, skip_serializing_if = "Encoding::is_json")]
    pub checkpoint_encoding: Encoding,
}

encoded_payloads!(Task: payload as payload_encoding, output as output_encoding,
    checkpoint as checkpoint_encoding);

/// Why an attempt of a task failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskError {
    /// The code, for programs: the worker's own, or one of the server's such as `TIMEOUT`.
    pub code: String,
    /// The message, for people.
    pub message: String,
}

/// A lease as everybody sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeldLease {
    /// The lease's id and fencing token: a later lease of a task has a larger one.
    pub lease_id: u64,
    /// The worker that holds the lease.
    pub worker: String,
    /// When the lease expires unless it is extended.
    pub expires_at: Timestamp,
}

/// How far a worker says that it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Progress {
    /// The part of the work that is done, from 0 to 1.
    pub fraction: Option<f64>,
    /// A message for people.
    pub message: Option<String>,
    /// When the worker reported it.
    pub at: Timestamp,
}

/// The place of a task in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskOfRun {
    /// The run's id.
    pub run_id: u64,
    /// The node that the task executes.
    pub node: String,
    /// The token that waits for the task.
    pub token: u32,
}

/// Another task, which may be purged already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskLink {
    /// The other task's id.
    pub task_id: u64,
}

/// One step of a task's history: a change of state, or a rejected stale report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskStep {
    /// The LSN of the record.
    pub lsn: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The name of the event, such as `TaskCompleted`.
    pub event: String,
    /// The state before; `None` for a new task.
    pub from: Option<TaskState>,
    /// The state after.
    pub to: TaskState,
    /// The number of leases granted up to then.
    pub attempt: u32,
    /// The worker that caused the step, or whose lease it ended.
    pub worker: Option<String>,
    /// The lease that the step is about.
    pub lease_id: Option<u64>,
    /// The reason, for programs.
    pub code: Option<String>,
    /// The reason, for people.
    pub reason: Option<String>,
}

/// Which tasks to list, and which page of them. A filter that is not given matches every task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct TaskFilter {
    /// Tasks of this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Tasks in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// Tasks with this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tasks with this tag, as `key:value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Tasks that this worker holds a lease on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Tasks of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Tasks whose last error has this code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `true` for tasks that wait for the end of their backoff, `false` for all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrying: Option<bool>,
    /// The maximum number of tasks, from 1 to 1,000; 100 if not given.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A request to cancel a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CancelTask {
    /// How long the worker of a LEASED task may continue before its lease is revoked; without a limit
    /// if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}
