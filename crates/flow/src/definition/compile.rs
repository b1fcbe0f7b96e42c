//! From a value to a definition, or to all that is wrong with it.

use super::Definition;
use crate::fault::{Fault, FaultCode};
use crate::value::Value;

pub(super) fn compile(source: &Value) -> Result<Definition, Vec<Fault>> {
    let kind = source.kind();
    Err(vec![Fault::new("", FaultCode::WrongType, format!("a definition is not {kind}"))])
}
