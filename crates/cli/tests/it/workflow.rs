//! `tenure workflow check`: the real binary on real files.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn tenure(args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const SAMPLE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../flow/tests/samples/tender_review.yaml");

const FAULTY: &str = "workflow: w\ninitial_node: a\nnodes:\n  - {ref: a, kind: pas}\n  \
                      - {ref: b, kind: timer, timer: {until: now()}}\n";

#[test]
fn a_definition_with_faults_is_refused_with_all_of_them() {
    let output = tenure(&["workflow", "check", "-"], FAULTY);
    assert_eq!(output.status.code(), Some(1));
    let stdout = text(&output.stdout);
    let lines: Vec<_> = stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{stdout}");
    assert!(lines[0].starts_with("-:4:14: /nodes/0/kind: \"pas\" is none of"), "{stdout}");
    assert!(lines[0].ends_with("did you mean `pass`? [bad_value]"), "{stdout}");
    assert!(lines[1].contains("/nodes/1/timer/until: there is no function `now`"), "{stdout}");
    assert!(lines[2].contains("/nodes/1: nothing leads to `b`"), "{stdout}");
    assert_eq!(text(&output.stderr), "tenure: the definition has 3 faults\n");
}

#[test]
fn the_answer_for_programs_is_one_object() {
    let output = tenure(&["workflow", "check", "-o", "json", "-"], FAULTY);
    assert_eq!(output.status.code(), Some(1));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["workflow"], serde_json::Value::Null);
    assert_eq!(answer["faults"][1]["pointer"], "/nodes/1/timer/until");
    assert_eq!(answer["faults"][1]["code"], "unknown_function");
    assert_eq!(answer["faults"][1]["line"], 5);
}

#[test]
fn a_file_that_cannot_be_read_is_wrong_usage() {
    let output = tenure(&["workflow", "check", "no/such/file.yaml"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("tenure: cannot read no/such/file.yaml: "));
}

#[test]
fn a_definition_without_faults_passes() {
    let output = tenure(&["workflow", "check", SAMPLE], "");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let expected = "`tender_review` has no fault: 7 nodes, 8 transitions\n";
    assert_eq!(text(&output.stdout), expected);
    assert_eq!(text(&output.stderr), "");
}
