//! Why a task is not done yet, over HTTP and from the command line.

use serde_json::{Value, json};

use crate::client::tenure::tenure;
use crate::server::Server;

fn explain(server: &Server, id: u64) -> Value {
    let (status, explanation) = server.get(&format!("/v1/tasks/{id}/explain"));
    assert_eq!(status, 200, "{explanation}");
    explanation
}

fn codes(explanation: &Value) -> Vec<&str> {
    let reasons = explanation["reasons"].as_array().unwrap();
    reasons.iter().map(|reason| reason["code"].as_str().unwrap()).collect()
}

fn submit(server: &Server, body: &Value) {
    assert_eq!(server.post("/v1/tasks", body).0, 201);
}

#[test]
fn a_task_in_line_knows_its_place() {
    let server = Server::start("client-explain-line");
    for priority in [0, 0, 5] {
        submit(&server, &json!({"queue": "q", "priority": priority}));
    }
    submit(&server, &json!({"queue": "other", "priority": 100}));
    for (id, position) in [(3, 1), (1, 2), (2, 3), (4, 1)] {
        let explanation = explain(&server, id);
        assert_eq!(explanation["position"], position, "task {id}");
        assert_eq!(codes(&explanation), ["in_line", "no_workers"]);
        assert_eq!(explanation["earliest_start_at"], Value::Null);
    }
    let register = json!({"queues": ["q"], "slots": 1});
    assert_eq!(server.put("/v1/workers/anna", &register).0, 204);
    assert_eq!(codes(&explain(&server, 1)), ["in_line", "workers"]);
    assert_eq!(codes(&explain(&server, 4)), ["in_line", "no_workers"]);
    let draining = json!({"queues": ["q"], "slots": 1, "draining": true});
    assert_eq!(server.put("/v1/workers/anna", &draining).0, 204);
    assert_eq!(codes(&explain(&server, 1)), ["in_line", "no_workers"]);
}

#[test]
fn a_paused_queue_is_named() {
    let server = Server::start("client-explain-paused");
    submit(&server, &json!({"queue": "q"}));
    submit(&server, &json!({"queue": "q", "delay_ms": 3_600_000}));
    tenure(&server, &["queue", "pause", "q"]).good();
    assert_eq!(codes(&explain(&server, 1)), ["queue_paused", "in_line", "no_workers"]);
    let delayed = explain(&server, 2);
    assert_eq!(codes(&delayed), ["delayed", "queue_paused", "no_workers"]);
    assert_eq!(delayed["earliest_start_at"], Value::Null, "nobody knows when it is resumed");
}

#[test]
fn a_task_that_waits_for_its_time_says_until_when() {
    let server = Server::start("client-explain-delayed");
    submit(&server, &json!({"queue": "q", "run_at": "2099-01-01T00:00:00Z"}));
    let delayed = explain(&server, 1);
    assert_eq!((&delayed["state"], &delayed["position"]), (&json!("WAITING"), &Value::Null));
    assert_eq!(delayed["earliest_start_at"], "2099-01-01T00:00:00.000Z");
    assert_eq!(codes(&delayed), ["delayed", "no_workers"]);
    assert_eq!(delayed["reasons"][0]["until"], "2099-01-01T00:00:00.000Z");

    let backoff = json!({"kind": "fixed", "initial_ms": 3_600_000, "max_ms": 3_600_000});
    submit(&server, &json!({"queue": "r", "backoff": backoff}));
    let lease = json!({"worker": "anna", "queues": ["r"], "lease_ms": 3_600_000});
    let lease = server.post("/v1/leases", &lease).1["leases"][0]["lease_id"].clone();
    let leased = explain(&server, 2);
    assert_eq!(codes(&leased), ["leased"]);
    assert_eq!(leased["reasons"][0]["worker"], "anna");
    assert_eq!(leased["reasons"][0]["until"], server.get("/v1/tasks/2").1["lease"]["expires_at"]);
    assert_eq!(server.post("/v1/tasks/2/fail", &json!({"lease_id": lease, "reason": "no"})).0, 200);
    let backing_off = explain(&server, 2);
    assert_eq!(codes(&backing_off), ["backing_off", "no_workers"]);
    assert!(backing_off["earliest_start_at"].is_string());
}

#[test]
fn a_cancel_under_way_and_an_end_are_told() {
    let server = Server::start("client-explain-end");
    submit(&server, &json!({"queue": "q"}));
    let lease = json!({"worker": "anna", "queues": ["q"], "lease_ms": 3_600_000});
    let lease = server.post("/v1/leases", &lease).1["leases"][0]["lease_id"].clone();
    tenure(&server, &["task", "cancel", "1"]).good();
    assert_eq!(codes(&explain(&server, 1)), ["leased", "cancel_requested"]);
    assert_eq!(server.post("/v1/tasks/1/release", &json!({"lease_id": lease})).0, 200);
    assert_eq!(codes(&explain(&server, 1)), ["ended"]);
    let shown = tenure(&server, &["task", "explain", "1"]).good();
    assert_eq!(shown, "state   CANCELED\nreason  it is CANCELED; it can be retried\n");
}
