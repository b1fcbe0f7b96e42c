//! What the operators mean for JSON values.

use std::cmp::Ordering;

use tenure_value::{Value, compare_numbers, integer};

use super::EvaluationError;
use super::evaluate::{Meter, made, text_cost};
use super::functions::joined;
use super::tree::Binary;

type Result<T> = std::result::Result<T, EvaluationError>;

pub(super) fn binary(
    operator: Binary,
    left: &Value,
    right: &Value,
    meter: &mut Meter,
) -> Result<Value> {
    let order = |meter: &mut Meter| order(left, right, meter);
    match operator {
        Binary::Equals => equals(left, right, meter).map(Value::Bool),
        Binary::NotEquals => equals(left, right, meter).map(|equal| Value::Bool(!equal)),
        Binary::Less => order(meter).map(|order| Value::Bool(order.is_lt())),
        Binary::LessEquals => order(meter).map(|order| Value::Bool(order.is_le())),
        Binary::Greater => order(meter).map(|order| Value::Bool(order.is_gt())),
        Binary::GreaterEquals => order(meter).map(|order| Value::Bool(order.is_ge())),
        Binary::In => is_in(left, right, meter).map(Value::Bool),
        Binary::Add => match (left, right) {
            (Value::Text(left), Value::Text(right)) => {
                meter.spend(text_cost(left.len() + right.len()))?;
                joined(left, right)
            }
            (Value::List(left), Value::List(right)) => {
                let count = left.len() + right.len();
                meter.spend(count as u64)?;
                let mut items = Vec::with_capacity(count);
                items.extend_from_slice(left.as_slice());
                items.extend_from_slice(right.as_slice());
                made(Value::list(items))
            }
            _ => arithmetic(operator, left, right),
        },
        Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Modulo => {
            arithmetic(operator, left, right)
        }
    }
}

pub(super) fn negate(value: &Value) -> Result<Value> {
    match value {
        Value::Float(number) => Ok(Value::Float(-number)),
        Value::Int(_) | Value::Uint(_) => arithmetic(Binary::Subtract, &Value::Int(0), value),
        Value::Null | Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => {
            Err(EvaluationError::other(format!("- does not take {}", value.kind())))
        }
    }
}

/// Values of different types are not equal; that is no error. What is large costs more to compare.
fn equals(left: &Value, right: &Value, meter: &mut Meter) -> Result<bool> {
    meter.spend(text_cost(left.bytes().min(right.bytes())))?;
    Ok(left == right)
}

/// The order of two numbers, two strings or two truth values; nothing else has one.
pub(super) fn order(left: &Value, right: &Value, meter: &mut Meter) -> Result<Ordering> {
    let order = match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            meter.spend(text_cost(left.len().min(right.len())))?;
            Some(left.cmp(right))
        }
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (left, right) => compare_numbers(left, right),
    };
    order.ok_or_else(|| {
        let (left, right) = (left.kind(), right.kind());
        EvaluationError::other(format!("{left} and {right} have no order"))
    })
}

fn is_in(element: &Value, container: &Value, meter: &mut Meter) -> Result<bool> {
    match container {
        Value::List(list) => {
            for item in list.as_slice() {
                meter.spend(1)?;
                if equals(element, item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map) => Ok(element.as_text().is_some_and(|key| map.get(key).is_some())),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Float(_) => {
            Err(not_a_container(container))
        }
        Value::Text(_) => Err(not_a_container(container)),
    }
}

fn not_a_container(value: &Value) -> EvaluationError {
    let kind = value.kind();
    EvaluationError::other(format!("`in` looks into a list or an object, not {kind}"))
}

fn arithmetic(operator: Binary, left: &Value, right: &Value) -> Result<Value> {
    if let (Some(a), Some(b)) = (integer(left), integer(right)) {
        let range = match (left, right) {
            (Value::Int(_), Value::Int(_)) => Range::Int,
            _ => Range::IntOrUint,
        };
        return integers(operator, a, b, range);
    }
    match (float(left), float(right)) {
        (Some(a), Some(b)) => floats(operator, a, b),
        _ => Err(no_operator(operator, left, right)),
    }
}

/// What the result of two integers may be.
#[derive(Clone, Copy, PartialEq)]
enum Range {
    /// Both fit an `int`, so it must too.
    Int,
    /// One is beyond that, so it may be.
    IntOrUint,
}

fn integers(operator: Binary, a: i128, b: i128, range: Range) -> Result<Value> {
    let result = match operator {
        Binary::Add => Some(a + b),
        Binary::Subtract => Some(a - b),
        Binary::Multiply => a.checked_mul(b),
        Binary::Divide | Binary::Modulo if b == 0 => {
            return Err(EvaluationError::other(format!("{a} is divided by zero")));
        }
        Binary::Divide => Some(a / b),
        // The one remainder whose division does not fit is an overflow, as the division is.
        Binary::Modulo if a == i128::from(i64::MIN) && b == -1 => None,
        Binary::Modulo => Some(a % b),
        Binary::Equals | Binary::NotEquals | Binary::Less | Binary::LessEquals => None,
        Binary::Greater | Binary::GreaterEquals | Binary::In => None,
    };
    let fitting = result.and_then(|result| match i64::try_from(result) {
        Ok(result) => Some(Value::Int(result)),
        Err(_) if range == Range::Int => None,
        Err(_) => u64::try_from(result).ok().map(Value::Uint),
    });
    fitting.ok_or_else(|| {
        let sign = sign(operator);
        EvaluationError::other(format!("{a} {sign} {b} is too large for an integer"))
    })
}

fn floats(operator: Binary, a: f64, b: f64) -> Result<Value> {
    let result = match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::Modulo => return Err(EvaluationError::other("% takes integers")),
        Binary::Equals | Binary::NotEquals | Binary::Less | Binary::LessEquals => f64::NAN,
        Binary::Greater | Binary::GreaterEquals | Binary::In => f64::NAN,
    };
    Value::float(result).ok_or_else(|| {
        let sign = sign(operator);
        EvaluationError::other(format!("{a} {sign} {b} is no number that JSON can write"))
    })
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        Value::Int(number) => Some(*number as f64),
        Value::Uint(number) => Some(*number as f64),
        Value::Null | Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => None,
    }
}

fn no_operator(operator: Binary, left: &Value, right: &Value) -> EvaluationError {
    let (sign, left, right) = (sign(operator), left.kind(), right.kind());
    EvaluationError::other(format!("{sign} does not take {left} and {right}"))
}

fn sign(operator: Binary) -> &'static str {
    match operator {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Modulo => "%",
        Binary::Equals => "==",
        Binary::NotEquals => "!=",
        Binary::Less => "<",
        Binary::LessEquals => "<=",
        Binary::Greater => ">",
        Binary::GreaterEquals => ">=",
        Binary::In => "in",
    }
}
