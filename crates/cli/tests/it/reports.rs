//! What a worker may say about its work, on the real binary: spans, progress, checkpoints and
//! releases, and what a waiting task waits for.

use serde_json::{Value, json};

use crate::exec::crew::Worker;
use crate::server::Server;

fn lease(server: &Server) -> Value {
    let body = json!({"worker": "anna", "queues": ["default"]});
    server.post("/v1/leases", &body).1["leases"][0].clone()
}

#[test]
fn a_checkpoint_stays_until_the_task_is_done_and_survives_a_restart() {
    let mut server = Server::start("checkpoint");
    server.post("/v1/tasks", &json!({"backoff": {"kind": "fixed", "initial_ms": 1, "jitter": 0}}));
    assert_eq!(lease(&server)["checkpoint"], Value::Null);
    let beat = json!({"lease_id": 1, "checkpoint": {"row": 3}});
    assert_eq!(server.post("/v1/tasks/1/heartbeat", &beat).0, 200);
    let fail = json!({"lease_id": 1, "reason": "no", "code": "smtp"});
    assert_eq!(server.post("/v1/tasks/1/fail", &fail).1["checkpoint"], json!({"row": 3}));
    server.kill();
    server.restart();
    let body = json!({"worker": "ben", "queues": ["default"], "wait_ms": 5000});
    let (_, leases) = server.post("/v1/leases", &body);
    assert_eq!(leases["leases"][0]["checkpoint"], json!({"row": 3}));
    let release = json!({"lease_id": 2, "checkpoint": [4]});
    assert_eq!(server.post("/v1/tasks/1/release", &release).1["checkpoint"], json!([4]));
    assert_eq!(lease(&server)["checkpoint"], json!([4]));
    let (_, done) = server.post("/v1/tasks/1/complete", &json!({"lease_id": 3}));
    assert_eq!((&done["state"], &done["checkpoint"]), (&json!("COMPLETED"), &Value::Null));
}

#[test]
fn a_checkpoint_that_is_too_large_is_refused() {
    let server = Server::start("checkpoint-size");
    server.post("/v1/tasks", &json!({}));
    lease(&server);
    let beat = |bytes: usize| {
        let body = json!({"lease_id": 1, "checkpoint": "x".repeat(bytes - 2)});
        server.post("/v1/tasks/1/heartbeat", &body)
    };
    assert_eq!(beat(65_536).0, 200);
    let (status, problem) = beat(65_537);
    assert_eq!((status, &problem["code"]), (413, &json!("payload_too_large")), "{problem}");
    assert_eq!(problem["detail"], "checkpoint has 65537 bytes; at most 65536 are allowed");
}

#[test]
fn progress_is_shown_until_the_attempt_ends() {
    let server = Server::start("progress");
    server.post("/v1/tasks", &json!({}));
    lease(&server);
    let beat = |body: &Value| server.post("/v1/tasks/1/heartbeat", body);
    beat(&json!({"lease_id": 1, "progress": 0.4, "message": "reading"}));
    beat(&json!({"lease_id": 1, "progress": 0.5}));
    let progress = server.get("/v1/tasks/1").1["progress"].clone();
    assert_eq!((&progress["fraction"], &progress["message"]), (&json!(0.5), &json!("reading")));
    assert!(progress["at"].is_string(), "{progress}");
    let (status, problem) = beat(&json!({"lease_id": 1, "progress": 40}));
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")));
    assert_eq!(problem["detail"], "progress is 40; it must be a fraction from 0 to 1");
    // In a batch too.
    let item = json!({"task_id": 1, "lease_id": 1, "message": "writing"});
    server.post("/v1/reports", &json!({"heartbeat": [item]}));
    let progress = server.get("/v1/tasks/1").1["progress"].clone();
    assert_eq!((&progress["fraction"], &progress["message"]), (&json!(0.5), &json!("writing")));
    server.post("/v1/tasks/1/release", &json!({"lease_id": 1}));
    assert_eq!(server.get("/v1/tasks/1").1["progress"], Value::Null);
}

#[test]
fn a_release_may_name_a_delay_and_a_priority() {
    let server = Server::start("release");
    server.post("/v1/tasks", &json!({}));
    server.post("/v1/tasks", &json!({"priority": -3}));
    lease(&server);
    let (status, task) =
        server.post("/v1/tasks/1/release", &json!({"lease_id": 1, "delay_ms": 60_000}));
    assert_eq!(
        (status, &task["state"], &task["phase"]),
        (200, &json!("WAITING"), &json!("delayed"))
    );
    assert!(task["next_attempt_at"].is_string(), "{task}");
    let second = lease(&server);
    assert_eq!(second["task_id"], 2, "the first one waits");
    let (_, task) = server.post("/v1/tasks/2/release", &json!({"lease_id": 2, "priority": 7}));
    let shown = (&task["priority"], &task["phase"], &task["next_attempt_at"]);
    assert_eq!(shown, (&json!(7), &json!("ready"), &Value::Null));
    let (status, problem) =
        server.post("/v1/tasks/2/release", &json!({"lease_id": 2, "priority": 101}));
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")));
}

#[test]
fn a_waiting_task_says_what_it_waits_for_and_can_be_listed_by_it() {
    let server = Server::start("phase");
    server.post("/v1/tasks", &json!({"backoff": {"kind": "fixed", "initial_ms": 60_000}}));
    let phase = |id: u64| server.get(&format!("/v1/tasks/{id}")).1["phase"].clone();
    assert_eq!(phase(1), "ready");
    lease(&server);
    assert_eq!(phase(1), Value::Null, "only a waiting task has a phase");
    server.post("/v1/tasks/1/fail", &json!({"lease_id": 1, "reason": "no", "code": "smtp"}));
    assert_eq!(phase(1), "retrying");
    server.post("/v1/tasks", &json!({"delay_ms": 60_000}));
    assert_eq!(phase(2), "delayed");
    let ids = |query: &str| {
        let (status, page) = server.get(&format!("/v1/tasks?{query}"));
        assert_eq!(status, 200, "{page}");
        page["items"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((ids("retrying=true"), ids("retrying=false")), (vec![json!(1)], vec![json!(2)]));
    assert_eq!((ids("code=smtp"), ids("code=other")), (vec![json!(1)], vec![]));
    server.post("/v1/queues/default/pause", &json!({}));
    assert_eq!((phase(1), phase(2)), (json!("paused"), json!("paused")));
    assert_eq!(ids("retrying=true"), [json!(1)]);
}

#[test]
fn a_command_goes_on_from_the_checkpoint_that_it_left() {
    let server = Server::start("exec-checkpoint");
    let _worker = Worker::exec(&server, &[]);
    let script = "n=$(cat \"$TENURE_CHECKPOINT\" 2>/dev/null || echo 0); \
                  test \"$n\" -ge 2 && exec echo \"$n\"; \
                  echo $((n + 1)) > \"$TENURE_CHECKPOINT\"; exit 1";
    let payload = json!({"argv": ["sh", "-c", script]});
    let backoff = json!({"kind": "fixed", "initial_ms": 1, "jitter": 0});
    let (_, task) = server.post("/v1/tasks", &json!({"payload": payload, "backoff": backoff}));
    let task = server.ended(task["id"].as_u64().unwrap());
    assert_eq!((&task["state"], &task["output"]), (&json!("COMPLETED"), &json!(2)), "{task}");
    assert_eq!((&task["failures"], &task["checkpoint"]), (&json!(2), &Value::Null));
}
