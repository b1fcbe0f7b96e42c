//! The error of every call: a stable code, a sentence that says what to do, and the cause.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;

use tenure_code::Code;
use tenure_coordinator::{Failure as EngineFailure, Fault, Refusal};
use tenure_core::Rejection;
use tenure_flow::Fault as DefinitionFault;
use tenure_record::name::Invalid;

/// Why a call did nothing.
///
/// Programs compare [`Error::code`]; people read [`Error::message`]; [`StdError::source`] is the error
/// of the operating system or of the JSON parser, where there is one.
#[derive(Clone, Debug)]
pub struct Error {
    code: Code,
    message: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error with a code and a sentence.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), source: None }
    }

    /// A request that must be changed before it can be decided.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, message)
    }

    /// An error that another error has caused.
    pub(crate) fn with_source(
        code: Code,
        message: impl Into<String>,
        source: impl StdError + Send + Sync + 'static,
    ) -> Self {
        Self { code, message: message.into(), source: Some(Arc::new(source)) }
    }

    /// A definition with faults; the first one is named.
    pub(crate) fn faulty(faults: &[DefinitionFault]) -> Self {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        Self::invalid(match faults.len() {
            0 | 1 => format!("the definition has a fault: {first}"),
            count => format!("the definition has {count} faults; the first is {first}"),
        })
    }

    /// The stable error code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// What is wrong and what to do.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same call can succeed a little later, unchanged.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.code.is_retryable()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::invalid(invalid.message)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code(), refusal.to_string())
    }
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        Self::new(rejection.code(), rejection.to_string())
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::with_source(Code::Unavailable, fault.to_string(), fault)
    }
}

impl From<EngineFailure> for Error {
    fn from(failure: EngineFailure) -> Self {
        Self::with_source(Code::Unavailable, failure.to_string(), failure)
    }
}

impl From<tenure_coordinator::Error> for Error {
    fn from(error: tenure_coordinator::Error) -> Self {
        match error {
            tenure_coordinator::Error::Refused(refusal) => refusal.into(),
            tenure_coordinator::Error::Failed(failure) => failure.into(),
        }
    }
}

/// A payload that cannot be read from the spill file.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::with_source(Code::Unavailable, error.to_string(), error)
    }
}
