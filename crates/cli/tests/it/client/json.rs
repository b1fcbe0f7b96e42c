//! `-o json` is what the HTTP API says, byte for byte.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::client::tenure::{LONG, tenure};
use crate::server::Server;

/// A server on which a lot has happened.
fn lived(name: &str) -> Server {
    let server = Server::start(name);
    let post = |path: &str, body: Value| {
        let (status, answer) = server.post(path, &body);
        assert!(status < 300, "{path}: {answer}");
        answer
    };
    post(
        "/v1/tasks",
        json!({
            "queue": "mail", "payload": {"b": 1.50, "a": [null, "\u{1b}[2J é"]}, "priority": 7,
            "run_at": "2020-01-01T00:00:00Z", "total_timeout_ms": 86_400_000, "key": "k",
            "tags": {"x": "y", "customer": "ada"}, "max_expiries": 4, "lease_ms": 60_000,
        }),
    );
    post("/v1/tasks", json!({"queue": "mail", "payload": "text"}));
    post("/v1/tasks", json!({"queue": "mail", "payload": 12_345_678_901_234_567_890_u64}));
    post("/v1/tasks", json!({"queue": "other", "delay_ms": 3_600_000}));
    let leases = post(
        "/v1/leases",
        json!({"worker": "anna", "queues": ["mail"], "max": 3, "lease_ms": 3_600_000}),
    );
    let lease = |at: usize| leases["leases"][at]["lease_id"].clone();
    post("/v1/tasks/2/complete", json!({"lease_id": lease(1), "output": {"sent": true}}));
    let fail = json!({"lease_id": lease(2), "reason": "no \u{1b}[31m way", "code": "lost", "retryable": false});
    post("/v1/tasks/3/fail", fail);
    assert_eq!(
        server
            .put(
                "/v1/workers/ben",
                &json!({"queues": ["mail"], "slots": 4, "labels": {"gpu": "no"}})
            )
            .0,
        204
    );
    assert_eq!(server.put("/v1/queues/other", &json!({"retention_ms": 604_800_000})).0, 200);
    server
}

#[track_caller]
fn is_the_same(server: &Server, args: &[&str], path: &str) {
    let args: Vec<_> = args.iter().copied().chain(["-o", "json"]).collect();
    assert_eq!(tenure(server, &args).good().trim_end(), server.text(path).trim_end(), "{args:?}");
}

#[test]
fn every_answer_has_the_shape_of_the_http_api() {
    let server = lived("client-json");
    for id in ["1", "2", "3", "4"] {
        is_the_same(&server, &["task", "get", id], &format!("/v1/tasks/{id}"));
        is_the_same(&server, &["task", "explain", id], &format!("/v1/tasks/{id}/explain"));
        is_the_same(&server, &["task", "history", id], &format!("/v1/tasks/{id}/history"));
    }
    is_the_same(&server, &["task", "list"], "/v1/tasks");
    is_the_same(&server, &["task", "list", "--limit", "3"], "/v1/tasks?limit=3");
    is_the_same(
        &server,
        &["task", "list", "--limit", "3", "--cursor", "3"],
        "/v1/tasks?limit=3&cursor=3",
    );
    is_the_same(&server, &["task", "list", "--state", "leased"], "/v1/tasks?state=LEASED");
    is_the_same(&server, &["task", "list", "--state", "DEAD"], "/v1/tasks?state=DEAD");
    is_the_same(&server, &["task", "list", "--tag", "customer:ada"], "/v1/tasks?tag=customer:ada");
    is_the_same(&server, &["task", "list", "--tag", "customer=ada"], "/v1/tasks?tag=customer:ada");
    is_the_same(&server, &["task", "list", "--worker", "anna"], "/v1/tasks?worker=anna");
    is_the_same(&server, &["task", "list", "--queue", "other"], "/v1/tasks?queue=other");
    is_the_same(&server, &["queue", "list"], "/v1/queues");
    is_the_same(&server, &["worker", "list"], "/v1/workers");
}

#[test]
fn an_answer_to_a_change_is_the_thing_as_it_is_afterwards() {
    let server = Server::start("client-changes");
    let json = |args: &[&str]| -> Value {
        let args: Vec<_> = args.iter().copied().chain(["-o", "json"]).collect();
        serde_json::from_str(&tenure(&server, &args).good()).unwrap()
    };
    let task = json(&[
        "submit",
        "--queue",
        "q",
        "--payload",
        "{\"n\": 1}",
        "--tag",
        "a=b",
        "--priority",
        "-5",
    ]);
    assert_eq!(task, server.get("/v1/tasks/1").1);
    assert_eq!((&task["priority"], &task["tags"]), (&json!(-5), &json!({"a": "b"})));
    assert_eq!(json(&["task", "cancel", "1"]), server.get("/v1/tasks/1").1);
    assert_eq!(server.get("/v1/tasks/1").1["state"], "CANCELED");
    assert_eq!(json(&["task", "retry", "1"]), server.get("/v1/tasks/1").1);
    assert_eq!(server.get("/v1/tasks/1").1["state"], "WAITING");
    assert_eq!(json(&["queue", "pause", "q"]), server.get("/v1/queues/q").1);
    assert_eq!(server.get("/v1/queues/q").1["paused"], true);
    assert_eq!(json(&["queue", "resume", "q"])["paused"], false);
    assert_eq!(json(&["queue", "configure", "q", "--retention", "1d"])["retention_ms"], 86_400_000);
    assert_eq!(
        json(&["queue", "configure", "q", "--retention", "default"]),
        server.get("/v1/queues/q").1
    );
    assert_eq!(server.get("/v1/queues/q").1["retention_ms"], Value::Null);
}

#[test]
fn the_status_is_that_of_the_http_api_but_for_the_time_and_memory_in_use() {
    let server = lived("client-json-status");
    let shown = |args: &[&str], path: &str| {
        let mut ours: Value = serde_json::from_str(&tenure(&server, args).good()).unwrap();
        let mut theirs = server.get(path).1;
        assert!(ours["uptime_ms"].take().is_u64() && theirs["uptime_ms"].take().is_u64());
        assert!(ours["now"].take().is_string() && theirs["now"].take().is_string());
        // What is in use changes with every request.
        let (our_memory, their_memory) = (ours["memory"].take(), theirs["memory"].take());
        assert_eq!(our_memory["max_bytes"], their_memory["max_bytes"]);
        let pools = |memory: &Value| {
            memory["pools"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(pools(&our_memory), pools(&their_memory));
        assert!(our_memory["used_bytes"].is_u64() && our_memory["full"] == false);
        assert_eq!(ours, theirs);
        ours
    };
    shown(&["status", "-o", "json"], "/v1/status");
    let hashed = shown(&["status", "--hash", "-o", "json"], "/v1/status?hash=true");
    assert!(hashed["state_hash"].is_string());
}

#[test]
fn a_list_follows_its_pages() {
    let server = Server::start("client-pages");
    let tasks = vec![json!({"queue": "q"}); 2_500];
    server.post("/v1/tasks/batch", &json!({"tasks": tasks}));
    let ids = |args: &[&str]| {
        let list: Value = serde_json::from_str(&tenure(&server, args).good()).unwrap();
        let id = |task: &Value| task["id"].as_u64().unwrap();
        let ids: Vec<_> = list["items"].as_array().unwrap().iter().map(id).collect();
        (ids, list["next_cursor"].clone())
    };
    let all: Vec<_> = (1..=2_500).rev().collect();
    assert_eq!(ids(&["task", "list", "--all", "-o", "json"]), (all.clone(), Value::Null));
    let (some, cursor) = ids(&["task", "list", "--limit", "1500", "-o", "json"]);
    assert_eq!(some, all[..1_500]);
    let cursor = cursor.as_str().unwrap();
    let (rest, _) = ids(&["task", "list", "--limit", "2000", "--cursor", cursor, "-o", "json"]);
    assert_eq!(rest, all[1_500..]);
}

#[test]
fn a_watched_event_is_what_server_sent_events_have() {
    let server = lived("client-json-events");
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    write!(stream, "GET /v1/events?after=0 HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).unwrap();
    let mut theirs = BufReader::new(stream)
        .lines()
        .map(Result::unwrap)
        .filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    let mut call =
        crate::client::tenure::command(&server.address, &["watch", "--after", "0", "-o", "json"]);
    let mut child = call.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let ours = crate::client::tenure::lines(child.stdout.take().unwrap());
    // Four submits, three grants, a completion and a failure.
    for _ in 0..9 {
        assert_eq!(ours.recv_timeout(LONG).unwrap(), theirs.next().unwrap());
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
