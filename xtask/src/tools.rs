//! Tools that tests need and that Rust does not bring along.

use crate::command::{self, program};

/// A program, and the Debian package that has it.
const STRACE: (&str, &str) = ("strace", "strace");

/// Installs what is missing where that is possible. Without it the tests that need it say that
/// they are skipped; under CI they must run, so there it is an error.
pub(crate) fn install() -> Result<(), String> {
    let (name, package) = STRACE;
    if is_there(name) {
        println!("{name} is there.");
        return Ok(());
    }
    println!("{name} is missing; trying to install it.");
    let installed = command::run(program("apt-get").args(["update", "-qq"]))
        .and_then(|()| command::run(program("apt-get").args(["install", "-y", "-qq", package])));
    match installed {
        Ok(()) => Ok(()),
        Err(reason) if is_ci() => Err(reason),
        Err(_) => {
            println!("It cannot be installed here. Tests that need it will say SKIPPED.");
            println!("To run them, install the package `{package}` as root.");
            Ok(())
        }
    }
}

fn is_there(name: &str) -> bool {
    let mut command = program(name);
    command.arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Whether everything must run.
pub(crate) fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}
