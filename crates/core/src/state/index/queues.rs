//! What the indexes keep of queues' settings: retention, and when paused queues open by themselves.

use tenure_record::event::QueueSettings;
use tenure_record::time::{Clock, Timestamp};

use super::timers::Wakeup;
use super::{Indexes, QueueIndex};
use crate::state::store::QueueRef;

impl Indexes {
    /// A queue has other settings than before.
    pub(crate) fn configured(
        &mut self,
        queue: QueueRef,
        before: &QueueSettings,
        after: &QueueSettings,
    ) {
        self.retention_changed(queue, after.retention_ms);
        if before.paused_until != after.paused_until {
            let opening = Wakeup::Opening(queue);
            self.timers.let_sleep(Clock::Wall, before.paused_until, opening);
            self.opens_at(queue, after.paused_until);
        }
    }

    /// A queue without tasks is gone, and what its index took is given back.
    pub(crate) fn queue_gone(&mut self, queue: QueueRef, settings: &QueueSettings) {
        self.configured(queue, settings, &QueueSettings::default());
        if let Some(index) = self.queues.get_mut(queue.0 as usize) {
            // It may still be listed among those that were woken.
            *index = QueueIndex { is_woken: index.is_woken, ..QueueIndex::default() };
        }
    }

    /// A queue opens by itself at that moment of the wall clock, if it is ahead.
    pub(super) fn opens_at(&mut self, queue: QueueRef, at: Timestamp) {
        let opening = Wakeup::Opening(queue);
        if (at, opening.into()) > self.followed.on(Clock::Wall) {
            self.timers.wake_at(Clock::Wall, at, opening);
        }
    }

    /// A queue's own retention is now this.
    fn retention_changed(&mut self, queue: QueueRef, own_ms: Option<u64>) {
        let before = self.queue(queue).head();
        self.queue(queue).own_retention_ms = own_ms;
        let after = self.queue(queue).head();
        self.finished.moved(queue, before, after);
    }
}
