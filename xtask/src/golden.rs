//! `cargo xtask golden`: a folder that every later version must read, written by the real
//! coordinator.

use crate::command;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let [name] = args else {
        return Err(
            "Name the folder, such as the number of the format: cargo xtask golden 2".into()
        );
    };
    let mut test = command::cargo("test -p tenure-coordinator --test golden -- --ignored write");
    command::run(test.env("TENURE_GOLDEN", name))?;
    println!("crates/coordinator/tests/golden/{name} is written. It is never edited again.");
    Ok(())
}
