//! Runs that the server has parked: how they are shown, what is refused, and how they go on.

use serde_json::{Value, json};

use crate::client::tenure::tenure;
use crate::flows::definitions::{ASK, complete};
use crate::flows::events::events;
use crate::server::Server;
use crate::support::{Folder, Story};

const HELD: &str = "
workflow: held
initial_node: begin
nodes:
  - {ref: begin, kind: pass}
  - {ref: work, kind: task, task: {queue: mail}}
  - {ref: news, kind: signal, signal: {name: news}}
  - {ref: ask, kind: workflow, workflow: {name: ask}, input_mapping: {id: '\"x\"'}}
transitions:
  - {from: begin, to: work, spawn_count: 2}
  - {from: begin, to: news}
  - {from: begin, to: ask}
";

/// A server on a log that ends with the record that parked run 1. Its task 1 is leased, its task 2
/// waits, and run 2 is its child.
fn parked(name: &str) -> Server {
    let folder = Folder::new(name);
    Story::parked(&folder, &[ASK, HELD]);
    let path = crate::server::folder_of(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::rename(folder.path(), &path).unwrap();
    Server::start_on(path, &[]).unwrap()
}

fn reasons(server: &Server, task: u64) -> Vec<(String, String)> {
    let (_, explained) = server.get(&format!("/v1/tasks/{task}/explain"));
    let text = |reason: &Value, field: &str| reason[field].as_str().unwrap().to_owned();
    let reasons = explained["reasons"].as_array().unwrap().iter();
    reasons.map(|reason| (text(reason, "code"), text(reason, "message"))).collect()
}

#[test]
fn a_parked_run_is_shown_with_its_reason_and_refuses_reports() {
    let server = parked("parked-shown");
    let (_, run) = server.get("/v1/runs/1");
    assert_eq!((&run["state"], &run["ending"]), (&json!("RUNNING"), &Value::Null), "{run}");
    assert_eq!(run["parked"]["reason"], "what comes next does not fit one record");
    assert!(run["parked"]["at"].is_string(), "{run}");
    let (_, child) = server.get("/v1/runs/2");
    assert_eq!((&child["root"], &child["parked"]), (&json!(1), &Value::Null), "{child}");
    let (_, status) = server.get("/v1/status");
    assert_eq!((&status["parked_runs"], &status["ending_runs"]), (&json!(1), &json!(0)));
    assert!(server.text("/metrics").contains("tenure_runs_parked 1\n"));
    let shown: Value =
        serde_json::from_str(&tenure(&server, &["run", "get", "1", "-o", "json"]).good()).unwrap();
    assert_eq!(shown, run, "gRPC shows what HTTP shows");

    let held = json!({"task_id": 1, "lease_id": 1});
    let (status, refused) = complete(&server, &held, &json!(1));
    assert_eq!((status, &refused["code"]), (409, &json!("run_parked")), "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("tenure run unpark 1"), "{refused}");
    let (status, refused) = server.post("/v1/runs/1/signals/news", &json!({}));
    assert_eq!((status, &refused["code"]), (409, &json!("run_parked")), "{refused}");
    let request = json!({"worker": "ben", "queues": ["mail"], "max": 5});
    assert_eq!(server.post("/v1/leases", &request).1["leases"], json!([]), "none is granted");
    let (status, beat) = server.post("/v1/tasks/1/heartbeat", &json!({"lease_id": 1}));
    assert_eq!(status, 200, "its worker keeps the lease: {beat}");
}

#[test]
fn people_read_why_a_run_and_its_tasks_stand_still() {
    let server = parked("parked-words");
    for args in [&["run", "get", "1"][..], &["run", "graph", "1"]] {
        let told = tenure(&server, args).good();
        assert!(told.contains("PARKED since "), "{args:?}: {told}");
    }
    let told = tenure(&server, &["run", "list"]).good();
    assert!(told.contains("  PARKED: what comes next does not fit one record  "), "{told}");
    let told = tenure(&server, &["run", "get", "1"]).good();
    let what = "what comes next does not fit one record; cancel it or `tenure run unpark 1`";
    assert!(told.contains(what), "{told}");
    assert!(tenure(&server, &["run", "get", "2"]).good().contains("run 1"), "its root");
    assert!(tenure(&server, &["status"]).good().contains("parked runs"));
    for (task, beside) in [(1, &["leased"][..]), (2, &[])] {
        let reasons = reasons(&server, task);
        let codes: Vec<_> = reasons.iter().map(|(code, _)| code.as_str()).collect();
        assert_eq!(codes, [&["run_parked"], beside].concat(), "task {task}");
        assert!(reasons[0].1.contains("run 1 is parked since"), "{}", reasons[0].1);
        assert!(reasons[0].1.contains("tenure run unpark 1"), "{}", reasons[0].1);
    }
    let told = tenure(&server, &["task", "explain", "2"]).good();
    assert!(told.contains("run 1 is parked"), "{told}");
}

#[test]
fn an_unparked_run_goes_on_where_it_stood() {
    let mut server = parked("parked-unparked");
    assert_eq!(server.post("/v1/runs/99/unpark", &json!({})).0, 404);
    assert_eq!(server.post("/v1/runs/1/unpark", &json!({"force": true})).0, 400);
    let (status, run) = server.post("/v1/runs/1/unpark", &json!({}));
    assert_eq!((status, &run["state"], &run["parked"]), (200, &json!("RUNNING"), &Value::Null));
    assert_eq!(tenure(&server, &["run", "unpark", "1", "2"]).good(), UNPARKED, "again is fine");
    let (status, done) = complete(&server, &json!({"task_id": 1, "lease_id": 1}), &json!(1));
    assert_eq!((status, &done["state"]), (200, &json!("COMPLETED")), "{done}");
    let request = json!({"worker": "ben", "queues": ["mail"], "max": 5});
    let granted = server.post("/v1/leases", &request).1["leases"].clone();
    assert_eq!(granted[0]["task_id"], 2, "{granted}");
    let (_, history) = server.get("/v1/runs/1/history");
    let items = history["items"].as_array().unwrap().iter();
    let causes: Vec<_> = items.map(|item| item["cause"]["event"].as_str().unwrap()).collect();
    assert_eq!(causes, ["RunStarted", "RunParked", "RunUnparked", "TaskCompleted"]);
    assert_eq!(server.terminate(), Some(0));
    assert!(server.tenure(&["wal", "verify"]).status.success());
}

const UNPARKED: &str = "run 1 is RUNNING\nrun 2 is WAITING\n";

#[test]
fn a_parked_run_can_be_canceled_and_then_not_unparked() {
    let mut server = parked("parked-canceled");
    assert_eq!(tenure(&server, &["run", "cancel", "1"]).good(), "run 1 is CANCELED\n");
    let (_, child) = server.get("/v1/runs/2");
    assert_eq!(child["state"], "CANCELED", "{child}");
    let ran = tenure(&server, &["run", "unpark", "1"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("run 1 is CANCELED"), "{}", ran.stderr);
    let (_, late) = complete(&server, &json!({"task_id": 1, "lease_id": 1}), &json!(1));
    assert_eq!(late["code"], "lease_lost", "{late}");
    assert_eq!(server.terminate(), Some(0));
    assert!(server.tenure(&["wal", "verify"]).status.success());
}

#[test]
fn a_follower_hears_that_a_run_was_parked_and_unparked() {
    let server = parked("parked-events");
    server.post("/v1/runs/1/unpark", &json!({}));
    // Begun with two tasks, one of them leased, then parked and unparked.
    let told = events(&server, "?run=1&after=0", 6);
    let names: Vec<_> = told.iter().map(|(_, event)| event["event"].as_str().unwrap()).collect();
    assert_eq!(names[4..], ["RunParked", "RunUnparked"], "{names:?}");
    assert!(told[4..].iter().all(|(_, event)| event["run_id"] == 1 && event["to"].is_null()));
    let story = tenure(&server, &["run", "history", "1"]).good();
    assert!(story.contains("the run was parked: what comes next"), "{story}");
    assert!(story.contains("the run was unparked"), "{story}");
}
