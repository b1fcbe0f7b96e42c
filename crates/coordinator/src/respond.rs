//! The outbox: nothing is answered before the log has released it. Outcomes wait here for the record
//! that they depend on. The type is the proof: only a committed batch makes a [`Released`].

use std::collections::VecDeque;

use tenure_core::command::LeaseRef;
use tenure_log::Released;
use tenure_record::id::Lsn;

use crate::limits::{OUTBOX_ITEM_BYTES, OUTBOX_ITEMS_MAX};
use crate::memory::Budget;
use crate::planted::{self, Bug};
use crate::request::Ready;

/// Outcomes in the order in which they were decided.
#[derive(Debug)]
pub(crate) struct Outbox {
    waiting: VecDeque<Waiting>,
    /// How many items those outcomes hold.
    weight: usize,
    /// The pool in which they count.
    memory: Budget,
    released: Lsn,
}

#[derive(Debug)]
struct Waiting {
    /// The last record when this was decided: what it saw.
    seen: Lsn,
    ready: Ready,
}

impl Outbox {
    /// Everything up to this record is durable already: it was recovered.
    pub(crate) fn new(released: Lsn, memory: Budget) -> Self {
        Self { waiting: VecDeque::new(), weight: 0, memory, released }
    }

    /// Whether another outcome may wait.
    pub(crate) fn has_room(&self) -> bool {
        self.weight < OUTBOX_ITEMS_MAX && self.memory.used() < self.memory.max()
    }

    /// The last record that may be told.
    pub(crate) fn released(&self) -> Lsn {
        self.released
    }

    /// Delivers an outcome when everything up to `seen` is released, which can be at once. Leases
    /// whose callers are gone are added to `lost`.
    pub(crate) fn put(&mut self, seen: Lsn, ready: Ready, lost: &mut Vec<LeaseRef>) {
        let early = u64::from(planted::has(Bug::ReleasedOneEarly));
        if seen.0 <= self.released.0 + early {
            ready.respond(lost);
        } else {
            self.weight += ready.weight();
            self.waiting.push_back(Waiting { seen, ready });
            self.count();
        }
    }

    /// Delivers what is released now. Leases whose callers are gone are added to `lost`.
    pub(crate) fn release(&mut self, released: Released, lost: &mut Vec<LeaseRef>) {
        self.released = self.released.max(Lsn(released.lsn().0));
        while let Some(next) = self.waiting.front()
            && next.seen <= self.released
            && let Some(Waiting { ready, .. }) = self.waiting.pop_front()
        {
            self.weight -= ready.weight();
            ready.respond(lost);
        }
        self.count();
    }

    fn count(&self) {
        self.memory.set(self.weight as u64 * OUTBOX_ITEM_BYTES);
    }

    /// All outcomes that still wait, to be refused.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Ready> + '_ {
        self.waiting.drain(..).map(|waiting| waiting.ready)
    }
}
