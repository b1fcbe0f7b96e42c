//! Why an expression has no value.

use std::fmt;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationError {
    /// Which kind of reason it is.
    pub kind: EvaluationErrorKind,
    /// The reason, with the path or the types.
    pub message: String,
}

/// Which kind of reason it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluationErrorKind {
    /// A path leads nowhere.
    Missing,
    /// A limit was reached.
    Limit,
    /// A wrong type, an overflow, a division by zero, a text that cannot be converted.
    Other,
}

impl EvaluationError {
    /// Is it that a path leads nowhere?
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.kind == EvaluationErrorKind::Missing
    }

    pub(crate) fn missing(path: &str) -> Self {
        let message = format!("there is no `{path}`; ask with has() if it may be absent");
        Self { kind: EvaluationErrorKind::Missing, message }
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self { kind: EvaluationErrorKind::Limit, message: message.into() }
    }

    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self { kind: EvaluationErrorKind::Other, message: message.into() }
    }
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EvaluationError {}
