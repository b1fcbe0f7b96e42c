//! What a schema says of a value that says nothing.

use std::sync::Arc;

use tenure_value::{Map, Value};

/// The value with defaults for what is absent, on every level of `properties`. An object that is
/// absent and has no default of its own is made if something below it has one.
pub(super) fn with_defaults(schema: &Value, value: &Value) -> Value {
    let (Some(properties), Value::Map(map)) = (properties(schema), value) else {
        return value.clone();
    };
    let filled = properties.entries().iter().fold(map.clone(), |filled, (name, inner)| {
        let value = match filled.get(name) {
            Some(present) => Some(with_defaults(inner, present)),
            None => absent(inner),
        };
        match value {
            Some(value) => filled.with(name, value),
            None => filled,
        }
    });
    Value::Map(filled)
}

fn properties(schema: &Value) -> Option<&Map> {
    schema.as_map()?.get("properties")?.as_map()
}

fn absent(schema: &Value) -> Option<Value> {
    if let Some(default) = schema.as_map().and_then(|schema| schema.get("default")) {
        return Some(with_defaults(schema, default));
    }
    let entries: Vec<(Arc<str>, Value)> = properties(schema)?
        .entries()
        .iter()
        .filter_map(|(name, inner)| Some((Arc::clone(name), absent(inner)?)))
        .collect();
    (!entries.is_empty()).then(|| Value::map(entries))
}
