//! `tenure submit`: what is asked for is what is submitted, and `--wait` tells the end.

use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::tenure::{Ran, command, ended, tenure, tenure_with};
use crate::server::Server;

#[test]
fn a_submit_prints_the_id_alone() {
    let server = Server::start("client-id");
    assert_eq!(tenure(&server, &["submit", "--queue", "q"]).good(), "1\n");
    assert_eq!(tenure_with(&server, &["submit", "--payload", "-"], "[1,\n 2]\n").good(), "2\n");
    assert_eq!(server.get("/v1/tasks/2").1["payload"], json!([1, 2]));
}

#[test]
fn every_flag_reaches_the_server() {
    let server = Server::start("client-flags");
    let file = server.folder.join("payload.json");
    std::fs::write(&file, "{\"from\": \"a file\"}\n").unwrap();
    let payload = format!("@{}", file.display());
    let args = [
        "submit",
        "--queue",
        "q",
        "--payload",
        &payload,
        "--priority",
        "-7",
        "--delay",
        "1h30m",
        "--max-failures",
        "5",
        "--max-expiries",
        "6",
        "--max-attempts",
        "7",
        "--lease",
        "2m",
        "--total-timeout",
        "1d",
        "--attempt-timeout",
        "1h",
        "--key",
        "k",
        "--key-ttl",
        "2d",
        "--tag",
        "a=b",
        "--tag",
        "c=d=e",
        "--backoff",
        "fixed,initial=2s,max=2s,jitter=0",
    ];
    assert_eq!(tenure(&server, &args).good(), "1\n");
    let task = server.get("/v1/tasks/1").1;
    for (field, value) in [
        ("payload", json!({"from": "a file"})),
        ("priority", json!(-7)),
        ("max_failures", json!(5)),
        ("max_expiries", json!(6)),
        ("max_attempts", json!(7)),
        ("attempt_timeout_ms", json!(3_600_000)),
        ("lease_ms", json!(120_000)),
        ("total_timeout_ms", json!(86_400_000)),
        ("key", json!("k")),
        ("tags", json!({"a": "b", "c": "d=e"})),
    ] {
        assert_eq!(task[field], value, "{field}");
    }
    let moment = |field: &str| task[field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let delay = moment("run_at").as_millisecond() - moment("created_at").as_millisecond();
    assert_eq!(delay, 5_400_000);
    assert_eq!(tenure(&server, &args).good(), "1\n", "the same key gives the same task");
    // The backoff is no field of a task, but another one under the same key is another body.
    let backoff = args.len() - 1;
    let mut other = args;
    other[backoff] = "fixed,initial=3s,max=3s,jitter=0";
    assert!(tenure(&server, &other).stderr.contains("conflict"));
}

#[test]
fn an_appointment_is_kept() {
    let server = Server::start("client-run-at");
    tenure(&server, &["submit", "--run-at", "2099-01-01T01:00:00+01:00"]).good();
    assert_eq!(server.get("/v1/tasks/1").1["run_at"], "2099-01-01T00:00:00.000Z");
}

fn wait(server: &Server, args: &[&str]) -> Child {
    let args: Vec<_> = ["submit", "--queue", "q", "--wait"].iter().chain(args).copied().collect();
    let mut command = command(&server.address, &args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn lease(server: &Server) -> (u64, Value) {
    let asked = json!({"worker": "w", "queues": ["q"], "wait_ms": 60_000, "lease_ms": 3_600_000});
    let lease = server.post("/v1/leases", &asked).1["leases"][0].clone();
    (lease["task_id"].as_u64().unwrap(), lease["lease_id"].clone())
}

fn report(server: &Server, (task, lease_id): (u64, Value), verb: &str, mut body: Value) {
    body["lease_id"] = lease_id;
    let (status, answer) = server.post(&format!("/v1/tasks/{task}/{verb}"), &body);
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn waiting_for_a_completed_task_prints_its_output() {
    let server = Server::start("client-wait-completed");
    let child = wait(&server, &[]);
    report(&server, lease(&server), "complete", json!({"output": {"sum": 3}}));
    assert_eq!(ended(child).good(), "{\"sum\":3}\n");
    let child = wait(&server, &["-o", "json"]);
    report(&server, lease(&server), "complete", json!({"output": "\u{1b}[2J"}));
    assert_eq!(ended(child).good(), server.text("/v1/tasks/2") + "\n");
}

#[test]
fn waiting_for_a_failed_task_is_a_failure_with_its_reason() {
    let server = Server::start("client-wait-failed");
    let child = wait(&server, &[]);
    let fail =
        json!({"reason": "no such \u{1b}[31m mailbox", "code": "bounced", "retryable": false});
    report(&server, lease(&server), "fail", fail);
    let Ran { code, stdout, stderr } = ended(child);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert_eq!(stderr, "tenure: task 1 is FAILED: no such \\u{1b}[31m mailbox (bounced)\n");
}

#[test]
fn waiting_for_a_canceled_task_is_a_failure() {
    let server = Server::start("client-wait-canceled");
    let child = wait(&server, &["-o", "json"]);
    // Leased first, so that there is something to cancel.
    let (task, lease_id) = lease(&server);
    let cancel = tenure(&server, &["task", "cancel", "1", "--grace", "1h"]).good();
    assert_eq!(cancel, "task 1 is asked to stop; w holds it and is told\n");
    report(&server, (task, lease_id), "release", json!({}));
    let ran = ended(child);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.stdout, server.text("/v1/tasks/1") + "\n");
    assert!(ran.stderr.starts_with("tenure: task 1 is CANCELED"), "{}", ran.stderr);
}

#[test]
fn waiting_goes_on_over_a_crash_of_the_server() {
    let mut server = Server::start("client-wait-crash");
    let child = wait(&server, &[]);
    let lease = lease(&server);
    // It has its answer, and waits for the end.
    while server.get("/v1/status").1["parked_readers"] != 1 {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    server.restart_where_it_was();
    report(&server, lease, "complete", json!({"output": "done"}));
    assert_eq!(ended(child).good(), "\"done\"\n");
}
