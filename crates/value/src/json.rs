//! Values from JSON text and back, as a stream: no tree is built in between.
//!
//! Data from outside is read with [`Value::from_json_exact`], which refuses what it would have to
//! change. Records are read with [`Value::from_json`]: what a log holds was accepted before.
//!
//! The features of `serde_json` are shared by everything that is built together. What is read here
//! depends on none of them, but for `arbitrary_precision`, under which numbers come as maps; a test
//! fails if that is ever switched on.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::{Map, Value, exact};
use crate::limits::{POINTER_SHOWN_BYTES_MAX, VALUE_DEPTH_MAX};
use crate::pointer::escaped;

/// A text that cannot be read as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonFault {
    /// What is wrong.
    pub message: String,
    /// Where in the value: a JSON pointer (RFC 6901), cut at the front if it is long; empty for the
    /// whole of it.
    pub pointer: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NotJson,
    Refused,
}

impl JsonFault {
    /// The fault as a sentence about `what`: `the output at /a/0: …`.
    #[must_use]
    pub fn about(&self, what: &str) -> String {
        let (pointer, message) = (&self.pointer, &self.message);
        let at = if pointer.is_empty() { String::new() } else { format!(" at {pointer}") };
        match self.kind {
            Kind::NotJson => format!("{what} is not JSON{at}: {message}"),
            Kind::Refused => format!("{what}{at}: {message}"),
        }
    }
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for JsonFault {}

/// How strictly a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Of two equal keys the later one counts, and a large integer becomes a double.
    Accepted,
    /// What the value would not hold as it is written is refused.
    Exact,
}

impl Value {
    /// Reads JSON text that was accepted before, such as that of a record: of two equal keys the
    /// later one counts, and an integer beyond 64 bits becomes a double.
    pub fn from_json(text: &[u8]) -> Result<Self, JsonFault> {
        read(text, Reading::Accepted)
    }

    /// Reads JSON text from outside. A key that comes twice, an integer beyond 64 bits, a number too
    /// large for a double and one that would become 0 are refused with their place.
    pub fn from_json_exact(text: &[u8]) -> Result<Self, JsonFault> {
        read(text, Reading::Exact)
    }

    /// Its JSON text: no spaces, keys in order.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a value is always JSON")
    }

    /// Its canonical JSON text: two values are equal if and only if these texts are. No spaces, keys
    /// in order, and a whole number without a fraction, so `1.0` is `1`.
    #[must_use]
    pub fn to_canonical_json(&self) -> String {
        serde_json::to_string(&Canonical(self)).expect("a value is always JSON")
    }

    /// Its JSON text, appended to bytes.
    pub fn write_json(&self, bytes: &mut Vec<u8>) {
        serde_json::to_writer(bytes, self).expect("a value is always JSON");
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self, serializer, |value| value)
    }
}

/// A value whose numbers are written as what they are worth.
struct Canonical<'a>(&'a Value);

impl Serialize for Canonical<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = self.0.as_whole();
        if let Some(number) = whole.and_then(|whole| i64::try_from(whole).ok()) {
            return serializer.serialize_i64(number);
        }
        if let Some(number) = whole.and_then(|whole| u64::try_from(whole).ok()) {
            return serializer.serialize_u64(number);
        }
        serialize(self.0, serializer, Canonical)
    }
}

/// Writes a value; `part` says how its parts are written.
fn serialize<'v, S: Serializer, P: Serialize>(
    value: &'v Value,
    serializer: S,
    part: impl Fn(&'v Value) -> P,
) -> Result<S::Ok, S::Error> {
    match value {
        Value::Null => serializer.serialize_unit(),
        Value::Bool(truth) => serializer.serialize_bool(*truth),
        Value::Int(number) => serializer.serialize_i64(*number),
        Value::Uint(number) => serializer.serialize_u64(*number),
        Value::Float(number) => serializer.serialize_f64(*number),
        Value::Text(text) => serializer.serialize_str(text),
        Value::List(list) => {
            let mut items = serializer.serialize_seq(Some(list.len()))?;
            for item in list.as_slice() {
                items.serialize_element(&part(item))?;
            }
            items.end()
        }
        Value::Map(map) => {
            let mut entries = serializer.serialize_map(Some(map.len()))?;
            for (key, value) in map.entries() {
                entries.serialize_entry(&**key, &part(value))?;
            }
            entries.end()
        }
    }
}

fn read(text: &[u8], reading: Reading) -> Result<Value, JsonFault> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let notes = Notes::default();
    let seed = Seed { left: VALUE_DEPTH_MAX, reading, at: &Link::Root, notes: &notes };
    let read = seed.deserialize(&mut reader).and_then(|value| {
        reader.end()?;
        Ok(value)
    });
    let error = match read {
        // Most texts have no number that needs a second look.
        Ok(value) if !notes.is_suspicious.get() => return Ok(value),
        Ok(value) => return exact::find(text).map_or(Ok(value), |found| Err(inexact(text, found))),
        Err(error) => error,
    };
    let message = error.to_string();
    // The reader says only that a number is out of its range, not which.
    if message.starts_with("number out of range")
        && let Some(found) = exact::find(text)
    {
        return Err(inexact(text, found));
    }
    // The position has a place of its own.
    let end = message.rfind(" at line ").unwrap_or(message.len());
    let kind = if error.is_data() { Kind::Refused } else { Kind::NotJson };
    Err(JsonFault {
        message: message[..end].to_owned(),
        pointer: shown_pointer(notes.pointer.take().unwrap_or_default()),
        line: error.line(),
        column: error.column(),
        kind,
    })
}

fn inexact(text: &[u8], found: exact::Inexact) -> JsonFault {
    let before = &text[..found.at];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    let (pointer, message) = (shown_pointer(found.pointer), found.message);
    JsonFault { message, pointer, line, column, kind: Kind::Refused }
}

/// A JSON pointer as it is shown: of a long one, the last [`POINTER_SHOWN_BYTES_MAX`] bytes.
#[must_use]
pub fn shown_pointer(pointer: String) -> String {
    let Some(from) = pointer.len().checked_sub(POINTER_SHOWN_BYTES_MAX) else { return pointer };
    let from = (from..pointer.len()).find(|at| pointer.is_char_boundary(*at));
    format!("…{}", &pointer[from.unwrap_or_default()..])
}

/// What is noted while a text is read.
#[derive(Default)]
struct Notes {
    /// Where reading failed.
    pointer: RefCell<Option<String>>,
    /// A double came that may have been another number in the text.
    is_suspicious: Cell<bool>,
}

/// The way from the root to a value, kept on the stack of the reader.
enum Link<'p> {
    Root,
    Index(&'p Link<'p>, usize),
    Key(&'p Link<'p>, &'p str),
}

impl Link<'_> {
    fn pointer(&self) -> String {
        match self {
            Link::Root => String::new(),
            Link::Index(around, index) => format!("{}/{index}", around.pointer()),
            Link::Key(around, key) => format!("{}/{}", around.pointer(), escaped(key)),
        }
    }
}

/// Reads one value, so many levels deep at most.
#[derive(Clone, Copy)]
struct Seed<'p> {
    left: usize,
    reading: Reading,
    at: &'p Link<'p>,
    notes: &'p Notes,
}

impl<'p> Seed<'p> {
    fn inside<E: serde::de::Error>(self) -> Result<Self, E> {
        let Some(left) = self.left.checked_sub(1) else {
            return Err(E::custom(format_args!(
                "lists and objects are nested deeper than {VALUE_DEPTH_MAX} levels"
            )));
        };
        Ok(Self { left, ..self })
    }

    fn at<'q>(self, at: &'q Link<'q>) -> Seed<'q>
    where
        'p: 'q,
    {
        Seed { left: self.left, reading: self.reading, at, notes: self.notes }
    }

    /// Notes where reading failed; the innermost place counts.
    fn failed<E>(self, error: E) -> E {
        self.notes.pointer.borrow_mut().get_or_insert_with(|| self.at.pointer());
        error
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
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
        // An integer beyond 64 bits comes as a double from here on, and so does what became 0.
        let is_beyond = number == 0.0 || number.abs() >= 9_223_372_036_854_775_808.0;
        if self.reading == Reading::Exact && is_beyond {
            self.notes.is_suspicious.set(true);
        }
        Value::float(number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut items = Vec::new();
        loop {
            let link = Link::Index(self.at, items.len());
            let seed = inside.at(&link);
            match access.next_element_seed(seed).map_err(|error| seed.failed(error))? {
                Some(item) => items.push(item),
                None => return Ok(Value::list(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut entries: Vec<(Arc<str>, Value)> = Vec::new();
        while let Some(key) = access.next_key_seed(Key)? {
            let link = Link::Key(self.at, &key);
            let seed = inside.at(&link);
            let value = access.next_value_seed(seed).map_err(|error| seed.failed(error))?;
            entries.push((key, value));
        }
        if self.reading == Reading::Accepted {
            return Ok(Value::map(entries));
        }
        Map::unique(entries).map(Value::Map).map_err(|key| {
            let link = Link::Key(self.at, &key);
            self.at(&link).failed(A::Error::custom("the key is there twice; keep one"))
        })
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
