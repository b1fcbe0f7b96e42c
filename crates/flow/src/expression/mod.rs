//! Expressions: CEL, read by the `cel` crate's parser and evaluated here, over our own values.
//!
//! What differs from CEL, on purpose, because values are JSON:
//!
//! - Integers are one type: `1u` is `1`, and an integer may be as large as a `uint`. Two integers
//!   that fit an `int` must give one that does; else it is an overflow.
//! - A number with a fraction and an integer may be added, because JSON does not tell `2` from `2.0`.
//! - A result that is infinite or not a number is an error.
//! - Keys of objects are strings; there are no bytes, types, timestamps, durations or optionals.
//! - `has(a.b.c)` is false if anything on the way is absent or `null`.
//! - Objects are walked in the order of their keys.

mod bound;
mod error;
mod evaluate;
mod functions;
mod lower;
mod moment;
mod operators;
mod reads;
mod tree;

use std::fmt;
use std::sync::Arc;

pub use error::{EvaluationError, EvaluationErrorKind};
pub(crate) use lower::is_name;
pub use moment::moment_ms;
pub use reads::Reads;

use crate::fault::FaultCode;
use tenure_value::Value;
pub(crate) use tree::Name;
use tree::Tree;

/// Where an expression finds its roots: `input`, `context`, an item's variable.
pub trait Scope {
    /// The value of a root; nothing if it means nothing here. Cheap: a value is shared, not copied.
    fn root(&self, name: &str) -> Option<Value>;
}

/// No roots at all.
impl Scope for () {
    fn root(&self, _name: &str) -> Option<Value> {
        None
    }
}

/// An object's entries as roots.
impl Scope for tenure_value::Map {
    fn root(&self, name: &str) -> Option<Value> {
        self.get(name).cloned()
    }
}

/// An expression, parsed once. A clone is cheap.
#[derive(Clone)]
pub struct Expression(Arc<Parsed>);

struct Parsed {
    text: Arc<str>,
    tree: Tree,
}

/// A text that is no expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionFault {
    /// Which kind of fault: it does not parse, or it has an unknown function.
    pub code: FaultCode,
    /// What is wrong.
    pub message: String,
}

impl ExpressionFault {
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self { code: FaultCode::BadExpression, message: message.into() }
    }
}

impl fmt::Display for ExpressionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExpressionFault {}

impl Expression {
    /// Parses a text. Whether its names mean something is for its place to say.
    pub fn parse(text: &str) -> Result<Self, ExpressionFault> {
        let tree = match lower::plain_path(text) {
            Some(path) => path,
            None => {
                bound::check(text)?;
                lower::parse(text)?
            }
        };
        Ok(Self(Arc::new(Parsed { text: text.into(), tree })))
    }

    /// The text it was parsed from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Its value. What it reads is noted in `reads`, for "why this way?".
    pub fn evaluate(&self, scope: &dyn Scope, reads: &mut Reads) -> Result<Value, EvaluationError> {
        evaluate::evaluate(&self.0.tree, scope, reads)
    }

    /// Its value, which must be `true` or `false`.
    pub fn condition(&self, scope: &dyn Scope, reads: &mut Reads) -> Result<bool, EvaluationError> {
        let value = self.evaluate(scope, reads)?;
        value.as_bool().ok_or_else(|| {
            let (text, kind) = (self.text(), value.kind());
            EvaluationError::other(format!("`{text}` is {kind}; a condition is true or false"))
        })
    }

    /// The roots and what is asked of them, as far as the text alone says.
    pub(crate) fn names(&self) -> Vec<Name> {
        self.0.tree.names()
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({:?})", self.text())
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Expression {}

#[cfg(test)]
mod tests;
