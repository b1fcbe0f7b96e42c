//! A task that a handler works on: its payload, its checkpoint, and whether it should stop.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tenure_coordinator::{Grant, TaskOfRun};
use tenure_core::command::LeaseRef;
use tenure_record::id::{LeaseId, RunId, TaskId};

use super::mailbox::Mailbox;
#[cfg(feature = "json")]
use crate::outcome::Failure;

/// A task that this worker holds under a lease.
///
/// The worker extends the lease while the handler runs. A handler that runs for long should look at
/// [`LeasedTask::stop`] now and then.
#[derive(Debug)]
pub struct LeasedTask {
    grant: Grant,
    payload: Vec<u8>,
    signal: LeaseSignal,
    notes: Notes,
    mailbox: Arc<Mailbox>,
}

/// Why a handler should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The task was canceled. Completing it or failing now ends it.
    Canceled,
    /// The worker leaves and no longer waits: the lease is released.
    Leaving,
    /// The lease is lost. The result is dropped; another worker may have the task.
    Lost,
}

impl LeasedTask {
    pub(super) fn new(
        grant: Grant,
        signal: LeaseSignal,
        notes: Notes,
        mailbox: Arc<Mailbox>,
    ) -> Self {
        Self { grant, payload: Vec::new(), signal, notes, mailbox }
    }

    /// Reads the payload, which may be in the spill file, on the thread of the handler.
    pub(super) fn fetch(&mut self) -> io::Result<()> {
        self.payload = self.grant.payload.read()?.into_owned();
        Ok(())
    }

    pub(super) fn signal(&self) -> LeaseSignal {
        self.signal.clone()
    }

    /// The id of the task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.grant.task_id
    }

    /// The id of the lease, which is a fencing token: a later lease has a larger id, so a database that
    /// keeps the largest one can reject a worker whose lease is over.
    #[must_use]
    pub fn lease_id(&self) -> LeaseId {
        self.grant.lease_id
    }

    /// The lease, for calls such as [`Tenure::heartbeat`](crate::Tenure::heartbeat).
    #[must_use]
    pub fn lease(&self) -> LeaseRef {
        self.grant.lease()
    }

    /// The number of leases that the task has had, this one included.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.grant.attempt
    }

    /// The queue of the task.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.grant.queue
    }

    /// The kind of work, if the submit named one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.grant.name.as_deref()
    }

    /// The tags of the task, by key.
    #[must_use]
    pub fn tags(&self) -> &[(Arc<str>, Arc<str>)] {
        &self.grant.tags
    }

    /// The value of a tag.
    #[must_use]
    pub fn tag(&self, key: &str) -> Option<&str> {
        self.tags().iter().find(|(known, _)| &**known == key).map(|(_, value)| &**value)
    }

    /// The run and the node that the task belongs to, if a run has created it.
    #[must_use]
    pub fn run(&self) -> Option<&TaskOfRun> {
        self.grant.run.as_ref()
    }

    /// The run that the task belongs to, if a run has created it.
    #[must_use]
    pub fn run_id(&self) -> Option<RunId> {
        self.run().map(|run| run.run_id)
    }

    /// The W3C trace context of the submit, if it had one.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.grant.traceparent.as_deref()
    }

    /// The payload from JSON.
    ///
    /// # Errors
    /// A payload that does not fit is a permanent failure with the code `invalid_payload`, as another
    /// attempt would get the same payload.
    #[cfg(feature = "json")]
    pub fn payload<T: serde::de::DeserializeOwned>(&self) -> Result<T, Failure> {
        parse(&self.payload, "payload", "invalid_payload")
    }

    /// The payload as it was submitted.
    #[must_use]
    pub fn payload_bytes(&self) -> &[u8] {
        &self.payload
    }

    /// The checkpoint that an earlier attempt saved, from JSON; none if there is none.
    ///
    /// # Errors
    /// A checkpoint that does not fit is a permanent failure with the code `invalid_checkpoint`.
    #[cfg(feature = "json")]
    pub fn checkpoint<T: serde::de::DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        match self.checkpoint_bytes() {
            [] => Ok(None),
            bytes => parse(bytes, "checkpoint", "invalid_checkpoint").map(Some),
        }
    }

    /// The checkpoint that an earlier attempt saved; empty if there is none.
    #[must_use]
    pub fn checkpoint_bytes(&self) -> &[u8] {
        self.grant.checkpoint.as_deref().unwrap_or_default()
    }

    /// Saves a checkpoint as JSON, as [`LeasedTask::save_checkpoint_bytes`] does with bytes.
    ///
    /// # Errors
    /// A permanent failure, if the value has no JSON form.
    #[cfg(feature = "json")]
    pub fn save_checkpoint(&self, checkpoint: &impl serde::Serialize) -> Result<(), Failure> {
        let json = crate::terms::json("checkpoint", checkpoint);
        let json = json.map_err(|error| Failure::permanent(error).code("invalid_checkpoint"))?;
        self.save_checkpoint_bytes(json);
        Ok(())
    }

    /// Saves a checkpoint, which the next attempt gets with its lease: at most 64 KiB. It replaces an
    /// earlier checkpoint, and is written with the next heartbeat, failure or release.
    pub fn save_checkpoint_bytes(&self, checkpoint: impl Into<Vec<u8>>) {
        self.notes.lock().checkpoint = Some(checkpoint.into());
        self.mailbox.wake();
    }

    /// Reports progress: a fraction from 0 to 1 and a message for people, which may be empty. It is
    /// shown with the task until the attempt ends.
    pub fn progress(&self, fraction: f64, message: impl Into<String>) {
        self.notes.lock().progress = Some((fraction, message.into()));
        self.mailbox.wake();
    }

    /// Whether the handler should stop, and why.
    #[must_use]
    pub fn stop(&self) -> Option<Stop> {
        self.signal.get().stop()
    }

    /// Whether the handler should stop: the task was canceled, the worker leaves, or the lease is lost.
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.stop().is_some()
    }

    /// Whether the lease is lost. The result is dropped; another worker may have the task.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.stop() == Some(Stop::Lost)
    }

    /// Sleeps until the handler should stop, or for this long; says why it should stop.
    #[must_use]
    pub fn wait_for_stop(&self, timeout: Duration) -> Option<Stop> {
        self.signal.wait(timeout)
    }

    /// Resolves once the handler should stop, for async handlers.
    pub async fn stopped(&self) -> Stop {
        poll_fn(|context| self.signal.poll_stop(context)).await
    }
}

#[cfg(feature = "json")]
fn parse<T: serde::de::DeserializeOwned>(
    bytes: &[u8],
    what: &str,
    code: &str,
) -> Result<T, Failure> {
    serde_json::from_slice(bytes).map_err(|error| {
        Failure::permanent(format!("the {what} is not as expected: {error}")).code(code)
    })
}

/// The status of a lease. It only gets worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LeaseStatus {
    Held,
    Canceled,
    Leaving,
    Lost,
}

impl LeaseStatus {
    fn stop(self) -> Option<Stop> {
        match self {
            LeaseStatus::Held => None,
            LeaseStatus::Canceled => Some(Stop::Canceled),
            LeaseStatus::Leaving => Some(Stop::Leaving),
            LeaseStatus::Lost => Some(Stop::Lost),
        }
    }
}

/// Tells a handler the status of its lease. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct LeaseSignal(Arc<Signaled>);

#[derive(Debug)]
struct Signaled {
    state: Mutex<(LeaseStatus, Vec<Waker>)>,
    changed: Condvar,
}

impl LeaseSignal {
    pub(super) fn new() -> Self {
        let state = Mutex::new((LeaseStatus::Held, Vec::new()));
        Self(Arc::new(Signaled { state, changed: Condvar::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, (LeaseStatus, Vec<Waker>)> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn raise(&self, status: LeaseStatus) {
        let mut state = self.lock();
        if state.0 < status {
            state.0 = status;
            state.1.drain(..).for_each(Waker::wake);
            self.0.changed.notify_all();
        }
    }

    pub(super) fn get(&self) -> LeaseStatus {
        self.lock().0
    }

    fn wait(&self, timeout: Duration) -> Option<Stop> {
        let start = Instant::now();
        let mut state = self.lock();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            if state.0 != LeaseStatus::Held || left.is_zero() {
                return state.0.stop();
            }
            let woken = self.0.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ready once the status is no longer held.
    fn poll_stop(&self, context: &Context<'_>) -> Poll<Stop> {
        let mut state = self.lock();
        match state.0.stop() {
            Some(stop) => Poll::Ready(stop),
            None => {
                register(&mut state.1, context.waker());
                Poll::Pending
            }
        }
    }

    /// Whether an async handler is dropped: its worker leaves, or its lease is lost. If not, the waker
    /// is called when the status changes.
    pub(super) fn is_over(&self, context: &Context<'_>) -> bool {
        let mut state = self.lock();
        let is_over = state.0 >= LeaseStatus::Leaving;
        if !is_over {
            register(&mut state.1, context.waker());
        }
        is_over
    }
}

fn register(wakers: &mut Vec<Waker>, waker: &Waker) {
    if !wakers.iter().any(|known| known.will_wake(waker)) {
        wakers.push(waker.clone());
    }
}

/// What a handler says before it ends. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Arc<Mutex<Note>>);

#[derive(Debug, Default)]
pub(super) struct Note {
    pub(super) checkpoint: Option<Vec<u8>>,
    pub(super) progress: Option<(f64, String)>,
}

impl Notes {
    pub(super) fn lock(&self) -> MutexGuard<'_, Note> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        let note = self.lock();
        note.checkpoint.is_none() && note.progress.is_none()
    }

    pub(super) fn take(&self) -> Note {
        std::mem::take(&mut *self.lock())
    }
}
