//! What a submit may say of a task, as users of the real binary meet it: budgets, timeouts, keys and the
//! trace context.

use std::io::{Read, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_sdk::{Client, NewTask};

use crate::server::Server;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Leases one task of the default queue, as soon as there is one.
fn lease(server: &Server) -> Value {
    let asked = json!({"worker": "w", "queues": ["default"], "wait_ms": 10_000});
    let (status, answer) = server.post("/v1/leases", &asked);
    assert_eq!(status, 200, "{answer}");
    answer["leases"][0].clone()
}

fn fail(server: &Server, lease: &Value) -> Value {
    let path = format!("/v1/tasks/{}/fail", lease["task_id"]);
    let said = json!({"lease_id": lease["lease_id"], "reason": "no luck", "retry_after_ms": 0});
    let (status, task) = server.post(&path, &said);
    assert_eq!(status, 200, "{task}");
    task
}

fn ended(server: &Server, id: &Value) -> Value {
    let begun = Instant::now();
    loop {
        let (_, task) = server.get(&format!("/v1/tasks/{id}?wait_ms=1000"));
        if !matches!(task["state"].as_str(), Some("WAITING" | "LEASED")) {
            return task;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{task}");
    }
}

/// A submit with headers; the answer's status and body.
fn submit_with(server: &Server, headers: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let mut stream = server.connect();
    let length = body.len();
    write!(
        stream,
        "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer[9..12].parse().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, serde_json::from_str(body).unwrap())
}

#[test]
fn attempts_are_bounded_together_or_each_by_its_own_budget() {
    let server = Server::start("budgets");
    let (_, plain) = server.post("/v1/tasks", &json!({"delay_ms": 60_000}));
    let budgets = |task: &Value| {
        ["max_failures", "max_expiries", "max_attempts"].map(|name| task[name].clone())
    };
    assert_eq!(budgets(&plain), [json!(20), json!(10), Value::Null]);
    let (_, bounded) = server.post("/v1/tasks", &json!({"max_attempts": 2}));
    assert_eq!(budgets(&bounded), [Value::Null, Value::Null, json!(2)]);
    assert_eq!(fail(&server, &lease(&server))["state"], "WAITING");
    assert_eq!(fail(&server, &lease(&server))["state"], "FAILED");
    let (status, problem) = server.post("/v1/tasks", &json!({"max_attempts": 0}));
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")));
    assert_eq!(problem["detail"], "max_attempts is 0; it must be from 1 to 10000");
}

#[test]
fn a_task_that_takes_too_long_has_failed() {
    let server = Server::start("total-timeout");
    let (_, waiting) =
        server.post("/v1/tasks", &json!({"total_timeout_ms": 50, "delay_ms": 60_000}));
    let task = ended(&server, &waiting["id"]);
    assert_eq!((&task["state"], &task["error"]["code"]), (&json!("FAILED"), &json!("TIMEOUT")));
    let (_, leased) = server.post("/v1/tasks", &json!({"total_timeout_ms": 200}));
    let held = lease(&server);
    assert_eq!(held["task_id"], leased["id"]);
    let task = ended(&server, &leased["id"]);
    assert_eq!((&task["state"], &task["error"]["code"]), (&json!("FAILED"), &json!("TIMEOUT")));
    let path = format!("/v1/tasks/{}/complete", leased["id"]);
    let (status, problem) = server.post(&path, &json!({"lease_id": held["lease_id"]}));
    assert_eq!((status, &problem["code"]), (409, &json!("lease_lost")));
}

#[test]
fn an_attempt_that_takes_too_long_has_failed_whatever_its_worker_says() {
    let server = Server::start("attempt-timeout");
    let asked = json!({"attempt_timeout_ms": 300, "max_failures": 1, "lease_ms": 60_000});
    let (_, task) = server.post("/v1/tasks", &asked);
    assert_eq!(task["attempt_timeout_ms"], 300);
    let (id, held) = (&task["id"], lease(&server));
    let heartbeat = format!("/v1/tasks/{id}/heartbeat");
    let (status, _) = server.post(&heartbeat, &json!({"lease_id": held["lease_id"]}));
    assert_eq!(status, 200);
    let task = ended(&server, id);
    assert_eq!(task["state"], "FAILED", "{task}");
    assert_eq!(task["error"]["code"], "ATTEMPT_TIMEOUT");
    assert_eq!((&task["failures"], &task["expiries"]), (&json!(1), &json!(0)));
    let (status, problem) = server.post(&heartbeat, &json!({"lease_id": held["lease_id"]}));
    assert_eq!((status, &problem["code"]), (409, &json!("lease_lost")));
    let (_, history) = server.get(&format!("/v1/tasks/{id}/history"));
    let last = &history["items"][2];
    assert_eq!((&last["event"], &last["code"]), (&json!("TaskFailed"), &json!("ATTEMPT_TIMEOUT")));
    assert_eq!((&last["from"], &last["to"]), (&json!("LEASED"), &json!("FAILED")));
    let (status, problem) = server.post("/v1/tasks", &json!({"attempt_timeout_ms": 0}));
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")));
}

#[test]
fn a_key_tells_submits_apart_by_what_they_mean() {
    let server = Server::start("canonical");
    let (status, first) =
        submit_with(&server, "", &json!({"key": "k", "payload": {"a": 1, "b": "x"}}));
    assert_eq!(status, 201, "{first}");
    let body = r#"{"key": "k", "payload": {"b": "\u0078",  "a": 1}, "max_failures": 20}"#;
    let (status, same) = server.post_text("/v1/tasks", body);
    assert_eq!((status, &same["id"]), (200, &first["id"]));
    let (status, problem) =
        submit_with(&server, "", &json!({"key": "k", "payload": {"a": 1.0, "b": "x"}}));
    assert_eq!((status, &problem["code"]), (409, &json!("conflict")));
}

#[test]
fn a_key_with_a_time_to_live_is_free_after_it() {
    let server = Server::start("key-ttl");
    let asked = json!({"key": "k", "key_ttl_ms": 300});
    let (status, first) = server.post("/v1/tasks", &asked);
    assert_eq!(status, 201);
    let (status, same) = server.post("/v1/tasks", &asked);
    assert_eq!((status, &same["id"]), (200, &first["id"]));
    sleep(Duration::from_millis(400));
    let (status, second) = server.post("/v1/tasks", &asked);
    assert_eq!(status, 201);
    assert_ne!(second["id"], first["id"]);
    let (_, old) = server.get(&format!("/v1/tasks/{}", first["id"]));
    assert_eq!((&old["state"], &old["key"]), (&json!("WAITING"), &json!("k")));
    let (status, problem) = server.post("/v1/tasks", &json!({"key_ttl_ms": 300}));
    assert_eq!(status, 400);
    assert_eq!(problem["detail"], "key_ttl_ms is given without a key; give both, or neither");
}

#[test]
fn headers_say_key_and_trace_context() {
    let server = Server::start("headers");
    let headers = format!("Idempotency-Key: k1\r\ntraceparent: {TRACE}\r\n");
    let (status, task) = submit_with(&server, &headers, &json!({"payload": 1}));
    assert_eq!((status, &task["key"]), (201, &json!("k1")));
    let other = headers.replace("b7-01", "b8-01");
    let (status, again) = submit_with(&server, &other, &json!({"payload": 1, "key": "k1"}));
    assert_eq!((status, &again["id"]), (200, &task["id"]), "each try has its own trace context");
    let (status, problem) = submit_with(&server, &headers, &json!({"key": "k2"}));
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")));
    let detail = "key is \"k2\" and the header Idempotency-Key is \"k1\"; keep one";
    assert_eq!(problem["detail"], detail);
    assert_eq!(lease(&server)["traceparent"], TRACE);
    let (status, _) = submit_with(&server, "traceparent: 00-ab-cd-01\r\n", &json!({}));
    assert_eq!(status, 201, "a malformed header is ignored");
    assert_eq!(lease(&server)["traceparent"], Value::Null);
    let (status, problem) = server.post("/v1/tasks", &json!({"traceparent": "00-ab-cd-01"}));
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")));
    let (status, _) = server.post("/v1/tasks/batch", &json!({"tasks": [{"traceparent": TRACE}]}));
    assert_eq!(status, 201);
    assert_eq!(lease(&server)["traceparent"], TRACE);
}

#[tokio::test]
async fn a_submit_is_the_same_over_http_and_grpc() {
    let server = Server::start("both-doors");
    let client = Client::connect(format!("http://{}", server.address)).await.unwrap();
    let (_, first) = server.post_text("/v1/tasks", r#"{"key": "k", "payload": {"b": 1, "a": 2}}"#);
    let task = |payload: &str| NewTask::new("default", payload).key("k");
    let same = client.tasks().submit(task(r#"{"a":2, "b":1}"#)).await.unwrap();
    assert_eq!(first["id"], same.id);
    assert_eq!(
        client.tasks().submit(task(r#"{"a":2}"#)).await.unwrap_err().code().as_str(),
        "conflict"
    );
    let bytes = || NewTask::new("default", b"\xff {".to_vec()).key("bytes");
    let first = client.tasks().submit(bytes()).await.unwrap();
    assert_eq!(
        client.tasks().submit(bytes()).await.unwrap().id,
        first.id,
        "what is not JSON is compared as is"
    );
    let other = NewTask::new("default", b"\xff  {".to_vec()).key("bytes");
    assert_eq!(client.tasks().submit(other).await.unwrap_err().code().as_str(), "conflict");
}

#[test]
fn a_name_goes_with_its_task_everywhere() {
    let mut server = Server::start("names");
    let (status, task) = server.post("/v1/tasks", &json!({"name": "send-mail", "payload": 1}));
    assert_eq!((status, &task["name"]), (201, &json!("send-mail")));
    let (_, plain) = server.post("/v1/tasks", &json!({"payload": 2, "priority": -1}));
    assert_eq!(plain["name"], Value::Null);
    let (_, page) = server.get("/v1/tasks?name=send-mail");
    assert_eq!(page["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(page["items"][0]["id"], task["id"]);
    let (_, page) = server.get("/v1/tasks?name=other");
    assert_eq!(page["items"], json!([]));

    server.kill();
    server.restart();
    let (_, task) = server.get(&format!("/v1/tasks/{}", task["id"]));
    assert_eq!(task["name"], "send-mail");
    let leased = lease(&server);
    assert_eq!((&leased["name"], &leased["run"]), (&json!("send-mail"), &Value::Null));
    assert_eq!(lease(&server)["name"], Value::Null);

    for bad in ["", "a/b", " a", &"n".repeat(129)] {
        let (status, problem) = server.post("/v1/tasks", &json!({"name": bad}));
        assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{bad:?}");
    }
    let keyed = |name: &str| server.post("/v1/tasks", &json!({"key": "k", "name": name}));
    assert_eq!(keyed("a").0, 201);
    assert_eq!(keyed("a").0, 200);
    assert_eq!(keyed("b").0, 409, "another name is another submit");
}
