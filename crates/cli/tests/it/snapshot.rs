//! Snapshots as a user meets them: taken by the real binary, started from, rotten, and refused.
//!
//! Proves P19.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::server::Server;
use serde_json::{Value, json};

fn tenure(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenure")).args(args).output().unwrap()
}

/// Takes one with the CLI.
fn take(server: &Server) -> Value {
    let url = format!("http://{}", server.address);
    let ran = tenure(&["snapshot", "-o", "json", "--server", &url]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn submit(server: &Server, count: usize) {
    let tasks: Vec<_> = (0..count).map(|n| json!({"queue": "mail", "payload": {"n": n}})).collect();
    assert_eq!(server.post("/v1/tasks/batch", &json!({ "tasks": tasks })).0, 201);
}

fn hash(server: &Server) -> Value {
    server.get("/v1/status?hash=true").1["state_hash"].clone()
}

/// The files of snapshots, oldest first.
fn files(server: &Server) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(&server.folder).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "snap"))
        .collect();
    files.sort();
    files
}

#[test]
fn without_a_server_it_says_so() {
    let ran = tenure(&["snapshot", "--server", "http://127.0.0.1:1"]);
    assert_eq!(ran.status.code(), Some(3));
}

#[test]
fn a_snapshot_is_taken_and_a_killed_server_starts_from_it() {
    let mut server = Server::start("snapshot");
    submit(&server, 100);
    let taken = take(&server);
    assert_eq!((&taken["lsn"], &taken["tasks"]), (&json!(1), &json!(100)));
    assert_eq!(taken["state_hash"], hash(&server));
    assert_eq!(files(&server).len(), 1);
    let size = std::fs::metadata(&files(&server)[0]).unwrap().len();
    assert_eq!(taken["bytes"], size);
    submit(&server, 10);
    let before = hash(&server);
    let (status, again) = server.post("/v1/snapshots", &json!({}));
    assert_eq!((status, &again["lsn"], &again["state_hash"]), (200, &json!(2), &before));
    submit(&server, 1);
    let (before, history) = (hash(&server), server.get("/v1/tasks/1/history").1);
    server.kill();
    server.restart();
    assert_eq!(hash(&server), before);
    assert_eq!(server.get("/v1/tasks/1/history").1, history, "the log before it is there");
    assert_eq!(server.get("/v1/status").1["snapshot_lsn"], 2);
    let verified = server.tenure(&["wal", "verify", "-o", "json"]);
    let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!((&verified["sound"], &verified["state_hash"]), (&json!(true), &before));
    assert_eq!(verified["notes"], json!([]));
}

#[test]
fn a_rotten_snapshot_is_an_alarm_and_no_loss() {
    let mut server = Server::start("rotten");
    for _ in 0..2 {
        submit(&server, 50);
        take(&server);
    }
    let before = hash(&server);
    server.kill();
    let newest = files(&server).pop().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    bytes[300] ^= 4;
    std::fs::write(&newest, bytes).unwrap();
    let looked = server.tenure(&["wal", "verify"]);
    let said = String::from_utf8_lossy(&looked.stdout).into_owned();
    assert!(looked.status.success() && said.contains("cannot be used"), "{said}");
    let doctor = server.tenure(&["doctor", "-o", "json"]);
    let found: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!((doctor.status.code(), &found["well"]), (Some(65), &json!(false)), "{found}");
    let told = found["checks"].as_array().unwrap().iter().find(|it| it["result"] == "bad").unwrap();
    assert_eq!(told["check"], "snapshots");
    let said = told["message"].as_str().unwrap();
    assert!(said.contains("a block was changed, at offset") && !said.contains("restore"), "{said}");
    server.restart();
    assert_eq!(hash(&server), before);
    assert!(server.text("/metrics").contains("tenure_snapshots_bad 1"));
    assert!(!newest.exists() && newest.with_extension("snap.bad").exists());
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    for (flag, value) in [
        ("--log-keep", "some"),
        ("--log-keep", "hours=0"),
        ("--retention", "7"),
        ("--retention-tasks", "-1"),
        ("--snapshot-bytes", "0"),
    ] {
        let ran = Server::run("flags", &[flag, value], &[]);
        assert_eq!(ran.status.code(), Some(2), "{flag} {value}");
    }
}

#[test]
fn finished_tasks_go_when_their_time_is_over() {
    let args = ["--retention", "200ms", "--log-keep", "hours=1"];
    let server = Server::start_with("retention", &args, &[]);
    submit(&server, 20);
    for id in 1..=10 {
        assert_eq!(server.post(&format!("/v1/tasks/{id}/cancel"), &json!({})).0, 200);
    }
    // Bounded, and far more than it takes.
    let is_over = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        server.get("/v1/status").1["tasks"]["CANCELED"] == 0
    });
    assert!(is_over, "{:?}", server.get("/v1/status"));
    assert_eq!(server.get("/v1/tasks/3").0, 404);
    assert_eq!(server.get("/v1/status").1["tasks"]["WAITING"], 10);
    assert!(server.text("/metrics").contains("tenure_tasks_purged_total 10"));
}
