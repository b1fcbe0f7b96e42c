//! Numbers of three kinds, compared by what they are worth.

use std::cmp::Ordering;

use super::Value;

/// 2^63 and 2^64: from here on a float is above every integer of that kind.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;
const TWO_64: f64 = 18_446_744_073_709_551_616.0;

/// The order of two numbers; none if either value is not a number.
#[must_use]
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Float(a), b) => integer(b).map(|b| with_integer(*a, b)),
        (a, Value::Float(b)) => integer(a).map(|a| with_integer(*b, a).reverse()),
        (a, b) => Some(integer(a)?.cmp(&integer(b)?)),
    }
}

/// The value as an integer, wide enough for both kinds; none if it is not one.
#[must_use]
pub fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Uint(number) => Some(i128::from(*number)),
        Value::Null | Value::Bool(_) | Value::Float(_) | Value::Text(_) => None,
        Value::List(_) | Value::Map(_) => None,
    }
}

/// The integer that a number equals, if it fits either kind: `3.0` is 3.
pub(crate) fn whole(value: &Value) -> Option<i128> {
    let Value::Float(number) = value else { return integer(value) };
    let is_whole = number.trunc() == *number && (-TWO_63..TWO_64).contains(number);
    is_whole.then_some(*number as i128)
}

/// Exact: an integer is not rounded to a float first, which would make neighbors equal.
fn with_integer(float: f64, integer: i128) -> Ordering {
    if float >= TWO_64 {
        return Ordering::Greater;
    }
    if float < -TWO_63 {
        return Ordering::Less;
    }
    let whole = float.trunc();
    (whole as i128)
        .cmp(&integer)
        .then_with(|| float.partial_cmp(&whole).expect("floats of a value are numbers"))
}
