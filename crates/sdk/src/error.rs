//! Errors of the client and the worker: a stable code, a sentence for people, and the cause.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tenure_api::Fault;
use tenure_code::Code;
use tenure_proto::v1;

/// An error code as the server sent it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// A code that this version of the SDK knows.
    Known(Code),
    /// A code of a newer server.
    Other(String),
}

impl ErrorCode {
    /// Parses a code in its wire form.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Other(text.to_owned()), Self::Known)
    }

    /// The code in its wire form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(code) => code.as_str(),
            Self::Other(text) => text,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Code> for ErrorCode {
    fn from(code: Code) -> Self {
        Self::Known(code)
    }
}

impl PartialEq<Code> for ErrorCode {
    fn eq(&self, other: &Code) -> bool {
        *self == Self::Known(*other)
    }
}

/// A rejection by the server, or a request that got no response.
///
/// [`std::error::Error::source`] gives the cause, such as the I/O error of a connection.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    code: ErrorCode,
    message: String,
    retry_after: Option<Duration>,
    faults: Vec<Fault>,
    certainty: Certainty,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// What is known about the effect of a request that ended in an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    /// The request had no effect.
    NotDone,
    /// The request may have had its effect.
    Unknown,
}

impl Error {
    /// An error of a request that had no effect.
    pub fn new(code: impl Into<ErrorCode>, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            code: code.into(),
            message: message.into(),
            retry_after: None,
            faults: Vec::new(),
            certainty: Certainty::NotDone,
            source: None,
        }))
    }

    /// An error of a request whose effect is unknown, with the code [`Code::Unavailable`].
    pub fn unavailable(message: impl Into<String>) -> Self {
        let mut error = Self::new(Code::Unavailable, message);
        error.0.certainty = Certainty::Unknown;
        error
    }

    /// An error of a request that has a text which this version cannot send.
    #[cfg(feature = "client")]
    pub(crate) fn unknown(field: &str, text: &str) -> Self {
        let message = format!("{field} is {text:?}, which this version of the SDK does not know");
        Self::new(Code::InvalidRequest, message)
    }

    /// An error of a response that lacks something, after the request had its effect.
    #[cfg(feature = "client")]
    pub(crate) fn incomplete(what: &str) -> Self {
        Self::unavailable(format!("the server answered {what}; its version does not fit this SDK"))
    }

    pub(crate) fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// The error of a gRPC status.
    pub(crate) fn from_status(status: tonic::Status) -> Self {
        let text = |name| status.metadata().get(name).and_then(|value| value.to_str().ok());
        let code = text("tenure-code").map(ErrorCode::parse);
        let retry_after = text("tenure-retry-after-ms").and_then(|ms| ms.parse().ok());
        // A status with a code comes from a server that has judged the request. But a server that
        // stops may still complete it.
        let certainty = match &code {
            Some(ErrorCode::Known(Code::Unavailable)) | None => Certainty::Unknown,
            Some(_) => Certainty::NotDone,
        };
        Self(Box::new(Inner {
            code: code.unwrap_or_else(|| ErrorCode::Known(code_of(status.code()))),
            message: status.message().to_owned(),
            retry_after: retry_after.map(Duration::from_millis),
            faults: faults_in(&status),
            certainty,
            source: Some(Arc::new(status)),
        }))
    }

    /// The error of a connection that could not be made.
    pub(crate) fn from_transport(error: tonic::transport::Error) -> Self {
        let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
        let message = format!("the server cannot be reached{cause}");
        Self::new(Code::Unavailable, message).with_source(error)
    }

    /// The stable error code; [`Code::Unavailable`] if the server could not be reached. It can be
    /// compared with a [`Code`]: `*error.code() == Code::LeaseLost`.
    #[must_use]
    pub fn code(&self) -> &ErrorCode {
        &self.0.code
    }

    /// A sentence for people: what is wrong and what to do.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The delay before a retry, if the server named one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The faults of a workflow definition, as many as fit into a response.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.0.faults
    }

    /// Whether the request definitely had no effect. If not, its effect is unknown.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        self.0.certainty == Certainty::NotDone
    }

    /// Whether the request can succeed unchanged a little later. A code that this version does not
    /// know is retryable if the server named a delay.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match &self.0.code {
            ErrorCode::Known(code) => code.is_retryable(),
            ErrorCode::Other(_) => self.0.retry_after.is_some(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message(), self.code())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}

fn faults_in(status: &tonic::Status) -> Vec<Fault> {
    let bytes = status.metadata().get_bin("tenure-faults-bin").and_then(|it| it.to_bytes().ok());
    let faults = bytes.and_then(|bytes| v1::Faults::decode(bytes).ok());
    let faults = faults.map(|faults| faults.faults).unwrap_or_default();
    faults.into_iter().map(Fault::from).collect()
}

/// The code of a status without one, which no Tenure server sends.
fn code_of(status: tonic::Code) -> Code {
    use tonic::Code as Status;
    match status {
        Status::InvalidArgument | Status::Unimplemented | Status::OutOfRange => {
            Code::InvalidRequest
        }
        Status::Unauthenticated => Code::Unauthorized,
        Status::PermissionDenied => Code::Forbidden,
        Status::NotFound => Code::NotFound,
        Status::FailedPrecondition | Status::AlreadyExists | Status::Aborted => Code::Conflict,
        Status::ResourceExhausted => Code::Overloaded,
        Status::Ok
        | Status::Cancelled
        | Status::Unknown
        | Status::DeadlineExceeded
        | Status::Internal
        | Status::Unavailable
        | Status::DataLoss => Code::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Status;
    use tonic::metadata::MetadataMap;

    fn rejected(code: &str, retry_after_ms: Option<&str>) -> Error {
        let mut metadata = MetadataMap::new();
        metadata.insert("tenure-code", code.parse().unwrap());
        if let Some(ms) = retry_after_ms {
            metadata.insert("tenure-retry-after-ms", ms.parse().unwrap());
        }
        let status = Status::with_metadata(tonic::Code::ResourceExhausted, "full", metadata);
        Error::from_status(status)
    }

    #[test]
    fn a_rejection_keeps_what_the_server_sent() {
        let error = rejected("disk_full", Some("1500"));
        assert_eq!((error.code(), error.message()), (&ErrorCode::Known(Code::DiskFull), "full"));
        assert_eq!(error.retry_after(), Some(Duration::from_millis(1_500)));
        assert!(error.is_definite() && error.is_retryable());
    }

    #[test]
    fn a_rejection_is_retryable_exactly_if_its_code_is() {
        for code in Code::ALL {
            assert_eq!(rejected(code.as_str(), None).is_retryable(), code.is_retryable(), "{code}");
        }
        assert!(
            rejected("too_many_queues", None).is_retryable(),
            "a queue goes with its last task"
        );
    }

    #[test]
    fn a_code_of_a_newer_server_is_kept_as_text() {
        let error = rejected("quota_used_up", Some("1500"));
        assert_eq!(error.code(), &ErrorCode::Other("quota_used_up".to_owned()));
        assert_eq!(error.to_string(), "full (quota_used_up)");
        assert!(error.is_definite() && error.is_retryable());
        assert!(!rejected("quota_used_up", None).is_retryable());
    }

    #[test]
    fn a_missing_response_is_not_definite() {
        let error = Error::from_status(Status::unavailable("cut off"));
        assert_eq!(error.code(), &Code::Unavailable);
        assert!(!error.is_definite() && error.is_retryable());
    }

    #[test]
    fn an_error_has_its_cause_as_source() {
        let io = std::io::Error::other("no route");
        let error = Error::new(Code::Unavailable, "the server cannot be reached").with_source(io);
        assert_eq!(error.source().unwrap().to_string(), "no route");
        assert!(rejected("disk_full", None).source().is_some(), "the status is the cause");
    }
}
