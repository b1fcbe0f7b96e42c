//! `cargo xtask dev`: what there is to see today.

use crate::command;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    command::no_arguments("dev", args)?;
    command::run(&mut command::cargo("build --workspace"))?;
    println!(
        "\nThere is no server yet; it arrives later. Until then this plays a sample story through\n\
         the rules in memory and prints the records that the log would hold.\n"
    );
    command::run(&mut command::cargo("run --quiet -p tenure-core --example lifecycle"))
}
