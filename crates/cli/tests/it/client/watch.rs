//! `tenure watch`: every transition once, over crashes, until somebody has enough.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::client::tenure::{LONG, command, ended, lines, redacted, tenure};
use crate::server::Server;

fn watch(server: &Server, args: &[&str]) -> Child {
    let args: Vec<_> = ["watch"].iter().chain(args).copied().collect();
    let mut command = command(&server.address, &args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn submit(server: &Server, queue: &str) {
    assert_eq!(server.post("/v1/tasks", &json!({"queue": queue})).0, 201);
}

#[test]
fn a_watch_goes_on_over_a_crash_of_the_server() {
    let mut server = Server::start("client-watch-crash");
    submit(&server, "q");
    let mut child = watch(&server, &["--after", "0", "-o", "json"]);
    let events = lines(child.stdout.take().unwrap());
    let next = || serde_json::from_str::<Value>(&events.recv_timeout(LONG).unwrap()).unwrap();
    assert_eq!(next()["task_id"], 1);
    submit(&server, "q");
    assert_eq!(next()["task_id"], 2);
    for round in 0..3 {
        server.kill();
        server.restart_where_it_was();
        submit(&server, "q");
        let event = next();
        assert_eq!(
            (&event["task_id"], &event["event"]),
            (&json!(3 + round), &json!("TaskCreated"))
        );
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let ran = ended(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "an interrupt is its ordinary end");
}

#[test]
fn a_watch_ends_when_nobody_reads_it_even_if_nothing_happens() {
    let server = Server::start("client-watch-pipe");
    submit(&server, "q");
    let mut child = watch(&server, &["--after", "0"]);
    let mut first = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut first).unwrap();
    drop(stdout);
    let ran = ended(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn a_watch_shows_only_what_it_is_asked_for() {
    let server = Server::start("client-watch-filter");
    for queue in ["a", "b", "a"] {
        submit(&server, queue);
    }
    tenure(&server, &["task", "cancel", "3"]).good();
    let first = |args: &[&str]| {
        let mut child = watch(&server, args);
        let line = lines(child.stdout.take().unwrap()).recv_timeout(LONG).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // Without the time in front.
        redacted(line.split_once("  ").unwrap().1)
    };
    assert_eq!(first(&["--after", "0", "--queue", "b"]), "2  b  -  → WAITING  TaskCreated");
    assert_eq!(
        first(&["--after", "3.0", "--task", "3"]),
        "3  a  WAITING  → CANCELED  CancelRequested"
    );
}
