//! `cargo xtask scripts`: whole stories as text, played through the rules.

use crate::command;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let mut tests = command::cargo("test -p tenure-core --test scripts");
    match args {
        [] => command::run(&mut tests).map_err(|sentence| {
            format!(
                "{sentence}\nIf the new output is what you meant, \
                 `cargo xtask scripts --update` writes it into the scripts."
            )
        }),
        [flag] if flag == "--update" => {
            command::run(tests.env("UPDATE_SCRIPTS", "1"))?;
            println!("The scripts now expect what the rules do. Read `git diff` before you agree.");
            Ok(())
        }
        [arg, ..] => Err(command::unknown_argument("scripts", arg)),
    }
}
