//! Our values as the validator sees them: borrowed, never copied.

use std::borrow::Cow;
use std::sync::Arc;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object};

use super::convert;
use crate::value::{List, Map, Value};

/// The representation of JSON that the validator is built for.
pub(super) struct Values;

impl Json for Values {
    type Node<'a> = &'a Value;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(&Value) -> T) -> T {
        *buffer = Value::text(string);
        f(buffer)
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

impl<'a> Node<'a, Values> for &'a Value {
    type Object = &'a Map;
    type Array = &'a List;
    type Number = Number;

    fn as_object(&self) -> Option<&'a Map> {
        if let Value::Map(map) = self { Some(map) } else { None }
    }

    fn as_array(&self) -> Option<&'a List> {
        if let Value::List(list) = self { Some(list) } else { None }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        if let Value::Text(text) = self { Some(Cow::Borrowed(text)) } else { None }
    }

    fn as_number(&self) -> Option<Number> {
        self.is_number().then(|| Number((*self).clone()))
    }

    fn as_boolean(&self) -> Option<bool> {
        if let Value::Bool(truth) = self { Some(*truth) } else { None }
    }

    fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    fn is_number(&self) -> bool {
        matches!(self, Value::Int(_) | Value::Uint(_) | Value::Float(_))
    }

    fn json_type(&self) -> JsonType {
        match self {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Int(_) | Value::Uint(_) | Value::Float(_) => JsonType::Number,
            Value::Text(_) => JsonType::String,
            Value::List(_) => JsonType::Array,
            Value::Map(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &serde_json::Value) -> bool {
        convert::equals(self, expected)
    }

    /// Asked for only by errors, whose sentences leave the value out: a stand-in is enough, and a
    /// large value is not copied for each thing that is wrong with it.
    fn to_value(&self) -> Cow<'a, serde_json::Value> {
        Cow::Owned(match self {
            Value::List(list) => vec![serde_json::Value::Null; list.len()].into(),
            Value::Map(_) => serde_json::Value::Object(serde_json::Map::new()),
            Value::Text(_) => serde_json::Value::String(String::new()),
            other => convert::to_serde(other),
        })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref::<Value>(self) as usize))
    }
}

type Entry = (Arc<str>, Value);

impl<'a> Object<'a, Values> for &'a Map {
    type Node = &'a Value;
    type MemberName = &'a str;
    type MembersIter = std::iter::Map<std::slice::Iter<'a, Entry>, fn(&Entry) -> (&str, &Value)>;

    fn len(&self) -> usize {
        Map::len(self)
    }

    fn get(&self, key: &String) -> Option<&'a Value> {
        Map::get(self, key)
    }

    fn members(&self) -> Self::MembersIter {
        self.entries().iter().map(|(key, value)| (&**key, value))
    }
}

impl<'a> Array<'a, Values> for &'a List {
    type Node = &'a Value;
    type ElementsIter = std::slice::Iter<'a, Value>;

    fn len(&self) -> usize {
        List::len(self)
    }

    fn elements(&self) -> std::slice::Iter<'a, Value> {
        self.as_slice().iter()
    }

    fn is_unique(&self) -> bool {
        let mut items: Vec<&Value> = self.as_slice().iter().collect();
        items.sort_by(|a, b| a.total_order(b));
        items.windows(2).all(|pair| pair[0] != pair[1])
    }
}
