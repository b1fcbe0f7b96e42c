//! Process groups: whatever a child does, nothing of it outlives its task.

use std::time::Instant;

use serde_json::{Value, json};

use crate::exec::crew::{LONG, Note, Worker, eventually, is_gone, signal};
use crate::server::Server;

/// A leader and a grandchild that write down their numbers and stay.
fn family(note: &Note) -> String {
    let path = note.path();
    format!("sleep 300 & echo $! >> {path}; echo $$ >> {path}; wait; sleep 300")
}

fn all_gone(pids: &[u32]) {
    for pid in pids {
        eventually("the end of a process", || is_gone(*pid).then_some(()));
    }
}

#[test]
fn a_cancel_ends_child_and_grandchild() {
    let server = Server::start("exec-cancel");
    let _worker = Worker::exec(&server, &[]);
    let note = Note::new("cancel");
    let id = server.sh(&family(&note));
    let pids = note.pids(2);
    assert!(pids.iter().all(|pid| !is_gone(*pid)));
    assert_eq!(server.cancel(id), 200);
    assert_eq!(server.ended(id)["state"], "CANCELED");
    all_gone(&pids);
    let next = server.submit(&json!({"argv": ["echo", "free"]}));
    assert_eq!(server.ended(next)["output"], "free", "the only slot is free again");
    server.check_all(&[id, next]);
}

#[test]
fn who_ignores_sigterm_is_killed() {
    let server = Server::start("exec-ignore");
    let _worker = Worker::exec(&server, &["--kill-after", "200ms"]);
    let note = Note::new("ignore");
    let id = server.sh(&format!("trap '' TERM; {}", family(&note)));
    let pids = note.pids(2);
    server.cancel(id);
    assert_eq!(server.ended(id)["state"], "CANCELED");
    all_gone(&pids);
}

#[test]
fn a_child_that_ends_in_good_order_on_cancel_is_canceled() {
    let server = Server::start("exec-polite");
    let _worker = Worker::exec(&server, &["--kill-after", "60s"]);
    let note = Note::new("polite");
    let path = note.path();
    let id = server.sh(&format!(
        "trap 'echo cleaned >> {path}; exit 0' TERM; echo $$ >> {path}; while :; do sleep 0.05; done"
    ));
    eventually("the child", || note.text().ends_with('\n').then_some(()));
    server.cancel(id);
    let task = server.ended(id);
    assert_eq!((&task["state"], &task["output"]), (&json!("CANCELED"), &Value::Null));
    assert!(note.text().ends_with("cleaned\n"), "it had the time for it");
}

#[test]
fn a_lost_lease_ends_the_child() {
    let server = Server::start("exec-deadline");
    let _worker = Worker::exec(&server, &[]);
    let note = Note::new("deadline");
    let payload = json!({"argv": ["sh", "-c", family(&note)]});
    let id = server.submit_with(&payload, &json!({"total_timeout_ms": 6_000}));
    let pids = note.pids(2);
    assert_eq!(server.ended(id)["state"], "FAILED");
    all_gone(&pids);
    let next = server.submit(&json!({"argv": ["echo", "free"]}));
    assert_eq!(server.ended(next)["output"], "free");
}

#[test]
fn a_grandchild_that_keeps_stdout_open_holds_nothing_up() {
    let server = Server::start("exec-linger");
    let _worker = Worker::exec(&server, &[]);
    let note = Note::new("linger");
    let id = server.sh(&format!("sleep 300 & echo $! > {}; echo done", note.path()));
    let task = server.ended(id);
    assert_eq!((&task["state"], &task["output"]), (&json!("COMPLETED"), &json!("done")));
    all_gone(&note.pids(1));
}

#[test]
fn a_silent_grandchild_goes_with_its_leader() {
    let server = Server::start("exec-daemon");
    let _worker = Worker::exec(&server, &[]);
    let note = Note::new("daemon");
    let script = format!("sleep 300 </dev/null >/dev/null 2>&1 & echo $! > {}", note.path());
    assert_eq!(server.ended(server.sh(&script))["state"], "COMPLETED");
    all_gone(&note.pids(1));
}

#[test]
fn one_who_left_the_group_cannot_hold_the_slot() {
    let server = Server::start("exec-setsid");
    let _worker = Worker::exec(&server, &["--kill-after", "100ms"]);
    let note = Note::new("setsid");
    let script = format!(
        "setsid sh -c 'echo $$ > {}; exec sleep 60' & while ! test -s {0}; do sleep 0.02; done; \
         echo out",
        note.path()
    );
    let task = server.ended(server.sh(&script));
    assert_eq!((&task["state"], &task["output"]), (&json!("COMPLETED"), &json!("out")));
    let runaway = note.pids(1)[0];
    assert!(!is_gone(runaway), "it is nobody's business but its own");
    signal(runaway, "KILL");
}

#[test]
fn the_children_of_a_killed_worker_die_with_it() {
    let server = Server::start("exec-guard");
    let mut worker = Worker::exec(&server, &["--slots", "2"]);
    let (kind, rude) = (Note::new("guard-kind"), Note::new("guard-rude"));
    server.sh(&family(&kind));
    server.sh(&format!("trap '' TERM; {}", family(&rude)));
    let pids = [kind.pids(2), rude.pids(2)].concat();
    worker.kill();
    all_gone(&pids);
}

#[test]
fn a_drain_finishes_what_has_begun() {
    let server = Server::start("exec-drain");
    let mut worker = Worker::exec(&server, &[]);
    let (begun, may_end) = (Note::new("drain-begun"), Note::new("drain-end"));
    let script = format!(
        "echo $$ > {}; while ! test -e {}; do sleep 0.02; done; echo finished",
        begun.path(),
        may_end.path()
    );
    let id = server.sh(&script);
    begun.pids(1);
    worker.signal("TERM");
    eventually("the drain", || worker.log().contains("drains").then_some(()));
    let later = server.submit(&json!({"argv": ["echo", "later"]}));
    std::fs::write(may_end.path(), "").unwrap();
    assert_eq!(worker.end(), Some(0));
    assert_eq!(server.task(id)["output"], "finished");
    assert_eq!(server.task(later)["attempt"], 0, "nothing new was taken");
    let _next = Worker::exec(&server, &[]);
    assert_eq!(server.ended(later)["state"], "COMPLETED");
}

#[test]
fn a_drain_that_takes_too_long_gives_back() {
    let server = Server::start("exec-drain-timeout");
    let mut worker = Worker::exec(&server, &["--drain-timeout", "100ms", "--kill-after", "200ms"]);
    let note = Note::new("drain-timeout");
    let id = server.sh(&format!("trap '' TERM; {}", family(&note)));
    let pids = note.pids(2);
    worker.signal("TERM");
    assert_eq!(worker.end(), Some(0));
    all_gone(&pids);
    let task = server.task(id);
    assert_eq!((&task["state"], &task["failures"]), (&json!("WAITING"), &json!(0)));
    assert_eq!(task["expiries"], 0, "it costs the task nothing");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let server = Server::start("exec-second");
    let mut worker = Worker::exec(&server, &["--drain-timeout", "1h", "--kill-after", "1h"]);
    let note = Note::new("second");
    let id = server.sh(&format!("trap '' TERM; {}", family(&note)));
    let pids = note.pids(2);
    worker.signal("INT");
    eventually("the drain", || worker.log().contains("drains").then_some(()));
    assert!(pids.iter().all(|pid| !is_gone(*pid)), "the first lets it go on");
    let began = Instant::now();
    worker.signal("INT");
    assert_eq!(worker.end(), Some(0));
    assert!(began.elapsed() < LONG / 2);
    all_gone(&pids);
    let task = server.task(id);
    assert_eq!((&task["state"], &task["expiries"]), (&json!("WAITING"), &json!(0)));
}

#[test]
fn a_worker_leaves_though_the_server_is_gone() {
    let mut server = Server::start("exec-alone");
    let mut worker = Worker::exec(&server, &["--drain-timeout", "100ms", "--kill-after", "200ms"]);
    let note = Note::new("alone");
    server.sh(&family(&note));
    let pids = note.pids(2);
    server.kill();
    worker.signal("TERM");
    assert_eq!(worker.end(), Some(0));
    all_gone(&pids);
}

#[test]
fn slots_beyond_the_limit_of_open_files_are_told_of() {
    let server = Server::start("exec-files");
    let told = |files: u32| {
        let worker = Worker::with_files(&server, files, &["--slots", "100", "--quiet"]);
        server.ended(server.submit(&json!({"argv": ["true"]})));
        worker.log().contains("ulimit -n")
    };
    assert!(told(300));
    assert!(!told(900));
}
