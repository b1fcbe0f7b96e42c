//! What people see.

use serde_json::json;

use crate::client::tenure::{Ran, redacted, tenure};
use crate::server::Server;

#[test]
fn people_see_tables() {
    let server = Server::start_with("client-tables", &["--memory-max", "4GiB"], &[]);
    let show = |args: &[&str]| redacted(&tenure(&server, args).good());
    assert_eq!(show(&["task", "list"]), "no such tasks");
    assert_eq!(show(&["queue", "list"]), "no queues yet; a task makes one");
    assert_eq!(show(&["worker", "list"]), "no worker was heard of lately");
    let nasty = json!({
        "queue": "mail", "payload": {"to": "ada", "text": "\u{1b}[2J\u{9b}"}, "key": "k", "priority": 3,
        "tags": {"customer": "ada"}, "total_timeout_ms": 90_000_000,
        "lease_ms": 3_600_000,
    });
    assert_eq!(server.post("/v1/tasks", &nasty).0, 201);
    server.post("/v1/tasks", &json!({"queue": "reports", "payload": null, "delay_ms": 3_600_000}));
    server.post("/v1/leases", &json!({"worker": "anna", "queues": ["mail"]}));
    insta::assert_snapshot!("task-get-leased", show(&["task", "get", "1"]));
    let fail = json!({"lease_id": 1, "reason": "line one\nline \u{1b}[31mtwo", "retryable": false});
    assert_eq!(server.post("/v1/tasks/1/fail", &fail).0, 200);
    insta::assert_snapshot!("task-list", show(&["task", "list"]));
    insta::assert_snapshot!("task-get-failed", show(&["task", "get", "1"]));
    insta::assert_snapshot!("task-history", show(&["task", "history", "1"]));
    insta::assert_snapshot!("queue-list", show(&["queue", "list"]));
    insta::assert_snapshot!(
        "queue-configure",
        show(&["queue", "configure", "mail", "--retention", "36h"])
    );
    insta::assert_snapshot!("queue-pause", show(&["queue", "pause", "mail"]));
    insta::assert_snapshot!("worker-list", show(&["worker", "list"]));
    assert_eq!(show(&["task", "retry", "1"]), "task 1 is WAITING again");
    assert_eq!(show(&["task", "cancel", "1"]), "task 1 is CANCELED");
    let status = show(&["status"]);
    let status: Vec<_> = status.lines().filter(|line| !line.starts_with("up ")).collect();
    insta::assert_snapshot!("status", status.join("\n"));
}

#[test]
fn a_table_that_was_cut_short_says_so() {
    let server = Server::start("client-more");
    server.post("/v1/tasks/batch", &json!({"tasks": [{}, {}, {}]}));
    let Ran { code, stdout, stderr } = tenure(&server, &["task", "list", "--limit", "2"]);
    assert_eq!((code, stdout.lines().count()), (0, 3));
    assert_eq!(stderr, "tenure: there are more: --all lists them, --cursor 2 goes on\n");
}
