//! Exit codes, and sentences that say what to do.

use std::io::Read;
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::json;

use crate::client::tenure::{command, ended, tenure};
use crate::server::Server;

#[test]
fn wrong_usage_is_2_and_asks_no_server() {
    let nobody = "127.0.0.1:1";
    for args in [
        &["submit", "--bogus"][..],
        &["submit", "--payload", "{\"a\": b}"],
        &["submit", "--payload", "@/does/not/exist"],
        &["submit", "--delay", "5 parsecs"],
        &["submit", "--delay", "5s", "--run-at", "2030-01-01T00:00:00Z"],
        &["submit", "--run-at", "tomorrow"],
        &["submit", "--tag", "customer"],
        &["submit", "--tag", "a=1", "--tag", "a=2"],
        &["submit", "--backoff", "cubic"],
        &["submit", "--batch", "x", "--queue", "q"],
        &["submit", "--batch", "/does/not/exist"],
        &["submit", "--from-line", "3"],
        &["task", "get", "seventeen"],
        &["task", "list", "--state", "lost"],
        &["task", "list", "--limit", "0"],
        &["watch", "--after", "yesterday"],
        &["queue", "configure", "q"],
        &["queue", "configure", "q", "--retention", "long"],
        &["completions", "tcsh"],
        &["--server", "https://127.0.0.1:1", "status"],
    ] {
        let mut call = command(nobody, args);
        let ran = ended(call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_bad_payload_is_shown_with_its_line_and_column() {
    let args = ["submit", "--payload", "{\n  \"to\": ada\n}"];
    let mut call = command("127.0.0.1:1", &args);
    let ran = ended(call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert!(ran.stderr.contains("line 2 column 9"), "{}", ran.stderr);
}

#[test]
fn a_server_that_is_not_there_is_3() {
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for args in [
        &["status"][..],
        &["submit", "--payload", "1"],
        &["submit", "--batch", "-"],
        &["task", "get", "1"],
        &["watch"],
        &["queue", "list"],
    ] {
        let mut call = command(&address, args);
        let ran = ended(call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("start a server"), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_refusal_is_1_with_the_sentence_of_the_server() {
    let server = Server::start("client-refused");
    server.post("/v1/tasks", &json!({"key": "k"}));
    for (args, word) in [
        (&["task", "get", "99"][..], "not_found"),
        (&["task", "history", "99"], "not_found"),
        (&["task", "explain", "99"], "not_found"),
        (&["task", "cancel", "99"], "not_found"),
        (&["task", "retry", "1"], "conflict"),
        (&["submit", "--queue", "", "--priority", "1000"], "invalid_request"),
        (&["submit", "--key", "k", "--payload", "2"], "conflict"),
        (&["watch", "--after", "1000"], "invalid_request"),
    ] {
        let ran = tenure(&server, args);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(word), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_key_is_asked_for_and_taken_from_the_environment() {
    let server = Server::start_with("client-key", &[], &[("TENURE_API_KEY", "0123456789abcdef")]);
    let ran = tenure(&server, &["status"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("unauthorized"), "{}", ran.stderr);
    let mut call = command(&server.address, &["status"]);
    let call = call
        .env("TENURE_API_KEY", "0123456789abcdef")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    ended(call.spawn().unwrap()).good();
}

#[test]
fn a_closed_pipe_is_the_end_and_no_failure() {
    let server = Server::start("client-pipe");
    let tasks: Vec<_> =
        (0..2_000).map(|n| json!({"payload": "x".repeat(200), "priority": n % 50})).collect();
    assert_eq!(server.post("/v1/tasks/batch", &json!({"tasks": tasks})).0, 201);
    for args in [&["task", "list", "--all"][..], &["task", "list", "--all", "-o", "json"]] {
        let mut call = command(&server.address, args);
        let mut child = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 10]).unwrap();
        drop(stdout);
        let ran = ended(child);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
    }
}
