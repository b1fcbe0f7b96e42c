//! The binary as somebody at a shell calls it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::server::Server;

/// Nothing in these tests takes so long.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// What it said, of a call that went well and complained of nothing.
    pub(crate) fn good(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }
}

/// A call, ready to be made.
pub(crate) fn command(address: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(args).env("TENURE_SERVER", format!("http://{address}"));
    command.env_remove("COLUMNS").env_remove("TENURE_API_KEY").stdin(Stdio::null());
    command
}

/// Calls it, and waits for its end.
pub(crate) fn tenure(server: &Server, args: &[&str]) -> Ran {
    ended(
        command(&server.address, args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    )
}

/// The same with something on standard input.
pub(crate) fn tenure_with(server: &Server, args: &[&str], stdin: &str) -> Ran {
    let mut command = command(&server.address, args);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    ended(child)
}

pub(crate) fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// What it prints, line by line as it comes.
pub(crate) fn lines(stdout: ChildStdout) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            if send.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    receive
}

/// Text with `[when]` in place of moments, and two blanks between the columns of a table.
pub(crate) fn redacted(text: &str) -> String {
    let text = text.replace(env!("CARGO_PKG_VERSION"), "[version]");
    let cell = |cell: &str| match cell.split_once(", ends ") {
        Some((lease, _)) => format!("{lease}, ends [when]"),
        None if is_when(cell) => "[when]".to_owned(),
        None => cell.to_owned(),
    };
    let line = |line: &str| {
        let cells = line.split("  ").map(str::trim).filter(|part| !part.is_empty());
        cells.map(cell).collect::<Vec<_>>().join("  ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn is_when(cell: &str) -> bool {
    let span = cell.strip_suffix(" ago").or_else(|| cell.strip_prefix("in "));
    let is_span = |span: &str| span.starts_with(|c: char| c.is_ascii_digit());
    cell == "now" || span.is_some_and(is_span)
}
