//! A task that a handler works on: its payload, its checkpoint, and whether it should stop.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tenure_proto::v1;
use tokio::sync::{mpsc, watch};

#[cfg(feature = "json")]
use super::Failure;
use super::lease_keeper::HandlerEvent;
use super::progress::{ProgressSlot, ProgressUpdate};

/// A task that this worker holds under a lease.
#[derive(Debug)]
pub struct LeasedTask {
    lease: v1::Lease,
    signal: LeaseSignal,
    slot: ProgressSlot,
    events: Option<mpsc::UnboundedSender<HandlerEvent>>,
}

impl LeasedTask {
    pub(super) fn new(lease: v1::Lease, signal: LeaseSignal) -> Self {
        Self { lease, signal, slot: ProgressSlot::default(), events: None }
    }

    /// Sends progress to the lease keeper from here on.
    pub(super) fn connect(&mut self, events: mpsc::UnboundedSender<HandlerEvent>) {
        self.events = Some(events);
    }

    pub(super) fn signal(&self) -> LeaseSignal {
        self.signal.clone()
    }

    /// The id of the task.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.lease.task_id
    }

    /// The id of the lease, which is a fencing token: a later lease of any task has a larger id, so a
    /// database that keeps the largest one can reject a worker whose lease is over.
    #[must_use]
    pub fn lease_id(&self) -> u64 {
        self.lease.lease_id
    }

    /// The number of leases that the task has had, this one included.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.lease.attempt
    }

    /// The queue that the task waited in.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.lease.queue
    }

    /// The name of the kind of work, if the submit gave one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.lease.name.as_deref()
    }

    /// The tags of the task.
    #[must_use]
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.lease.tags
    }

    /// The run that the task belongs to. Only the output of such a task may have artifacts.
    #[must_use]
    pub fn run_id(&self) -> Option<u64> {
        self.lease.run.as_ref().map(|run| run.run_id)
    }

    /// The node of the run's workflow that the task executes, if the task belongs to a run.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        self.lease.run.as_ref().map(|run| run.node.as_str())
    }

    /// The W3C trace context of the submit, if it had one.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.lease.traceparent.as_deref()
    }

    /// Deserializes the payload from JSON.
    ///
    /// A payload that does not fit is a permanent failure with the code `invalid_payload`, as another
    /// attempt would get the same payload.
    #[cfg(feature = "json")]
    pub fn payload<T: serde::de::DeserializeOwned>(&self) -> Result<T, Failure> {
        parse(&self.lease.payload, "payload", "invalid_payload")
    }

    /// The payload as it was submitted.
    #[must_use]
    pub fn payload_bytes(&self) -> &Bytes {
        &self.lease.payload
    }

    /// Deserializes the checkpoint that an earlier attempt saved; none if there is none.
    ///
    /// A checkpoint that does not fit is a permanent failure with the code `invalid_checkpoint`.
    #[cfg(feature = "json")]
    pub fn checkpoint<T: serde::de::DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        match self.lease.checkpoint.is_empty() {
            true => Ok(None),
            false => parse(&self.lease.checkpoint, "checkpoint", "invalid_checkpoint").map(Some),
        }
    }

    /// The checkpoint that an earlier attempt saved; empty if there is none.
    #[must_use]
    pub fn checkpoint_bytes(&self) -> &[u8] {
        &self.lease.checkpoint
    }

    /// Serializes a checkpoint for the next attempt, as [`LeasedTask::save_checkpoint_bytes`] does
    /// with bytes.
    #[cfg(feature = "json")]
    pub fn save_checkpoint(&self, checkpoint: &impl serde::Serialize) -> Result<(), Failure> {
        match serde_json::to_vec(checkpoint) {
            Ok(bytes) => self.save_checkpoint_bytes(bytes),
            Err(error) => {
                let reason = format!("the checkpoint cannot be written as JSON: {error}");
                return Err(Failure::permanent(reason).code("invalid_checkpoint"));
            }
        }
        Ok(())
    }

    /// Saves a checkpoint, which the next attempt gets with its lease: at most 64 KiB. It replaces an
    /// earlier checkpoint, and is sent with the next heartbeat or failure.
    pub fn save_checkpoint_bytes(&self, checkpoint: impl Into<Vec<u8>>) {
        self.update(ProgressUpdate { checkpoint: checkpoint.into(), ..ProgressUpdate::default() });
    }

    /// Reports progress: a fraction from 0 to 1 and a message for people. The server shows it with the
    /// task until the attempt ends.
    pub fn progress(&self, fraction: f64, message: impl Into<String>) {
        let message = Some(message.into()).filter(|message| !message.is_empty());
        let fraction = Some(fraction);
        self.update(ProgressUpdate { fraction, message, ..ProgressUpdate::default() });
    }

    fn update(&self, update: ProgressUpdate) {
        if let Some(events) = &self.events {
            self.slot.send(self.lease_id(), update, events);
        }
    }

    /// Whether the handler should stop: the task was canceled, the worker leaves, or the lease is lost.
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.signal.get() != LeaseStatus::Held
    }

    /// Whether the lease is lost. The result is dropped; another worker may have the task.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.signal.get() == LeaseStatus::Lost
    }

    /// Waits until the handler should stop. An async handler whose lease is lost is stopped anyway.
    pub async fn canceled(&self) {
        self.signal.reached(LeaseStatus::Canceled).await;
    }

    /// Why the handler should stop; none if it should not.
    #[must_use]
    pub fn stop(&self) -> Option<Stop> {
        match self.signal.get() {
            LeaseStatus::Held => None,
            LeaseStatus::Canceled => Some(Stop::Canceled),
            LeaseStatus::Leaving => Some(Stop::Leaving),
            LeaseStatus::Lost => Some(Stop::Lost),
        }
    }
}

#[cfg(feature = "json")]
fn parse<T: serde::de::DeserializeOwned>(
    bytes: &[u8],
    what: &str,
    code: &str,
) -> Result<T, Failure> {
    // An empty payload is what `null` is over HTTP.
    let bytes = if bytes.is_empty() { b"null" } else { bytes };
    serde_json::from_slice(bytes).map_err(|error| {
        Failure::permanent(format!("the {what} does not have the expected form: {error}"))
            .code(code)
    })
}

/// Why a handler should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The task was canceled. Any failure ends it now, and so does a completion.
    Canceled,
    /// The worker leaves and no longer waits: release the lease.
    Leaving,
    /// The lease is lost. The result is dropped; another worker may have the task.
    Lost,
}

/// The status of a lease, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LeaseStatus {
    Held,
    Canceled,
    Leaving,
    Lost,
}

/// Tells a handler the status of its lease, which only gets worse.
#[derive(Clone, Debug)]
pub(super) struct LeaseSignal(Arc<watch::Sender<LeaseStatus>>);

impl LeaseSignal {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(LeaseStatus::Held)))
    }

    pub(super) fn raise(&self, status: LeaseStatus) {
        self.0.send_if_modified(|now| {
            let is_worse = *now < status;
            *now = status.max(*now);
            is_worse
        });
    }

    pub(super) fn get(&self) -> LeaseStatus {
        *self.0.borrow()
    }

    pub(super) async fn reached(&self, status: LeaseStatus) {
        // The sender is here, so it cannot be gone.
        let _ = self.0.subscribe().wait_for(|now| *now >= status).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lease_status_only_gets_worse() {
        let signal = LeaseSignal::new();
        signal.raise(LeaseStatus::Lost);
        signal.raise(LeaseStatus::Canceled);
        assert_eq!(signal.get(), LeaseStatus::Lost);
        signal.reached(LeaseStatus::Canceled).await;
    }

    #[cfg(feature = "json")]
    #[test]
    fn a_payload_that_does_not_fit_is_a_permanent_failure() {
        let payload = Bytes::from_static(b"[1, 2]");
        let task = LeasedTask::new(v1::Lease { payload, ..Default::default() }, LeaseSignal::new());
        assert_eq!(task.payload::<Vec<u8>>(), Ok(vec![1, 2]));
        let failure = task.payload::<String>().unwrap_err();
        assert_eq!(
            failure,
            Failure { code: Some("invalid_payload".to_owned()), ..failure.clone() }
        );
        assert_eq!(failure.clone(), failure.into_permanent());
        assert_eq!(task.checkpoint::<u8>(), Ok(None));
    }
}
