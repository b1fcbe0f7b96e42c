//! Our values as the validator sees them: borrowed, never copied, and counted. A validator that has
//! looked too often finds nothing below it any more, so it comes to an end.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "JSON has the kinds it has; what is not named is none of them"
)]

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object};
use tenure_value::{List, Map, Value};

use super::convert;
use crate::limits::SCHEMA_BYTES_MAX;

/// The representation of JSON that the validator is built for.
pub(super) struct Values;

impl Json for Values {
    type Node<'a> = Counted<'a>;
    type PreparedKey = String;
    type StringBuffer = NameBuffer;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut NameBuffer,
        string: &str,
        f: impl FnOnce(Counted<'_>) -> T,
    ) -> T {
        buffer.name = Value::text(string);
        f(Counted::new(&buffer.name, &buffer.meter))
    }
}

/// A property's name, while it is checked. Each one was counted when it was found.
#[derive(Default)]
pub(super) struct NameBuffer {
    name: Value,
    meter: Meter,
}

/// How often a validator may still look.
pub(super) struct Meter {
    most: u64,
    steps: Cell<u64>,
    divisor: Divisor,
}

impl Default for Meter {
    fn default() -> Self {
        Self::new(u64::MAX, Divisor::default())
    }
}

impl Meter {
    pub(super) fn new(steps: u64, divisor: Divisor) -> Self {
        Self { most: steps, steps: Cell::new(steps), divisor }
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.steps.get() == 0
    }

    pub(super) fn spent(&self) -> u64 {
        self.most - self.steps.get()
    }

    fn spend(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_sub(steps as u64));
    }
}

/// The smallest fraction that a schema has as a `multipleOf`, by its binary exponent. The validator
/// divides by it exactly: in 128 bits if the two numbers are not far apart, and otherwise with
/// integers of a thousand bits and more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Divisor(Option<i32>);

impl Divisor {
    pub(super) fn of(schema: &Value) -> Self {
        let mut smallest: Option<i32> = None;
        let mut left = vec![schema];
        while let Some(value) = left.pop() {
            match value {
                Value::Map(map) => {
                    if let Some(Value::Float(divisor)) = map.get("multipleOf") {
                        let exponent = exponent(*divisor);
                        smallest = Some(smallest.map_or(exponent, |it| it.min(exponent)));
                    }
                    left.extend(map.entries().iter().map(|(_, value)| value));
                }
                Value::List(list) => left.extend(list.as_slice()),
                _ => {}
            }
        }
        Self(smallest)
    }

    /// What it costs to divide a number.
    fn steps(self, number: &Value) -> usize {
        let number = match number {
            Value::Int(number) => *number as f64,
            Value::Uint(number) => *number as f64,
            Value::Float(number) => *number,
            _ => return 0,
        };
        match self.0 {
            Some(divisor) if exponent(number) - divisor > DIVISION_BITS => LONG_DIVISION_STEPS,
            _ => 0,
        }
    }
}

/// The power of two below a number.
fn exponent(number: f64) -> i32 {
    ((number.to_bits() >> 52) & 0x7ff) as i32 - 1_023
}

/// A value, and what counts the looks at it.
#[derive(Clone, Copy)]
pub(super) struct Counted<'a> {
    value: &'a Value,
    meter: &'a Meter,
}

impl<'a> Counted<'a> {
    pub(super) fn new(value: &'a Value, meter: &'a Meter) -> Self {
        Self { value, meter }
    }
}

pub(super) struct Number(Value);

impl JsonNumber for Number {
    fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Value::Int(number) => u64::try_from(number).ok(),
            Value::Uint(number) => Some(number),
            _ => None,
        }
    }

    fn as_i64(&self) -> Option<i64> {
        self.0.as_int()
    }

    fn as_f64(&self) -> Option<f64> {
        match self.0 {
            Value::Int(number) => Some(number as f64),
            Value::Uint(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            _ => None,
        }
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Owned(self.0.to_json())
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        Cow::Owned(match self.0 {
            Value::Int(number) => number.into(),
            Value::Uint(number) => number.into(),
            _ => serde_json::Number::from_f64(self.as_f64().unwrap_or(0.0))
                .expect("floats of a value are numbers"),
        })
    }

    fn is_integer(&self) -> bool {
        match self.0 {
            Value::Float(number) => number.fract() == 0.0,
            _ => true,
        }
    }

    fn is_written_as_integer(&self) -> bool {
        !matches!(self.0, Value::Float(_))
    }
}

impl<'a> Node<'a, Values> for Counted<'a> {
    type Object = CountedMap<'a>;
    type Array = CountedList<'a>;
    type Number = Number;

    fn as_object(&self) -> Option<CountedMap<'a>> {
        self.meter.spend(1);
        match self.value {
            Value::Map(map) if !self.meter.is_used_up() => {
                Some(CountedMap { map, meter: self.meter })
            }
            _ => None,
        }
    }

    fn as_array(&self) -> Option<CountedList<'a>> {
        self.meter.spend(1);
        match self.value {
            Value::List(list) if !self.meter.is_used_up() => {
                Some(CountedList { list, meter: self.meter })
            }
            _ => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let Value::Text(text) = self.value else { return None };
        // Whatever reads it reads it to the end.
        self.meter.spend(1 + text.len() / BYTES_PER_STEP);
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<Number> {
        self.meter.spend(self.meter.divisor.steps(self.value));
        self.is_number().then(|| Number(self.value.clone()))
    }

    fn as_boolean(&self) -> Option<bool> {
        self.meter.spend(1);
        if let Value::Bool(truth) = self.value { Some(*truth) } else { None }
    }

    fn is_null(&self) -> bool {
        self.meter.spend(1);
        matches!(self.value, Value::Null)
    }

    fn is_number(&self) -> bool {
        self.meter.spend(1);
        matches!(self.value, Value::Int(_) | Value::Uint(_) | Value::Float(_))
    }

    fn json_type(&self) -> JsonType {
        self.meter.spend(1);
        match self.value {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Int(_) | Value::Uint(_) | Value::Float(_) => JsonType::Number,
            Value::Text(_) => JsonType::String,
            Value::List(_) => JsonType::Array,
            Value::Map(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &serde_json::Value) -> bool {
        // What is longer is not equal, and what is equal is as long.
        self.meter.spend(1 + self.value.bytes().min(EQUAL_BYTES) / BYTES_PER_STEP);
        convert::equals(self.value, expected)
    }

    /// Asked for only by errors, whose sentences leave the value out: a stand-in is enough, and a
    /// large value is not copied for each thing that is wrong with it.
    fn to_value(&self) -> Cow<'a, serde_json::Value> {
        Cow::Owned(match self.value {
            Value::List(_) => serde_json::Value::Array(Vec::new()),
            Value::Map(_) => serde_json::Value::Object(serde_json::Map::new()),
            Value::Text(_) => serde_json::Value::String(String::new()),
            other => convert::to_serde(other),
        })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref::<Value>(self.value) as usize))
    }
}

/// How far apart two numbers may be for a division in 128 bits: 22 decimal digits, as each has up to
/// 17 of its own.
const DIVISION_BITS: i32 = 70;
/// What a longer division costs.
const LONG_DIVISION_STEPS: usize = 1_000;
/// Bytes of text that are one step.
const BYTES_PER_STEP: usize = 64;
/// Bytes of a value that can be equal to something in a schema.
const EQUAL_BYTES: usize = SCHEMA_BYTES_MAX;

/// An object whose members are counted.
pub(super) struct CountedMap<'a> {
    map: &'a Map,
    meter: &'a Meter,
}

/// A list whose elements are counted.
pub(super) struct CountedList<'a> {
    list: &'a List,
    meter: &'a Meter,
}

/// The parts of an object or list, until too many were looked at.
pub(super) struct Parts<'a, T> {
    parts: std::slice::Iter<'a, T>,
    meter: &'a Meter,
}

impl<'a, T> Parts<'a, T> {
    fn next_part(&mut self) -> Option<&'a T> {
        self.meter.spend(1);
        match self.meter.is_used_up() {
            true => None,
            false => self.parts.next(),
        }
    }
}

type Entry = (Arc<str>, Value);

impl<'a> Iterator for Parts<'a, Entry> {
    type Item = (&'a str, Counted<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.next_part()?;
        Some((key, Counted::new(value, self.meter)))
    }
}

impl<'a> Iterator for Parts<'a, Value> {
    type Item = Counted<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(Counted::new(self.next_part()?, self.meter))
    }
}

impl<'a> Object<'a, Values> for CountedMap<'a> {
    type Node = Counted<'a>;
    type MemberName = &'a str;
    type MembersIter = Parts<'a, Entry>;

    fn len(&self) -> usize {
        self.map.len()
    }

    fn get(&self, key: &String) -> Option<Counted<'a>> {
        self.meter.spend(1);
        Some(Counted::new(self.map.get(key)?, self.meter))
    }

    fn members(&self) -> Parts<'a, Entry> {
        Parts { parts: self.map.entries().iter(), meter: self.meter }
    }
}

impl<'a> Array<'a, Values> for CountedList<'a> {
    type Node = Counted<'a>;
    type ElementsIter = Parts<'a, Value>;

    fn len(&self) -> usize {
        self.list.len()
    }

    fn elements(&self) -> Parts<'a, Value> {
        Parts { parts: self.list.as_slice().iter(), meter: self.meter }
    }

    fn is_unique(&self) -> bool {
        let mut items: Vec<&Value> = self.list.as_slice().iter().collect();
        // Each is compared with a few others, as far as it is long.
        self.meter.spend(Value::List(self.list.clone()).bytes() / BYTES_PER_STEP);
        self.meter.spend(items.len() * (items.len() | 1).ilog2() as usize);
        if self.meter.is_used_up() {
            return true;
        }
        items.sort_by(|a, b| a.total_order(b));
        items.windows(2).all(|pair| pair[0] != pair[1])
    }
}
