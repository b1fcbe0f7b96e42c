//! What a handler says while it works, on its way to the lease keeper: how far it is, and where
//! another attempt goes on.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::keeper::Word;

/// What is said with the next heartbeat. Newer words replace older ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Said {
    pub(super) fraction: Option<f64>,
    pub(super) message: Option<String>,
    /// Empty for none.
    pub(super) checkpoint: Vec<u8>,
}

impl Said {
    /// Adds what was said later.
    pub(super) fn add(&mut self, later: Said) {
        self.fraction = later.fraction.or(self.fraction);
        self.message = later.message.or(self.message.take());
        if !later.checkpoint.is_empty() {
            self.checkpoint = later.checkpoint;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A slot between a handler and the lease keeper: however often a handler speaks, one word waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot(Arc<Mutex<Said>>);

impl Slot {
    /// Says something, and wakes the lease keeper if nothing waits for it yet.
    pub(super) fn say(&self, lease_id: u64, said: Said, words: &mpsc::UnboundedSender<Word>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = waiting.is_empty();
        waiting.add(said);
        if is_first && !waiting.is_empty() {
            // If the lease keeper is gone, so is the worker.
            let _ = words.send(Word::Said { lease_id, slot: self.clone() });
        }
    }

    /// Takes what waits.
    pub(super) fn take(&self) -> Said {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
