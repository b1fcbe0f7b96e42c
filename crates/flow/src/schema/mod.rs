//! JSON Schema over our values, by the `jsonschema` crate. Nothing is ever fetched: a reference
//! leads to a place in the same schema, or the schema is refused.

mod convert;
mod defaults;
mod node;
mod weight;

use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use node::{Counted, Divisor, Meter, Values};
use tenure_value::Value;

use tenure_code::Echo;

use crate::limits::{
    PATTERN_MEMORY_BYTES_MAX, SCHEMA_BYTES_MAX, SCHEMA_COMPLAINTS_MAX, SCHEMA_STEPS_MAX,
    SCHEMA_WEIGHT_MAX,
};

/// A JSON Schema, compiled once. A clone is cheap.
#[derive(Clone)]
pub struct Schema(Arc<Compiled>);

struct Compiled {
    source: Value,
    validator: Validator<Values>,
    divisor: Divisor,
}

/// A schema that cannot be used: where in it, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFault {
    /// A JSON pointer into the schema.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

/// One thing that is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// A JSON pointer into the value; empty for the whole of it.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() { "/" } else { &self.pointer };
        write!(f, "{pointer}: {}", self.message)
    }
}

impl Schema {
    /// Compiles a schema, of the draft that it names or else of 2020-12.
    pub fn compile(source: &Value) -> Result<Self, SchemaFault> {
        let fault = |pointer: &str, message: String| {
            Err(SchemaFault { pointer: pointer.to_owned(), message })
        };
        if !matches!(source, Value::Map(_) | Value::Bool(_)) {
            let kind = source.kind();
            return fault("", format!("a JSON Schema is an object or a boolean, not {kind}"));
        }
        if source.bytes() > SCHEMA_BYTES_MAX {
            let bytes = source.bytes();
            return fault(
                "",
                format!("the schema has {bytes} bytes; at most {SCHEMA_BYTES_MAX} are allowed"),
            );
        }
        if let Some((pointer, reference)) = remote_reference(source, "") {
            return fault(
                &pointer,
                format!(
                    "{} is outside of this schema, and nothing is fetched; put it under `$defs` and \
                     refer to it as \"#/$defs/name\"",
                    Echo(&reference)
                ),
            );
        }
        let weight = weight::of(source);
        if weight > SCHEMA_WEIGHT_MAX {
            return fault(
                "",
                format!(
                    "one value would be checked against {weight} subschemas or more, references \
                     followed; at most {SCHEMA_WEIGHT_MAX} are allowed"
                ),
            );
        }
        // Patterns in linear time: no look-around, no references back.
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_MEMORY_BYTES_MAX)
            .dfa_size_limit(PATTERN_MEMORY_BYTES_MAX);
        let built = jsonschema::options_for::<Values>()
            .offline()
            .with_pattern_options(patterns)
            .build(&convert::to_serde(source));
        match built {
            Ok(validator) => {
                let (source, divisor) = (source.clone(), Divisor::of(source));
                Ok(Self(Arc::new(Compiled { source, validator, divisor })))
            }
            Err(error) => {
                let pointer = error.instance_path().as_str().to_owned();
                fault(&pointer, format!("this is no JSON Schema: {}", shortened(&error.masked())))
            }
        }
    }

    /// What the schema says.
    #[must_use]
    pub fn source(&self) -> &Value {
        &self.0.source
    }

    /// Checks a value; the first [`SCHEMA_COMPLAINTS_MAX`] things that are wrong with it, or that
    /// the check costs more than [`SCHEMA_STEPS_MAX`] steps.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Complaint>> {
        self.check_counted(value, &mut 0)
    }

    /// Checks a value, and adds what that costs to `steps`.
    ///
    /// # Errors
    /// As [`Schema::check`].
    pub fn check_counted(&self, value: &Value, steps: &mut u64) -> Result<(), Vec<Complaint>> {
        let meter = Meter::new(SCHEMA_STEPS_MAX, self.0.divisor);
        let is_valid = self.0.validator.is_valid(Counted::new(value, &meter));
        // What is wrong with it is looked for again.
        *steps += meter.spent() * if is_valid { 1 } else { 2 };
        if meter.is_used_up() {
            return Err(vec![too_costly()]);
        }
        if is_valid {
            return Ok(());
        }
        let complaint = |error: jsonschema::ValidationError<'_>| Complaint {
            pointer: error.instance_path().as_str().to_owned(),
            message: shortened(&error.masked_with("this")),
        };
        let meter = Meter::new(SCHEMA_STEPS_MAX, self.0.divisor);
        let errors = self.0.validator.iter_errors(Counted::new(value, &meter));
        let complaints: Vec<_> = errors.take(SCHEMA_COMPLAINTS_MAX).map(complaint).collect();
        if meter.is_used_up() {
            return Err(vec![too_costly()]);
        }
        if complaints.is_empty() {
            return Err(vec![Complaint {
                pointer: String::new(),
                message: "this does not fit its schema".to_owned(),
            }]);
        }
        Err(complaints)
    }

    /// The value with the schema's defaults where it says nothing, on every level.
    #[must_use]
    pub fn with_defaults(&self, value: &Value) -> Value {
        defaults::with_defaults(&self.0.source, value)
    }
}

fn too_costly() -> Complaint {
    let message = format!(
        "to check this against its schema costs more than {SCHEMA_STEPS_MAX} steps; make the value \
         smaller or the schema simpler"
    );
    Complaint { pointer: String::new(), message }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({:?})", self.0.source)
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.0.source == other.0.source
    }
}

impl Eq for Schema {}

/// Bytes of one complaint.
const COMPLAINT_BYTES_MAX: usize = 300;

fn shortened(message: &dyn fmt::Display) -> String {
    let mut message = message.to_string();
    if message.len() > COMPLAINT_BYTES_MAX {
        let cut = (0..=COMPLAINT_BYTES_MAX).rev().find(|at| message.is_char_boundary(*at));
        message.truncate(cut.unwrap_or(0));
        message.push('…');
    }
    message
}

/// The first reference that leads out of the schema.
fn remote_reference(value: &Value, pointer: &str) -> Option<(String, Arc<str>)> {
    match value {
        Value::Map(map) => map.entries().iter().find_map(|(key, value)| {
            let inner = format!("{pointer}/{}", tenure_value::pointer::escaped(key));
            if let ("$ref" | "$dynamicRef" | "$recursiveRef", Value::Text(reference)) =
                (&**key, value)
                && !reference.starts_with('#')
            {
                return Some((inner, Arc::clone(reference)));
            }
            // What is compared with is no schema.
            if matches!(&**key, "const" | "enum" | "default" | "examples") {
                return None;
            }
            remote_reference(value, &inner)
        }),
        Value::List(list) => list
            .as_slice()
            .iter()
            .enumerate()
            .find_map(|(at, value)| remote_reference(value, &format!("{pointer}/{at}"))),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Float(_) => None,
        Value::Text(_) => None,
    }
}

#[cfg(test)]
mod tests;
