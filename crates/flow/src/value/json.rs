//! Values from JSON text and back, as a stream: no tree is built in between.
//!
//! The features of `serde_json` are shared by everything that is built together. What is read here
//! depends on none of them, but for `arbitrary_precision`, under which numbers come as maps; a test
//! fails if that is ever switched on.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::Value;
use crate::limits::VALUE_DEPTH_MAX;

/// What becomes of an object that has a key twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// The later one counts, as in most readers: for data.
    LastCounts,
    /// It is a fault: for what people write.
    Refused,
}

/// A text that is no JSON, or too deep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonFault {
    /// What is wrong.
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for JsonFault {}

impl Value {
    /// Reads JSON text.
    pub fn from_json(text: &[u8]) -> Result<Self, JsonFault> {
        Self::from_json_with(text, Duplicates::LastCounts)
    }

    /// Reads JSON text, and says what becomes of a key that comes twice.
    pub fn from_json_with(text: &[u8], duplicates: Duplicates) -> Result<Self, JsonFault> {
        let mut reader = serde_json::Deserializer::from_slice(text);
        let seed = Seed { left: VALUE_DEPTH_MAX, duplicates };
        let read = seed.deserialize(&mut reader).and_then(|value| {
            reader.end()?;
            Ok(value)
        });
        read.map_err(|error| {
            let (line, column) = (error.line(), error.column());
            // The position has a place of its own.
            let message = error.to_string();
            let at = message.rfind(" at line ").unwrap_or(message.len());
            JsonFault { message: message[..at].to_owned(), line, column }
        })
    }

    /// Its JSON text: no spaces, keys in order.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a value is always JSON")
    }

    /// Its JSON text, appended to bytes.
    pub fn write_json(&self, bytes: &mut Vec<u8>) {
        serde_json::to_writer(bytes, self).expect("a value is always JSON");
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(truth) => serializer.serialize_bool(*truth),
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::Uint(number) => serializer.serialize_u64(*number),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => {
                let mut items = serializer.serialize_seq(Some(list.len()))?;
                for item in list.as_slice() {
                    items.serialize_element(item)?;
                }
                items.end()
            }
            Self::Map(map) => {
                let mut entries = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in map.entries() {
                    entries.serialize_entry(&**key, value)?;
                }
                entries.end()
            }
        }
    }
}

/// Reads one value, so many levels deep at most.
#[derive(Clone, Copy)]
struct Seed {
    left: usize,
    duplicates: Duplicates,
}

impl Seed {
    fn inside<E: serde::de::Error>(self) -> Result<Self, E> {
        let Some(left) = self.left.checked_sub(1) else {
            return Err(E::custom(format_args!(
                "lists and objects are nested deeper than {VALUE_DEPTH_MAX} levels"
            )));
        };
        Ok(Self { left, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::uint(number))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        Value::float(number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(inside)? {
            items.push(item);
        }
        Ok(Value::list(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut entries: Vec<(Arc<str>, Value)> = Vec::new();
        while let Some(key) = access.next_key_seed(Key)? {
            let value = access.next_value_seed(inside)?;
            entries.push((key, value));
        }
        if self.duplicates == Duplicates::Refused {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            if let Some(twice) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                let key = &twice[0].0;
                return Err(A::Error::custom(format_args!(
                    "the object that ends here has the key {key:?} twice; keep one"
                )));
            }
        }
        Ok(Value::map(entries))
    }
}

/// Reads a key straight into what it is kept as.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Arc<str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Arc<str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(text.into())
    }
}
