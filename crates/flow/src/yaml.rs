//! YAML.
use crate::fault::Fault;
use crate::value::Value;

/// Reads YAML.
pub fn parse(_text: &str) -> Result<Value, Fault> {
    Ok(Value::Null)
}
