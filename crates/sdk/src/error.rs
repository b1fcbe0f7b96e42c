//! Errors: a refusal of the server with its stable code, or a request without an answer.

use std::fmt;
use std::time::Duration;

use prost::Message;
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
    /// Reads a code as it goes over the wire.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Other(text.to_owned()), Self::Known)
    }

    /// The code as it goes over the wire.
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

impl PartialEq<Code> for ErrorCode {
    fn eq(&self, other: &Code) -> bool {
        *self == Self::Known(*other)
    }
}

/// A refusal of the server, or no answer at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: ErrorCode,
    message: String,
    retry_after: Option<Duration>,
    faults: Vec<v1::Fault>,
    kind: Kind,
}

/// How much is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The server said no, and nothing was done.
    Refused,
    /// There was no answer: it was done, or it was not.
    Unknown,
}

impl Error {
    pub(crate) fn local(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        let (code, kind) = (ErrorCode::Known(code), Kind::Refused);
        Self { code, message, retry_after: None, faults: Vec::new(), kind }
    }

    /// There was no answer, or none that makes sense.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { kind: Kind::Unknown, ..Self::local(Code::Unavailable, message) }
    }

    /// The stable error code; [`Code::Unavailable`] if the server could not be reached. Compare it
    /// with a [`Code`]: `*error.code() == Code::LeaseLost`.
    #[must_use]
    pub fn code(&self) -> &ErrorCode {
        &self.code
    }

    /// For people: what is wrong and what to do.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// When to come back, if the server said so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Of a definition: what is wrong with it, as much as fits into a refusal.
    #[must_use]
    pub fn faults(&self) -> &[v1::Fault] {
        &self.faults
    }

    /// Whether the server said no, so that nothing was done. If not, nobody knows.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.kind == Kind::Refused
    }

    /// Whether the request can succeed unchanged a little later. A code that this version does not
    /// know is retryable if the server said when to come back.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match &self.code {
            ErrorCode::Known(code) => code.is_retryable(),
            ErrorCode::Other(_) => self.retry_after.is_some(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Error {}

impl From<tonic::Status> for Error {
    fn from(status: tonic::Status) -> Self {
        let text = |name| status.metadata().get(name).and_then(|value| value.to_str().ok());
        let said = text("tenure-code").map(ErrorCode::parse);
        let retry_after = text("tenure-retry-after-ms").and_then(|ms| ms.parse().ok());
        // Ours comes from a server that has looked at the request; but one that stops may have
        // done it all the same.
        let kind = match &said {
            Some(ErrorCode::Known(Code::Unavailable)) | None => Kind::Unknown,
            Some(_) => Kind::Refused,
        };
        Self {
            code: said.unwrap_or_else(|| ErrorCode::Known(code_of(status.code()))),
            message: status.message().to_owned(),
            retry_after: retry_after.map(Duration::from_millis),
            faults: faults_in(&status),
            kind,
        }
    }
}

fn faults_in(status: &tonic::Status) -> Vec<v1::Fault> {
    let bytes = status.metadata().get_bin("tenure-faults-bin").and_then(|it| it.to_bytes().ok());
    let faults = bytes.and_then(|bytes| v1::Faults::decode(bytes).ok());
    faults.map(|faults| faults.faults).unwrap_or_default()
}

impl From<tonic::transport::Error> for Error {
    fn from(error: tonic::transport::Error) -> Self {
        use std::error::Error as _;
        let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
        let message = format!("the server cannot be reached{cause}");
        Self::local(Code::Unavailable, message)
    }
}

/// The code that fits a status which no Tenure server sent.
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

    fn said(code: &str, retry_after_ms: Option<&str>) -> Error {
        let mut metadata = MetadataMap::new();
        metadata.insert("tenure-code", code.parse().unwrap());
        if let Some(ms) = retry_after_ms {
            metadata.insert("tenure-retry-after-ms", ms.parse().unwrap());
        }
        Status::with_metadata(tonic::Code::ResourceExhausted, "full", metadata).into()
    }

    #[test]
    fn what_the_server_says_is_kept() {
        let error = said("disk_full", Some("1500"));
        assert_eq!((error.code(), error.message()), (&ErrorCode::Known(Code::DiskFull), "full"));
        assert_eq!(error.retry_after(), Some(Duration::from_millis(1_500)));
        assert!(error.is_refusal() && error.is_retryable());
    }

    #[test]
    fn a_refusal_is_retryable_exactly_if_its_code_is() {
        for code in Code::ALL {
            assert_eq!(said(code.as_str(), None).is_retryable(), code.is_retryable(), "{code}");
        }
        assert!(said("too_many_queues", None).is_retryable(), "a queue goes with its last task");
    }

    #[test]
    fn a_code_of_a_newer_server_is_kept_as_text() {
        let error = said("quota_used_up", Some("1500"));
        assert_eq!(error.code(), &ErrorCode::Other("quota_used_up".to_owned()));
        assert_eq!(error.to_string(), "full (quota_used_up)");
        assert!(error.is_refusal() && error.is_retryable());
        assert!(!said("quota_used_up", None).is_retryable());
    }

    #[test]
    fn no_answer_is_no_refusal() {
        let error = Error::from(Status::unavailable("cut off"));
        assert_eq!(error.code(), &Code::Unavailable);
        assert!(!error.is_refusal() && error.is_retryable());
    }
}
