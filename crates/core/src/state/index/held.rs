//! Tasks of parked runs: they are in no other index, so that nothing finds them to grant or to expire.

use tenure_record::id::TaskId;

use super::Indexes;
use crate::state::facts::task::Task;

impl Indexes {
    /// A task's run was parked, or goes on.
    pub(crate) fn hold(&mut self, id: TaskId, task: &Task, is_held: bool) {
        if task.is_terminal() || is_held == self.held.contains(&id) {
            return;
        }
        // It goes and comes back: what is held is in another place.
        self.moved(id, Some(task), None);
        let set = if is_held { &mut self.held } else { &mut self.unheld };
        set.insert(id);
        self.moved(id, None, Some(task));
    }

    /// A task that is about to come belongs to a parked run.
    pub(crate) fn hold_new(&mut self, id: TaskId) {
        self.held.insert(id);
    }
}
