//! JSON values in a snapshot. What is shared in memory is written once: a hundred thousand branches
//! of one group read the same context, and after a start they do so again.
//!
//! ```text
//! value    kind, and what the kind needs: a number, a text, how many parts and the parts
//! shared   the number of a value that was written before
//! ```
//!
//! Every value above a certain size gets a number when its end is reached, by the writer and the
//! reader alike. The numbers begin again with each run.

use std::sync::Arc;

use hashbrown::HashMap;
use tenure_value::Value;
use tenure_value::limits::VALUE_DEPTH_MAX;

use super::BLOCK_BYTES_MAX;
use crate::codec::{Malformed, Reader, put_varint};

/// Values that are smaller than this are written where they are needed, shared or not.
const SHARED_BYTES_MIN: usize = 64;
/// No value is larger. Without a bound, a few shared ones could stand for more than any memory.
const VALUE_BYTES_MAX: usize = BLOCK_BYTES_MAX;

// What a value is; the numbers are the format.
const NULL: u64 = 0;
const FALSE: u64 = 1;
const TRUE: u64 = 2;
const POSITIVE: u64 = 3;
/// Written as what is added to it to get -1.
const NEGATIVE: u64 = 4;
const FLOAT: u64 = 5;
const TEXT: u64 = 6;
const LIST: u64 = 7;
const MAP: u64 = 8;
const SHARED: u64 = 9;

/// Writes values, and knows which were written before.
#[derive(Debug, Default)]
pub struct ValueWriter {
    /// From where a value lies to its number.
    known: HashMap<usize, u64, foldhash::fast::FixedState>,
}

impl ValueWriter {
    /// Begins anew.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// The bytes of a value; never empty.
    pub fn bytes(&mut self, value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(value, &mut out);
        out
    }

    fn put(&mut self, value: &Value, out: &mut Vec<u8>) {
        let shared = value.address().filter(|_| value.bytes() >= SHARED_BYTES_MIN);
        if let Some(number) = shared.and_then(|address| self.known.get(&address)) {
            put_varint(SHARED, out);
            put_varint(*number, out);
            return;
        }
        match value {
            Value::Null => put_varint(NULL, out),
            Value::Bool(false) => put_varint(FALSE, out),
            Value::Bool(true) => put_varint(TRUE, out),
            Value::Int(number) => match u64::try_from(*number) {
                Ok(number) => put_number(POSITIVE, number, out),
                Err(_) => put_number(NEGATIVE, !number.cast_unsigned(), out),
            },
            Value::Uint(number) => put_number(POSITIVE, *number, out),
            Value::Float(number) => put_number(FLOAT, number.to_bits(), out),
            Value::Text(text) => {
                put_varint(TEXT, out);
                put_text(text, out);
            }
            Value::List(list) => {
                put_number(LIST, list.len() as u64, out);
                list.as_slice().iter().for_each(|item| self.put(item, out));
            }
            Value::Map(map) => {
                put_number(MAP, map.len() as u64, out);
                for (key, value) in map.entries() {
                    put_text(key, out);
                    self.put(value, out);
                }
            }
        }
        if let Some(address) = shared {
            self.known.insert(address, self.known.len() as u64);
        }
    }
}

fn put_number(kind: u64, number: u64, out: &mut Vec<u8>) {
    put_varint(kind, out);
    put_varint(number, out);
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put_varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// Reads values in the order in which they were written.
#[derive(Debug, Default)]
pub struct ValueReader {
    known: Vec<Value>,
}

impl ValueReader {
    /// A value that must be there.
    pub fn value(&mut self, bytes: &[u8]) -> Result<Value, Malformed> {
        self.optional(bytes)?.ok_or_else(|| Malformed::new("a value is missing"))
    }

    /// A value; none if there are no bytes.
    pub fn optional(&mut self, bytes: &[u8]) -> Result<Option<Value>, Malformed> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut from = Reader::new(bytes);
        let value = self.take(&mut from, 0)?;
        match from.is_empty() {
            true => Ok(Some(value)),
            false => Err(Malformed::new("a value has more bytes than it needs")),
        }
    }

    fn take(&mut self, from: &mut Reader<'_>, depth: usize) -> Result<Value, Malformed> {
        let value = match from.varint()? {
            NULL => Value::Null,
            FALSE => Value::Bool(false),
            TRUE => Value::Bool(true),
            POSITIVE => Value::uint(from.varint()?),
            NEGATIVE => match i64::try_from(from.varint()?) {
                Ok(number) => Value::Int(!number),
                Err(_) => return Err(Malformed::new("a number is below all that are kept")),
            },
            FLOAT => Value::float(f64::from_bits(from.varint()?))
                .ok_or_else(|| Malformed::new("a number is none"))?,
            TEXT => Value::Text(text(from)?),
            LIST => {
                let count = parts(from, depth)?;
                let mut items = Vec::with_capacity(count);
                for _ in 0..count {
                    items.push(self.take(from, depth + 1)?);
                }
                Value::list(items)
            }
            MAP => self.map(from, depth)?,
            SHARED => {
                let number = usize::try_from(from.varint()?).ok();
                let known = number.and_then(|number| self.known.get(number));
                return known.cloned().ok_or_else(|| Malformed::new("a value was never written"));
            }
            kind => return Err(Malformed::no_such(kind, "kind of value")),
        };
        if value.is_too_deep() || value.bytes() > VALUE_BYTES_MAX {
            return Err(Malformed::new("a value is deeper or larger than any that is kept"));
        }
        if value.address().is_some() && value.bytes() >= SHARED_BYTES_MIN {
            self.known.push(value.clone());
        }
        Ok(value)
    }

    fn map(&mut self, from: &mut Reader<'_>, depth: usize) -> Result<Value, Malformed> {
        let count = parts(from, depth)?;
        let mut entries: Vec<(Arc<str>, Value)> = Vec::with_capacity(count);
        for _ in 0..count {
            let key = text(from)?;
            if entries.last().is_some_and(|(before, _)| *before >= key) {
                return Err(Malformed::new("the keys of an object are not in order"));
            }
            entries.push((key, self.take(from, depth + 1)?));
        }
        Ok(Value::map(entries))
    }
}

/// How many parts there are. Each takes a byte at least, so that no number makes us hold more than
/// was read.
fn parts(from: &mut Reader<'_>, depth: usize) -> Result<usize, Malformed> {
    let count = usize::try_from(from.varint()?).unwrap_or(usize::MAX);
    match count <= from.len() && depth < VALUE_DEPTH_MAX {
        true => Ok(count),
        false => Err(Malformed::new("a value has more parts or levels than it can")),
    }
}

fn text(from: &mut Reader<'_>) -> Result<Arc<str>, Malformed> {
    let text = std::str::from_utf8(from.bytes()?);
    text.map(Arc::from).map_err(|_| Malformed::new("a text is not UTF-8"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn json(text: &str) -> Value {
        Value::from_json(text.as_bytes()).unwrap()
    }

    fn again(value: &Value) -> Value {
        ValueReader::default().value(&ValueWriter::default().bytes(value)).unwrap()
    }

    #[test]
    fn a_value_is_read_as_it_was_written() {
        for text in [
            "null",
            "[true,false,0,-1,1,9223372036854775807,-9223372036854775808,18446744073709551615]",
            r#"{"a":1.5,"b":-0.0,"c":1e300,"d":[],"e":{},"f":"ü","g":[[[1]]]}"#,
        ] {
            let value = json(text);
            assert_eq!(again(&value).to_json(), value.to_json());
        }
    }

    #[test]
    fn what_is_shared_is_written_once_and_shared_again() {
        let large = Value::text(&"x".repeat(100_000));
        let inner = Value::list(vec![large, Value::Int(1)]);
        let branches = (0..1_000).map(|n| {
            Value::map(vec![("large".into(), inner.clone()), ("n".into(), Value::Int(n))])
        });
        let whole = Value::list(branches.collect());
        assert!(whole.bytes() > VALUE_BYTES_MAX, "it is larger than what is kept");
        let Value::List(list) = whole else { unreachable!() };
        let (mut writer, mut reader) = (ValueWriter::default(), ValueReader::default());
        let mut bytes = 0;
        let mut address = None;
        for branch in list.as_slice() {
            let written = writer.bytes(branch);
            bytes += written.len();
            let read = reader.value(&written).unwrap();
            assert_eq!(read.to_json(), branch.to_json());
            let inner = read.as_map().unwrap().get("large").unwrap().address();
            assert_eq!(*address.get_or_insert(inner), inner);
        }
        assert!(bytes < 130_000, "{bytes} bytes");
    }

    #[test]
    fn what_no_writer_wrote_is_refused() {
        let too_deep: Vec<u8> = [LIST as u8, 1].repeat(VALUE_DEPTH_MAX + 1);
        let too_deep = [too_deep, vec![0]].concat();
        for bytes in [
            vec![NULL as u8, NULL as u8],
            vec![99],
            vec![LIST as u8, 5, 0],
            vec![TEXT as u8, 1, 0xff],
            vec![SHARED as u8, 0],
            vec![MAP as u8, 2, 1, b'b', 0, 1, b'a', 0],
            vec![MAP as u8, 2, 1, b'a', 0, 1, b'a', 0],
            [vec![NEGATIVE as u8], vec![0xff; 9], vec![1]].concat(),
            [vec![FLOAT as u8], vec![0xff; 9], vec![1]].concat(),
            too_deep,
        ] {
            ValueReader::default().value(&bytes).unwrap_err();
        }
        ValueReader::default().value(&[]).unwrap_err();
    }

    #[test]
    fn shared_values_cannot_stand_for_more_than_any_memory() {
        let mut bytes = vec![TEXT as u8, 100];
        bytes.extend_from_slice(&[b'x'; 100]);
        let mut reader = ValueReader::default();
        reader.value(&bytes).unwrap();
        let grown = (0..60_u8).try_for_each(|number| {
            let twice = [LIST as u8, 2, SHARED as u8, number, SHARED as u8, number];
            reader.value(&twice).map(|_| ())
        });
        assert!(grown.unwrap_err().to_string().contains("larger"));
    }
}
