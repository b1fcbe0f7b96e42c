//! Races, many times each, judged by what the histories and the log say afterwards.
//!
//! Proves P5 and P6.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::exec::crew::{Note, Worker, eventually};
use crate::server::Server;

#[test]
fn a_cancel_against_a_result_has_one_winner() {
    let server = Server::start("exec-race-cancel");
    let _worker = Worker::exec(&server, &["--slots", "4", "--quiet"]);
    let mut ids = Vec::new();
    let mut ends = BTreeMap::new();
    for round in 0..60_u64 {
        let id = server.submit(&json!({"argv": ["sleep", "0.05"]}));
        // From before its start to after its end.
        match round % 12 {
            11 => drop(server.ended(id)),
            n => std::thread::sleep(Duration::from_millis(n * 10)),
        }
        let answer = server.cancel(id);
        let state = server.ended(id)["state"].as_str().unwrap().to_owned();
        match answer {
            // It was over.
            409 => assert_eq!(state, "COMPLETED"),
            _ => assert!(state == "COMPLETED" || state == "CANCELED", "{state}"),
        }
        *ends.entry(state).or_insert(0) += 1;
        ids.push(id);
    }
    assert!(ends.len() == 2, "both happen: {ends:?}");
    server.check_all(&ids);
}

#[test]
fn two_workers_never_complete_one_task_twice() {
    let server = Server::start("exec-race-two");
    let _workers = [
        Worker::exec(&server, &["--slots", "2", "--quiet"]),
        Worker::exec(&server, &["--slots", "2", "--quiet"]),
    ];
    eventually("both workers", || {
        let (_, workers) = server.get("/v1/workers");
        (workers["items"].as_array().unwrap().len() == 2).then_some(())
    });
    let note = Note::new("two");
    let script = format!("echo $TENURE_TASK_ID >> {}", note.path());
    let ids: Vec<_> = (0..100).map(|_| server.sh(&script)).collect();
    let mut workers = BTreeMap::new();
    for id in &ids {
        assert_eq!(server.ended(*id)["state"], "COMPLETED");
        assert_eq!(server.events(*id), ["TaskCreated", "LeaseGranted", "TaskCompleted"]);
        let (_, history) = server.get(&format!("/v1/tasks/{id}/history"));
        let worker = history["items"][2]["worker"].as_str().unwrap().to_owned();
        *workers.entry(worker).or_insert(0) += 1;
    }
    let mut ran = note.pids(100).iter().map(|id| u64::from(*id)).collect::<Vec<_>>();
    ran.sort_unstable();
    assert_eq!(ran, ids, "each ran once");
    assert_eq!(workers.len(), 2, "both were at it: {workers:?}");
    server.check_all(&ids);
}

#[test]
fn a_result_that_comes_after_the_lease_is_lost() {
    let server = Server::start("exec-race-late");
    let ids: Vec<_> =
        (0..20).map(|_| server.submit(&json!({"argv": ["echo", "second"]}))).collect();
    let ask = json!({"worker": "late", "queues": ["default"], "max": 20, "lease_ms": 50});
    let (_, leases) = server.post("/v1/leases", &ask);
    let leases = leases["leases"].as_array().unwrap().clone();
    assert_eq!(leases.len(), 20);
    let _worker = Worker::exec(&server, &["--slots", "4", "--quiet"]);
    let late = |lease: &Value| {
        let path = format!("/v1/tasks/{}/complete", lease["task_id"]);
        server.post(&path, &json!({"lease_id": lease["lease_id"], "output": "first"}))
    };
    // Half of them report while the second attempt may be under way, half when it is over.
    for (n, lease) in leases.iter().enumerate() {
        let id = lease["task_id"].as_u64().unwrap();
        match n % 2 {
            0 => eventually("the expiry", || (server.task(id)["expiries"] == 1).then_some(())),
            _ => drop(server.ended(id)),
        }
        for _ in 0..2 {
            let (status, problem) = late(lease);
            assert_eq!((status, &problem["code"]), (409, &json!("lease_lost")));
        }
    }
    for id in &ids {
        let task = server.ended(*id);
        assert_eq!((&task["state"], &task["output"]), (&json!("COMPLETED"), &json!("second")));
        let stale =
            server.events(*id).iter().filter(|event| *event == "StaleReportRejected").count();
        assert_eq!(stale, 1, "recorded once, however often it came");
    }
    server.check_all(&ids);
}

#[test]
fn a_worker_that_slept_through_its_lease_changes_nothing() {
    let server = Server::start("exec-race-sleep");
    let sleeper = Worker::exec(&server, &["--lease", "1s", "--slots", "4", "--name", "sleeper"]);
    let note = Note::new("sleep");
    let script = format!("echo $$ >> {}; sleep 1; echo attempt $TENURE_ATTEMPT", note.path());
    let ids: Vec<_> = (0..4).map(|_| server.sh(&script)).collect();
    note.pids(4);
    sleeper.signal("STOP");
    let _other = Worker::exec(&server, &["--slots", "4", "--name", "other"]);
    for id in &ids {
        eventually("the other's lease, or an end", || {
            let task = server.task(*id);
            (task["lease"]["worker"] == "other" || !task["finished_at"].is_null()).then_some(())
        });
    }
    // Its children have ended meanwhile, with results that nobody wants any more.
    sleeper.signal("CONT");
    for id in &ids {
        let task = server.ended(*id);
        let expected = format!("attempt {}", task["attempt"]);
        assert_eq!((&task["state"], &task["output"]), (&json!("COMPLETED"), &json!(expected)));
    }
    let was_late = |id: &&u64| server.task(**id)["expiries"].as_u64() > Some(0);
    assert!(ids.iter().any(|id| was_late(&id)), "it slept through one at least");
    server.check_all(&ids);
}
