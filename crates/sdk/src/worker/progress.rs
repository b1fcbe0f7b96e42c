//! Progress and checkpoints on their way from a handler to the lease keeper.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::lease_keeper::HandlerEvent;

/// What the next heartbeat carries. A newer update replaces an older one field by field.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ProgressUpdate {
    pub(super) fraction: Option<f64>,
    pub(super) message: Option<String>,
    /// Empty for none.
    pub(super) checkpoint: Vec<u8>,
}

impl ProgressUpdate {
    /// Adds a later update.
    pub(super) fn merge(&mut self, later: ProgressUpdate) {
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

/// A slot between a handler and the lease keeper, which coalesces updates: at most one is pending.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgressSlot(Arc<Mutex<ProgressUpdate>>);

impl ProgressSlot {
    /// Adds an update, and wakes the lease keeper if none was pending.
    pub(super) fn send(
        &self,
        lease_id: u64,
        update: ProgressUpdate,
        events: &mpsc::UnboundedSender<HandlerEvent>,
    ) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = pending.is_empty();
        pending.merge(update);
        if was_empty && !pending.is_empty() {
            // If the lease keeper is gone, so is the worker.
            let _ = events.send(HandlerEvent::Progressed { lease_id, slot: self.clone() });
        }
    }

    /// Takes the pending update.
    pub(super) fn take(&self) -> ProgressUpdate {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
