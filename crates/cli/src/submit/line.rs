//! One line of a batch: an object with the fields of `POST /v1/tasks`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use tenure_sdk::wire;

use super::backoff;
use crate::ui::moment;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    queue: Option<String>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    priority: Option<i32>,
    delay_ms: Option<u64>,
    run_at: Option<String>,
    max_failures: Option<u32>,
    max_expiries: Option<u32>,
    max_attempts: Option<u32>,
    backoff: Option<LineBackoff>,
    lease_ms: Option<u32>,
    total_timeout_ms: Option<u64>,
    attempt_timeout_ms: Option<u64>,
    key_ttl_ms: Option<u64>,
    traceparent: Option<String>,
    name: Option<String>,
    key: Option<String>,
    #[serde(default, deserialize_with = "tags")]
    tags: BTreeMap<String, String>,
}

/// Reads tags. A map would silently drop the first of two equal keys.
fn tags<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    from.deserialize_option(Tags)
}

struct Tags;

impl<'de> Visitor<'de> for Tags {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(BTreeMap::new())
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut tags = BTreeMap::new();
        while let Some((key, value)) = access.next_entry::<String, String>()? {
            if let Some((key, _)) = tags.get_key_value(&key) {
                let twice = format!("tags has the key {key:?} twice; keep one");
                return Err(A::Error::custom(twice));
            }
            tags.insert(key, value);
        }
        Ok(tags)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineBackoff {
    kind: Option<String>,
    initial_ms: Option<u64>,
    max_ms: Option<u64>,
    jitter: Option<f64>,
}

/// The task of a line, or what is wrong with it.
pub(super) fn parse(text: &[u8]) -> Result<wire::NewTask, String> {
    // Serde would take a list for the fields in their order.
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err("it must be an object with the fields of a task".to_owned());
    }
    let line: Line<'_> = serde_json::from_slice(text).map_err(|error| in_line(&error))?;
    let run_at = line.run_at.map(|at| moment::parse(&at).map_err(|why| format!("run_at: {why}")));
    let payload = line.payload.map_or("null", RawValue::get);
    Ok(wire::NewTask {
        queue: line.queue.unwrap_or_default(),
        payload: payload.as_bytes().to_vec(),
        priority: line.priority.unwrap_or(0),
        delay_ms: line.delay_ms,
        run_at: run_at.transpose()?,
        max_failures: line.max_failures,
        max_expiries: line.max_expiries,
        max_attempts: line.max_attempts,
        backoff: line.backoff.map(LineBackoff::parse).transpose()?,
        lease_ms: line.lease_ms,
        total_timeout_ms: line.total_timeout_ms,
        attempt_timeout_ms: line.attempt_timeout_ms,
        key_ttl_ms: line.key_ttl_ms,
        traceparent: line.traceparent,
        name: line.name,
        key: line.key,
        tags: line.tags,
    })
}

impl LineBackoff {
    fn parse(self) -> Result<wire::Backoff, String> {
        let kind = self.kind.as_deref().map(backoff::kind).transpose();
        let kind = kind.map_err(|why| format!("backoff: {why}"))?.unwrap_or_default();
        let (initial_ms, max_ms, jitter) = (self.initial_ms, self.max_ms, self.jitter);
        Ok(wire::Backoff { kind: kind.into(), initial_ms, max_ms, jitter })
    }
}

/// What serde says, without its own count of lines: it has seen only one.
fn in_line(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    match whole.rsplit_once(" at line ") {
        Some((what, _)) => format!("column {}: {what}", error.column()),
        None => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_is_refused_with_its_place_and_its_field() {
        let wrong = |text: &str| parse(text.as_bytes()).unwrap_err();
        let unknown = wrong(r#"{"queue": "q", "prioriti": 1}"#);
        assert!(unknown.contains("`prioriti`") && unknown.starts_with("column "), "{unknown}");
        assert!(wrong("{\"queue\": ").contains("EOF"));
        assert!(wrong("[\"q\"]").contains("an object with the fields of a task"));
        assert!(wrong(r#"{"run_at": "soon"}"#).contains("run_at"));
        assert!(wrong(r#"{"backoff": {"kind": "cubic"}}"#).contains("backoff"));
        assert!(wrong(r#"{"queue": "a"} {"queue": "b"}"#).contains("trailing"));
        let twice = wrong(r#"{"tags": {"a": "1", "\u0061": "2"}}"#);
        assert!(twice.contains("tags has the key \"a\" twice"), "{twice}");
        assert!(parse(br#"{"tags": null}"#).unwrap().tags.is_empty());
    }

    #[test]
    fn a_line_says_what_a_request_says() {
        let text = br#"{"queue":"q","payload":{"b": 1.50},"priority":-3,"delay_ms":5,"key":"k",
            "tags":{"a":"b"},"backoff":{"kind":"fixed","jitter":0},"lease_ms":100}"#;
        let task = parse(text).unwrap();
        assert_eq!(task.payload, br#"{"b": 1.50}"#, "kept as it is");
        assert_eq!((task.priority, task.delay_ms, task.lease_ms), (-3, Some(5), Some(100)));
        assert_eq!(task.backoff.unwrap().jitter, Some(0.0));
        assert_eq!(parse(b"{}").unwrap().payload, b"null");
    }
}
