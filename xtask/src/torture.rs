//! `cargo xtask torture`: the long forms of the log's and the server's tests. The short ones are in
//! every test run.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;

use crate::command::{self, cargo};

/// A part, and the test that it is.
struct Part {
    name: &'static str,
    help: &'static str,
    package: &'static str,
    test: &'static str,
    /// How much of it there is, unless told.
    usual: u64,
    /// Where the test reads that.
    variable: &'static str,
}

const PARTS: [Part; 9] = [
    Part {
        name: "crashes",
        help: "crash images of many scripts, and crashes inside their recovery",
        package: "tenure-wal",
        test: "--test torture crashes_of_many_scripts -- --ignored --nocapture",
        usual: 1_000_000,
        variable: "TENURE_TORTURE",
    },
    Part {
        name: "damage",
        help: "every bit, cut and lost sector of larger logs, whatever --count says",
        package: "tenure-wal",
        test: "--test torture damage_to_larger_logs -- --ignored --nocapture",
        usual: 0,
        variable: "TENURE_TORTURE",
    },
    Part {
        name: "failures",
        help: "failing calls: every one of many scripts, in every way",
        package: "tenure-wal",
        test: "--test torture failures_of_every_call -- --ignored --nocapture",
        usual: 20_000,
        variable: "TENURE_TORTURE",
    },
    Part {
        name: "laws",
        help: "random cases for each law of the log",
        package: "tenure-wal",
        test: "--test laws -- --nocapture",
        usual: 20_000,
        variable: "PROPTEST_CASES",
    },
    Part {
        name: "power-cuts",
        help: "the power of the server's disk cut again and again; needs root and loop mounts",
        package: "tenure-cli",
        test: "--test power_cuts -- no_power_cut --nocapture",
        usual: 1_000,
        variable: "TENURE_POWER_CUTS",
    },
    Part {
        name: "kills",
        help: "the server killed again and again, with an oracle that remembers what it promised",
        package: "tenure-cli",
        test: "--test kills -- no_kill_loses_or_undoes_anything --nocapture",
        usual: 5_000,
        variable: "TENURE_KILLS",
    },
    Part {
        name: "histories",
        help: "what clients saw over kills of the server, put in order for each task",
        package: "tenure-cli",
        test: "--test histories -- every_history --nocapture",
        usual: 1_000,
        variable: "TENURE_HISTORIES",
    },
    Part {
        name: "herds",
        help: "leases that expire in one second, a tenth as many workers that reconnect, overload",
        package: "tenure-cli",
        test: "--test herds -- --nocapture",
        usual: 100_000,
        variable: "TENURE_HERDS",
    },
    Part {
        name: "kill-points",
        help: "the server killed inside every call to the disk, up to so many of each kind, and each \
               failing; needs strace",
        package: "tenure-cli",
        test: "--test kill_points -- --nocapture",
        usual: 150,
        variable: "TENURE_KILL_POINTS",
    },
];

/// A test begins the lines so that are to be repeated at the end.
const TALLIES: [&str; 2] = ["tally: ", "evidence: "];

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let (parts, count) = plan(args)?;
    let started_at = Instant::now();
    let mut tallies = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        println!("\n{}/{} {}: {} …", at + 1, parts.len(), part.name, part.help);
        tallies.extend(torture(part, count.unwrap_or(part.usual))?);
    }
    println!();
    for tally in tallies {
        println!("evidence: {tally}");
    }
    let minutes = started_at.elapsed().as_secs_f64() / 60.0;
    println!("Nothing was lost and nothing went unnoticed in {minutes:.1} min.");
    Ok(())
}

/// Runs a part, shows what it says, and gives back what it counted.
fn torture(part: &Part, count: u64) -> Result<Vec<String>, String> {
    let started_at = Instant::now();
    let mut test = cargo("test --release -p");
    test.arg(part.package)
        .args(part.test.split(' '))
        .env(part.variable, count.to_string())
        .stdout(Stdio::piped());
    let failed = |error: std::io::Error| format!("the tests could not be run: {error}.");
    let mut running = test.spawn().map_err(failed)?;
    let mut tallies = Vec::new();
    for line in running.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let line = line.map_err(failed)?;
        match TALLIES.iter().find_map(|tally| line.strip_prefix(tally)) {
            Some(tally) => tallies.push(format!("{}: {tally}", part.name)),
            None => println!("{line}"),
        }
    }
    if !running.wait().map_err(failed)?.success() {
        let again = command::line(&test);
        return Err(format!(
            "{} found something; see above, and repeat with:\n    {again}",
            part.name
        ));
    }
    if tallies.is_empty() {
        let seconds = started_at.elapsed().as_secs_f64();
        tallies.push(format!("{}: {count} cases of each in {seconds:.1} s", part.name));
    }
    Ok(tallies)
}

fn plan(args: &[String]) -> Result<(Vec<&'static Part>, Option<u64>), String> {
    let mut parts: Vec<&Part> = Vec::new();
    let mut count = None;
    let mut words = args.iter().flat_map(|arg| match arg.split_once('=') {
        Some((flag, value)) => vec![flag, value],
        None => vec![arg.as_str()],
    });
    while let Some(word) = words.next() {
        if word == "--count" {
            let number = words.next().unwrap_or_default();
            count = Some(number.parse().ok().filter(|count| *count > 0).ok_or_else(|| {
                format!("--count needs a whole number above 0, such as 50000, not `{number}`.")
            })?);
            continue;
        }
        let part = PARTS.iter().find(|part| part.name == word);
        parts.push(part.ok_or_else(|| {
            let names = PARTS.map(|part| part.name).join(", ");
            format!("`{word}` is no part of `torture`. The parts are {names}.")
        })?);
    }
    if parts.is_empty() {
        parts = PARTS.iter().collect();
    }
    Ok((parts, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_of(args: &[&str]) -> Result<(Vec<&'static str>, Option<u64>), String> {
        let args: Vec<_> = args.iter().map(|&arg| arg.to_owned()).collect();
        let (parts, count) = plan(&args)?;
        Ok((parts.iter().map(|part| part.name).collect(), count))
    }

    #[test]
    fn parts_and_counts_that_there_are_not_are_refused() {
        for args in [&["all"][..], &["--count"], &["--count", "0"], &["--counts=5"]] {
            assert!(plan_of(args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn every_part_is_run_unless_told() {
        assert_eq!(plan_of(&[]).unwrap().0.len(), PARTS.len());
        let told = plan_of(&["damage", "crashes", "--count=50"]).unwrap();
        assert_eq!(told, (vec!["damage", "crashes"], Some(50)));
    }
}
