//! A schema as the `jsonschema` crate wants it. Values that are checked are never converted.

use tenure_value::Value;

pub(super) fn to_serde(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(truth) => serde_json::Value::Bool(*truth),
        Value::Int(number) => (*number).into(),
        Value::Uint(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Text(text) => serde_json::Value::String(text.to_string()),
        Value::List(list) => list.as_slice().iter().map(to_serde).collect(),
        Value::Map(map) => {
            let entries = map.entries().iter();
            entries.map(|(key, value)| (key.to_string(), to_serde(value))).collect()
        }
    }
}

/// Are they equal, numbers by what they are worth?
pub(super) fn equals(value: &Value, expected: &serde_json::Value) -> bool {
    match (value, expected) {
        (Value::Null, serde_json::Value::Null) => true,
        (Value::Bool(truth), serde_json::Value::Bool(expected)) => truth == expected,
        (Value::Text(text), serde_json::Value::String(expected)) => **text == **expected,
        (Value::List(list), serde_json::Value::Array(expected)) => {
            list.len() == expected.len()
                && list.as_slice().iter().zip(expected).all(|(item, other)| equals(item, other))
        }
        (Value::Map(map), serde_json::Value::Object(expected)) => {
            map.len() == expected.len()
                && expected
                    .iter()
                    .all(|(key, other)| map.get(key).is_some_and(|value| equals(value, other)))
        }
        (value, serde_json::Value::Number(expected)) => {
            let expected = expected
                .as_i64()
                .map(Value::Int)
                .or_else(|| expected.as_u64().map(Value::uint))
                .or_else(|| expected.as_f64().and_then(Value::float));
            expected.is_some_and(|expected| *value == expected)
        }
        _ => false,
    }
}
