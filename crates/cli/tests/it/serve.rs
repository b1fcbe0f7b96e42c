//! The server as a user runs it: the real binary, real sockets, every endpoint, and the refusals.
//!
//! Proves P3, P8 and P21.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::server::{self, Server, post_to};
use serde_json::{Value, json};

#[test]
fn a_task_goes_through_its_life() {
    let server = Server::start("life");
    let (status, task) = server.post("/v1/tasks", &json!({"queue": "mail", "payload": {"n": 1}}));
    assert_eq!((status, &task["state"], &task["id"]), (201, &json!("WAITING"), &json!(1)));
    let (status, leases) = server
        .post("/v1/leases", &json!({"worker": "anna", "queues": ["mail"], "max": 5, "wait_ms": 0}));
    assert_eq!(status, 200);
    let lease = &leases["leases"][0];
    assert_eq!((&lease["task_id"], &lease["payload"]), (&json!(1), &json!({"n": 1})));
    let (status, beat) =
        server.post("/v1/tasks/1/heartbeat", &json!({"lease_id": 1, "progress": 0.5}));
    assert_eq!((status, &beat["cancel_requested"]), (200, &json!(false)));
    let (status, done) =
        server.post("/v1/tasks/1/complete", &json!({"lease_id": 1, "output": [1]}));
    assert_eq!((status, &done["state"], &done["output"]), (200, &json!("COMPLETED"), &json!([1])));
    let (status, again) =
        server.post("/v1/tasks/1/complete", &json!({"lease_id": 1, "output": [1]}));
    assert_eq!((status, &again["state"]), (200, &json!("COMPLETED")), "the same answer again");
    let (_, history) = server.get("/v1/tasks/1/history");
    let events: Vec<_> =
        history["items"].as_array().unwrap().iter().map(|item| item["event"].clone()).collect();
    assert_eq!(events, ["TaskCreated", "LeaseGranted", "TaskCompleted"]);
    let (_, status) = server.get("/v1/status?hash=true");
    assert_eq!(status["tasks"]["COMPLETED"], 1);
    assert_eq!(status["lsn"], status["durable_lsn"]);
    assert_eq!(status["state_hash"].as_str().unwrap().len(), 64);
}

#[test]
fn failures_releases_cancels_and_retries_do_what_they_say() {
    let server = Server::start("reports");
    let submit = |body: Value| server.post("/v1/tasks", &body).1["id"].as_u64().unwrap();
    let lease = || {
        let body = json!({"worker": "anna", "queues": ["default"]});
        server.post("/v1/leases", &body).1["leases"][0]["lease_id"].as_u64().unwrap()
    };
    let id = submit(json!({"max_failures": 1}));
    let failed = json!({"lease_id": lease(), "reason": "no luck", "code": "smtp"});
    let (_, task) = server.post(&format!("/v1/tasks/{id}/fail"), &failed);
    assert_eq!((&task["state"], &task["error"]["code"]), (&json!("FAILED"), &json!("smtp")));
    let (_, task) = server.post(&format!("/v1/tasks/{id}/retry"), &json!({}));
    assert_eq!((&task["state"], &task["attempt"]), (&json!("WAITING"), &json!(1)));
    let (_, task) = server.post(&format!("/v1/tasks/{id}/release"), &json!({"lease_id": lease()}));
    assert_eq!(task["state"], "WAITING");
    let (status, task) = server.post(&format!("/v1/tasks/{id}/cancel"), &json!({}));
    assert_eq!((status, &task["state"]), (200, &json!("CANCELED")));
    let (status, _) = server.post(&format!("/v1/tasks/{id}/cancel"), &json!({}));
    assert_eq!(status, 200, "a cancel may come twice");
    let (_, leases) = server.post("/v1/leases", &json!({"worker": "b", "queues": ["default"]}));
    assert_eq!(leases["leases"], json!([]), "a canceled task never runs");
    let two = submit(json!({}));
    let reports = json!({
        "complete": [{"task_id": two, "lease_id": lease(), "output": null}],
        "release": [{"task_id": id, "lease_id": 1}],
    });
    let (status, results) = server.post("/v1/reports", &reports);
    assert_eq!(status, 200);
    let results = &results["results"];
    assert_eq!(results[0], json!({"task_id": two, "ok": true, "state": "COMPLETED"}));
    assert_eq!((&results[1]["ok"], &results[1]["code"]), (&json!(false), &json!("lease_lost")));
    assert!(results[1]["message"].as_str().unwrap().contains("is over"), "{results}");
    assert_eq!(server.post(&format!("/v1/tasks/{two}/cancel"), &json!({})).0, 409);
}

#[test]
fn batches_are_all_or_nothing_and_keys_give_the_one_task() {
    let server = Server::start("batches");
    let batch = json!({"tasks": [{"key": "a"}, {"key": "b", "priority": 5}, {"key": "a"}]});
    let (status, ids) = server.post("/v1/tasks/batch", &batch);
    assert_eq!((status, &ids["ids"]), (201, &json!([1, 2, 1])));
    let (status, same) = server.post("/v1/tasks", &json!({"key": "b", "priority": 5}));
    assert_eq!((status, &same["id"]), (200, &json!(2)));
    let (status, other) = server.post("/v1/tasks", &json!({"key": "b", "priority": 6}));
    assert_eq!((status, &other["code"]), (409, &json!("conflict")));
    let bad = json!({"tasks": [{}, {"priority": 101}]});
    let (status, refused) = server.post("/v1/tasks/batch", &bad);
    assert_eq!(status, 400);
    let detail = refused["detail"].as_str().unwrap();
    assert_eq!(detail, "tasks[1]: priority is 101; it must be from -100 to 100");
    let (_, list) = server.get("/v1/tasks?limit=1");
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let next = list["next_cursor"].as_str().unwrap();
    let (_, rest) = server.get(&format!("/v1/tasks?cursor={next}&state=WAITING"));
    assert_eq!((&rest["items"][0]["id"], &rest["next_cursor"]), (&json!(1), &Value::Null));
}

#[test]
fn queues_and_workers_are_shown_and_can_be_told() {
    let server = Server::start("queues");
    assert_eq!(server.get("/v1/queues/mail").0, 404);
    server.post("/v1/tasks", &json!({"queue": "mail"}));
    let (_, paused) = server.post("/v1/queues/mail/pause", &json!({}));
    assert_eq!((&paused["paused"], &paused["depth"]), (&json!(true), &json!(1)));
    let lease = json!({"worker": "anna", "queues": ["mail"]});
    assert_eq!(server.post("/v1/leases", &lease).1["leases"], json!([]));
    server.post("/v1/queues/mail/resume", &json!({}));
    assert_eq!(server.put("/v1/workers/anna", &json!({"slots": 3, "queues": ["mail"]})).0, 204);
    server.post("/v1/leases", &lease);
    let (_, workers) = server.get("/v1/workers");
    let anna = &workers["items"][0];
    assert_eq!((&anna["id"], &anna["active_leases"]), (&json!("anna"), &json!(1)));
    let (_, off) = server.delete("/v1/workers/anna");
    assert_eq!(off["released"], 1);
    let (_, queue) = server.put("/v1/queues/mail", &json!({"retention_ms": 1000}));
    assert_eq!((&queue["retention_ms"], &queue["leased"]), (&json!(1000), &json!(0)));
    let (_, queue) = server.put("/v1/queues/mail", &json!({"retention_ms": null}));
    assert_eq!(queue["retention_ms"], Value::Null);
}

#[test]
fn bad_requests_are_told_what_to_mend() {
    let server = Server::start("bad");
    let deep = format!("{{\"payload\": {}{}}}", "[".repeat(70), "]".repeat(70));
    let large = format!("{{\"payload\": \"{}\"}}", "x".repeat(1 << 20));
    let cases = [
        ("/v1/tasks", "{\"foo\": 1}", 400, "invalid_request", "foo"),
        ("/v1/tasks", "{\"queue\": \"a/b\"}", 400, "invalid_request", "queue"),
        ("/v1/tasks", "{\"lease_ms\": 49}", 400, "invalid_request", "50"),
        ("/v1/tasks", "{\"delay_ms\": -1}", 400, "invalid_request", "delay_ms"),
        ("/v1/tasks", "{\"run_at\": \"soon\"}", 400, "invalid_request", "run_at"),
        ("/v1/tasks", "{\"backoff\": {\"kind\": \"x\"}}", 400, "invalid_request", "exponential"),
        ("/v1/tasks", "not json", 400, "invalid_request", "line 1"),
        ("/v1/tasks", &deep, 400, "json_too_deep", "64"),
        ("/v1/tasks", &large, 413, "payload_too_large", "1048576"),
        ("/v1/leases", "{\"worker\": \"\", \"queues\": []}", 400, "invalid_request", "worker"),
        (
            "/v1/leases",
            "{\"worker\": \"a\", \"queues\": [], \"max\": 0}",
            400,
            "invalid_request",
            "1000",
        ),
        ("/v1/tasks/99/complete", "{\"lease_id\": 1}", 404, "not_found", "99"),
        ("/v1/tasks/abc/cancel", "{}", 404, "not_found", "abc"),
        ("/v1/nothing", "{}", 404, "not_found", "/v1/nothing"),
        ("/v1/status", "{}", 405, "method_not_allowed", "POST"),
    ];
    for (path, body, status, code, says) in cases {
        let (got, problem) = server.post_text(path, body);
        assert_eq!((got, problem["code"].as_str()), (status, Some(code)), "{path} {body:.60}");
        assert_eq!(problem["status"], status);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{path} {body:.60}: {detail}");
    }
    assert_eq!(server.get("/v1/tasks/1").0, 404, "nothing was taken");
    assert_eq!(server.get("/v1/tasks?state=nope").0, 400);
    assert_eq!(server.get("/v1/tasks?limit=1001").0, 400);
}

#[test]
fn strangers_on_the_web_do_not_reach_a_loopback_server() {
    let server = Server::start("strangers");
    let ask = |header: &str| server.raw(&format!("GET /v1/status HTTP/1.1\r\n{header}\r\n\r\n"));
    assert!(ask("Host: evil.example").starts_with("HTTP/1.1 421"));
    assert!(ask("Host: localhost\r\nOrigin: http://evil.example").starts_with("HTTP/1.1 403"));
    let own = format!("Host: {0}\r\nOrigin: http://{0}", server.address);
    assert!(ask(&own).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_key_is_asked_for_and_needed_where_others_can_reach() {
    let refused = Server::run("unguarded", &["--listen", "0.0.0.0:0"], &[]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("TENURE_API_KEY"), "{said}");
    let server = Server::start_with("guarded", &[], &[("TENURE_API_KEY", "0123456789abcdef")]);
    let ask = |header: &str| {
        let request = format!("GET /v1/status HTTP/1.1\r\nHost: localhost\r\n{header}\r\n");
        server.raw(&request)
    };
    assert!(ask("").starts_with("HTTP/1.1 401"));
    assert!(ask("Authorization: Bearer nope\r\n").starts_with("HTTP/1.1 401"));
    assert!(ask("Authorization: Bearer 0123456789abcdef\r\n").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_parked_worker_gets_a_task_at_once_and_a_reader_hears_of_its_end() {
    let server = Server::start("parked");
    let address = server.address.clone();
    let parked = std::thread::spawn(move || {
        let body = json!({"worker": "anna", "queues": ["mail"], "wait_ms": 20_000});
        post_to(&address, "/v1/leases", &body.to_string())
    });
    std::thread::sleep(Duration::from_millis(100));
    let start = Instant::now();
    server.post("/v1/tasks", &json!({"queue": "mail"}));
    let (_, leases) = parked.join().unwrap();
    assert_eq!(leases["leases"][0]["task_id"], 1);
    assert!(start.elapsed() < Duration::from_secs(5), "nothing polls");
    let address = server.address.clone();
    let reader =
        std::thread::spawn(move || server::get_from(&address, "/v1/tasks/1?wait_ms=20000"));
    std::thread::sleep(Duration::from_millis(50));
    server.post("/v1/tasks/1/complete", &json!({"lease_id": 1}));
    assert_eq!(reader.join().unwrap().1["state"], "COMPLETED");
}

#[test]
fn live_updates_go_on_after_a_restart_without_a_gap_or_a_repetition() {
    let mut server = Server::start("events");
    server.post("/v1/tasks/batch", &json!({"tasks": [{}, {}, {}]}));
    let first = read_events(&server, "?after=0", 2);
    assert_eq!(first, ["1.0", "1.1"]);
    server.kill();
    server.restart();
    server.post("/v1/leases", &json!({"worker": "anna", "queues": ["default"]}));
    assert_eq!(read_events(&server, "?after=1.1", 2), ["1.2", "2.0"]);
    assert_eq!(server.get("/v1/events?after=99").0, 400);
}

/// The ids of the first few events.
fn read_events(server: &Server, query: &str, count: usize) -> Vec<String> {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET /v1/events{query} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    let ids = lines.filter_map(|line| line.strip_prefix("id: ").map(str::to_owned));
    ids.take(count).collect()
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let mut server = Server::start("killed");
    for round in 0..5 {
        for _ in 0..20 {
            assert_eq!(server.post("/v1/tasks", &json!({})).0, 201);
        }
        server.kill();
        server.restart();
        let (_, status) = server.get("/v1/status");
        assert_eq!(status["tasks"]["WAITING"], (round + 1) * 20);
    }
}

#[test]
fn sigterm_ends_it_in_good_order() {
    let mut server = Server::start("term");
    server.post("/v1/tasks", &json!({}));
    let address = server.address.clone();
    let parked = std::thread::spawn(move || {
        let body = json!({"worker": "anna", "queues": ["other"], "wait_ms": 60_000});
        post_to(&address, "/v1/leases", &body.to_string())
    });
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(server.terminate(), Some(0));
    let (status, leases) = parked.join().unwrap();
    assert_eq!((status, &leases["leases"]), (200, &json!([])), "who is parked is answered");
    let verified = server.tenure(&["wal", "verify"]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}

#[test]
fn a_second_server_on_the_folder_is_refused() {
    let server = Server::start("twice");
    let second = Server::run_on(&server.folder, &["--listen", "127.0.0.1:0"], &[]);
    assert_eq!(second.status.code(), Some(73));
    assert!(String::from_utf8(second.stderr).unwrap().contains("in use"));
}

#[test]
fn metrics_health_page_and_document_are_there() {
    let server = Server::start("operate");
    server.post("/v1/tasks", &json!({"queue": "<script>"}));
    assert!(server.text("/metrics").contains("tenure_tasks{state=\"WAITING\"} 1"));
    assert_eq!(server.text("/healthz"), "ok\n");
    assert_eq!(server.text("/readyz"), "ok\n");
    let page = server.text("/");
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"), "names are data");
    let (_, document) = server.get("/openapi.json");
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert!(document["paths"]["/v1/tasks/{id}/complete"]["post"].is_object());
}

#[test]
fn a_slow_client_is_cut_off_and_others_are_served() {
    let server = Server::start("slow");
    let mut slow = TcpStream::connect(&server.address).unwrap();
    slow.write_all(b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
    assert_eq!(server.post("/v1/tasks", &json!({})).0, 201);
    slow.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut answer = Vec::new();
    let _ = slow.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
}
