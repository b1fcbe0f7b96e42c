//! Backup and restore as a user meets them: the real binary, a server that goes on, and folders.
//!
//! Proves P4.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::server::Server;
use serde_json::{Value, json};

fn tenure(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenure")).args(args).output().unwrap()
}

fn json_of(ran: &Output) -> Value {
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

/// A folder of this test that is not there yet.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn back_up(server: &Server, to: &Path) -> Value {
    let url = format!("http://{}", server.address);
    json_of(&tenure(&["backup", to.to_str().unwrap(), "-o", "json", "--server", &url]))
}

fn restore(from: &Path, to: &Path, more: &[&str]) -> Output {
    let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
    tenure(&[&["restore", from, "--data", to, "-o", "json"], more].concat())
}

fn submit(server: &Server, count: usize) {
    let tasks: Vec<_> = (0..count).map(|n| json!({"queue": "mail", "payload": {"n": n}})).collect();
    assert_eq!(server.post("/v1/tasks/batch", &json!({ "tasks": tasks })).0, 201);
}

fn hash(server: &Server) -> Value {
    server.get("/v1/status?hash=true").1["state_hash"].clone()
}

#[test]
fn a_backup_gives_the_same_state_and_other_ids() {
    let server = Server::start("backup");
    submit(&server, 100);
    assert_eq!(server.post("/v1/snapshots", &json!({})).0, 200);
    submit(&server, 10);
    let expected = hash(&server);
    let (copy, data) = (folder("backup-copy"), folder("backup-restored"));
    let taken = back_up(&server, &copy);
    assert_eq!((&taken["lsn"], &taken["state_hash"]), (&json!(2), &expected));
    let restored = json_of(&restore(&copy, &data, &[]));
    assert_eq!((&restored["lsn"], &restored["tasks"]), (&json!(2), &json!(110)));
    assert_eq!(restored["state_hash"], expected);
    // The old server gives ids that the copy does not know.
    let (_, old) = server.post("/v1/tasks", &json!({}));
    let again = Server::start_on(data, &[]).unwrap();
    assert_eq!(hash(&again), expected);
    let (status, task) = again.post("/v1/tasks", &json!({}));
    assert_eq!(status, 201);
    assert!(task["id"].as_u64().unwrap() > old["id"].as_u64().unwrap() + 1_000);
    let verified = again.tenure(&["wal", "verify", "-o", "json"]);
    assert_eq!(json_of(&verified)["sound"], true);
}

#[test]
fn a_backup_is_restored_up_to_a_record() {
    let server = Server::start("until");
    let mut hashes = vec![hash(&server)];
    for n in 1..=5 {
        submit(&server, n);
        hashes.push(hash(&server));
    }
    let copy = folder("until-copy");
    back_up(&server, &copy);
    for (lsn, expected) in hashes.iter().enumerate() {
        let data = folder(&format!("until-{lsn}"));
        let restored = json_of(&restore(&copy, &data, &["--lsn", &lsn.to_string()]));
        assert_eq!((&restored["lsn"], &restored["state_hash"]), (&json!(lsn), expected));
    }
    let data = folder("until-beyond");
    let beyond = restore(&copy, &data, &["--lsn", "6"]);
    assert_eq!(beyond.status.code(), Some(66));
    let said = String::from_utf8_lossy(&beyond.stderr).into_owned();
    assert!(said.contains("ends with LSN 5"), "{said}");
    assert!(!data.exists());
}

#[test]
fn a_backup_under_load_is_one_moment_of_it() {
    let server = Server::start_with("load", &["--log-keep", "bytes=1"], &[]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                submit(&server, 50);
                let _ = server
                    .post("/v1/leases", &json!({"worker": "w", "queues": ["mail"], "max": 20}));
            }
        });
        for nth in 0..4 {
            let copy = folder(&format!("load-{nth}"));
            let taken = back_up(&server, &copy);
            let data = folder(&format!("load-restored-{nth}"));
            let restored = json_of(&restore(&copy, &data, &[]));
            assert_eq!(restored["state_hash"], taken["state_hash"]);
            assert_eq!(server.post("/v1/snapshots", &json!({})).0, 200);
        }
        done.store(true, Ordering::Release);
    });
}

#[test]
fn nothing_is_overwritten_and_nothing_half_done_is_left() {
    let server = Server::start("refusals");
    (0..3).for_each(|_| submit(&server, 3));
    let url = format!("http://{}", server.address);
    let copy = folder("refusals-copy");
    back_up(&server, &copy);
    let again = tenure(&["backup", copy.to_str().unwrap(), "--server", &url]);
    assert_eq!(again.status.code(), Some(73), "a folder with something in it is not touched");
    let onto = restore(&copy, &server.folder, &[]);
    assert_eq!(onto.status.code(), Some(73), "nor is a data folder");
    assert_eq!(server.get("/v1/tasks/1").0, 200);
    let nowhere = restore(&folder("refusals-nowhere"), &folder("refusals-data"), &[]);
    assert_eq!(nowhere.status.code(), Some(66));
    let dead = tenure(&[
        "backup",
        folder("refusals-dead").to_str().unwrap(),
        "--server",
        "http://127.0.0.1:1",
    ]);
    assert_eq!(dead.status.code(), Some(3));
    // A damaged copy is refused, and makes no data folder.
    let segment = std::fs::read_dir(&copy).unwrap().map(|entry| entry.unwrap().path());
    let segment =
        segment.filter(|path| path.extension().is_some_and(|it| it == "wal")).min().unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[8_300] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let data = folder("refusals-damaged");
    let damaged = restore(&copy, &data, &[]);
    let said = String::from_utf8_lossy(&damaged.stderr).into_owned();
    assert_eq!(damaged.status.code(), Some(65), "{said}");
    assert!(said.contains("corrupt") && !data.exists(), "{said}");
}

fn doctor(folder: &Path) -> (Option<i32>, Value) {
    let ran = tenure(&["doctor", "--data", folder.to_str().unwrap(), "-o", "json"]);
    (ran.status.code(), serde_json::from_slice(&ran.stdout).unwrap_or_default())
}

/// How the checks of one kind came out.
fn looks(found: &Value, check: &str) -> Vec<String> {
    let checks = found["checks"].as_array().unwrap().iter();
    let of_kind = checks.filter(|finding| finding["check"] == check);
    of_kind.map(|finding| finding["result"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_doctor_tells_well_from_ill() {
    let mut server = Server::start("doctor");
    (0..3).for_each(|_| submit(&server, 3));
    let (code, found) = doctor(&server.folder);
    assert_eq!((code, &found["well"]), (Some(0), &json!(true)), "{found}");
    assert!(found.to_string().contains("a server is running on it"), "{found}");
    let copy = folder("doctor-copy");
    back_up(&server, &copy);
    assert_eq!(doctor(&copy).1["well"], true);
    server.kill();
    std::fs::write(server.folder.join("notes.txt"), "mine").unwrap();
    let (code, found) = doctor(&server.folder);
    assert_eq!((code, looks(&found, "files")), (Some(0), vec!["note".to_owned()]), "{found}");
    assert!(found.to_string().contains("notes.txt"), "{found}");
    let segment = server.folder.join("segment-0000000000000001.wal");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[8_300] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let (code, found) = doctor(&server.folder);
    assert_eq!((code, &found["well"]), (Some(65), &json!(false)), "{found}");
    assert_eq!(looks(&found, "log"), ["bad"]);
    assert_eq!(doctor(&folder("doctor-nowhere")).0, Some(66));
}
