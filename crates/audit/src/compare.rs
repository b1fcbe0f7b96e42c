//! The audit's table compared with the state that `apply` made of the same records.

use tenure_record::state::TaskState;

use super::Audit;
use super::law::{Law, Violation, broken, hold};
use super::table::{Rare, Row};

impl Audit {
    /// Says the first difference between a state, seeded from its items, and what the records say.
    pub fn compare(&self, state: &Audit) -> Result<(), Violation> {
        let same = (state.next_task, state.next_lease) == (self.next_task, self.next_lease)
            && (state.lsn, state.at) == (self.lsn, self.at);
        hold(Law::StateFollowsLog, same, || "the counters differ".to_owned())?;
        let (there, by_log) = (state.tasks.len(), self.tasks.len());
        hold(Law::StateFollowsLog, there == by_log, || {
            format!("there are {there} tasks, and {by_log} by the log")
        })?;
        let none = Rare::default();
        for (id, task) in state.tasks.iter() {
            let row = self.tasks.get(id).ok_or_else(|| {
                broken(Law::StateFollowsLog, format!("task {id} is not there by the log"))
            })?;
            let same = self.is_same(state, task, row)
                && state.tasks.rare(id).unwrap_or(&none) == self.tasks.rare(id).unwrap_or(&none);
            hold(Law::StateFollowsLog, same, || {
                format!("task {id} is {task:?}, and by the log {row:?}")
            })?;
        }
        self.runs.compare(&state.runs)
    }

    fn is_same(&self, state: &Audit, task: &Row, row: &Row) -> bool {
        let moments = match task.state {
            TaskState::Waiting => {
                (task.moment, task.by_wall_clock) == (row.moment, row.by_wall_clock)
            }
            TaskState::Leased => {
                (task.moment, task.lease_ms) == (row.moment, row.lease_ms)
                    && state.workers.text(task.worker) == self.workers.text(row.worker)
            }
            TaskState::Completed | TaskState::Failed | TaskState::Dead | TaskState::Canceled => {
                true
            }
        };
        let counters = (task.attempt, task.failures, task.expiries)
            == (row.attempt, row.failures, row.expiries);
        let budgets =
            (task.max_failures, task.max_expiries) == (row.max_failures, row.max_expiries);
        moments
            && counters
            && budgets
            && task.state == row.state
            && (task.lease, task.last_lsn) == (row.lease, row.last_lsn)
            && task.priority == row.priority
            && state.queues.text(task.queue) == self.queues.text(row.queue)
            && task.cancel_requested == row.cancel_requested
    }
}
