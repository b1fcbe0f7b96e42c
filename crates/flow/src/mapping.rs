//! A mapping: where a value goes, and the expression that gives it.

use std::fmt;

use tenure_value::{Path, Value};

use crate::expression::{EvaluationError, Expression, Reads, Scope};

/// Targets and their expressions, in the order of the targets.
#[derive(Clone, Debug, Default)]
pub struct Mapping(Vec<Entry>);

/// One value and where it goes.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it goes.
    pub target: Path,
    /// What gives it.
    pub source: Expression,
}

/// An entry whose expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingError {
    /// Where the value would have gone.
    pub target: Path,
    /// Why there is none.
    pub error: EvaluationError,
}

impl fmt::Display for MappingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.target, self.error)
    }
}

impl std::error::Error for MappingError {}

impl Mapping {
    /// A mapping of these entries; they are put in the order of their targets, so that `a` is
    /// written before `a.b`.
    #[must_use]
    pub fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|a, b| a.target.cmp(&b.target));
        Self(entries)
    }

    /// The entries in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// All values and where they go. Every expression sees the same scope; nothing is half done.
    pub fn evaluate(
        &self,
        scope: &dyn Scope,
        reads: &mut Reads,
    ) -> Result<Vec<(Path, Value)>, MappingError> {
        self.0.iter().map(|entry| entry.evaluate(scope, reads)).collect()
    }

    /// The object that the values make: a payload.
    pub fn object(&self, scope: &dyn Scope, reads: &mut Reads) -> Result<Value, MappingError> {
        let written = self.evaluate(scope, reads)?;
        let empty = Value::empty_map();
        written.into_iter().try_fold(empty, |object, written| put(&object, written))
    }

    /// The object that the values make, without those whose path is missing: a run's output.
    pub fn object_of_present(
        &self,
        scope: &dyn Scope,
        reads: &mut Reads,
    ) -> Result<Value, MappingError> {
        let mut object = Value::empty_map();
        for entry in &self.0 {
            match entry.evaluate(scope, reads) {
                Ok(written) => object = put(&object, written)?,
                Err(MappingError { error, .. }) if error.is_missing() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(object)
    }
}

impl Entry {
    fn evaluate(
        &self,
        scope: &dyn Scope,
        reads: &mut Reads,
    ) -> Result<(Path, Value), MappingError> {
        match self.source.evaluate(scope, reads) {
            Ok(value) => Ok((self.target.clone(), value)),
            Err(error) => Err(MappingError { target: self.target.clone(), error }),
        }
    }
}

fn put(object: &Value, (target, value): (Path, Value)) -> Result<Value, MappingError> {
    target
        .set(object, value)
        .map_err(|fault| MappingError { target, error: EvaluationError::other(fault.message) })
}
