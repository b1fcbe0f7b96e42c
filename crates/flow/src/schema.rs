//! JSON Schema.
use crate::value::Value;

/// A JSON Schema, compiled once.
#[derive(Clone, Debug)]
pub struct Schema;

impl Schema {
    /// Checks a value; what is wrong with it, in sentences that begin with a JSON pointer.
    pub fn check(&self, _value: &Value) -> Result<(), Vec<Complaint>> {
        Ok(())
    }
}

/// One thing that is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Where in the value.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}
