//! The W3C trace context of a submit (`traceparent`), checked once and handed on as it came.

use std::fmt;
use std::sync::Arc;

use tenure_code::Echo;

use crate::limits::TRACEPARENT_BYTES_MAX;
use crate::name::{Invalid, Text};

/// Bytes of the four fields that every version has: `00-` trace id `-` parent id `-` flags.
const FIELDS_BYTES: usize = 55;

/// A trace context: version, trace id, parent id and flags in lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceParent(Arc<str>);

impl TraceParent {
    /// Checks the form that the W3C Recommendation "Trace Context" gives it.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match is_valid(text.as_bytes()) {
            true => Ok(Self(text.into())),
            false => Err(Invalid::new(format!(
                "traceparent is {}; it must look like \
                 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                Echo(text)
            ))),
        }
    }

    /// The text as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text for an event, without copying it.
    #[must_use]
    pub fn share(&self) -> Text<'static> {
        Text::Shared(Arc::clone(&self.0))
    }
}

impl fmt::Debug for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

fn is_valid(text: &[u8]) -> bool {
    let Some((fields, rest)) = text.split_at_checked(FIELDS_BYTES) else { return false };
    let parts: Vec<&[u8]> = fields.split(|byte| *byte == b'-').collect();
    let [version, trace, parent, flags] = parts[..] else { return false };
    let is_hex = |part: &[u8], len: usize| {
        part.len() == len && part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_zero = |part: &[u8]| part.iter().all(|byte| *byte == b'0');
    // A later version may have more fields after these.
    let ends = match version {
        b"00" => rest.is_empty(),
        _ => rest.first().is_none_or(|byte| *byte == b'-') && rest.iter().all(u8::is_ascii_graphic),
    };
    is_hex(version, 2)
        && version != b"ff"
        && is_hex(trace, 32)
        && !is_zero(trace)
        && is_hex(parent, 16)
        && !is_zero(parent)
        && is_hex(flags, 2)
        && ends
        && text.len() <= TRACEPARENT_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_trace_context_is_taken_as_the_recommendation_says() {
        assert_eq!(TraceParent::parse(GOOD).unwrap().as_str(), GOOD);
        let later = GOOD.replacen("00", "cc", 1);
        assert!(TraceParent::parse(&later).is_ok());
        assert!(TraceParent::parse(&format!("{later}-more")).is_ok());
        let wrong = [
            String::new(),
            "00-ab-cd-01".to_owned(),
            GOOD.to_uppercase(),
            GOOD.replacen("00", "ff", 1),
            GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            GOOD.replace("00f067aa0ba902b7", &"0".repeat(16)),
            GOOD.replace('-', "_"),
            format!("{GOOD}-more"),
            format!("{later}more"),
            format!("{later}-{}", "x".repeat(TRACEPARENT_BYTES_MAX)),
            format!("{later}-ü"),
        ];
        for text in wrong {
            assert!(TraceParent::parse(&text).is_err(), "{text}");
        }
    }
}
