//! A task in the hands of its worker: what is to be done, whether it should stop, and what came
//! out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tenure_proto::v1;
use tokio::sync::{mpsc, watch};

use super::keeper::Word;
use super::said::{Said, Slot};

/// A task that this worker holds.
#[derive(Debug)]
pub struct Task {
    lease: v1::Lease,
    signal: Signal,
    slot: Slot,
    words: Option<mpsc::UnboundedSender<Word>>,
}

impl Task {
    pub(super) fn new(lease: v1::Lease, signal: Signal) -> Self {
        Self { lease, signal, slot: Slot::default(), words: None }
    }

    /// What it says from here on goes to the lease keeper.
    pub(super) fn connect(&mut self, words: mpsc::UnboundedSender<Word>) {
        self.words = Some(words);
    }

    pub(super) fn signal(&self) -> Signal {
        self.signal.clone()
    }

    /// The run that it belongs to, if it does. Only then may its output have artifacts.
    #[must_use]
    pub fn run_id(&self) -> Option<u64> {
        self.lease.run.as_ref().map(|run| run.run_id)
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.lease.task_id
    }

    /// The lease, and the fence: a later one has a larger number, so a database that keeps the
    /// largest can refuse a worker that was overtaken.
    #[must_use]
    pub fn lease_id(&self) -> u64 {
        self.lease.lease_id
    }

    /// How often it was leased, this time included.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.lease.attempt
    }

    /// Its queue.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.lease.queue
    }

    /// What is to be done.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.lease.payload
    }

    /// Where an earlier attempt left off; empty if none said so.
    #[must_use]
    pub fn checkpoint(&self) -> &[u8] {
        &self.lease.checkpoint
    }

    /// Leaves word for another attempt, which gets it with its lease: JSON or any bytes, at most
    /// 64 KiB. It replaces what was left before, and goes out with the next heartbeat or failure.
    pub fn save_checkpoint(&self, checkpoint: impl Into<Vec<u8>>) {
        self.say(Said { checkpoint: checkpoint.into(), ..Said::default() });
    }

    /// Says how far the work is: a fraction from 0 to 1, and words for people. It is shown with the
    /// task until the attempt ends.
    pub fn progress(&self, fraction: f64, message: impl Into<String>) {
        let message = Some(message.into()).filter(|message| !message.is_empty());
        self.say(Said { fraction: Some(fraction), message, ..Said::default() });
    }

    fn say(&self, said: Said) {
        if let Some(words) = &self.words {
            self.slot.say(self.lease_id(), said, words);
        }
    }

    /// What kind of work it is, if its submit says.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.lease.name.as_deref()
    }

    /// Its tags.
    #[must_use]
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.lease.tags
    }

    /// The W3C trace context of its submit, if there was one.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.lease.traceparent.as_deref()
    }

    /// Whether it should stop: somebody canceled it, the worker leaves, or the lease is lost.
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.signal.get() != Standing::Good
    }

    /// Whether the lease is lost. Whatever comes out is dropped; another worker may be at it.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.signal.get() == Standing::Lost
    }

    /// Waits until it should stop. An async handler of a lost lease is stopped anyway.
    pub async fn canceled(&self) {
        self.signal.reached(Standing::Canceled).await;
    }

    /// Whether it should stop, and why.
    #[must_use]
    pub fn stop(&self) -> Option<Stop> {
        match self.signal.get() {
            Standing::Good => None,
            Standing::Canceled => Some(Stop::Canceled),
            Standing::Leaving => Some(Stop::Leaving),
            Standing::Lost => Some(Stop::Lost),
        }
    }
}

/// Why a handler should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Somebody canceled the task. Any failure now ends it; so does finishing it.
    Canceled,
    /// The worker leaves and waits no longer: give the lease back.
    Leaving,
    /// The lease is lost. Whatever comes out is dropped; another worker may be at it.
    Lost,
}

/// How a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    Good,
    Canceled,
    Leaving,
    Lost,
}

/// Tells a handler how its lease stands. It only gets worse.
#[derive(Clone, Debug)]
pub(super) struct Signal(Arc<watch::Sender<Standing>>);

impl Signal {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Standing::Good)))
    }

    pub(super) fn raise(&self, standing: Standing) {
        self.0.send_if_modified(|now| {
            let is_worse = *now < standing;
            *now = standing.max(*now);
            is_worse
        });
    }

    pub(super) fn get(&self) -> Standing {
        *self.0.borrow()
    }

    pub(super) async fn reached(&self, standing: Standing) {
        // The sender is here, so it cannot be gone.
        let _ = self.0.subscribe().wait_for(|now| *now >= standing).await;
    }
}

/// What came out of a task: any bytes; JSON can be read by people too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    pub(super) bytes: Vec<u8>,
    pub(super) artifacts: Vec<v1::NewArtifact>,
}

impl Output {
    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Hands in a file with it: only from tasks of a run. The media type is what HTTP calls the
    /// kind of file, such as `text/plain`.
    #[must_use]
    pub fn with_artifact(
        mut self,
        name: impl Into<String>,
        media_type: impl Into<String>,
        data: impl Into<Vec<u8>>,
    ) -> Self {
        let content = v1::new_artifact::Content::Data(data.into());
        self.add(name.into(), media_type.into(), content);
        self
    }

    /// The same with a file that was uploaded under its SHA-256 (`PUT /v1/blobs/{sha256}`).
    #[must_use]
    pub fn with_blob(
        mut self,
        name: impl Into<String>,
        media_type: impl Into<String>,
        sha256: impl Into<String>,
    ) -> Self {
        let content = v1::new_artifact::Content::Blob(sha256.into());
        self.add(name.into(), media_type.into(), content);
        self
    }

    fn add(&mut self, name: String, media_type: String, content: v1::new_artifact::Content) {
        let (media_type, content) = (Some(media_type), Some(content));
        self.artifacts.push(v1::NewArtifact { name, media_type, content });
    }

    /// Bytes of the files that travel with it.
    pub(super) fn artifact_bytes(&self) -> usize {
        self.artifacts.iter().map(artifact_bytes).sum()
    }
}

pub(super) fn artifact_bytes(artifact: &v1::NewArtifact) -> usize {
    let data = match &artifact.content {
        Some(v1::new_artifact::Content::Data(data)) => data.len(),
        Some(v1::new_artifact::Content::Blob(_)) | None => 0,
    };
    data + artifact.name.len() + 200
}

impl From<Vec<u8>> for Output {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, artifacts: Vec::new() }
    }
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        text.as_bytes().to_vec().into()
    }
}

impl From<()> for Output {
    fn from((): ()) -> Self {
        Self::default()
    }
}

/// Why an attempt did not work, and what should follow. Any error becomes one by `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub(super) reason: String,
    pub(super) code: Option<String>,
    pub(super) then: Then,
    /// Where the next attempt goes on; empty if the task keeps the checkpoint that it has.
    pub(super) checkpoint: Vec<u8>,
}

/// What follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Backoff,
    After(Duration),
    Nothing,
    /// It was no failure: the lease is given back, and the task waits so long.
    GiveBack(Duration),
}

impl Failure {
    /// Another attempt follows, as the task's backoff says.
    pub fn new(reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        Self { reason, code: None, then: Then::Backoff, checkpoint: Vec::new() }
    }

    /// The lease is given back: another worker should do it, and it costs the task nothing.
    #[must_use]
    pub fn give_back() -> Self {
        Self::give_back_for(Duration::ZERO)
    }

    /// Gives the lease back; the task waits so long before it may run again, and it costs the task
    /// nothing.
    #[must_use]
    pub fn give_back_for(wait: Duration) -> Self {
        let then = Then::GiveBack(wait);
        Self { reason: String::new(), code: None, then, checkpoint: Vec::new() }
    }

    /// Where the next attempt goes on: JSON or any bytes, at most 64 KiB.
    #[must_use]
    pub fn checkpoint(self, checkpoint: impl Into<Vec<u8>>) -> Self {
        Self { checkpoint: checkpoint.into(), ..self }
    }

    /// For programs.
    #[must_use]
    pub fn code(self, code: impl Into<String>) -> Self {
        Self { code: Some(code.into()), ..self }
    }

    /// Another attempt makes no sense.
    #[must_use]
    pub fn last(self) -> Self {
        Self { then: Then::Nothing, ..self }
    }

    /// Another attempt makes sense after so long.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        Self { then: Then::After(wait), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.code, self.then) {
            (_, Then::GiveBack(_)) => write!(f, "the lease is given back"),
            (Some(code), _) => write!(f, "{} ({code})", self.reason),
            (None, _) => write!(f, "{}", self.reason),
        }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_standing_only_gets_worse() {
        let signal = Signal::new();
        signal.raise(Standing::Lost);
        signal.raise(Standing::Canceled);
        assert_eq!(signal.get(), Standing::Lost);
        signal.reached(Standing::Canceled).await;
    }

    #[test]
    fn an_error_becomes_a_failure_by_a_question_mark() {
        fn parse() -> Result<u8, Failure> {
            Ok("x".parse::<u8>()?)
        }
        assert_eq!(parse().unwrap_err().reason, "invalid digit found in string");
    }
}
