//! One line of a batch: an object with the fields of `POST /v1/tasks`.

use serde_json::Deserializer;
use tenure_sdk::Payload;
use tenure_sdk::api::NewTask;

use super::backoff;

/// The task of a line, or what is wrong with it.
pub(super) fn parse(text: &[u8]) -> Result<NewTask, String> {
    // Serde would take a list for the fields in their order.
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err("it must be an object with the fields of a task".to_owned());
    }
    let mut line = Deserializer::from_slice(text);
    let task = serde_path_to_error::deserialize(&mut line).map_err(|error| {
        let field = match error.path().to_string() {
            whole if whole == "." => String::new(),
            field => format!(": {field}"),
        };
        in_line(error.inner(), &field)
    });
    let mut task: NewTask = task?;
    line.end().map_err(|error| in_line(&error, ""))?;
    if task.payload.is_empty() {
        task.payload = Payload::from("null");
    }
    if let Some(kind) = task.backoff.as_ref().and_then(|backoff| backoff.kind.clone()) {
        backoff::known(kind).map_err(|why| format!("backoff: {why}"))?;
    }
    Ok(task)
}

/// What serde says about a field, without its own count of lines: it has seen only one.
fn in_line(error: &serde_json::Error, field: &str) -> String {
    let whole = error.to_string();
    match whole.rsplit_once(" at line ") {
        Some((what, _)) => format!("column {}{field}: {what}", error.column()),
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
        assert!(twice.contains("tags") && twice.contains("\"a\" comes twice"), "{twice}");
        assert!(parse(br#"{"tags": null}"#).unwrap().tags.is_empty());
    }

    #[test]
    fn a_line_says_what_a_request_says() {
        let text = br#"{"queue":"q","payload":{"b": 1.50},"priority":-3,"delay_ms":5,"key":"k",
            "tags":{"a":"b"},"backoff":{"kind":"fixed","jitter":0},"lease_ms":100}"#;
        let task = parse(text).unwrap();
        assert_eq!(task.payload.as_bytes(), br#"{"b": 1.50}"#, "kept as it is");
        assert_eq!((task.priority, task.delay_ms, task.lease_ms), (Some(-3), Some(5), Some(100)));
        assert_eq!(task.backoff.unwrap().jitter, Some(0.0));
        assert_eq!(parse(b"{}").unwrap().payload.as_bytes(), b"null");
    }
}
