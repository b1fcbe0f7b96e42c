//! The functions that expressions may call. None of them knows the time or draws a number.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use tenure_value::{Value, exact};

use tenure_code::Echo;

use super::evaluate::{Meter, text_cost};
use super::{EvaluationError, ExpressionFault, operators};
use crate::limits::{EXPRESSION_OUTPUT_BYTES_MAX, PATTERN_BYTES_MAX, PATTERN_MEMORY_BYTES_MAX};

type Result<T> = std::result::Result<T, EvaluationError>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
    Int,
    Uint,
    Double,
    String,
    Bool,
    Min,
    Max,
}

const NAMED: [(&str, Function); 12] = [
    ("size", Function::Size),
    ("contains", Function::Contains),
    ("startsWith", Function::StartsWith),
    ("endsWith", Function::EndsWith),
    ("matches", Function::Matches),
    ("int", Function::Int),
    ("uint", Function::Uint),
    ("double", Function::Double),
    ("string", Function::String),
    ("bool", Function::Bool),
    ("min", Function::Min),
    ("max", Function::Max),
];

impl Function {
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMED.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
    }

    pub(super) fn names() -> Vec<&'static str> {
        NAMED.iter().map(|(name, _)| *name).collect()
    }

    fn name(self) -> &'static str {
        NAMED.iter().find(|(_, function)| *function == self).map_or("", |(name, _)| name)
    }

    /// May it be called on a value, as in `x.size()`?
    pub(super) fn is_method(self) -> bool {
        match self {
            Self::Size | Self::Contains | Self::StartsWith | Self::EndsWith | Self::Matches => true,
            Self::Int | Self::Uint | Self::Double | Self::String | Self::Bool => false,
            Self::Min | Self::Max => false,
        }
    }

    /// The value it is called on counts as the first argument.
    pub(super) fn check_count(self, count: usize) -> std::result::Result<(), ExpressionFault> {
        let (fits, wants) = match self {
            Self::Contains | Self::StartsWith | Self::EndsWith | Self::Matches => {
                (count == 2, "a text and what to look for")
            }
            Self::Size | Self::Int | Self::Uint | Self::Double | Self::String | Self::Bool => {
                (count == 1, "one argument")
            }
            Self::Min | Self::Max => (count > 0, "a list, or at least one value"),
        };
        if fits {
            return Ok(());
        }
        let name = self.name();
        Err(ExpressionFault::bad(format!("{name}() takes {wants}")))
    }

    pub(super) fn call(self, args: &[Value], meter: &mut Meter) -> Result<Value> {
        match self {
            Self::Size => return size(&args[0], meter),
            Self::Contains => texts(self, args, meter).map(|(text, part)| text.contains(part)),
            Self::StartsWith => texts(self, args, meter).map(|(text, part)| text.starts_with(part)),
            Self::EndsWith => texts(self, args, meter).map(|(text, part)| text.ends_with(part)),
            Self::Matches => return matches(args, meter),
            Self::Int => return int(&args[0]),
            Self::Uint => return uint(&args[0]),
            Self::Double => return double(&args[0]),
            Self::String => return string(&args[0]),
            Self::Bool => return truth(&args[0]),
            Self::Min => return extreme(self, args, std::cmp::Ordering::Less, meter),
            Self::Max => return extreme(self, args, std::cmp::Ordering::Greater, meter),
        }
        .map(Value::Bool)
    }
}

/// A pattern in linear time and bounded memory.
pub(super) fn compile_pattern(pattern: &str) -> std::result::Result<Regex, String> {
    if pattern.len() > PATTERN_BYTES_MAX {
        let len = pattern.len();
        return Err(format!("a pattern has {len} bytes; at most {PATTERN_BYTES_MAX} are allowed"));
    }
    let compiled = RegexBuilder::new(pattern)
        .size_limit(PATTERN_MEMORY_BYTES_MAX)
        .dfa_size_limit(PATTERN_MEMORY_BYTES_MAX)
        .nest_limit(32)
        .build();
    compiled.map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim().to_owned();
        format!("the pattern {} cannot be used: {reason}", Echo(pattern))
    })
}

pub(super) fn is_match(pattern: &Regex, text: &Value, meter: &mut Meter) -> Result<Value> {
    let Value::Text(text) = text else {
        return Err(wrong(Function::Matches, std::slice::from_ref(text)));
    };
    meter.spend(text_cost(text.len()).saturating_mul(text_cost(pattern.as_str().len())))?;
    Ok(Value::Bool(pattern.is_match(text)))
}

fn matches(args: &[Value], meter: &mut Meter) -> Result<Value> {
    let Value::Text(pattern) = &args[1] else { return Err(wrong(Function::Matches, args)) };
    // Compiling costs more than anything else that one call can do.
    meter.spend(1_000)?;
    let pattern = compile_pattern(pattern).map_err(EvaluationError::other)?;
    is_match(&pattern, &args[0], meter)
}

fn texts<'a>(
    function: Function,
    args: &'a [Value],
    meter: &mut Meter,
) -> Result<(&'a str, &'a str)> {
    let (Value::Text(text), Value::Text(part)) = (&args[0], &args[1]) else {
        return Err(wrong(function, args));
    };
    meter.spend(text_cost(text.len()) + text_cost(part.len()))?;
    Ok((text, part))
}

fn size(of: &Value, meter: &mut Meter) -> Result<Value> {
    let size = match of {
        Value::Text(text) => {
            meter.spend(text_cost(text.len()))?;
            text.chars().count()
        }
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Float(_) => {
            return Err(wrong(Function::Size, std::slice::from_ref(of)));
        }
    };
    Ok(Value::Int(size as i64))
}

fn int(of: &Value) -> Result<Value> {
    let converted = match of {
        Value::Int(_) => Some(of.clone()),
        // Toward zero. The comparison is exact: 2^63 is a float, and the largest int is not.
        Value::Float(number) => (*number >= -9_223_372_036_854_775_808.0
            && *number < 9_223_372_036_854_775_808.0)
            .then_some(Value::Int(*number as i64)),
        Value::Text(text) => text.parse().ok().map(Value::Int),
        Value::Null | Value::Bool(_) | Value::Uint(_) | Value::List(_) | Value::Map(_) => None,
    };
    converted.ok_or_else(|| unconverted(Function::Int, of))
}

fn uint(of: &Value) -> Result<Value> {
    let converted = match of {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::Uint(number) => Some(*number),
        Value::Float(number) => {
            (*number > -1.0 && *number < 18_446_744_073_709_551_616.0).then_some(*number as u64)
        }
        Value::Text(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => None,
    };
    converted.map(Value::uint).ok_or_else(|| unconverted(Function::Uint, of))
}

fn double(of: &Value) -> Result<Value> {
    let converted = match of {
        Value::Int(number) => Some(*number as f64),
        Value::Uint(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        // A text that is not zero does not become zero.
        Value::Text(text) => {
            let number: Option<f64> = text.parse().ok();
            number.filter(|number| *number != 0.0 || exact::refusal(text).is_none())
        }
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => None,
    };
    converted.and_then(Value::float).ok_or_else(|| unconverted(Function::Double, of))
}

fn string(of: &Value) -> Result<Value> {
    match of {
        Value::Text(_) => Ok(of.clone()),
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Float(_) => {
            Ok(Value::text(&of.to_json()))
        }
        Value::Null | Value::List(_) | Value::Map(_) => Err(unconverted(Function::String, of)),
    }
}

fn truth(of: &Value) -> Result<Value> {
    let converted = match of {
        Value::Bool(_) => Some(of.clone()),
        Value::Text(text) => match &**text {
            "true" | "True" | "TRUE" | "t" | "1" => Some(Value::Bool(true)),
            "false" | "False" | "FALSE" | "f" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        Value::Null | Value::Int(_) | Value::Uint(_) | Value::Float(_) => None,
        Value::List(_) | Value::Map(_) => None,
    };
    converted.ok_or_else(|| unconverted(Function::Bool, of))
}

fn extreme(
    function: Function,
    args: &[Value],
    wanted: std::cmp::Ordering,
    meter: &mut Meter,
) -> Result<Value> {
    let values = match args {
        [Value::List(list)] => list.as_slice(),
        _ => args,
    };
    let Some((first, rest)) = values.split_first() else {
        let name = function.name();
        return Err(EvaluationError::other(format!("{name}() of an empty list has no value")));
    };
    let mut best = first;
    for value in rest {
        if operators::order(value, best, meter)? == wanted {
            best = value;
        }
    }
    // One value alone must be one that has an order, too.
    operators::order(best, best, meter)?;
    Ok(best.clone())
}

fn wrong(function: Function, args: &[Value]) -> EvaluationError {
    let name = function.name();
    let kinds = args.iter().map(Value::kind).collect::<Vec<_>>().join(" and ");
    EvaluationError::other(format!("{name}() does not take {kinds}"))
}

fn unconverted(function: Function, of: &Value) -> EvaluationError {
    let name = function.name();
    let shown = match of {
        Value::Text(text) => format!("{:?}", text.chars().take(64).collect::<String>()),
        Value::Int(_) | Value::Uint(_) | Value::Float(_) => of.to_json(),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => of.kind().to_owned(),
    };
    EvaluationError::other(format!("{name}() cannot convert {shown}"))
}

/// A text that was put together, if it is not too long.
pub(super) fn joined(left: &str, right: &str) -> Result<Value> {
    let bytes = left.len() + right.len();
    if bytes > EXPRESSION_OUTPUT_BYTES_MAX {
        return Err(too_large("a string", bytes));
    }
    Ok(Value::Text(Arc::from([left, right].concat())))
}

pub(super) fn too_large(what: &str, bytes: usize) -> EvaluationError {
    EvaluationError::limit(format!(
        "the expression makes {what} of {bytes} bytes; at most {EXPRESSION_OUTPUT_BYTES_MAX} are \
         allowed"
    ))
}
