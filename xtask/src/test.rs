//! `cargo xtask test`: all that must hold before a change goes in, cheapest first.

use std::process::Command;
use std::time::Instant;

use crate::command::{self, cargo};
use crate::{guard, planted, schemathesis, tidy, tools};

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    command::no_arguments("test", args)?;
    let started_at = Instant::now();
    let mut steps = steps();
    let count = steps.len();
    for (at, step) in steps.iter_mut().enumerate() {
        let number = at + 1;
        println!("\n{number}/{count} {} …", step.name);
        step.work
            .run()
            .map_err(|reason| format!("Step {number}/{count} ({}) failed.\n{reason}", step.name))?;
    }
    println!("\nAll {count} steps passed in {:.1} s.", started_at.elapsed().as_secs_f64());
    Ok(())
}

struct Step {
    name: &'static str,
    work: Work,
}

enum Work {
    Cargo(Command),
    Tidy,
    Tools,
    Schemathesis,
    Guard,
}

impl Work {
    fn run(&mut self) -> Result<(), String> {
        match self {
            Work::Cargo(command) => command::run(command),
            Work::Tidy => tidy::run(&[]),
            Work::Tools => tools::install(),
            Work::Schemathesis => schemathesis::short(),
            Work::Guard => guard::run(&[]),
        }
    }
}

/// The lint of the SDK with one of its features, as a program that needs no more builds it.
fn sdk_with(feature: &str) -> Command {
    cargo(&format!(
        "clippy -p tenure-sdk --no-default-features --features {feature} -- -D warnings"
    ))
}

fn steps() -> Vec<Step> {
    let mut docs = cargo("doc --workspace --no-deps");
    docs.env("RUSTDOCFLAGS", "-D warnings");
    let [planted, planted_elsewhere] = planted::tests();
    vec![
        Step { name: "format", work: Work::Cargo(cargo("fmt --all --check")) },
        Step {
            name: "lint",
            work: Work::Cargo(cargo("clippy --workspace --all-targets -- -D warnings")),
        },
        Step { name: "lint of a client alone", work: Work::Cargo(sdk_with("client")) },
        Step { name: "lint of a worker alone", work: Work::Cargo(sdk_with("worker")) },
        // After the lint, because that has fetched every crate whose license tidy looks up.
        Step { name: "tidy", work: Work::Tidy },
        Step { name: "tools", work: Work::Tools },
        Step { name: "tests", work: Work::Cargo(cargo("test --workspace")) },
        Step { name: "generated requests", work: Work::Schemathesis },
        // Bugs that are put in on purpose, each of which some test must catch.
        Step { name: "planted bugs", work: Work::Cargo(planted) },
        Step {
            name: "planted bugs that other tests look for",
            work: Work::Cargo(planted_elsewhere),
        },
        Step { name: "docs", work: Work::Cargo(docs) },
        Step { name: "cost of the hot paths", work: Work::Guard },
    ]
}
