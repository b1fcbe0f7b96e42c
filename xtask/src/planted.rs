//! `cargo xtask planted`: every bug that can be put in on purpose, and the test that notices it.

use std::process::Command;

use crate::command::{self, cargo};

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    command::no_arguments("planted", args)?;
    tests().into_iter().try_for_each(|mut test| command::run(test.arg("--nocapture")))
}

/// Tests with the bugs built in. The whole workspace each time, so that all of them share one build.
pub(crate) fn tests() -> [Command; 2] {
    let features = "tenure-cli/planted,tenure-fuzz/planted,tenure-sim/planted";
    [
        "--test planted --",
        // Those that the tests of something else look for.
        "--test snapshots --test kill_points --test histories -- without_the_check _is_noticed",
    ]
    .map(|tests| cargo(&format!("test --workspace --features {features} {tests}")))
}
