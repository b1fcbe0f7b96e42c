//! `cargo xtask bench`: what rules, log and coordinator cost, in time; the rules in instructions too.
//!
//! Time is what a user feels, but it trembles with the machine. Instructions are the same on each
//! run, so they show a change of one percent that a clock cannot.

use std::process::{Command, Stdio};

use crate::command::{self, cargo, program};

/// What a bench of core can measure one at a time when instructions are counted.
const CASES: [(&str, &str); 4] = [
    ("figures", "submit_lease_complete"),
    ("figures", "replay"),
    ("runs", "run_of_three"),
    ("runs", "fan_out"),
];

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let (flags, filters): (Vec<_>, Vec<_>) =
        args.iter().map(String::as_str).partition(|arg| arg.starts_with('-'));
    match flags[..] {
        [] => time(&filters),
        ["--instructions"] => instructions(&filters),
        [flag, ..] => Err(command::unknown_argument("bench", flag)),
    }
}

/// The crates that have figures.
const CRATES: [&str; 3] = ["core", "wal", "coordinator"];

fn time(words: &[&str]) -> Result<(), String> {
    let (name, bench, filters) = match words {
        [name, filters @ ..] if CRATES.contains(name) => (*name, "figures", filters),
        // Those of workflows have a bench of their own.
        ["runs", filters @ ..] => (CRATES[0], "runs", filters),
        ["worst", filters @ ..] => (CRATES[0], "worst", filters),
        filters => (CRATES[0], "figures", filters),
    };
    let mut bench = cargo(&format!("bench -p tenure-{name} --bench {bench} --"));
    command::run(bench.args(filters))
}

fn instructions(filters: &[&str]) -> Result<(), String> {
    let cases: Vec<_> = CASES
        .into_iter()
        .filter(|(_, case)| {
            filters.is_empty() || filters.iter().any(|filter| case.contains(filter))
        })
        .collect();
    if cases.is_empty() {
        let names = CASES.map(|(_, case)| case).join(", ");
        return Err(format!("No case matches. There are: {names}."));
    }
    if !has_valgrind() {
        return Err("Counting instructions needs valgrind, which was not found. Install it \
                    (`apt install valgrind`, `dnf install valgrind`) or leave out --instructions."
            .to_owned());
    }
    for (bench, case) in cases {
        let count = count(&build(bench)?, case)?;
        println!("{case}: {count}");
    }
    Ok(())
}

pub(crate) fn has_valgrind() -> bool {
    program("valgrind").arg("--version").stdout(Stdio::null()).status().is_ok()
}

/// Builds a bench of core and gives back where its executable is.
pub(crate) fn build(bench: &str) -> Result<String, String> {
    let mut build = cargo(&format!("bench -p tenure-core --bench {bench} --no-run"));
    build.arg("--message-format=json-render-diagnostics");
    let messages = command::stdout_of(&mut build)?;
    executable(&messages).ok_or_else(|| {
        format!("Cargo did not say where it put the bench. Look at:\n    {}", command::line(&build))
    })
}

/// Finds the path in cargo's messages, one JSON object a line. Only a bench that was asked for has
/// an executable there, so one field can be cut out without parsing the rest.
fn executable(messages: &str) -> Option<String> {
    let (_, rest) = messages.split_once(r#""executable":""#)?;
    let (path, _) = rest.split_once('"')?;
    Some(path.replace(r"\\", r"\"))
}

pub(crate) fn count(bench: &str, case: &str) -> Result<Count, String> {
    let mut valgrind = callgrind(bench, case);
    let output =
        valgrind.output().map_err(|error| format!("Valgrind could not be started: {error}."))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let line = command::line(&valgrind);
    if !output.status.success() {
        return Err(format!("{stderr}\nValgrind or the bench failed. To repeat it:\n    {line}"));
    }
    match Count::read(&stdout, &stderr) {
        Some(Count { instructions: 0, .. }) => Err(format!(
            "Valgrind counted nothing in `{case}`: the bench must do this work in a plain function \
             named `measured_{case}` that is never inlined. To repeat it:\n    {line}"
        )),
        Some(count) => Ok(count),
        None => Err(format!(
            "{stderr}\nThe bench must print `events N` on stdout, and valgrind `Collected : N` on \
             stderr; one is missing. To repeat it:\n    {line}"
        )),
    }
}

fn callgrind(bench: &str, case: &str) -> Command {
    let mut valgrind = program("valgrind");
    valgrind
        .arg("--tool=callgrind")
        // The whole name: with a star at its end, a closure inside would switch the counting off.
        .arg(format!("--toggle-collect=*::measured_{case}"))
        .arg(format!("--callgrind-out-file=target/callgrind.{case}.out"))
        .args([bench, "--instructions", case]);
    valgrind
}

#[derive(Debug, PartialEq)]
pub(crate) struct Count {
    pub(crate) instructions: u64,
    pub(crate) events: u64,
}

impl Count {
    fn read(stdout: &str, stderr: &str) -> Option<Self> {
        let events = stdout.lines().find_map(|line| line.strip_prefix("events "))?;
        let (_, instructions) = stderr.lines().find_map(|line| line.split_once("Collected : "))?;
        Some(Self {
            instructions: instructions.trim().parse().ok()?,
            events: events.trim().parse().ok().filter(|&events| events > 0)?,
        })
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { instructions, events } = self;
        let each = *instructions as f64 / *events as f64;
        write!(f, "{each:.1} instructions per event ({instructions} for {events} events)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_needs_both_numbers() {
        let collected = "==7== Events    : Ir\n==7== Collected : 12345\n";
        assert_eq!(Count::read("", collected), None);
        assert_eq!(Count::read("events 100\n", ""), None);
        assert_eq!(Count::read("events 0\n", collected), None);
        let count = Count::read("warm\nevents 100\n", collected).unwrap();
        assert_eq!(count, Count { instructions: 12345, events: 100 });
        assert_eq!(count.to_string(), "123.5 instructions per event (12345 for 100 events)");
    }

    #[test]
    fn the_executable_is_cut_out_of_cargos_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","executable":"/a b/figures-01","fresh":true}"#,
        );
        assert_eq!(executable(messages).as_deref(), Some("/a b/figures-01"));
        assert_eq!(executable(r#"{"executable":null}"#), None);
    }
}
