//! Signals that a run keeps until a token waits for them, with the bytes that they take. The bytes
//! are kept up with every change, so that a bound on them costs nothing to check.

use std::ops::Deref;
use std::sync::Arc;

use tenure_value::Value;

/// A signal that no token has waited for yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptSignal {
    pub number: u32,
    pub name: Arc<str>,
    pub correlation: Arc<str>,
    pub payload: Value,
}

/// Kept signals, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptSignals {
    signals: Vec<KeptSignal>,
    payload_bytes: usize,
    held_bytes: usize,
}

impl KeptSignals {
    /// Keeps another one.
    pub(crate) fn push(&mut self, signal: KeptSignal) {
        self.payload_bytes += signal.payload.bytes();
        self.held_bytes += held_bytes(&signal);
        self.signals.push(signal);
    }

    /// Forgets the signal with this number.
    pub(crate) fn remove(&mut self, number: u32) {
        let Ok(at) = self.signals.binary_search_by_key(&number, |signal| signal.number) else {
            return;
        };
        let taken = self.signals.remove(at);
        self.payload_bytes -= taken.payload.bytes();
        self.held_bytes -= held_bytes(&taken);
    }

    /// Bytes of all payloads as JSON text, about: what the bound on kept signals is about.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// Bytes of memory that they take, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

impl Deref for KeptSignals {
    type Target = [KeptSignal];

    fn deref(&self) -> &[KeptSignal] {
        &self.signals
    }
}

fn held_bytes(signal: &KeptSignal) -> usize {
    let KeptSignal { name, correlation, payload, .. } = signal;
    size_of::<KeptSignal>() + name.len() + correlation.len() + payload.held_bytes()
}
