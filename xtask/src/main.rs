//! Every chore of the project: `cargo xtask` lists them.
//!
//! This crate is compiled before each chore, so it has no dependencies.

mod bench;
mod command;
mod dev;
mod evidence;
mod fuzz;
mod golden;
mod guard;
mod laws;
mod mutants;
mod planted;
mod proto;
mod schemathesis;
mod scripts;
mod sim;
mod test;
mod tidy;
mod tools;
mod torture;

use std::process::ExitCode;

struct Chore {
    usage: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Result<(), String>,
}

const CHORES: &[Chore] = &[
    Chore {
        usage: "dev [--data DIR] [--listen ADDRESS]",
        help: "Build, and start a server with sample tasks, as `tenure dev` does.",
        run: dev::run,
    },
    Chore {
        usage: "test",
        help: "Check all that must hold before a change goes in. CI runs just this.",
        run: test::run,
    },
    Chore {
        usage: "tidy",
        help: "Check the house rules that the compiler does not know.",
        run: tidy::run,
    },
    Chore {
        usage: "scripts [--update]",
        help: "Play the text scripts of core; --update rewrites what they expect.",
        run: scripts::run,
    },
    Chore {
        usage: "golden NAME",
        help: "Write a golden log with every event, a finished run and a snapshot, for a new format.",
        run: golden::run,
    },
    Chore {
        usage: "laws [--cases N]",
        help: "Run the property tests of core for long: a million cases unless told.",
        run: laws::run,
    },
    Chore {
        usage: "sim [--seeds N] [--from S] [--seed S] [--hours H]",
        help: "Simulate 10000 seeds unless told; --seed repeats one and tells its story; --hours gives it a long life.",
        run: sim::run,
    },
    Chore {
        usage: "torture [--count N] [PART…]",
        help: "Crash, damage and fail the log, and kill the server, for long: in parts, as many as told.",
        run: torture::run,
    },
    Chore {
        usage: "schemathesis [--seconds N]",
        help: "Ask a server all that its OpenAPI document allows, and what it does not, for ten minutes unless told.",
        run: schemathesis::run,
    },
    Chore {
        usage: "fuzz [--minutes N] [--target T]",
        help: "Fuzz the decoders of the log, guided by coverage; --keep adds to the corpus.",
        run: fuzz::run,
    },
    Chore {
        usage: "bench [core|wal|coordinator] [--instructions] [CASE…]",
        help: "Measure a crate, core unless told; --instructions counts them under valgrind instead of timing.",
        run: bench::run,
    },
    Chore {
        usage: "guard [--update]",
        help: "Compare instructions and bytes of the hot paths with the recorded figures; --update records them anew.",
        run: guard::run,
    },
    Chore {
        usage: "planted",
        help: "Put bugs in on purpose, one at a time, and see that the tests notice each.",
        run: planted::run,
    },
    Chore {
        usage: "mutants [--sample N] [--file F]",
        help: "Change the rules and the log a little, one place at a time, and tell what no test notices; needs cargo-mutants.",
        run: mutants::run,
    },
    Chore {
        usage: "evidence [all|PART…]",
        help: "Run the long forms of tests for the ledger, which takes hours; with nothing, only draw its page.",
        run: evidence::run,
    },
    Chore {
        usage: "proto [--check]",
        help: "Generate the test oracle from record.proto; --check only compares.",
        run: proto::run,
    },
];

impl Chore {
    fn name(&self) -> &'static str {
        self.usage.split(' ').next().unwrap_or(self.usage)
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match start(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("\n{sentence}");
            ExitCode::FAILURE
        }
    }
}

fn start(args: &[String]) -> Result<(), String> {
    let Some((name, rest)) = args.split_first() else {
        list();
        return Ok(());
    };
    if matches!(name.as_str(), "help" | "-h" | "--help") {
        list();
        return Ok(());
    }
    let chore = CHORES.iter().find(|chore| chore.name() == name).ok_or_else(|| {
        format!("There is no chore named `{name}`. `cargo xtask help` lists those there are.")
    })?;
    if rest.iter().any(|arg| arg == "-h" || arg == "--help") {
        println!("cargo xtask {}\n\n{}", chore.usage, chore.help);
        return Ok(());
    }
    (chore.run)(rest)
}

fn list() {
    println!("The chores of Tenure, each run as `cargo xtask <chore>`:\n");
    for chore in CHORES {
        println!("  {}\n      {}", chore.usage, chore.help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_chore_is_refused_and_pointed_to_help() {
        let sentence = start(&["tset".to_owned()]).unwrap_err();
        assert!(sentence.contains("`tset`") && sentence.contains("cargo xtask help"));
    }

    #[test]
    fn every_chore_has_its_own_name_and_one_line_of_help() {
        for (at, chore) in CHORES.iter().enumerate() {
            assert!(CHORES[..at].iter().all(|other| other.name() != chore.name()));
            assert!(chore.help.ends_with('.') && !chore.help.contains('\n'));
        }
    }
}
