//! What a refusal of the real binary says: the bound that is really meant, a bounded echo of the
//! request, and always a problem document with a code.
//!
//! Proves P15.

use crate::server::Server;
use serde_json::{Value, json};

/// No refusal is longer, however long the request is.
const PROBLEM_BYTES_MAX: usize = 2_048;

fn detail(problem: &Value) -> &str {
    problem["detail"].as_str().unwrap()
}

#[test]
fn input_is_quoted_briefly() {
    let server = Server::start("echoes");
    let long = "n".repeat(30_000);
    let huge = "f".repeat(100_000);
    let definition = json!({
        "workflow": "w",
        "initial_node": "a",
        "nodes": [{"ref": "a", "kind": "pass", &huge: 1, "task": {&huge: {&huge: 1}}}],
        &huge: {&huge: 1},
        "on_timeout": &huge,
    });
    let refused = [
        server.post("/v1/tasks", &json!({&huge: 1})),
        server.post("/v1/tasks", &json!({"priority": &huge})),
        server.post("/v1/tasks", &json!({"run_at": &huge})),
        server.post("/v1/tasks", &json!({"backoff": {"kind": &huge}})),
        server.post(
            "/v1/tasks/1/complete",
            &json!({"lease_id": 1, "artifacts": [
                {"name": &huge, "data": ""}
            ]}),
        ),
        server.get(&format!("/v1/tasks/{}", "9".repeat(30_000))),
        server.get(&format!("/v1/{long}")),
        server.delete(&format!("/v1/queues/{long}")),
        server.get(&format!("/v1/queues/{long}")),
        server.get(&format!("/v1/tasks?state={long}")),
        server.get(&format!("/v1/tasks?{long}=1")),
        server.get(&format!("/v1/tasks?tag={long}")),
        server.get(&format!("/v1/tasks?cursor={long}")),
        server.get(&format!("/v1/runs?state={long}")),
        server.get(&format!("/v1/events?after={long}")),
        server.get(&format!("/v1/workflows/{long}")),
        server.post(&format!("/v1/workflows/{long}/runs"), &json!({})),
        server.get(&format!("/v1/runs/1/artifacts/{long}")),
    ];
    for (at, (status, problem)) in refused.iter().enumerate() {
        assert!((400..500).contains(status), "{at}: {status}");
        assert!(problem.to_string().len() < PROBLEM_BYTES_MAX, "{at}: {}", problem["code"]);
    }
    let (status, problem) = server.put("/v1/workflows/w", &definition);
    assert_eq!(status, 400, "{}", problem["detail"]);
    let faults = problem["faults"].as_array().unwrap();
    assert!(faults.len() > 2, "{}", faults.len());
    assert!(faults.iter().all(|fault| fault.to_string().len() < PROBLEM_BYTES_MAX));
    assert!(problem.to_string().len() < faults.len() * PROBLEM_BYTES_MAX);
    let (_, problem) = server.post("/v1/tasks", &json!({"run_at": "a\u{1b}[2Jb"}));
    assert!(detail(&problem).contains("\"a\\u{1b}[2Jb\""), "escaped: {problem}");
}

#[test]
fn every_refusal_is_a_problem_document() {
    let server = Server::start("documents");
    let cases = [
        ("GET", "/v1/queues/%ff%fe", 400, "invalid_request"),
        ("PUT", "/v1/queues/%ff%fe", 400, "invalid_request"),
        ("GET", "/v1/tasks/%ff", 400, "invalid_request"),
        ("POST", "/v1/runs/1/signals/%c3%28", 400, "invalid_request"),
        ("GET", "/v1/runs/1/artifacts/%ff/%fe", 400, "invalid_request"),
        ("GET", "/v1/workflows/%ff", 400, "invalid_request"),
        ("DELETE", "/v1/workers/%ff", 400, "invalid_request"),
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/v1/", 404, "not_found"),
        ("GET", "/%ff", 404, "not_found"),
        ("DELETE", "/v1/status", 405, "method_not_allowed"),
        ("PATCH", "/v1/tasks", 405, "method_not_allowed"),
        ("PUT", "/", 405, "method_not_allowed"),
        ("GET", "/v1/tasks?limit=%ff", 400, "invalid_request"),
    ];
    for (method, path, status, code) in cases {
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        let answer = server.raw(&request).to_ascii_lowercase();
        assert!(answer.starts_with(&format!("http/1.1 {status}")), "{path}: {answer}");
        assert!(answer.contains("content-type: application/problem+json"), "{path}: {answer}");
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{path}: {answer}");
        assert!(answer.contains(&format!("\"type\":\"urn:tenure:code:{code}\"")), "{answer}");
    }
}

#[test]
fn refused_requests_are_counted_by_their_code() {
    let server = Server::start("counted");
    assert!(!server.text("/metrics").contains("tenure_requests_refused_total{"), "none so far");
    for _ in 0..3 {
        assert_eq!(server.get("/v1/tasks/1").0, 404);
    }
    assert_eq!(server.post("/v1/tasks", &json!({"priority": 101})).0, 400);
    assert_eq!(server.post("/v1/tasks", &json!({"payload": "p".repeat(2 << 20)})).0, 413);
    let page = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n";
    assert!(server.raw(page).starts_with("HTTP/1.1 403"), "refused before its route");
    assert_eq!(server.post("/v1/tasks", &json!({})).0, 201);
    let metrics = server.text("/metrics");
    for (code, count) in
        [("not_found", 3), ("invalid_request", 1), ("payload_too_large", 1), ("forbidden", 1)]
    {
        let line = format!("tenure_requests_refused_total{{code=\"{code}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }
}

#[test]
fn names_that_a_url_would_lose_are_refused() {
    let server = Server::start("segments");
    for name in [".", "..", " a", "a ", " "] {
        let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let definition = |workflow: &str, queue: &str, signal: &str| {
            json!({"workflow": workflow, "initial_node": "a", "nodes": [
                {"ref": "a", "kind": "task", "task": {"queue": queue}},
                {"ref": "b", "kind": "signal", "signal": {"name": signal}},
            ], "transitions": [{"from": "a", "to": "b"}]})
        };
        let refused = [
            server.post("/v1/tasks", &json!({"queue": name})),
            server.post("/v1/leases", &json!({"worker": name, "queues": ["q"]})),
            server.post("/v1/leases", &json!({"worker": "w", "queues": [name]})),
            server.put(&format!("/v1/queues/{encoded}"), &json!({})),
            server.put(&format!("/v1/workers/{encoded}"), &json!({})),
            server.put(&format!("/v1/workflows/{encoded}"), &definition(name, "q", "s")),
            server.put("/v1/workflows/w", &definition("w", name, "s")),
            server.put("/v1/workflows/w", &definition("w", "q", name)),
        ];
        for (status, problem) in refused {
            assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{name:?}");
            let said = problem.to_string();
            assert!(said.contains("path; use another") || said.contains("with a space"), "{said}");
        }
        assert_eq!(server.post("/v1/tasks", &json!({"queue": "q", "key": name})).0, 201);
    }
    assert_eq!(server.post("/v1/tasks", &json!({"queue": "a b"})).0, 201, "a space inside is fine");
}

#[test]
fn an_id_has_one_spelling() {
    let server = Server::start("spellings");
    assert_eq!(server.post("/v1/tasks", &json!({})).1["id"], 1);
    assert_eq!(server.get("/v1/tasks/1").0, 200);
    for id in ["+1", "01", "0001", "%2B1", "1%20", "-0", "00", "%EF%BC%91"] {
        for path in [format!("/v1/tasks/{id}"), format!("/v1/tasks/{id}/history")] {
            let (status, problem) = server.get(&path);
            assert_eq!((status, &problem["code"]), (404, &json!("not_found")), "{path}");
            assert!(detail(&problem).contains("without a sign or leading zeros"), "{problem}");
        }
    }
    assert_eq!(server.post("/v1/tasks/01/cancel", &json!({})).0, 404);
    assert_eq!(server.get("/v1/tasks/1").1["state"], "WAITING");
    assert_eq!(server.get("/v1/tasks?cursor=%2B1").0, 400);
}

#[test]
fn a_moment_is_refused_for_what_is_wrong_with_it() {
    let server = Server::start("moments");
    for (run_at, why) in [
        ("2030-01-01T00:00:00+25:00", "less than 24 hours"),
        ("9999-12-31T23:59:59-00:01", "the latest moment is 9999-12-31T23:59:59.999Z"),
        ("10000-01-01T00:00:00Z", "it must be a time like"),
        ("1969-12-31T23:59:59Z", "before 1970"),
        ("tomorrow", "it must be a time like"),
    ] {
        let (status, problem) = server.post("/v1/tasks", &json!({"run_at": run_at}));
        assert_eq!(status, 400, "{run_at}");
        assert!(detail(&problem).contains(why), "{run_at}: {problem}");
    }
    for run_at in ["9999-12-31T00:00:00.000Z", "9999-12-31T23:59:59.999Z"] {
        let (status, task) = server.post("/v1/tasks", &json!({"run_at": run_at}));
        assert_eq!((status, &task["run_at"]), (201, &json!(run_at)));
        let (_, explained) = server.get(&format!("/v1/tasks/{}/explain", task["id"]));
        assert!(explained.to_string().contains(run_at), "{explained}");
    }
}

#[test]
fn a_position_before_the_first_record_says_where_the_log_begins() {
    let server = Server::start("positions");
    server.post("/v1/tasks", &json!({}));
    let (status, problem) = server.get("/v1/events?after=0.0");
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{problem}");
    assert!(detail(&problem).contains("use 0 to read from the beginning"), "{problem}");
    assert_eq!(server.get("/v1/events?after=01").0, 400);
    let begun = server.raw("GET /v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(begun.starts_with("HTTP/1.1 200"), "{begun}");
}

#[test]
fn an_input_or_a_signal_that_is_too_large_names_its_own_bound() {
    let server = Server::start("values");
    let definition = json!({"workflow": "w", "initial_node": "a", "nodes": [
        {"ref": "a", "kind": "signal", "signal": {"name": "go"}},
    ]});
    assert_eq!(server.put("/v1/workflows/w", &definition).0, 201);
    let numbers = |count: usize| (0..count).collect::<Vec<_>>();
    let refused = |(status, problem): (u16, Value), bound: &str| {
        let said = detail(&problem);
        assert_eq!((status, &problem["code"]), (413, &json!("payload_too_large")), "{said}");
        assert!(said.contains(&format!("at most {bound} are allowed")), "{said}");
        let size: usize = said.split(' ').find_map(|word| word.parse().ok()).unwrap();
        assert!(size > bound.parse().unwrap(), "the size is over the bound: {said}");
    };
    // Both are well below 1 MiB as JSON.
    let input = json!({"input": {"a": vec![numbers(2_990); 60]}});
    refused(server.post("/v1/workflows/w/runs", &input), "1572862");
    assert_eq!(server.post("/v1/workflows/w/runs", &json!({"input": {"a": 1}})).0, 201);
    let payload = json!({"payload": numbers(140_000)});
    refused(server.post("/v1/runs/1/signals/go", &payload), "1048576");
}
