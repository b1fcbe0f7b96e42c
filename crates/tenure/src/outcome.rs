//! What came of an attempt: an output, or a failure that says whether another attempt follows.

use std::fmt;
use std::time::Duration;

use tenure_core::command::{CompleteTask, FailTask, LeaseRef, ReleaseTask, Retry};
use tenure_record::name::{FailureCode, Reason, WorkerName};

use crate::error::Error;
use crate::terms;

/// The output of a task: JSON, or any other bytes, at most 1 MiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    bytes: Vec<u8>,
}

impl Output {
    /// An output as JSON.
    ///
    /// # Errors
    /// A permanent failure, if the value has no JSON form.
    #[cfg(feature = "json")]
    pub fn json(value: &impl serde::Serialize) -> Result<Self, Failure> {
        let json = terms::json("output", value);
        json.map(Self::from).map_err(|error| Failure::permanent(error).code("invalid_output"))
    }

    /// The bytes of the output.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn parse(
        self,
        lease: LeaseRef,
        worker: Option<WorkerName>,
    ) -> Result<CompleteTask, Error> {
        let output = terms::payload("output", self.bytes)?;
        Ok(CompleteTask { worker, ..CompleteTask::plain(lease, output) })
    }
}

impl From<Vec<u8>> for Output {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes }
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

/// Why an attempt did not succeed, and what follows. Any error becomes a retryable failure by `?`.
///
/// ```
/// use std::time::Duration;
/// use tenure::Failure;
///
/// // Retried after the task's backoff, or after a time that the handler knows.
/// let retried = Failure::new("the mail server is busy").code("busy");
/// let later = Failure::new("too many requests").retry_after(Duration::from_secs(30));
/// // Never retried: the task ends FAILED.
/// let ended = Failure::permanent("there is no such mailbox").code("no_mailbox");
/// // Not counted as a failure: another worker gets the task.
/// let released = Failure::release();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    reason: String,
    code: Option<String>,
    then: Then,
    checkpoint: Vec<u8>,
}

/// What follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Another attempt after the task's backoff.
    Backoff,
    /// Another attempt after this time.
    RetryAfter(Duration),
    /// No other attempt.
    Permanent,
    /// The lease is released, which costs the task nothing, and the task is delayed.
    Release(Duration),
}

/// A failure as a report to the engine.
#[derive(Debug)]
pub(crate) enum FailureReport {
    Fail(FailTask),
    Release(ReleaseTask),
}

impl Failure {
    /// A failure that is retried after the task's backoff.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self::with(reason.to_string(), Then::Backoff)
    }

    /// A failure that is never retried: the task ends FAILED.
    pub fn permanent(reason: impl fmt::Display) -> Self {
        Self::with(reason.to_string(), Then::Permanent)
    }

    /// Releases the lease: another worker gets the task, and no failure is counted.
    #[must_use]
    pub fn release() -> Self {
        Self::release_for(Duration::ZERO)
    }

    /// Releases the lease and delays the task; no failure is counted.
    #[must_use]
    pub fn release_for(delay: Duration) -> Self {
        Self::with(String::new(), Then::Release(delay))
    }

    fn with(reason: String, then: Then) -> Self {
        Self { reason, code: None, then, checkpoint: Vec::new() }
    }

    /// Sets the checkpoint from which the next attempt continues: JSON or any bytes, at most 64 KiB.
    #[must_use]
    pub fn checkpoint(self, checkpoint: impl Into<Vec<u8>>) -> Self {
        Self { checkpoint: checkpoint.into(), ..self }
    }

    /// Sets the code, by which programs tell failures apart.
    #[must_use]
    pub fn code(self, code: impl Into<String>) -> Self {
        Self { code: Some(code.into()), ..self }
    }

    /// Retries after this time instead of the task's backoff.
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        Self { then: Then::RetryAfter(delay), ..self }
    }

    /// Keeps this checkpoint if the failure has none of its own.
    pub(crate) fn or_checkpoint(self, checkpoint: Option<Vec<u8>>) -> Self {
        match checkpoint {
            Some(checkpoint) if self.checkpoint.is_empty() => Self { checkpoint, ..self },
            Some(_) | None => self,
        }
    }

    pub(crate) fn parse(
        self,
        lease: LeaseRef,
        worker: Option<WorkerName>,
    ) -> Result<FailureReport, Error> {
        let checkpoint = terms::checkpoint(&self.checkpoint)?;
        let retry = match self.then {
            Then::Release(delay) => {
                let delay_ms = terms::span("delay", delay)?;
                let release = ReleaseTask { delay_ms, checkpoint, ..ReleaseTask::from(lease) };
                return Ok(FailureReport::Release(release));
            }
            Then::Backoff => Retry::WithBackoff,
            Then::RetryAfter(delay) => Retry::After(terms::span("retry_after", delay)?),
            Then::Permanent => Retry::Never,
        };
        let reason = Reason::keep_end(&self.reason);
        let code = self.code.as_deref().map(FailureCode::parse).transpose()?;
        Ok(FailureReport::Fail(FailTask { lease, reason, code, retry, checkpoint, worker }))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.code, self.then) {
            (_, Then::Release(_)) => f.write_str("the lease is released"),
            (Some(code), _) => write!(f, "{} ({code})", self.reason),
            (None, _) => f.write_str(&self.reason),
        }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}
