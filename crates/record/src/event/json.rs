//! JSON values in records: written as text, read into a value that is shared from there on.

use tenure_value::{Path, Value};

use crate::codec::{Field, Malformed, Reader, Wire, put_nested};

/// A JSON value in a record: its text has no spaces, and its keys are in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Json(pub Value);

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl<'a> Field<'a> for Json {
    /// A value says something by being there.
    fn is_default(&self) -> bool {
        false
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        put_nested(tag, out, |out| self.0.write_json(out));
    }

    fn take(&mut self, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed> {
        let mut text: &[u8] = &[];
        text.take(wire, from)?;
        self.0 = Value::from_json(text)
            .map_err(|fault| Malformed::new(format!("a value is no JSON: {fault}")))?;
        Ok(())
    }
}

/// What is known while a record is decided, and is worked out again from the state when it is
/// replayed. It is never written, and two records that differ only here are the same.
#[derive(Clone, Debug)]
pub struct Unwritten<T = Value>(pub Option<T>);

/// A path whose text is in the record.
pub type UnwrittenPath = Unwritten<Path>;

impl<T> Default for Unwritten<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> PartialEq for Unwritten<T> {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl<T> Eq for Unwritten<T> {}

impl<'a, T> Field<'a> for Unwritten<T> {
    fn is_default(&self) -> bool {
        true
    }

    fn put(&self, _tag: u32, _out: &mut Vec<u8>) {}

    fn take(&mut self, _wire: Wire, _from: &mut Reader<'a>) -> Result<(), Malformed> {
        Err(Malformed::new("a field is there that is never written"))
    }
}
