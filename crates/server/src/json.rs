//! JSON at the door: bounded in depth before it is parsed, and payloads kept as they came.

use std::borrow::Cow;

use axum::body::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use tenure_code::{Code, ECHO_CHARS_MAX, Echo};

use crate::limits::{JSON_DEPTH_MAX, MESSAGE_CHARS_MAX};
use crate::problem::Problem;

/// Reads a request. An empty body stands for an empty object.
pub(crate) fn parse<'b, T: Deserialize<'b>>(body: &'b Bytes) -> Result<T, Problem> {
    let text: &[u8] = if body.iter().all(u8::is_ascii_whitespace) { b"{}" } else { body };
    check_depth(text)?;
    let wrong = |error: serde_json::Error| {
        let error = briefly(&error.to_string());
        Problem::invalid(format!("the body is not what is asked for: {error}"))
    };
    // A list of all fields in their order would do for serde, and be a riddle to everybody else.
    if text.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        serde_json::from_slice::<&RawValue>(text).map_err(wrong)?;
        return Err(Problem::invalid("the body must be a JSON object, {…}"));
    }
    serde_json::from_slice(text).map_err(wrong)
}

/// Reads a query string.
pub(crate) fn query<T: DeserializeOwned>(query: Option<&str>) -> Result<T, Problem> {
    let uri = format!("/?{}", query.unwrap_or_default());
    let uri = uri.parse().map_err(|_| Problem::invalid("the query string cannot be read"))?;
    axum::extract::Query::try_from_uri(&uri)
        .map(|axum::extract::Query(query)| query)
        .map_err(|error| Problem::invalid(briefly(&error.body_text())))
}

/// A message of a parser, with the part that quotes the request cut as [`Echo`] cuts it.
fn briefly(message: &str) -> String {
    const ENDS: [&str; 3] = ["`, expected", "\", expected", "`, there are no fields"];
    let begin = message.find(['`', '"']).map(|at| at + 1);
    // The last one: the quoted text may contain such words itself.
    let end = ENDS.iter().filter_map(|end| message.rfind(end)).max();
    let Some((begin, end)) = begin.zip(end).filter(|(begin, end)| begin <= end) else {
        return message.chars().take(MESSAGE_CHARS_MAX).collect();
    };
    let quoted = &message[begin..end];
    let is_short = quoted.chars().count() <= ECHO_CHARS_MAX && !quoted.contains(char::is_control);
    match is_short {
        true => message.to_owned(),
        false => {
            let echo = Echo(quoted).to_string();
            let echo = &echo[1..echo.len() - 1];
            // Before it there may be the name of the field, which is as long.
            let head = match &message[..begin] {
                head if head.len() > MESSAGE_CHARS_MAX => head.rsplit(": ").next().unwrap_or(""),
                head => head,
            };
            format!("{head}{echo}{}", &message[end..])
        }
    }
}

/// Refuses text that is nested so deep that parsing it could hurt.
fn check_depth(text: &[u8]) -> Result<(), Problem> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > JSON_DEPTH_MAX {
            let detail = format!(
                "the JSON is nested deeper than {JSON_DEPTH_MAX}; flatten it, or send the inner \
                 part as a string"
            );
            return Err(Problem::new(Code::JsonTooDeep, detail));
        }
    }
    Ok(())
}

/// Bytes that are JSON text as a rule: shown as they are, or as base64 if they are not.
#[derive(Debug)]
pub(crate) struct Verbatim<'a>(pub(crate) Cow<'a, [u8]>);

impl Verbatim<'_> {
    /// Whether the bytes are shown as base64.
    #[must_use]
    pub(crate) fn is_binary(&self) -> bool {
        !self.0.is_empty() && serde_json::from_slice::<&RawValue>(&self.0).is_err()
    }
}

impl Serialize for Verbatim<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_slice::<&RawValue>(&self.0) {
            Ok(json) => json.serialize(serializer),
            Err(_) if self.0.is_empty() => serializer.serialize_unit(),
            Err(_) => serializer.serialize_str(&base64(&self.0)),
        }
    }
}

/// Standard base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |n: usize| u32::from(chunk.get(n).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            match digit <= chunk.len() {
                true => text.push(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize] as char),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_an_object() {
        for body in ["[1]", "7", "\"x\"", " null"] {
            let refusal =
                parse::<std::collections::BTreeMap<String, u8>>(&body.into()).unwrap_err();
            assert!(refusal.detail.contains("a JSON object"), "{body}: {}", refusal.detail);
        }
        assert!(parse::<std::collections::BTreeMap<String, u8>>(&" {\"a\": 1}".into()).is_ok());
    }

    #[test]
    fn deep_json_is_refused_before_it_is_parsed() {
        let deep = |levels: usize| {
            let inner = "[".repeat(levels - 1) + &"]".repeat(levels - 1);
            Bytes::from(format!("{{\"a\": {inner}}}"))
        };
        assert!(parse::<serde_json::Value>(&deep(JSON_DEPTH_MAX)).is_ok());
        let refused = parse::<serde_json::Value>(&deep(JSON_DEPTH_MAX + 1)).unwrap_err();
        assert_eq!(refused.code, Code::JsonTooDeep);
        let text = Bytes::from(format!("{{\"a\": {:?}}}", "[{\\\"".repeat(100)));
        assert!(parse::<serde_json::Value>(&text).is_ok(), "brackets in a string are no depth");
    }

    #[test]
    fn what_a_parser_quotes_is_cut() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Body {
            #[serde(rename = "priority")]
            _priority: Option<u8>,
        }
        let long = "x`, expected ".repeat(10_000);
        for body in [
            format!("{{{long:?}: 1}}"),
            format!("{{\"priority\": {long:?}}}"),
            format!("{{\"\\u001b{long}\": 1}}"),
        ] {
            let refused = parse::<Body>(&body.into()).unwrap_err().detail;
            assert!(refused.len() < 400 && refused.contains("…"), "{refused}");
            assert!(
                refused.contains("at line 1 column") && !refused.contains('\u{1b}'),
                "{refused}"
            );
        }
        let short = parse::<Body>(&"{\"surprise\": 1}".into()).unwrap_err().detail;
        assert!(short.contains("unknown field `surprise`, expected `priority`"), "{short}");
        let refused = query::<Body>(Some(&format!("{}=1", "q".repeat(30_000)))).unwrap_err().detail;
        assert!(refused.len() < 400 && refused.contains("qqq…"), "{refused}");
    }

    #[test]
    fn bytes_that_are_no_json_are_shown_as_base64() {
        let shown = |bytes: &[u8]| serde_json::to_string(&Verbatim(bytes.into())).unwrap();
        assert_eq!(shown(b"{\"a\": 1.0}"), "{\"a\": 1.0}", "as it came");
        assert_eq!(shown(b""), "null");
        assert_eq!(shown(b"\xff"), "\"/w==\"");
        assert_eq!(shown(b"no"), "\"bm8=\"");
        assert_eq!(shown(b"yes"), "\"eWVz\"");
    }
}
