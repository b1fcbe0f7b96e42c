//! What a test has shown, and why one could not be run, as lines that people and machines read. They
//! go past the capture of test output, so that every run shows them.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::Write;
use std::process::Command;

/// Prints what was counted, such as `evidence: T5 power cuts 10, lost 0, undone 0`.
pub(crate) fn print(test: &str, counts: &[(&str, u64)]) {
    let counts: Vec<_> = counts.iter().map(|(what, count)| format!("{what} {count}")).collect();
    // The name of the test may stand on this line already.
    say(&format!("\nevidence: {test} {}\n", counts.join(", ")));
}

/// Shows how far a long form has come.
pub(crate) fn progress(what: &str, done: u64, of: u64) {
    const LINES: u64 = 100;
    if of > LINES && done.is_multiple_of(of / LINES) {
        say(&format!("{what}: {done} of {of}\n"));
    }
}

/// How much of a test is to be run: what the environment says, or the short form.
pub(crate) fn count(variable: &str, short: u64) -> u64 {
    std::env::var(variable).ok().and_then(|count| count.parse().ok()).unwrap_or(short)
}

/// Whether a program is missing. Under CI it must be there.
pub(crate) fn lacks(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return false;
    }
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!is_ci, "under CI this must run: there is no {program}");
    skipped(&format!("there is no {program}"));
    true
}

/// Says that something was not tested, and why.
pub(crate) fn skipped(why: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    say(&format!("\nSKIPPED: {name}: {why}\n"));
}

fn say(text: &str) {
    // Not a macro: those are captured.
    let _ = std::io::stdout().write_all(text.as_bytes());
}
