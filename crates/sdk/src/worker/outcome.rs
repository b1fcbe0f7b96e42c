//! What a handler returns: an output, or a failure that says whether another attempt follows.

use std::fmt;
use std::time::Duration;

use tenure_proto::v1;

/// The output of a task: JSON or any other bytes, and artifacts if the task belongs to a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    pub(super) bytes: Vec<u8>,
    pub(super) artifacts: Vec<Artifact>,
}

/// A file that is handed in with an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Artifact {
    name: String,
    media_type: String,
    content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Data(Vec<u8>),
    Blob(String),
}

/// Bytes of a message that an artifact takes besides its name and its data.
const ARTIFACT_OVERHEAD_BYTES: usize = 200;

impl Output {
    /// Serializes a value as the output.
    ///
    /// A value that has no JSON, such as a map whose keys are not text, is a permanent failure.
    #[cfg(feature = "json")]
    pub fn json(value: &impl serde::Serialize) -> Result<Self, Failure> {
        match serde_json::to_vec(value) {
            Ok(bytes) => Ok(bytes.into()),
            Err(error) => {
                let reason = format!("the output cannot be written as JSON: {error}");
                Err(Failure::permanent(reason).code("invalid_output"))
            }
        }
    }

    /// The bytes of the output.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds an artifact, which only tasks of a run may have. The media type is one of HTTP, such as
    /// `text/plain`.
    #[must_use]
    pub fn with_artifact(
        self,
        name: impl Into<String>,
        media_type: impl Into<String>,
        data: impl Into<Vec<u8>>,
    ) -> Self {
        self.with(name.into(), media_type.into(), Content::Data(data.into()))
    }

    /// Adds an artifact whose bytes were uploaded under their SHA-256 with `PUT /v1/blobs/{sha256}`.
    #[must_use]
    pub fn with_blob(
        self,
        name: impl Into<String>,
        media_type: impl Into<String>,
        sha256: impl Into<String>,
    ) -> Self {
        self.with(name.into(), media_type.into(), Content::Blob(sha256.into()))
    }

    fn with(mut self, name: String, media_type: String, content: Content) -> Self {
        self.artifacts.push(Artifact { name, media_type, content });
        self
    }

    /// Bytes that the artifacts take in a report.
    pub(super) fn artifact_bytes(&self) -> usize {
        self.artifacts.iter().map(Artifact::bytes).sum()
    }
}

impl Artifact {
    fn bytes(&self) -> usize {
        let data = match &self.content {
            Content::Data(data) => data.len(),
            Content::Blob(_) => 0,
        };
        data + self.name.len() + ARTIFACT_OVERHEAD_BYTES
    }

    pub(super) fn to_wire(&self) -> v1::NewArtifact {
        let content = match self.content.clone() {
            Content::Data(data) => v1::new_artifact::Content::Data(data),
            Content::Blob(sha256) => v1::new_artifact::Content::Blob(sha256),
        };
        v1::NewArtifact {
            name: self.name.clone(),
            media_type: Some(self.media_type.clone()),
            content: Some(content),
        }
    }
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

/// Why an attempt did not succeed, and what follows. Any error becomes a retryable failure by `?`.
///
/// ```
/// use std::time::Duration;
/// use tenure_sdk::Failure;
///
/// // Retried with the task's backoff, or after a time that the handler knows.
/// let retried = Failure::new("the mail server is busy").code("busy");
/// let later = Failure::new("too many requests").retry_after(Duration::from_secs(30));
/// // Never retried: the task ends FAILED.
/// let ended = Failure::permanent("there is no such mailbox").code("no_mailbox");
/// // Not counted as a failure: another worker gets the task.
/// let released = Failure::release();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub(super) reason: String,
    pub(super) code: Option<String>,
    pub(super) then: Then,
    /// Where the next attempt continues; empty if the task keeps the checkpoint that it has.
    pub(super) checkpoint: Vec<u8>,
}

/// What follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Another attempt after the task's backoff.
    Backoff,
    /// Another attempt after this time.
    RetryAfter(Duration),
    /// No other attempt.
    Permanent,
    /// The lease is released, which costs the task nothing, and the task is delayed.
    Release(Duration),
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

    /// Makes the failure permanent: the task ends FAILED.
    #[must_use]
    pub fn into_permanent(self) -> Self {
        Self { then: Then::Permanent, ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.code, self.then) {
            (_, Then::Release(_)) => write!(f, "the lease is released"),
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

    #[test]
    fn an_error_becomes_a_retryable_failure_by_a_question_mark() {
        fn parse() -> Result<u8, Failure> {
            Ok("x".parse::<u8>()?)
        }
        assert_eq!(parse().unwrap_err(), Failure::new("invalid digit found in string"));
    }

    #[cfg(feature = "json")]
    #[test]
    fn an_output_without_json_is_a_permanent_failure() {
        let output = Output::json(&vec![1, 2]).unwrap();
        assert_eq!(output.as_bytes(), b"[1,2]");
        let keys = std::collections::BTreeMap::from([((1, 2), 3)]);
        let failure = Output::json(&keys).unwrap_err();
        assert_eq!(
            (failure.then, failure.code.as_deref()),
            (Then::Permanent, Some("invalid_output"))
        );
    }
}
