//! What runs take is held as it was written, or refused with its place; and a key or an id stands for
//! one request.

use serde_json::{Value, json};

use crate::flows::definitions::{ASK, lease, line, put_yaml, start};
use crate::server::Server;

/// JSON that a run would have to change, where it would, and why.
const INEXACT: [(&str, &str, &str); 5] = [
    (r#"{"n":1,"x":[0,123456789012345678901234567890]}"#, "/x/1", "does not fit 64 bits"),
    (r#"{"n":1,"x":-9223372036854775809}"#, "/x", "does not fit 64 bits"),
    (r#"{"n":1,"x":{"y":1e400}}"#, "/x/y", "too large for a double"),
    (r#"{"n":1,"x":0.1e-400}"#, "/x", "too close to 0"),
    (r#"{"n":1,"x":{"a/b":1,"a/b":1}}"#, "/x/a~1b", "the key is there twice"),
];

fn assert_invalid((status, problem): (u16, Value), pointer: &str, says: &str) {
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("{pointer}: ")) && detail.contains(says), "{detail}");
}

#[test]
fn a_value_that_a_run_would_change_is_refused_with_its_pointer() {
    let server = Server::start("flow-inexact");
    assert_eq!(server.put("/v1/workflows/line", &line()).0, 201);
    put_yaml(&server, "ask", ASK);
    let asked = start(&server, "ask", &json!({"id": "t1"}));
    let before = server.get("/v1/status").1["lsn"].clone();
    for (text, pointer, says) in INEXACT {
        let started =
            server.post_text("/v1/workflows/line/runs", &format!(r#"{{"input":{text}}}"#));
        assert_invalid(started, &format!("input at {pointer}"), says);
        let path = format!("/v1/runs/{asked}/signals/approval");
        let signaled = server.post_text(&path, &format!(r#"{{"payload":{text}}}"#));
        assert_invalid(signaled, &format!("payload at {pointer}"), says);
        let definition = format!(r#"{{"workflow":"x","input_schema":{text}}}"#);
        let (status, put) = server.put_as("/v1/workflows/x", "application/json", &definition);
        let fault = &put["faults"][0];
        assert_eq!((status, &fault["pointer"]), (400, &json!(format!("/input_schema{pointer}"))));
        assert!(fault["message"].as_str().unwrap().contains(says), "{put}");
    }
    let (status, put) = put_yaml(&server, "x", "workflow: x\nlimits: {max_tokens: 1e400}\n");
    assert_eq!(
        (status, &put["faults"][0]["pointer"]),
        (400, &json!("/limits/max_tokens")),
        "{put}"
    );
    assert_eq!(server.get("/v1/status").1["lsn"], before, "nothing was written");
    let exact = r#"{"input":{"n":1,"x":[18446744073709551615,-9223372036854775808,1.5e300,0.0]}}"#;
    let (status, run) = server.post_text("/v1/workflows/line/runs", exact);
    assert_eq!((status, &run["input"]["x"][0]), (201, &json!(u64::MAX)), "{run}");
}

#[test]
fn an_output_that_a_run_would_change_fails_its_node_with_its_pointer() {
    let server = Server::start("flow-inexact-outputs");
    server.put("/v1/workflows/line", &line());
    for (text, pointer, says) in INEXACT {
        let run = start(&server, "line", &json!({"n": 1}));
        let lease = &lease(&server, 1)[0];
        let path = format!("/v1/tasks/{}/complete", lease["task_id"]);
        let body = format!(r#"{{"lease_id":{},"output":{text}}}"#, lease["lease_id"]);
        assert_eq!(server.post_text(&path, &body).0, 200);
        let (_, run) = server.get(&format!("/v1/runs/{run}?wait_ms=20000"));
        let error = &run["error"];
        assert_eq!((&run["state"], &error["code"]), (&json!("FAILED"), &json!("OUTPUT_INVALID")));
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("the output at {pointer}: ")), "{message}");
        assert!(message.contains(says), "{message}");
        // The task belongs to the run, and still shows what its worker gave.
        let task = server.text(&format!("/v1/tasks/{}", lease["task_id"]));
        assert!(task.contains(text), "{task}");
    }
}

#[test]
fn a_key_that_comes_twice_in_an_object_of_a_request_is_refused_and_a_payload_is_kept_verbatim() {
    let server = Server::start("keys-twice");
    server.put("/v1/workflows/line", &line());
    let twice = r#"{"a":"1","b":"2","\u0061":"3"}"#;
    for (path, body, says) in [
        ("/v1/tasks", format!(r#"{{"tags":{twice}}}"#), "tags: the key \"a\" comes twice"),
        (
            "/v1/tasks/batch",
            format!(r#"{{"tasks":[{{}},{{"tags":{twice}}}]}}"#),
            "tasks[1].tags: the key \"a\" comes twice",
        ),
        (
            "/v1/workflows/line/runs",
            format!(r#"{{"input":{{"n":1}},"tags":{twice}}}"#),
            "tags: the key \"a\" comes twice",
        ),
        ("/v1/tasks", r#"{"backoff":{"max_ms":1,"max_ms":2}}"#.to_owned(), "`max_ms`"),
        ("/v1/tasks", r#"{"queue":"a","queue":"b"}"#.to_owned(), "`queue`"),
    ] {
        let (status, problem) = server.post_text(path, &body);
        assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
    }
    let settings = r#"{"retention_ms":1,"retention_ms":2}"#;
    let (status, problem) = server.put_as("/v1/queues/q", "application/json", settings);
    assert_eq!(status, 400, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("`retention_ms`"), "{problem}");
    let worker = format!(r#"{{"labels":{twice}}}"#);
    let (status, problem) = server.put_as("/v1/workers/anna", "application/json", &worker);
    assert_eq!(status, 400, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("labels: the key"), "{problem}");
    let payload = r#"{"a": 1, "a": 123456789012345678901234567890, "b": 0.1e-400}"#;
    let (status, task) = server.post_text("/v1/tasks", &format!(r#"{{"payload":{payload}}}"#));
    assert_eq!(status, 201, "{task}");
    let shown = server.text(&format!("/v1/tasks/{}", task["id"]));
    assert!(shown.contains(payload), "{shown}");
}

#[test]
fn another_start_under_a_key_is_a_conflict_and_the_same_one_is_known_also_after_a_crash() {
    let mut server = Server::start("flow-run-keys");
    server.put("/v1/workflows/line", &line());
    let path = "/v1/workflows/line/runs";
    let first = r#"{"key":"order-7","input":{"n":1,"m":[2]},"tags":{"a":"1","b":"2"}}"#;
    let (status, run) = server.post_text(path, first);
    assert_eq!(status, 201, "{run}");
    let check = |server: &Server| {
        for same in
            [first, r#"{ "tags":{"b":"2","a":"1"}, "input":{"m":[2.0], "n":1}, "key":"order-7"}"#]
        {
            let (status, known) = server.post_text(path, same);
            assert_eq!((status, &known["id"]), (200, &run["id"]), "{known}");
        }
        for other in [
            r#"{"key":"order-7","input":{"n":2,"m":[2]},"tags":{"a":"1","b":"2"}}"#,
            r#"{"key":"order-7","input":{"n":1,"m":[2]},"tags":{"a":"1"}}"#,
            r#"{"key":"order-7","input":{"n":1,"m":[2]},"tags":{"a":"1","b":"2"},"version":1}"#,
        ] {
            let (status, problem) = server.post_text(path, other);
            assert_eq!((status, &problem["code"]), (409, &json!("conflict")), "{problem}");
            let names = format!("belongs to run {}", run["id"]);
            assert!(problem["detail"].as_str().unwrap().contains(&names), "{problem}");
        }
    };
    check(&server);
    server.crash_and_come_back();
    check(&server);
    assert_eq!(server.post("/v1/snapshots", &json!({})).0, 200);
    server.crash_and_come_back();
    check(&server);
    assert_eq!(server.get("/v1/runs").1["items"].as_array().unwrap().len(), 1);
}

#[test]
fn another_signal_under_an_id_is_a_conflict_and_the_same_one_is_known_also_after_a_crash() {
    let mut server = Server::start("flow-signal-ids");
    put_yaml(&server, "ask", ASK);
    let run = start(&server, "ask", &json!({"id": "t1"}));
    let path = format!("/v1/runs/{run}/signals/approval");
    let body = |correlation: &str, payload: &str| {
        format!(r#"{{"signal_id":"a","correlation":"{correlation}","payload":{payload}}}"#)
    };
    let (_, given) = server.post_text(&path, &body("t1", r#"{"yes":1,"by":"ada"}"#));
    assert_eq!(given["outcome"], "given");
    for _ in 0..2 {
        let (status, known) = server.post_text(&path, &body("t1", r#"{ "by":"ada", "yes":1.0 }"#));
        assert_eq!((status, &known["outcome"]), (200, &json!("known")), "the run is over");
        for other in [body("t1", r#"{"yes":2,"by":"ada"}"#), body("t2", r#"{"yes":1,"by":"ada"}"#)]
        {
            let (status, problem) = server.post_text(&path, &other);
            assert_eq!((status, &problem["code"]), (409, &json!("conflict")), "{problem}");
            assert!(problem["detail"].as_str().unwrap().contains("with the id \"a\""), "{problem}");
        }
        server.crash_and_come_back();
    }
}
