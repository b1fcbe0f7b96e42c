//! Tasks of parked runs: they are in no other index, so that nothing finds them to grant or to expire.

use tenure_record::id::TaskId;

use super::Indexes;
use crate::state::task::Task;

impl Indexes {
    /// A task's run was parked, or goes on.
    pub(crate) fn hold(&mut self, id: TaskId, task: &Task, is_held: bool) {
        let before = self.place(id, task);
        if is_held && !task.is_terminal() {
            self.held.insert(id);
        } else if self.held.remove(&id) {
            self.unheld.insert(id);
        }
        let after = self.place(id, task);
        if before != after {
            self.leave(id, task, before);
            self.enter(id, task, after);
        }
    }

    /// A task that is about to come belongs to a parked run.
    pub(crate) fn hold_new(&mut self, id: TaskId) {
        self.held.insert(id);
    }
}
