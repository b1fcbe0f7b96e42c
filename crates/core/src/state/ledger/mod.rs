//! What the per-item functions of `apply` write to: the state itself, or a draft of it. Because
//! both take the same changes through the same functions, a draft is what the state will be.

mod run;

pub(crate) use self::run::Runs;

use tenure_record::event::{IdsSkipped, QueueSettings};
use tenure_record::id::TaskId;
use tenure_record::name::Text;

use crate::state::facts::task::{Cold, Task};
use crate::state::store::{NameRef, QueueRef, WorkerRef};

/// A place that takes changes.
pub(crate) trait Ledger {
    /// A task, as the changes so far have left it.
    fn task(&self, id: TaskId) -> Option<&Task>;

    /// Its cold part, if it has one.
    fn cold(&self, id: TaskId) -> Option<&Cold>;

    /// Adds a task; its queue was named before.
    fn create(&mut self, id: TaskId, task: Task, cold: Option<Cold>, payload: &[u8]);

    /// Adds a copy of a task, with the payload of that task; its queue was named before.
    fn create_copy(&mut self, of: TaskId, id: TaskId, task: Task, cold: Cold);

    /// Changes a task that exists.
    fn change(&mut self, id: TaskId, change: impl FnOnce(&mut Task));

    /// Changes a task's cold part; makes one if there is none.
    fn change_cold(&mut self, id: TaskId, change: impl FnOnce(&mut Cold));

    /// Keeps what a task gave back.
    fn set_output(&mut self, id: TaskId, output: &[u8]);

    /// Forgets a task and all that belongs to it.
    fn purge(&mut self, id: TaskId);

    /// The queue of that name; a new one if there is none.
    fn queue_named(&mut self, name: &str) -> QueueRef;

    /// Replaces a queue's settings.
    fn configure(&mut self, queue: QueueRef, settings: &QueueSettings);

    /// Keeps a queue, even without tasks, until it is deleted.
    fn keep_queue(&mut self, queue: QueueRef);

    /// Forgets a queue that has no tasks, with its settings.
    fn delete_queue(&mut self, queue: QueueRef);

    /// Moves both counters ahead.
    fn skip_ids(&mut self, to: &IdsSkipped);

    /// The reference of a task's name; a new one if no task has it.
    fn task_named(&mut self, name: &Text<'_>) -> NameRef;

    /// The worker of that name; a new one if there is none.
    fn worker_named(&mut self, name: &Text<'_>) -> WorkerRef;
}
