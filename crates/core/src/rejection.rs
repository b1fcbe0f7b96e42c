//! Refusals: values, not errors. Each has a code for programs and a sentence for people, and a
//! page in the book.

#[macro_use]
mod named;
mod runs;
mod workflow_need;

use std::fmt;
use std::sync::Arc;

use tenure_code::{Code, Echo};
use tenure_record::event::RunState;
use tenure_record::id::{ID_MAX, LeaseId, RunId, TaskId};
use tenure_record::limits::RECORD_BYTES_MAX;
use tenure_record::name::{QueueName, SignalText, TaskKey};
use tenure_record::state::TaskState;

use crate::limits::{QUEUES_MAX, TASK_NAMES_MAX};

pub use self::workflow_need::WorkflowNeed;

named! {
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
            state: TaskState,
        },
        /// The task is not one that can be retried.
        NotRetryable {
            /// The task.
            task_id: TaskId,
            /// Its state.
            state: TaskState,
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
        /// A run that was started in another way holds the key.
        RunKeyConflict {
            /// The key.
            key: TaskKey,
            /// The run that holds it.
            run_id: RunId,
        },
        /// The run took another signal with this id.
        SignalConflict {
            /// The run.
            run_id: RunId,
            /// The id.
            signal_id: SignalText,
        },
        /// No such queue.
        QueueNotFound {
            /// The name that was asked for.
            name: QueueName,
        },
        /// The queue has tasks and cannot be deleted.
        QueueInUse {
            /// The queue.
            name: QueueName,
            /// How many tasks it has.
            tasks: u64,
            /// How many of them have ended.
            ended: u64,
        },
        /// A queue cannot take the copies of its own tasks.
        OwnDeadLetterQueue {
            /// The queue.
            name: QueueName,
        },
        /// The queue is the dead letter queue of another and cannot be deleted.
        QueueOfDeadLetters {
            /// The queue.
            name: QueueName,
            /// The first queue, by name, whose copies it takes.
            of: Arc<str>,
        },
        /// There are as many queues as there may be.
        TooManyQueues {
            /// Which task of the batch, if there are several.
            index: Option<usize>,
        },
        /// The queue has as many waiting tasks as its `max_waiting` allows.
        QueueFull {
            /// Which task of the batch, if there are several.
            index: Option<usize>,
            /// The queue.
            name: QueueName,
            /// The limit.
            max_waiting: u64,
        },
        /// There are as many names of tasks as there may be.
        TooManyNames {
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
        /// A counter has not as many ids left as are needed.
        IdsExhausted {
            /// What the counter numbers: `task`, `lease` or `run`.
            what: &'static str,
            /// The id that would come next.
            next: u64,
            /// How many ids are needed, those of a jump or a reserve included.
            wanted: u64,
        },
        /// No such run, or no longer.
        RunNotFound {
            /// The id that was asked for.
            run_id: RunId,
        },
        /// A version of a workflow that no longer compiles.
        WorkflowBroken {
            /// The workflow.
            name: Arc<str>,
            /// The version.
            version: u32,
            /// The first fault.
            message: String,
        },
        /// No such workflow, or not in that version.
        WorkflowNotFound {
            /// The name that was asked for.
            name: Arc<str>,
            /// The version that was asked for, if one was.
            version: Option<u32>,
        },
        /// Something needs the workflow, so it cannot be deleted.
        WorkflowInUse {
            /// The workflow.
            name: Arc<str>,
            /// The version that was to go; all of them if none is named.
            version: Option<u32>,
            /// What needs it.
            need: WorkflowNeed,
        },
        /// As many deleted workflows are remembered as may be.
        TooManyDeletedWorkflows,
        /// No run of the workflow holds the key.
        RunKeyNotFound {
            /// The workflow.
            workflow: Arc<str>,
            /// The key.
            key: TaskKey,
        },
        /// One item of a batch is refused, and the batch with it.
        InBatch {
            /// Which item.
            index: usize,
            /// Why.
            rejection: Box<Rejection>,
        },
        /// An earlier run of the batch has the key, and another start.
        RunKeyTwice {
            /// The key.
            key: TaskKey,
            /// Which run had it first.
            first: usize,
        },
        /// The workflow that a signal would begin has no node that waits for it.
        WorkflowSignalUnknown {
            /// The workflow.
            workflow: Arc<str>,
            /// The signal's name.
            name: Arc<str>,
        },
        /// The runs of a batch together are more than one record may cost.
        BatchTooHeavy {
            /// How many of them one record has room for.
            fits: usize,
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
        /// The end of the run is decided, and what is in it is ending.
        RunEnding {
            /// The run.
            run_id: RunId,
            /// How it ends.
            state: RunState,
        },
        /// The run stands still until an operator decides.
        RunParked {
            /// The run.
            run_id: RunId,
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
        /// The run keeps as many bytes of signals as it may.
        SignalBytesFull {
            /// The run.
            run_id: RunId,
            /// How many there would be with this one.
            bytes: usize,
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
        /// The input of a run or the payload of a signal is over its size limit.
        ValueTooLarge {
            /// What the value is, with its article.
            what: &'static str,
            /// Its size as a value of a run: about that of its JSON, with 8 bytes for each number.
            bytes: usize,
            /// The limit.
            bytes_max: usize,
        },
        /// More bytes than one record may have.
        RecordTooLarge {
            /// How many there are, at least.
            bytes: usize,
        },
    }
}

impl Rejection {
    /// The stable error code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Rejection::TaskNotFound { .. }
            | Rejection::RunNotFound { .. }
            | Rejection::QueueNotFound { .. }
            | Rejection::RunKeyNotFound { .. }
            | Rejection::WorkflowSignalUnknown { .. }
            | Rejection::WorkflowNotFound { .. }
            | Rejection::SignalUnknown { .. } => Code::NotFound,
            Rejection::InBatch { rejection, .. } => rejection.code(),
            Rejection::LeaseLost { .. } => Code::LeaseLost,
            Rejection::TaskTerminal { .. } => Code::TaskTerminal,
            Rejection::NotRetryable { .. }
            | Rejection::KeyConflict { .. }
            | Rejection::KeyTwice { .. }
            | Rejection::RunKeyConflict { .. }
            | Rejection::RunKeyTwice { .. }
            | Rejection::SignalConflict { .. }
            | Rejection::RunOver { .. }
            | Rejection::RunEnding { .. }
            | Rejection::WorkflowBroken { .. }
            | Rejection::QueueInUse { .. }
            | Rejection::QueueOfDeadLetters { .. }
            | Rejection::WorkflowInUse { .. }
            | Rejection::TaskOfRun { .. } => Code::Conflict,
            Rejection::RunParked { .. } => Code::RunParked,
            Rejection::SignalsFull { .. } | Rejection::SignalBytesFull { .. } => Code::Overloaded,
            Rejection::InputInvalid { .. }
            | Rejection::NoRunForArtifacts { .. }
            | Rejection::OwnDeadLetterQueue { .. } => Code::InvalidRequest,
            Rejection::TooManyVersions { .. }
            | Rejection::TooManyWorkflows
            | Rejection::TooManyDeletedWorkflows => Code::TooManyWorkflows,
            Rejection::TooManyQueues { .. } => Code::TooManyQueues,
            Rejection::QueueFull { .. } => Code::QueueFull,
            Rejection::TooManyNames { .. } => Code::TooManyNames,
            Rejection::IdsExhausted { .. } => Code::IdsExhausted,
            Rejection::BatchTooLarge { .. }
            | Rejection::BatchTooHeavy { .. }
            | Rejection::ValueTooLarge { .. }
            | Rejection::RecordTooLarge { .. } => Code::PayloadTooLarge,
        }
    }
}

impl fmt::Display for Rejection {
    #[expect(clippy::too_many_lines, reason = "one sentence for each refusal")]
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
                "{}the key {} belongs to task {task_id}, which was submitted with another body; use \
                 another key, or send the same body",
                place(*index),
                Echo(key.as_str())
            ),
            Rejection::KeyTwice { index, key, first } => write!(
                f,
                "tasks[{index}]: the key {} is that of tasks[{first}], which has another body; use \
                 another key, or send the same body",
                Echo(key.as_str())
            ),
            Rejection::TooManyQueues { index } => write!(
                f,
                "{}there are {QUEUES_MAX} queues already; use one that exists",
                place(*index)
            ),
            Rejection::QueueFull { index, name, max_waiting } => write!(
                f,
                "{}queue {} is full: its max_waiting is {max_waiting}; try again when workers have \
                 taken tasks, or raise max_waiting",
                place(*index),
                Echo(name.as_str())
            ),
            Rejection::TooManyNames { index } => write!(
                f,
                "{}there are tasks with {TASK_NAMES_MAX} names already; use one that exists, and \
                 put what differs from task to task into tags",
                place(*index)
            ),
            Rejection::QueueNotFound { name } => write!(
                f,
                "there is no queue {}; it comes with its first task or setting",
                Echo(name.as_str())
            ),
            Rejection::QueueInUse { name, tasks, ended } => queue_in_use(f, name, *tasks, *ended),
            Rejection::OwnDeadLetterQueue { name } => write!(
                f,
                "the queue {} cannot be its own dead letter queue; name another queue, which is made \
                 if there is none",
                Echo(name.as_str())
            ),
            Rejection::QueueOfDeadLetters { name, of } => write!(
                f,
                "the queue {} is the dead letter queue of {}; clear dead_letter_queue there first",
                Echo(name.as_str()),
                Echo(of)
            ),
            Rejection::IdsExhausted { what, next, wanted } => write!(
                f,
                "the next {what} id is {next}, and {wanted} more would pass {ID_MAX}; begin a new \
                 data folder and submit there what has not ended"
            ),
            Rejection::BatchTooLarge { items, items_max } => write!(
                f,
                "the request has {items} items; at most {items_max} are allowed, so split it"
            ),
            Rejection::RecordTooLarge { bytes } => write!(
                f,
                "the request needs {bytes} bytes in the log; at most {RECORD_BYTES_MAX} are \
                 allowed, so split it"
            ),
            Rejection::RunKeyConflict { .. }
            | Rejection::RunKeyNotFound { .. }
            | Rejection::InBatch { .. }
            | Rejection::RunKeyTwice { .. }
            | Rejection::WorkflowSignalUnknown { .. }
            | Rejection::BatchTooHeavy { .. }
            | Rejection::WorkflowInUse { .. }
            | Rejection::TooManyDeletedWorkflows
            | Rejection::SignalConflict { .. }
            | Rejection::RunNotFound { .. }
            | Rejection::WorkflowNotFound { .. }
            | Rejection::WorkflowBroken { .. }
            | Rejection::SignalUnknown { .. }
            | Rejection::RunOver { .. }
            | Rejection::RunEnding { .. }
            | Rejection::RunParked { .. }
            | Rejection::TaskOfRun { .. }
            | Rejection::NoRunForArtifacts { .. }
            | Rejection::SignalsFull { .. }
            | Rejection::SignalBytesFull { .. }
            | Rejection::ValueTooLarge { .. }
            | Rejection::InputInvalid { .. }
            | Rejection::TooManyVersions { .. }
            | Rejection::TooManyWorkflows => self.about_runs(f),
        }
    }
}

fn queue_in_use(
    f: &mut fmt::Formatter<'_>,
    name: &QueueName,
    tasks: u64,
    ended: u64,
) -> fmt::Result {
    let tasks = match tasks {
        1 => "one task".to_owned(),
        tasks => format!("{tasks} tasks"),
    };
    write!(
        f,
        "the queue {} has {tasks}, {ended} ended; cancel those that have not, and delete the queue \
         when retention has let all of them go",
        Echo(name.as_str())
    )
}

/// Where in a batch the trouble is, as the beginning of a sentence.
fn place(index: Option<usize>) -> String {
    index.map_or_else(String::new, |index| format!("tasks[{index}]: "))
}

impl std::error::Error for Rejection {}
