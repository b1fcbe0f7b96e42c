//! `cargo xtask dev`: builds, and hands over to `tenure dev`.

use std::os::unix::process::CommandExt;

use crate::command;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    println!("Building; the first time takes a few minutes.");
    command::run(&mut command::cargo("build --package tenure-cli"))?;
    println!();
    // It takes this process over, so whoever stops this stops it.
    let mut tenure = command::program("target/debug/tenure");
    tenure.arg("dev").args(args);
    let error = tenure.exec();
    Err(format!("{} could not be started: {error}.", command::line(&tenure)))
}
