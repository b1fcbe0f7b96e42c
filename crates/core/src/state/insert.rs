//! How a task comes into the state: submitted, made by a run, or copied.

use tenure_record::id::TaskId;
use tenure_record::time::Timestamp;

use crate::state::State;
use crate::state::facts::task::{Cold, Task};

impl State {
    /// Adds a task whose payload is stored.
    pub(super) fn insert(&mut self, id: TaskId, mut task: Task, cold: Option<Cold>) {
        let indexes = self.indexes.as_mut();
        if let (Some(indexes), Some(cold)) = (indexes, &cold) {
            let run = cold.run.and_then(|(run, _)| self.facts.runs.get(run.0));
            if run.is_some_and(|run| run.head.stands_still()) {
                indexes.hold_new(id);
            }
            indexes.deadline_moved(id, Timestamp::ZERO, cold.deadline_at);
            indexes.text_bytes += cold.text_bytes();
            if let Some(key) = cold.held_key() {
                indexes.key_added(task.queue, &key.text, id);
            }
        }
        if let Some(cold) = cold {
            task.cold = self.facts.cold.insert(cold);
        }
        self.facts.queues.get_mut(task.queue).expect("a new task's queue is named first").tasks +=
            1;
        if let Some(name) = task.name.get().and_then(|name| self.facts.task_names.get_mut(name)) {
            name.tasks += 1;
        }
        self.facts.tasks.insert(id.0, task);
        self.facts.next_task_id = self.facts.next_task_id.max(id.next());
        if let Some(indexes) = &mut self.indexes {
            indexes.moved(id, None, Some(&task));
        }
    }
}
