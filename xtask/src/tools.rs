//! Tools that tests need and that Rust does not bring along.

use crate::command::{self, program};

/// Programs, and the Debian packages that have them.
const TOOLS: [(&str, &str); 5] = [
    ("strace", "strace"),
    ("faketime", "faketime"),
    ("mkfs.ext4", "e2fsprogs"),
    ("python3", "python3"),
    ("valgrind", "valgrind"),
];

/// Installs what is missing where that is possible. Without it the tests that need it say that
/// they are skipped; under CI they must run, so there it is an error.
pub(crate) fn install() -> Result<(), String> {
    let missing: Vec<_> = TOOLS.into_iter().filter(|(name, _)| !is_there(name)).collect();
    if missing.is_empty() {
        println!("{} are there.", TOOLS.map(|(name, _)| name).join(", "));
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|(name, _)| *name).collect();
    let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
    println!("missing: {}; trying to install it.", names.join(", "));
    let mut install = program("apt-get");
    install.args(["install", "-y", "-qq"]).args(&packages);
    let installed = command::run(program("apt-get").args(["update", "-qq"]))
        .and_then(|()| command::run(&mut install));
    match installed {
        Ok(()) => Ok(()),
        Err(reason) if is_ci() => Err(reason),
        Err(_) => {
            println!("It cannot be installed here. Tests that need it will say SKIPPED.");
            println!("To run them, install as root: {}", packages.join(" "));
            Ok(())
        }
    }
}

/// Not every tool says its version, so the shell is asked.
fn is_there(name: &str) -> bool {
    let find = format!("command -v {name}");
    program("sh").args(["-c", &find]).output().is_ok_and(|output| output.status.success())
}

/// Whether everything must run.
pub(crate) fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}
