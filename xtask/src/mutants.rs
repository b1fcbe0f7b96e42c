//! `cargo xtask mutants`: small changes to the rules and the log, one at a time, each of which a test
//! should notice. One that none notices is told of, for somebody to look at.

use std::fs;

use crate::command::{self, cargo, program, root};

/// A change takes a build and the tests, so only some of them are tried.
const SAMPLE_DEFAULT: usize = 100;
/// Tests that a change keeps from ending are stopped.
const TEST_SECONDS_MAX: u32 = 900;
const OUTPUT: &str = "target/mutants";

/// Where a change that nobody notices would hurt.
const FILES: [&str; 16] = [
    "crates/core/src/apply/*.rs",
    "crates/record/src/codec/*.rs",
    "crates/core/src/decide/*.rs",
    "crates/core/src/state/read/due.rs",
    "crates/core/src/state/hash.rs",
    "crates/log/src/batch.rs",
    "crates/log/src/frame.rs",
    "crates/wal/src/backup.rs",
    "crates/wal/src/load.rs",
    "crates/wal/src/recover*.rs",
    "crates/wal/src/restore.rs",
    "crates/wal/src/segment.rs",
    "crates/wal/src/snapshot.rs",
    "crates/wal/src/spare.rs",
    "crates/wal/src/writer.rs",
    "crates/wal/src/writer/*.rs",
];

#[derive(Debug, PartialEq)]
struct Plan {
    sample: usize,
    files: Vec<String>,
}

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let plan = plan(args)?;
    is_there()?;
    let listed = command::stdout_of(mutants(&plan).arg("--list"))?.lines().count();
    if listed == 0 {
        return Err(format!("There is nothing to change in {}.", plan.files.join(", ")));
    }
    // Every so many-th, so that the sample is from all files.
    let parts = listed.div_ceil(plan.sample);
    println!("{listed} changes are possible; every one in {parts} is tried.");
    let mut running = mutants(&plan);
    running.args(["--test-tool=cargo", "--jobs=1", "--sharding=round-robin"]);
    running.arg(format!("--shard=0/{parts}")).arg(format!("--output={OUTPUT}"));
    running.arg(format!("--timeout={TEST_SECONDS_MAX}"));
    let status = running.status().map_err(|error| format!("It could not be run: {error}."))?;
    match status.code() {
        // Some were not noticed, or kept the tests from ending: that is what was asked.
        Some(0 | 2 | 3) => report(),
        Some(_) | None => Err(format!("cargo-mutants has failed ({status}); see above.")),
    }
}

/// It is no part of what tests need, so it is asked for only here.
fn is_there() -> Result<(), String> {
    let asked = program("cargo-mutants").args(["mutants", "--version"]).output();
    match asked.is_ok_and(|output| output.status.success()) {
        true => Ok(()),
        false => {
            Err("cargo-mutants is not there. To get it: cargo install cargo-mutants --locked."
                .to_owned())
        }
    }
}

/// The tool on these files. It finds the packages by them.
fn mutants(plan: &Plan) -> std::process::Command {
    let mut mutants = cargo("mutants");
    mutants.args(plan.files.iter().map(|file| format!("--file={file}")));
    mutants
}

fn report() -> Result<(), String> {
    let [caught, missed, timeout, unviable] =
        ["caught", "missed", "timeout", "unviable"].map(|kind| {
            let path = format!("{OUTPUT}/mutants.out/{kind}.txt");
            let text = fs::read_to_string(root().join(&path));
            text.map_err(|error| format!("{path}: {error}."))
        });
    let [caught, missed, timeout, unviable] = [caught?, missed?, timeout?, unviable?];
    missed.lines().for_each(|name| println!("not noticed: {name}"));
    println!("{}", counted(&caught, &missed, &timeout, &unviable));
    Ok(())
}

fn counted(caught: &str, missed: &str, timeout: &str, unviable: &str) -> String {
    let [caught, missed, timeout, unviable] =
        [caught, missed, timeout, unviable].map(|names| names.lines().count());
    format!(
        "evidence: T20 mutants {}, caught {caught}, stopped {timeout}, not noticed {missed}, \
         not compiled {unviable}",
        caught + missed + timeout + unviable
    )
}

fn plan(args: &[String]) -> Result<Plan, String> {
    let mut plan = Plan { sample: SAMPLE_DEFAULT, files: Vec::new() };
    let mut words = args.iter().flat_map(|arg| match arg.split_once('=') {
        Some((flag, value)) => vec![flag, value],
        None => vec![arg.as_str()],
    });
    while let Some(word) = words.next() {
        match word {
            "--sample" => {
                let sample = words.next().unwrap_or_default();
                let number = sample.parse().ok().filter(|sample| *sample > 0);
                plan.sample = number.ok_or_else(|| {
                    format!("--sample needs a whole number above 0, not `{sample}`.")
                })?;
            }
            "--file" => match words.next() {
                Some(file) if !file.is_empty() => plan.files.push(file.to_owned()),
                Some(_) | None => {
                    return Err(
                        "--file needs a source file, as it is named in the repository.".to_owned()
                    );
                }
            },
            other => return Err(command::unknown_argument("mutants", other)),
        }
    }
    if plan.files.is_empty() {
        plan.files = FILES.map(str::to_owned).to_vec();
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
    fn samples_and_files_that_there_are_not_are_refused() {
        for args in [&["--sample"][..], &["--sample=0"], &["--file"], &["--file="], &["wal"]] {
            assert!(plan_of(args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn a_sample_of_all_files_is_tried_unless_told() {
        let plan = plan_of(&[]).unwrap();
        assert_eq!((plan.sample, plan.files.len()), (SAMPLE_DEFAULT, FILES.len()));
        let told = plan_of(&["--file=a.rs", "--file", "b.rs", "--sample=3"]).unwrap();
        assert_eq!(told, Plan { sample: 3, files: vec!["a.rs".to_owned(), "b.rs".to_owned()] });
    }

    #[test]
    fn the_files_are_there() {
        for file in FILES {
            let folder = root().join(file).parent().unwrap().to_owned();
            assert!(folder.is_dir(), "{file}");
            assert!(file.contains('*') || root().join(file).is_file(), "{file}");
        }
    }

    #[test]
    fn what_is_counted_fits_the_ledger() {
        assert_eq!(
            counted("a\nb\n", "c\n", "", "d\n"),
            "evidence: T20 mutants 4, caught 2, stopped 0, not noticed 1, not compiled 1"
        );
    }
}
