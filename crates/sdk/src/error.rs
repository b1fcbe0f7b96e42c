//! Why something was not done.

use std::fmt;
use std::time::Duration;

use prost::Message;
use tenure_proto::v1;

/// A refusal of the server, or no answer at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: String,
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
    pub(crate) fn local(code: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let (code, kind) = (code.to_owned(), Kind::Refused);
        Self { code, message, retry_after: None, faults: Vec::new(), kind }
    }

    /// There was no answer, or none that makes sense.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { kind: Kind::Unknown, ..Self::local("unavailable", message) }
    }

    /// For programs, and stable: `not_found`, `lease_lost`, `overloaded` and so on. `unavailable`
    /// if the server could not be reached.
    #[must_use]
    pub fn code(&self) -> &str {
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

    /// Whether the same request may go through a little later.
    #[must_use]
    pub fn is_for_now(&self) -> bool {
        matches!(self.code(), "overloaded" | "unavailable" | "disk_full")
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
        let said = text("tenure-code");
        let retry_after = text("tenure-retry-after-ms").and_then(|ms| ms.parse().ok());
        // Ours comes from a server that has looked at the request; but one that stops may have
        // done it all the same.
        let kind = match said {
            Some("unavailable") | None => Kind::Unknown,
            Some(_) => Kind::Refused,
        };
        Self {
            code: said.unwrap_or_else(|| code_of(status.code())).to_owned(),
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
        Self::local("unavailable", message)
    }
}

/// Our word for a status that did not come from a Tenure server, or not from its doors.
fn code_of(code: tonic::Code) -> &'static str {
    use tonic::Code;
    match code {
        Code::InvalidArgument | Code::Unimplemented | Code::OutOfRange => "invalid_request",
        Code::Unauthenticated => "unauthorized",
        Code::PermissionDenied => "forbidden",
        Code::NotFound => "not_found",
        Code::FailedPrecondition | Code::AlreadyExists | Code::Aborted => "conflict",
        Code::ResourceExhausted => "overloaded",
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => "unavailable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::metadata::MetadataMap;
    use tonic::{Code, Status};

    #[test]
    fn what_the_server_says_is_kept() {
        let mut metadata = MetadataMap::new();
        metadata.insert("tenure-code", "disk_full".parse().unwrap());
        metadata.insert("tenure-retry-after-ms", "1500".parse().unwrap());
        let error = Error::from(Status::with_metadata(Code::ResourceExhausted, "full", metadata));
        assert_eq!((error.code(), error.message()), ("disk_full", "full"));
        assert_eq!(error.retry_after(), Some(Duration::from_millis(1_500)));
        assert!(error.is_refusal() && error.is_for_now());
    }

    #[test]
    fn no_answer_is_no_refusal() {
        let error = Error::from(Status::unavailable("cut off"));
        assert_eq!(error.code(), "unavailable");
        assert!(!error.is_refusal() && error.is_for_now());
    }
}
