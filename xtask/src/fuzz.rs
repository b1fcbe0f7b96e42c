//! `cargo xtask fuzz`: libFuzzer on the decoders of the log and the readers of workflows
//! and requests, for as long as there is patience.
//!
//! The flags below are those of cargo-fuzz without its sanitizer, which is the one thing that needs
//! a nightly compiler. There is no unsafe code for it to look at.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use crate::command::{self, cargo, program, root};

const MINUTES_DEFAULT: u64 = 5;
const TARGETS: [&str; 9] = [
    "record",
    "header",
    "log",
    "forged",
    "snapshot",
    "state",
    "definition",
    "expression",
    "request",
];

/// Counters on every edge, and a look at both sides of every comparison.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1";
/// Naming a platform keeps the flags away from build scripts.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
const MANIFEST: &str = "crates/fuzz/guided/Cargo.toml";
const BUILT: &str = "target/fuzz";
const CORPUS: &str = "crates/fuzz/corpus";
/// An input that takes longer is a finding.
const INPUT_SECONDS_MAX: u32 = 10;
const INPUT_BYTES_MAX: u32 = 1_000;
/// Behind this the fuzzer says how many inputs it has tried.
const EXECUTIONS: &str = "stat::number_of_executed_units:";

#[derive(Debug, PartialEq)]
struct Plan {
    minutes: u64,
    targets: Vec<String>,
    keeps: Keeps,
}

/// What becomes of what was found.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Keeps {
    /// It stays in the build folder, and the next run goes on from it.
    Outside,
    /// The smallest inputs that reach as much become the new corpus.
    Corpus,
}

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let plan = plan(args)?;
    command::run(
        cargo("build --locked --release")
            .arg(format!("--manifest-path={MANIFEST}"))
            .arg(format!("--target-dir={BUILT}"))
            .arg(format!("--target={PLATFORM}"))
            .env("RUSTFLAGS", COVERAGE),
    )?;
    let started_at = Instant::now();
    let mut executions = 0;
    for name in &plan.targets {
        println!("\n{name}: {} min …", plan.minutes);
        executions += fuzz(name, plan.minutes).map_err(|reason| {
            format!(
                "`{name}` was broken by an input in {BUILT}/found. Mend the code and keep it \
                 in hex in {CORPUS}/{name}.txt, under a comment that says what it was.\n{reason}"
            )
        })?;
        if plan.keeps == Keeps::Corpus {
            keep(name)?;
        }
    }
    let minutes = started_at.elapsed().as_secs_f64() / 60.0;
    let targets = plan.targets.len();
    println!("\n{targets} targets, nothing found in {minutes:.1} min.");
    println!("evidence: T16 {executions} fuzz executions of {targets} targets, broken 0");
    Ok(())
}

/// A folder of inputs. Every run goes on from those that the last one has reached.
fn folder(kind: &str, name: &str) -> PathBuf {
    root().join(BUILT).join(kind).join(name)
}

fn corpus(verb: &str, name: &str, folder: &Path) -> Result<(), String> {
    let mut corpus = cargo("run --quiet -p tenure-fuzz --example corpus --");
    command::run(corpus.arg(verb).arg(name).arg(folder))
}

/// The binary, with what all its runs have in common.
fn guided(name: &str) -> std::process::Command {
    let mut guided = program(root().join(BUILT).join(PLATFORM).join("release/fuzz-guided"));
    guided.env("TENURE_FUZZ_TARGET", name);
    guided
}

/// How many inputs were tried.
fn fuzz(name: &str, minutes: u64) -> Result<u64, String> {
    let (reached, found) = (folder("reached", name), folder("found", ""));
    make(&found)?;
    corpus("unpack", name, &reached)?;
    let mut guided = guided(name);
    guided
        .arg(&reached)
        .arg(format!("-max_total_time={}", minutes * 60))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-artifact_prefix={}{name}-", found.display()))
        .args(["-print_final_stats=1", "-use_value_profile=1"]);
    let failed = |error: std::io::Error| format!("the fuzzer could not be run: {error}.");
    let mut running = guided.stderr(Stdio::piped()).spawn().map_err(failed)?;
    let mut executions = None;
    for line in running.stderr.take().into_iter().flat_map(|err| BufReader::new(err).lines()) {
        let line = line.map_err(failed)?;
        eprintln!("{line}");
        executions = line.strip_prefix(EXECUTIONS).map(|count| count.trim().parse()).or(executions);
    }
    match (running.wait().map_err(failed)?, executions) {
        (status, Some(Ok(executions))) if status.success() => Ok(executions),
        (status, _) => Err(format!("The fuzzer has ended ({status}); see above.")),
    }
}

/// Adds the smallest inputs to the corpus that reach what it does not reach yet.
fn keep(name: &str) -> Result<(), String> {
    let merged = folder("merged", name);
    corpus("unpack", name, &merged)?;
    command::run(guided(name).arg("-merge=1").arg(&merged).arg(folder("reached", name)))?;
    corpus("keep", name, &merged)
}

fn make(folder: &Path) -> Result<(), String> {
    let made = fs::create_dir_all(folder);
    made.map_err(|error| format!("{} could not be made: {error}.", folder.display()))
}

fn plan(args: &[String]) -> Result<Plan, String> {
    let mut plan = Plan {
        minutes: MINUTES_DEFAULT,
        targets: TARGETS.map(str::to_owned).to_vec(),
        keeps: Keeps::Outside,
    };
    let mut words = args.iter().flat_map(|arg| match arg.split_once('=') {
        Some((flag, value)) => vec![flag, value],
        None => vec![arg.as_str()],
    });
    while let Some(word) = words.next() {
        match word {
            "--keep" => plan.keeps = Keeps::Corpus,
            "--minutes" => {
                let minutes = words.next().unwrap_or_default();
                let number = minutes.parse().ok().filter(|minutes| *minutes > 0);
                plan.minutes = number.ok_or_else(|| {
                    format!("--minutes needs a whole number above 0, not `{minutes}`.")
                })?;
            }
            "--target" => {
                let target = words.next().unwrap_or_default();
                if !TARGETS.contains(&target) {
                    return Err(format!("--target is one of {}.", TARGETS.join(", ")));
                }
                plan.targets = vec![target.to_owned()];
            }
            other => return Err(command::unknown_argument("fuzz", other)),
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_of(args: &[&str]) -> Result<Plan, String> {
        plan(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn targets_and_times_that_there_are_not_are_refused() {
        for args in
            [&["--minutes"][..], &["--minutes=0"], &["--target", "wal"], &["--target"], &["log"]]
        {
            assert!(plan_of(args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn all_targets_get_five_minutes_unless_told() {
        let plan = plan_of(&[]).unwrap();
        assert_eq!((plan.minutes, plan.targets.len()), (5, TARGETS.len()));
        let told = plan_of(&["--target=log", "--minutes", "2"]).unwrap();
        assert_eq!((told.minutes, told.targets), (2, vec!["log".to_owned()]));
    }

    #[test]
    fn the_guided_build_is_locked_to_what_it_needs() {
        let mut metadata = cargo("metadata --locked --format-version 1 --manifest-path");
        let found = command::stdout_of(metadata.arg(root().join(MANIFEST)));
        assert!(found.is_ok(), "build it once without --locked: {found:?}");
    }

    #[test]
    fn the_targets_are_those_of_the_crate() {
        let source = fs::read_to_string(root().join("crates/fuzz/src/lib.rs")).unwrap();
        for name in TARGETS {
            assert!(source.contains(&format!("name: \"{name}\"")), "{name}");
        }
        assert_eq!(source.matches("name: \"").count(), TARGETS.len());
    }
}
