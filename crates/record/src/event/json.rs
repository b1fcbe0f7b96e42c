//! JSON values in records: written as text, read into a value that is shared from there on.

use tenure_value::Value;

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
