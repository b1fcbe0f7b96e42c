//! Refusals: values, not errors. Each has a code for programs and a sentence for people, and a
//! page in the book.

use std::fmt;
use std::sync::Arc;

use crate::event::RunState;
use crate::id::{ID_MAX, LeaseId, RunId, TaskId};
use crate::limits::{
    ID_JUMP, QUEUES_MAX, RECORD_BYTES_MAX, SIGNAL_IDS_MAX, SIGNALS_KEPT_MAX, WORKFLOW_VERSIONS_MAX,
    WORKFLOWS_MAX,
};
use crate::name::TaskKey;
use crate::state::StateName;

/// Why a command changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// No such task, or no longer.
    TaskNotFound {
        /// The id that was asked for.
        task_id: TaskId,
    },
    /// The lease is over, or was never given.
    LeaseLost {
        /// The task.
        task_id: TaskId,
        /// The lease that does not hold.
        lease_id: LeaseId,
    },
    /// The task has ended and cannot be canceled.
    TaskTerminal {
        /// The task.
        task_id: TaskId,
        /// How it ended.
        state: StateName,
    },
    /// The task is not one that can be retried.
    NotRetryable {
        /// The task.
        task_id: TaskId,
        /// Its state.
        state: StateName,
    },
    /// Another submit holds the key.
    KeyConflict {
        /// Which task of the batch, if there are several.
        index: Option<usize>,
        /// The key.
        key: TaskKey,
        /// Who holds it.
        task_id: TaskId,
    },
    /// An earlier task of the batch has the key, and another body.
    KeyTwice {
        /// Which task of the batch.
        index: usize,
        /// The key.
        key: TaskKey,
        /// Which task had it first.
        first: usize,
    },
    /// There are as many queues as there may be.
    TooManyQueues {
        /// Which task of the batch, if there are several.
        index: Option<usize>,
    },
    /// More items than one request may have.
    BatchTooLarge {
        /// How many there are.
        items: usize,
        /// How many there may be.
        items_max: usize,
    },
    /// The counters have no room left for a jump.
    IdsExhausted {
        /// The task that would come next.
        next_task_id: TaskId,
        /// The lease that would come next.
        next_lease_id: LeaseId,
    },
    /// No such run, or no longer.
    RunNotFound {
        /// The id that was asked for.
        run_id: RunId,
    },
    /// No such workflow, or not in that version.
    WorkflowNotFound {
        /// The name that was asked for.
        name: Arc<str>,
        /// The version that was asked for, if one was.
        version: Option<u32>,
    },
    /// The run's definition has no node that waits for this signal.
    SignalUnknown {
        /// The run.
        run_id: RunId,
        /// The signal's name.
        name: Arc<str>,
    },
    /// The run is over.
    RunOver {
        /// The run.
        run_id: RunId,
        /// How it ended.
        state: RunState,
    },
    /// The task belongs to a run, which has gone on without it.
    TaskOfRun {
        /// The task.
        task_id: TaskId,
        /// Its run.
        run_id: RunId,
    },
    /// The task belongs to no run, which could keep its artifacts.
    NoRunForArtifacts {
        /// The task.
        task_id: TaskId,
    },
    /// The run keeps as many signals as it may.
    SignalsFull {
        /// The run.
        run_id: RunId,
    },
    /// An input or payload that its schema does not allow.
    InputInvalid {
        /// What is wrong with it.
        message: String,
    },
    /// The workflow has as many versions as it may have.
    TooManyVersions {
        /// The workflow.
        name: Arc<str>,
    },
    /// There are as many workflows as there may be.
    TooManyWorkflows,
    /// More bytes than one record may have.
    RecordTooLarge {
        /// How many there are, at least.
        bytes: usize,
    },
}

impl Rejection {
    /// For programs; stable.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Rejection::TaskNotFound { .. }
            | Rejection::RunNotFound { .. }
            | Rejection::WorkflowNotFound { .. }
            | Rejection::SignalUnknown { .. } => "not_found",
            Rejection::LeaseLost { .. } => "lease_lost",
            Rejection::TaskTerminal { .. } => "task_terminal",
            Rejection::NotRetryable { .. }
            | Rejection::KeyConflict { .. }
            | Rejection::KeyTwice { .. }
            | Rejection::RunOver { .. }
            | Rejection::TaskOfRun { .. } => "conflict",
            Rejection::SignalsFull { .. } => "overloaded",
            Rejection::InputInvalid { .. } | Rejection::NoRunForArtifacts { .. } => {
                "invalid_request"
            }
            Rejection::TooManyVersions { .. } | Rejection::TooManyWorkflows => "too_many_workflows",
            Rejection::TooManyQueues { .. } => "too_many_queues",
            Rejection::IdsExhausted { .. } => "ids_exhausted",
            Rejection::BatchTooLarge { .. } | Rejection::RecordTooLarge { .. } => {
                "payload_too_large"
            }
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::TaskNotFound { task_id } => write!(
                f,
                "there is no task {task_id}; it never existed, or was purged after its retention"
            ),
            Rejection::LeaseLost { task_id, lease_id } => write!(
                f,
                "lease {lease_id} of task {task_id} is over; drop the result, another attempt may \
                 be under way"
            ),
            Rejection::TaskTerminal { task_id, state } => {
                write!(f, "task {task_id} is {state} already; there is nothing left to cancel")
            }
            Rejection::NotRetryable { task_id, state } => write!(
                f,
                "task {task_id} is {state}; only FAILED, DEAD and CANCELED tasks can be retried"
            ),
            Rejection::KeyConflict { index, key, task_id } => write!(
                f,
                "{}the key {key:?} belongs to task {task_id}, which was submitted \
                 with another body; use another key, or send the same body",
                place(*index)
            ),
            Rejection::KeyTwice { index, key, first } => write!(
                f,
                "tasks[{index}]: the key {key:?} is that of tasks[{first}], which has another \
                 body; use another key, or send the same body"
            ),
            Rejection::TooManyQueues { index } => write!(
                f,
                "{}there are {QUEUES_MAX} queues already; use one that exists",
                place(*index)
            ),
            Rejection::IdsExhausted { next_task_id, next_lease_id } => write!(
                f,
                "the ids cannot jump ahead: the next task would be {next_task_id}, the next lease \
                 {next_lease_id}, and another {ID_JUMP} would pass {ID_MAX}; begin a new data \
                 folder and submit there what has not ended"
            ),
            Rejection::BatchTooLarge { items, items_max } => write!(
                f,
                "the request has {items} items; at most {items_max} are allowed, so split it"
            ),
            Rejection::RunNotFound { run_id } => write!(
                f,
                "there is no run {run_id}; it never existed, or was purged after its retention"
            ),
            Rejection::WorkflowNotFound { name, version: None } => {
                write!(f, "there is no workflow {name:?}; put its definition first")
            }
            Rejection::WorkflowNotFound { name, version: Some(version) } => {
                write!(f, "there is no version {version} of workflow {name:?}")
            }
            Rejection::SignalUnknown { run_id, name } => write!(
                f,
                "run {run_id} has no node that waits for a signal {name:?}; look at its definition"
            ),
            Rejection::RunOver { run_id, state } => {
                write!(f, "run {run_id} is {state}; nothing reaches it any more")
            }
            Rejection::TaskOfRun { task_id, run_id } => write!(
                f,
                "task {task_id} belongs to run {run_id}, which has gone on without it; start a new \
                 run"
            ),
            Rejection::NoRunForArtifacts { task_id } => write!(
                f,
                "task {task_id} belongs to no run, and only runs keep artifacts; complete it without \
                 `artifacts`, and put what must be kept into `output` or elsewhere"
            ),
            Rejection::SignalsFull { run_id } => write!(
                f,
                "run {run_id} keeps {SIGNALS_KEPT_MAX} signals that nobody waits for, or took \
                 {SIGNAL_IDS_MAX} with an id; come back when some were used"
            ),
            Rejection::InputInvalid { message } => f.write_str(message),
            Rejection::TooManyVersions { name } => write!(
                f,
                "workflow {name:?} has {WORKFLOW_VERSIONS_MAX} versions already; use another name"
            ),
            Rejection::TooManyWorkflows => {
                write!(f, "there are {WORKFLOWS_MAX} workflows already; use a name that exists")
            }
            Rejection::RecordTooLarge { bytes } => write!(
                f,
                "the request needs {bytes} bytes in the log; at most {RECORD_BYTES_MAX} are \
                 allowed, so split it"
            ),
        }
    }
}

/// Where in a batch the trouble is, as the beginning of a sentence.
fn place(index: Option<usize>) -> String {
    index.map_or_else(String::new, |index| format!("tasks[{index}]: "))
}

impl std::error::Error for Rejection {}
