//! JSON at the door: bounded in depth before it is parsed, and payloads kept as they came.

use axum::body::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tenure_code::{Code, ECHO_CHARS_MAX, Echo};

use crate::limits::{JSON_DEPTH_MAX, MESSAGE_CHARS_MAX};
use crate::problem::Problem;

/// Reads a request. An empty body stands for an empty object.
pub(crate) fn parse<'b, T: Deserialize<'b>>(body: &'b Bytes) -> Result<T, Problem> {
    let text: &[u8] = if body.iter().all(u8::is_ascii_whitespace) { b"{}" } else { body };
    check_depth(text)?;
    let wrong = |error: serde_json::Error| {
        let (place, error) = (place::<T>(text), error.to_string());
        let number = place.as_deref().and_then(|place| number_out_of_range(place, &error));
        Problem::invalid(number.unwrap_or_else(|| {
            let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
            format!("the body is not what is asked for: {place}{}", briefly(&error))
        }))
    };
    // A list of all fields in their order would do for serde, and be a riddle to everybody else.
    if text.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        serde_json::from_slice::<&RawValue>(text).map_err(wrong)?;
        return Err(Problem::invalid("the body must be a JSON object, {…}"));
    }
    serde_json::from_slice(text).map_err(wrong)
}

/// Where in a refused body the fault is. The body is read again with its path, which costs too much to
/// be done for every request.
fn place<'b, T: Deserialize<'b>>(text: &'b [u8]) -> Option<String> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let error = serde_path_to_error::deserialize::<_, T>(&mut reader).err()?;
    let place = error.path().to_string();
    // Keys are the client's choice, and a path is shown only if it is short and plain.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
    let is_shown = place != "." && place.len() <= ECHO_CHARS_MAX && place.chars().all(is_plain);
    is_shown.then_some(place)
}

/// The sentence for a number that the type of its field cannot hold.
fn number_out_of_range(place: &str, error: &str) -> Option<String> {
    let (number, _) = error.strip_prefix("invalid value: integer `")?.split_once("`, expected ")?;
    Some(match number.starts_with('-') {
        true => format!("{place} is {number}; it must not be negative"),
        false => format!("{place} is {number}, which is too large"),
    })
}

/// Reads a query string.
pub(crate) fn query<T: DeserializeOwned>(query: Option<&str>) -> Result<T, Problem> {
    let uri = format!("/?{}", query.unwrap_or_default());
    let uri = uri.parse().map_err(|_| Problem::invalid("the query string cannot be read"))?;
    axum::extract::Query::try_from_uri(&uri).map(|axum::extract::Query(query)| query).map_err(
        |error| {
            let error = error.body_text();
            Problem::invalid(not_a_number(&uri, &error).unwrap_or_else(|| briefly(&error)))
        },
    )
}

/// The sentence for a parameter that is not a number, or not one that its type can hold.
fn not_a_number(uri: &axum::http::Uri, error: &str) -> Option<String> {
    const CAUSES: [&str; 2] =
        [": invalid digit found in string", ": number too large to fit in target type"];
    let before = CAUSES.iter().find_map(|cause| error.strip_suffix(cause))?;
    let name = before.rsplit(": ").next()?;
    let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?.0;
    let (_, value) = pairs.into_iter().find(|(key, _)| key == name)?;
    let is_plain = value.len() <= ECHO_CHARS_MAX
        && !value.is_empty()
        && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let shown = if is_plain { value } else { Echo(&value).to_string() };
    Some(format!("{name} is {shown}; it must be a number that is not negative and not too large"))
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
}
