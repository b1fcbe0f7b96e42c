//! The audit's table held against the state that `apply` made of the same records.

use super::Audit;
use super::law::{Law, Violation, broken, hold};
use super::table::{Rare, Row};
use crate::id::TaskId;
use crate::state::{Cold, Facts, Task, TaskState};
use crate::time::Clock;

impl Audit {
    /// Says the first difference between these facts and what the records say.
    pub fn compare(&self, facts: &Facts) -> Result<(), Violation> {
        let same = (facts.next_task_id, facts.next_lease_id) == (self.next_task, self.next_lease)
            && (facts.last_lsn, facts.last_at) == (self.lsn, self.at);
        hold(Law::StateFollowsLog, same, || "the counters differ".to_owned())?;
        hold(Law::StateFollowsLog, facts.task_count() == self.tasks.len(), || {
            format!("there are {} tasks, and {} by the log", facts.task_count(), self.tasks.len())
        })?;
        for (id, task) in facts.tasks.iter() {
            let id = TaskId(id);
            let row = self.tasks.get(id).ok_or_else(|| {
                broken(Law::StateFollowsLog, format!("task {id} is not there by the log"))
            })?;
            let same = self.is_same(facts, task, row)
                && is_same_rarely(facts.cold_of(task), self.tasks.rare(id));
            hold(Law::StateFollowsLog, same, || {
                format!("task {id} is {task:?}, and by the log {row:?}")
            })?;
        }
        self.runs.compare(facts)
    }

    fn is_same(&self, facts: &Facts, task: &Task, row: &Row) -> bool {
        let state = match task.state {
            TaskState::Waiting { not_before, clock } => {
                not_before == row.moment && (clock == Clock::Wall) == row.by_wall_clock
            }
            TaskState::Leased { worker, expires_at } => {
                let holder = &**facts.worker_name(worker);
                expires_at == row.moment
                    && task.granted_ms == row.lease_ms
                    && holder == self.workers.text(row.worker)
            }
            TaskState::Completed { .. }
            | TaskState::Failed { .. }
            | TaskState::Dead { .. }
            | TaskState::Canceled { .. } => true,
        };
        let counters = (task.attempt, task.failures, task.expiries)
            == (row.attempt, row.failures, row.expiries);
        let budgets =
            (task.max_attempts, task.max_expiries) == (row.max_attempts, row.max_expiries);
        state
            && counters
            && budgets
            && task.name() == row.state
            && (task.lease_id, task.last_lsn) == (row.lease, row.last_lsn)
            && task.priority == row.priority
            && &**facts.queue_name(task.queue) == self.queues.text(row.queue)
            && task.cancel_requested == row.cancel_requested
    }
}

fn is_same_rarely(cold: Option<&Cold>, rare: Option<&Rare>) -> bool {
    let (no_cold, no_rare) = (Cold::default(), Rare::default());
    let (cold, rare) = (cold.unwrap_or(&no_cold), rare.unwrap_or(&no_rare));

    cold.key.as_ref().map(|key| &key.text) == rare.key.as_ref()
        && cold.timeout_ms == rare.timeout_ms
        && (cold.deadline_at, cold.revoke_at) == (rare.deadline_at, rare.revoke_at)
        && cold.stale_lease == rare.stale_lease
}
