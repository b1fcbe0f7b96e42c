//! A log whose beginning was given up for a snapshot: `stat` and `dump` begin where it does, and
//! `verify` with the snapshot.

use serde_json::{Value, json};

use super::wal;
use crate::server::{Server, TENURE};
use crate::support::{Folder, Ran, Story};

fn said(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_trimmed_log_is_proved_from_its_oldest_snapshot_on() {
    let folder = Folder::new("trimmed");
    let written = Story::trimmed(&folder);
    let ran = wal("verify", &folder, &["-o", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let proof = said(&ran);
    assert_eq!((&proof["sound"], &proof["after_lsn"]), (&json!(true), &json!(30)));
    assert_eq!((&proof["tasks"]["known"], &proof["records"]), (&json!(30), &json!(50)));
    assert_eq!(proof["state_hash"], written.state_hash);
    let ran = wal("verify", &folder, &[]);
    assert!(ran.stdout.contains("The log is sound from LSN 31 on."), "{}", ran.stdout);
    let stat = said(&wal("stat", &folder, &["-o", "json"]));
    assert_eq!(stat["snapshots"], json!([60, 30]));
    let first = stat["first_lsn"].as_u64().unwrap();
    assert!((2..=31).contains(&first), "{first}");
    let dumped = wal("dump", &folder, &["--limit", "1"]);
    let record: Value = serde_json::from_str(dumped.stdout.trim()).unwrap();
    assert_eq!(record["lsn"], first);
}

#[test]
fn whoever_asks_for_what_is_gone_is_told_where_the_log_begins() {
    let folder = Folder::new("trimmed-and-followed");
    Story::trimmed(&folder);
    let first = said(&wal("stat", &folder, &["-o", "json"]))["first_lsn"].clone();
    let server = Server::start_on(folder.path().into(), &[]).unwrap();
    let (status, problem) = server.get("/v1/events?after=1");
    assert_eq!((status, &problem["code"]), (410, &json!("log_trimmed")), "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("begins at LSN {first}")), "{detail}");
    let mut watch = std::process::Command::new(TENURE);
    watch.args(["watch", "--after", "1", "--server", &format!("http://{}", server.address)]);
    let watched = watch.output().unwrap();
    let told = String::from_utf8_lossy(&watched.stderr);
    assert_eq!(watched.status.code(), Some(1), "{told}");
    assert!(told.contains("log_trimmed") && told.contains(&first.to_string()), "{told}");
    // Nothing happened to the first task after the first record.
    let (status, history) = server.get("/v1/tasks/1/history");
    assert_eq!(
        (status, history),
        (200, json!({"items": [], "next_cursor": null, "truncated_before": 2}))
    );
}

#[test]
fn a_snapshot_that_the_records_do_not_give_is_named() {
    let folder = Folder::new("foreign-snapshot");
    Story::trimmed(&folder);
    let mut story = Story::elsewhere();
    story.snapshot_into(&folder, 60);
    let ran = wal("verify", &folder, &["-o", "json"]);
    assert_eq!(ran.code, 65, "{}", ran.stdout);
    assert_eq!(said(&ran)["violation"]["law"], "SnapshotsFollowTheLog");
}

#[test]
fn without_a_good_snapshot_a_trimmed_log_is_refused() {
    let folder = Folder::new("no-snapshot");
    Story::trimmed(&folder);
    for path in folder.files() {
        if path.extension().is_some_and(|extension| extension == "snap") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let ran = wal("verify", &folder, &[]);
    assert_eq!(ran.code, 65);
    assert!(ran.stderr.contains("are in no segment and in no snapshot"), "{}", ran.stderr);
    assert_eq!(wal("stat", &folder, &[]).code, 0, "what is there can be looked at");
}
