//! What is refused, then what is not.

use super::*;

fn call(payload: &str) -> Result<Call, String> {
    read(&Bytes::copy_from_slice(payload.as_bytes()))
}

#[test]
fn what_cannot_be_sent_is_refused_with_a_sentence() {
    for (payload, says) in [
        ("", "not JSON"),
        ("7", "must be an object"),
        ("{}", "`url` must be"),
        (r#"{"url": 1}"#, "`url` must be"),
        (r#"{"url": "example.org/hook"}"#, "`url` must be"),
        (r#"{"url": "/hook"}"#, "`url` must be"),
        (r#"{"url": "file:///etc/passwd"}"#, "`url` must be"),
        (r#"{"url": "http://"}"#, "`url` must be"),
        (r#"{"url": "http://a:b@example.org/"}"#, "authorization"),
        (r#"{"url": "http://a/", "method": "TRACE"}"#, "`method` must be"),
        (r#"{"url": "http://a/", "method": "post"}"#, "`method` must be"),
        (r#"{"url": "http://a/", "method": "GET", "body": 1}"#, "leave it out"),
        (r#"{"url": "http://a/", "headers": ["x"]}"#, "object of strings"),
        (r#"{"url": "http://a/", "headers": {"a b": "x"}}"#, "name of a header"),
        (r#"{"url": "http://a/", "headers": {"a": 1}}"#, "visible ASCII"),
        (r#"{"url": "http://a/", "headers": {"a": "x\r\nb: y"}}"#, "visible ASCII"),
        (r#"{"url": "http://a/", "headers": {"Host": "b"}}"#, "sets itself"),
        (r#"{"url": "http://a/", "headers": {"Tenure-Task-Id": "1"}}"#, "sets itself"),
        (r#"{"url": "http://a/", "headers": {"idempotency-key": "1"}}"#, "sets itself"),
    ] {
        let refusal = call(payload).unwrap_err();
        assert!(refusal.contains(says), "{payload}: {refusal}");
    }
}

#[test]
fn without_a_body_the_whole_payload_is_sent_as_it_came() {
    let text = r#"{"url": "http://a/b?c#d", "n": 1.50}"#;
    let call = call(text).unwrap();
    assert_eq!((call.method, &call.body[..]), (Method::POST, text.as_bytes()));
    assert_eq!(call.url, "http://a/b?c");
    assert_eq!(call.headers[CONTENT_TYPE], "application/json");
}

#[test]
fn a_payload_may_say_more() {
    let text = r#"{"url": "https://a/", "method": "PUT", "body": [1], "headers":
        {"Content-Type": "text/x", "Authorization": "Bearer b"}}"#;
    let call = call(text).unwrap();
    assert_eq!((call.method, &call.body[..]), (Method::PUT, &b"[1]"[..]));
    assert_eq!(call.headers[CONTENT_TYPE], "text/x");
    assert_eq!(call.headers["authorization"], "Bearer b");
}

#[test]
fn only_allowed_hosts_are_called() {
    let allows = |allowed: &str, url: &str| {
        AllowedHost::parse(allowed).unwrap().allows(&url.parse().unwrap())
    };
    assert!(allows("Example.org", "https://example.org/x"));
    assert!(allows("example.org", "https://example.ORG:8443/x"));
    assert!(allows("example.org:443", "https://example.org/x"));
    assert!(!allows("example.org:443", "http://example.org/x"));
    assert!(!allows("example.org", "https://example.org.evil.test/x"));
    assert!(!allows("example.org", "https://sub.example.org/x"));
    assert!(allows("[::1]:80", "http://[::1]/"));
    for wrong in ["", "http://a", "a/b", "a@b", "a:x", "a:", "*"] {
        assert!(AllowedHost::parse(wrong).is_err(), "{wrong}");
    }
}
