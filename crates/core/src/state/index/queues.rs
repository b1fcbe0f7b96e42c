//! What the indexes keep of queues' settings: retention, and when paused queues open by themselves.

use std::ops::Bound;

use tenure_record::event::QueueSettings;
use tenure_record::time::Timestamp;

use super::{Indexes, QueueIndex};
use crate::state::dense::QueueRef;

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
            self.openings.remove(&(before.paused_until, queue));
            if after.paused_until > Timestamp::ZERO {
                self.openings.insert((after.paused_until, queue));
            }
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

    /// Until which moment of the wall clock queues that were to open have opened.
    pub(crate) fn opened_to(&self) -> Timestamp {
        self.opened_to
    }

    /// Wakes the queues whose pause is over by now.
    pub(super) fn open_queues(&mut self, wall: Timestamp) {
        if self.openings.is_empty() || wall <= self.opened_to {
            self.opened_to = wall;
            return;
        }
        let after = (self.opened_to, QueueRef(u32::MAX));
        let opened = self.openings.range((Bound::Excluded(after), Bound::Unbounded));
        let opened = opened.take_while(|(at, _)| *at <= wall).map(|(_, queue)| *queue);
        let opened: Vec<_> = opened.collect();
        opened.into_iter().for_each(|queue| self.wake(queue));
        self.opened_to = wall;
    }

    /// A queue's own retention is now this.
    fn retention_changed(&mut self, queue: QueueRef, own_ms: Option<u64>) {
        let before = self.queue(queue).head();
        self.queue(queue).own_retention_ms = own_ms;
        let after = self.queue(queue).head();
        self.finished.moved(queue, before, after);
    }

    /// When the next paused queue opens by itself, by the wall clock.
    pub(super) fn next_opening(&self) -> Option<Timestamp> {
        if self.openings.is_empty() {
            return None;
        }
        let after = (self.opened_to, QueueRef(u32::MAX));
        let ahead = (Bound::Excluded(after), Bound::Unbounded);
        self.openings.range(ahead).next().map(|(at, _)| *at)
    }
}
