//! Writes the seeds of a target into a folder, for a fuzzer that wants files:
//! `seeds <target> <folder>`. Without arguments it lists the targets.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use tenure_fuzz::{TARGETS, target};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, folder] = args.as_slice() else {
        TARGETS.iter().for_each(|target| println!("{}", target.name));
        return ExitCode::SUCCESS;
    };
    let Some(target) = target(name) else {
        eprintln!("There is no target named `{name}`.");
        return ExitCode::FAILURE;
    };
    for (nth, seed) in (target.seeds)().iter().enumerate() {
        if let Err(error) = fs::write(Path::new(folder).join(format!("seed-{nth:03}")), seed) {
            eprintln!("{folder} could not be written to: {error}.");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
