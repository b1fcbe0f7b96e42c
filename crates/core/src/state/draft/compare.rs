//! A draft held against the state that its record gives.

use tenure_record::id::TaskId;

use super::Draft;
use crate::state::State;
use crate::state::facts::task::{Cold, Task, TaskPhase};
use crate::state::ledger::Ledger;

impl Draft<'_> {
    /// Compares what is drafted with a state to which the record was applied. Says the first
    /// difference; where things lie in memory does not count.
    pub fn check_against(&self, applied: &State) -> Result<(), String> {
        let (next_task, next_lease) = (applied.facts.next_task_id, applied.facts.next_lease_id);
        if (self.next_task_id, self.next_lease_id) != (next_task, next_lease)
            || self.next_run_id != applied.facts.next_run_id
        {
            return Err("the counters differ".to_owned());
        }
        for (id, _, drafted) in self.changes() {
            match (drafted, applied.task_slot(id)) {
                (None, None) => {}
                (Some(drafted), Some(task)) => self.compare(id, drafted, applied, task)?,
                _ => return Err(format!("task {id} is in one of the two only")),
            }
        }
        for (queue, settings) in &self.settings {
            let name = self.queue_name(*queue);
            let queue = applied.queue_ref(name.as_str());
            if queue.and_then(|at| applied.facts.queues.get(at)).map(|q| &q.settings)
                != Some(settings)
            {
                return Err(format!("the settings of queue {name:?} differ"));
            }
        }
        self.check_runs(applied)
    }

    fn compare(
        &self,
        id: TaskId,
        drafted: &Task,
        applied: &State,
        task: &Task,
    ) -> Result<(), String> {
        let facts = &applied.facts;
        let mut same = *drafted;
        if self.queue_name(drafted.queue).as_str() == &**facts.queue_name(task.queue) {
            same.queue = task.queue;
        }
        if let (Some(name), Some(there)) = (drafted.name.get(), task.name.get())
            && self.text_of(name) == facts.text_of(there)
        {
            same.name = there;
        }
        if let (TaskPhase::Leased { worker, .. }, TaskPhase::Leased { worker: there, .. }) =
            (&mut same.state, task.state)
            && self.worker_name(*worker).as_str() == &**facts.worker_name(there)
        {
            *worker = there;
        }
        (same.cold, same.payload, same.output) = (task.cold, task.payload, task.output);
        if same != *task {
            return Err(format!("task {id} differs:\n{same:?}\n{task:?}"));
        }
        let default = Cold::default();
        let drafted = Ledger::cold(self, id).unwrap_or(&default);
        let cold = facts.cold_of(task).unwrap_or(&default);
        if drafted != cold {
            return Err(format!("the cold part of task {id} differs:\n{drafted:?}\n{cold:?}"));
        }
        Ok(())
    }
}
