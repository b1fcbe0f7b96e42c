//! `cargo xtask dev`: what there is to see today.

use crate::command;

/// Where the sample keeps its tasks.
const FOLDER: &str = "tenure-data";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    command::no_arguments("dev", args)?;
    command::run(&mut command::cargo("build --workspace"))?;
    println!(
        "\nThere is no server yet; it arrives later. Until then this runs a program with Tenure\n\
         inside: two workers deliver four letters, and everything is kept in ./{FOLDER}.\n"
    );
    let mut story = command::cargo("run --quiet -p tenure-coordinator --example mailroom --");
    command::run(story.arg(FOLDER))?;
    println!(
        "\nRun it again, and kill it in between: nothing is lost. To look into the log:\n    \
         cargo run -p tenure-cli -- wal dump --data {FOLDER}\n    \
         cargo run -p tenure-cli -- wal stat --data {FOLDER}\n"
    );
    Ok(())
}
