//! `tenure submit --batch`: many tasks, in order, and how to go on where it stopped.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::client::tenure::{command, ended, tenure, tenure_with};
use crate::server::Server;

/// Lines with the number of each as its key, and other text in the place of some.
fn file(server: &Server, lines: u64, other: &[(u64, &str)]) -> PathBuf {
    let mut text = String::new();
    for line in 1..=lines {
        match other.iter().find(|(at, _)| *at == line) {
            Some((_, other)) => writeln!(text, "{other}").unwrap(),
            None => {
                writeln!(text, "{{\"queue\":\"q\",\"payload\":{line},\"key\":\"{line}\"}}")
                    .unwrap();
            }
        }
    }
    let path = server.folder.join("batch.ndjson");
    std::fs::write(&path, text).unwrap();
    path
}

fn waiting(server: &Server) -> Value {
    server.get("/v1/status").1["tasks"]["WAITING"].clone()
}

#[test]
fn a_batch_of_25000_lines_is_submitted_once() {
    let server = Server::start("client-batch");
    let path = file(&server, 25_000, &[]);
    let path = path.to_str().unwrap();
    let ids: String = (1..=25_000).map(|id| format!("{id}\n")).collect();
    assert_eq!(tenure(&server, &["submit", "--batch", path]).good(), ids);
    assert_eq!(waiting(&server), 25_000);
    assert_eq!(server.get("/v1/tasks/25000").1["payload"], 25_000);
    // All of it again: the keys find the tasks that are there.
    let again = tenure(&server, &["submit", "--batch", path, "-o", "json"]).good();
    let summary: Value = serde_json::from_str(&again).unwrap();
    assert_eq!((&summary["submitted"], &summary["next_line"]), (&json!(25_000), &json!(25_001)));
    assert_eq!(summary["ids"].as_array().unwrap().len(), 25_000);
    assert_eq!(summary["ids"][24_999], 25_000);
    assert_eq!(waiting(&server), 25_000);
}

#[test]
fn a_bad_line_stops_before_its_chunk_and_says_how_to_go_on() {
    let server = Server::start("client-batch-bad");
    for (line, bad, code, word) in [
        (1_500, r#"{"queue": "q", "prioriti": 3}"#, 2, "`prioriti`"),
        (2_700, r#"{"queue": "q", "#, 2, "EOF"),
        (2_800, r#"{"queue": "q", "priority": 1000}"#, 1, "priority is 1000"),
    ] {
        let path = file(&server, 3_000, &[(line, bad)]);
        let path = path.to_str().unwrap();
        let ran = tenure(&server, &["submit", "--batch", path]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        let chunks = (line - 1) / 1_000;
        let ids: String = (1..=chunks * 1_000).map(|id| format!("{id}\n")).collect();
        assert_eq!(ran.stdout, ids);
        assert_eq!(waiting(&server), chunks * 1_000, "nothing of its chunk");
        let next = chunks * 1_000 + 1;
        for expected in [
            format!("line {line}:"),
            word.to_owned(),
            format!("{} tasks of lines 1 to {} are in", next - 1, next - 1),
            format!("`tenure submit --batch {path} --from-line {next}`"),
        ] {
            assert!(ran.stderr.contains(&expected), "{expected}: {}", ran.stderr);
        }
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    let path = file(&server, 3_000, &[]);
    let args = ["submit", "--batch", path.to_str().unwrap(), "--from-line", "2001"];
    let ids: String = (2_001..=3_000).map(|id| format!("{id}\n")).collect();
    assert_eq!(tenure(&server, &args).good(), ids);
    assert_eq!(server.get("/v1/tasks/3000").1["payload"], 3_000);
}

#[test]
fn a_conflict_names_its_line() {
    let server = Server::start("client-batch-conflict");
    let lines = "\n{\"key\": \"a\"}\n\n{\"key\": \"a\", \"payload\": 1}\n";
    let ran = tenure_with(&server, &["submit", "--batch", "-"], lines);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("line 4: the key \"a\" is that of line 2"), "{}", ran.stderr);
    assert!(ran.stderr.contains("nothing was submitted"), "{}", ran.stderr);
}

#[test]
fn nothing_is_submitted_from_nothing() {
    let server = Server::start("client-batch-empty");
    assert_eq!(tenure_with(&server, &["submit", "--batch", "-"], "\n\n").good(), "");
    let summary = tenure_with(&server, &["submit", "--batch", "-", "-o", "json"], "").good();
    assert_eq!(summary, "{\"submitted\":0,\"next_line\":1,\"ids\":[]}\n");
}

#[test]
fn a_reader_that_has_enough_does_not_stop_a_batch() {
    let server = Server::start("client-batch-pipe");
    let path = file(&server, 5_000, &[]);
    let mut call = command(&server.address, &["submit", "--batch", path.to_str().unwrap()]);
    let mut child = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "1\n");
    let ran = ended(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(waiting(&server), 5_000);
}
