//! Exact numbers: which JSON number literals a [`crate::Value`] holds without changing what they say.
//!
//! An integer literal is exact if it fits 64 bits. Any other literal is a double by definition, and
//! is refused only if it overflows or if it is not zero and would become zero.

use crate::pointer::escaped;

/// Bytes of a literal that a message shows.
const LITERAL_SHOWN_BYTES_MAX: usize = 40;

/// The reason why a number literal cannot be held; none if it can.
#[must_use]
pub fn refusal(literal: &str) -> Option<String> {
    let is_integer = !literal.contains(['.', 'e', 'E']);
    if is_integer {
        let fits = literal.parse::<i64>().is_ok() || literal.parse::<u64>().is_ok();
        return (!fits).then(|| {
            let shown = shown(literal);
            format!("the integer {shown} does not fit 64 bits; make it a string")
        });
    }
    let number: f64 = literal.parse().ok()?;
    let shown = shown(literal);
    if !number.is_finite() {
        return Some(format!("the number {shown} is too large for a double; make it a string"));
    }
    let mantissa = literal.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    (number == 0.0 && !is_zero).then(|| {
        format!("the number {shown} is too close to 0 for a double; write 0, or make it a string")
    })
}

fn shown(literal: &str) -> String {
    match literal.get(..LITERAL_SHOWN_BYTES_MAX) {
        Some(start) if start.len() < literal.len() => format!("{start}…"),
        _ => literal.to_owned(),
    }
}

/// The first number of a JSON text that cannot be held exactly.
pub(crate) struct Inexact {
    /// Where: a JSON pointer (RFC 6901).
    pub pointer: String,
    /// What is wrong and what to do.
    pub message: String,
    /// The byte at which the literal begins.
    pub at: usize,
}

/// One list or object around the place that is looked at.
enum Around {
    List(usize),
    /// The byte range of the latest key, quotes included.
    Map(std::ops::Range<usize>),
}

/// Finds the first number that cannot be held. The text must be JSON up to that number; what comes
/// after it does not matter.
pub(crate) fn find(text: &[u8]) -> Option<Inexact> {
    let mut around: Vec<Around> = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                let end = string_end(text, at);
                // A string before a colon is a key; any other one overwrites nothing that is used.
                if let Some(Around::Map(key)) = around.last_mut()
                    && text[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
                {
                    *key = at..end;
                }
                at = end;
                continue;
            }
            b'[' => around.push(Around::List(0)),
            b'{' => around.push(Around::Map(0..0)),
            b']' | b'}' => drop(around.pop()),
            b',' => {
                if let Some(Around::List(index)) = around.last_mut() {
                    *index += 1;
                }
            }
            b'-' | b'0'..=b'9' => {
                let rest = text[at..].iter();
                let is_part =
                    |byte: &&u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let end = at + rest.take_while(is_part).count();
                let literal = std::str::from_utf8(&text[at..end]).unwrap_or_default();
                if let Some(message) = refusal(literal) {
                    return Some(Inexact { pointer: pointer(text, &around), message, at });
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where the string that begins at a quote ends, its closing quote included.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn pointer(text: &[u8], around: &[Around]) -> String {
    let segments = around.iter().map(|around| match around {
        Around::List(index) => index.to_string(),
        Around::Map(key) => {
            let key: String = serde_json::from_slice(&text[key.clone()]).unwrap_or_default();
            escaped(&key)
        }
    });
    segments.flat_map(|segment| ["/".to_owned(), segment]).collect()
}
