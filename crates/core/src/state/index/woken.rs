//! Queues from which more can be leased than before, for lease requests that wait.

use super::Indexes;
use crate::state::store::QueueRef;

impl Indexes {
    /// Remembers that a lease request for this queue may now get something.
    pub(crate) fn wake(&mut self, queue: QueueRef) {
        let at = self.grow_to(queue);
        if !std::mem::replace(&mut self.queues[at].is_woken, true) {
            self.woken.push(queue);
        }
    }

    /// One of the queues that were woken, which is then no longer among them.
    pub(crate) fn next_woken(&mut self) -> Option<QueueRef> {
        let queue = self.woken.pop()?;
        self.queue(queue).is_woken = false;
        Some(queue)
    }
}
