//! `cargo xtask sim`: the simulation, for as long as there is patience.

use crate::command;

const FLAGS: [&str; 8] =
    ["--seeds", "--from", "--seed", "--minutes", "--hours", "--without", "--clients", "--workers"];

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let args = numbers(args)?;
    let mut sim = command::cargo("run --quiet --release -p tenure-sim --");
    command::run(sim.args(args))
}

/// The flags with their numbers, each apart.
fn numbers(args: &[String]) -> Result<Vec<String>, String> {
    let mut checked = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let (flag, number) = match arg.split_once('=') {
            Some((flag, number)) => (flag, number),
            None => (arg.as_str(), args.next().map_or("", String::as_str)),
        };
        if !FLAGS.contains(&flag) {
            return Err(command::unknown_argument("sim", arg));
        }
        // Names, which the simulation itself knows.
        if flag != "--without" && number.parse::<u64>().is_err() {
            return Err(format!("{flag} needs a whole number, such as 5000, not `{number}`."));
        }
        checked.extend([flag.to_owned(), number.to_owned()]);
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers_of(args: &[&str]) -> Result<Vec<String>, String> {
        numbers(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for args in [&["--seeds"][..], &["--seed", "mine"], &["--from=-1"], &["--sead", "5"]] {
            assert!(numbers_of(args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn both_spellings_of_a_number_are_taken() {
        let taken = numbers_of(&["--seeds", "50", "--from=7"]);
        assert_eq!(taken.unwrap(), ["--seeds", "50", "--from", "7"]);
    }
}
