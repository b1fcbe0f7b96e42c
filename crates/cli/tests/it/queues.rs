//! Queues as an operator has them: paged lists, pauses that end by themselves, and deletes.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::tenure::tenure;
use crate::server::Server;

#[test]
fn a_queue_is_deleted_when_it_has_no_tasks() {
    let mut server = Server::start("queue-delete");
    assert_eq!(server.delete("/v1/queues/q").0, 404);
    server.put("/v1/queues/q", &json!({"retention_ms": 0}));
    server.post("/v1/tasks", &json!({"queue": "q"}));
    let (status, refused) = server.delete("/v1/queues/q");
    assert_eq!((status, &refused["code"]), (409, &json!("conflict")));
    assert!(refused["detail"].as_str().unwrap().contains("has one task, 0 ended"), "{refused}");
    server.post("/v1/tasks/1/cancel", &json!({}));
    while server.get("/v1/tasks/1").0 == 200 {
        std::thread::sleep(Duration::from_millis(50));
    }
    let deleted = tenure(&server, &["queue", "delete", "q"]).good();
    assert_eq!(deleted, "queue q is deleted\n");
    server.crash_and_come_back();
    assert_eq!(server.get("/v1/queues/q").0, 404);
}

#[test]
fn a_pause_with_an_end_is_over_by_itself() {
    let mut server = Server::start("queue-pause-until");
    server.post("/v1/tasks", &json!({"queue": "q"}));
    let (status, refused) =
        server.post("/v1/queues/q/pause", &json!({"for_ms": 1, "until": "2026-01-01T00:00:00Z"}));
    assert_eq!((status, &refused["code"]), (400, &json!("invalid_request")));
    let begun = Instant::now();
    let (_, paused) = server.post("/v1/queues/q/pause", &json!({"for_ms": 2_000}));
    assert_eq!(paused["paused"], true);
    let until = paused["paused_until"].as_str().unwrap().to_owned();
    server.crash_and_come_back();
    assert_eq!(server.get("/v1/queues/q").1["paused_until"], until.as_str());
    let (_, explained) = server.get("/v1/tasks/1/explain");
    assert_eq!(explained["reasons"][0]["code"], "queue_paused");
    assert_eq!(explained["earliest_start_at"], until.as_str());
    let lease = json!({"worker": "w", "queues": ["q"], "wait_ms": 20_000});
    let (_, leased) = server.post("/v1/leases", &lease);
    assert_eq!(leased["leases"][0]["task_id"], 1, "the parked request is served");
    assert!(begun.elapsed() >= Duration::from_millis(2_000), "not before its end");
    let (_, open) = server.get("/v1/queues/q");
    assert_eq!((&open["paused"], &open["paused_until"]), (&json!(false), &json!(null)));
    let far = json!({"paused_until": "2100-01-01T00:00:00Z"});
    assert_eq!(server.put("/v1/queues/q", &far).1["paused"], true);
    assert_eq!(server.put("/v1/queues/q", &json!({"paused_until": null})).1["paused"], false);
    let shown = tenure(&server, &["queue", "pause", "q", "--for", "1h"]).good();
    assert!(shown.contains("paused, opens in"), "{shown}");
    assert_eq!(server.post("/v1/queues/q/resume", &json!({})).1["paused"], false);
}

#[test]
fn a_full_queue_rejects_submits_until_workers_take_tasks() {
    let mut server = Server::start("queue-full");
    let (status, refused) = server.put("/v1/queues/q", &json!({"max_waiting": 0}));
    assert_eq!((status, &refused["code"]), (400, &json!("invalid_request")), "{refused}");
    tenure(&server, &["queue", "configure", "q", "--max-waiting", "2"]).good();
    let task = json!({"queue": "q"});
    let batch = |count| json!({"tasks": vec![&task; count]});
    let (status, refused) = server.post("/v1/tasks/batch", &batch(3));
    assert_eq!((status, &refused["code"]), (429, &json!("queue_full")));
    assert!(refused["detail"].as_str().unwrap().starts_with("tasks[2]: "), "{refused}");
    assert_eq!(server.post("/v1/tasks/batch", &batch(2)).0, 201);
    server.crash_and_come_back();
    assert_eq!(server.get("/v1/queues/q").1["max_waiting"], 2);
    assert_eq!(server.post("/v1/tasks", &task).0, 429);
    server.post("/v1/leases", &json!({"worker": "w", "queues": ["q"]}));
    assert_eq!(server.post("/v1/tasks", &task).0, 201, "a lease makes room");
    assert_eq!(server.post("/v1/tasks", &task).0, 429);
    tenure(&server, &["queue", "configure", "q", "--max-waiting", "default"]).good();
    assert_eq!(server.post("/v1/tasks", &task).0, 201);
}

#[test]
fn lists_of_queues_and_workers_come_page_by_page() {
    let server = Server::start("queue-pages");
    for number in 0..5 {
        let queue = format!("q{number}");
        server.put(&format!("/v1/queues/{queue}"), &json!({}));
        server.put(&format!("/v1/workers/w{number}"), &json!({"queues": [queue]}));
    }
    for (list, field, letter) in [("queues", "name", "q"), ("workers", "id", "w")] {
        let (mut names, mut cursor) = (Vec::new(), String::new());
        loop {
            let (status, page) = server.get(&format!("/v1/{list}?limit=2{cursor}"));
            assert_eq!(status, 200, "{page}");
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= 2);
            names.extend(items.iter().map(|item| item[field].as_str().unwrap().to_owned()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let expected: Vec<_> = (0..5).map(|number| format!("{letter}{number}")).collect();
        assert_eq!(names, expected);
        assert_eq!(server.get(&format!("/v1/{list}?limit=0")).0, 400);
        assert_eq!(server.get(&format!("/v1/{list}?limit=1001")).0, 400);
    }
    let shown = tenure(&server, &["queue", "list", "--limit", "2", "-o", "json"]).good();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (shown["items"].as_array().unwrap().len(), &shown["next_cursor"]),
        (2, &json!("q1"))
    );
}
