//! `cargo xtask laws`: the property tests, for as long as there is patience.

use crate::command;

const CASES_DEFAULT: u32 = 1_000_000;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let cases = cases(args)?;
    println!("Running each law on {cases} cases. A failing case is shown as small as it gets.");
    command::run(
        command::cargo("test --release -p tenure-core --test laws")
            .env("PROPTEST_CASES", cases.to_string()),
    )
}

fn cases(args: &[String]) -> Result<u32, String> {
    let number = match args {
        [] => return Ok(CASES_DEFAULT),
        [flag, number] if flag == "--cases" => number,
        [arg] if arg.starts_with("--cases=") => &arg["--cases=".len()..],
        [flag] if flag == "--cases" => "",
        [arg, ..] => return Err(command::unknown_argument("laws", arg)),
    };
    match number.parse() {
        Ok(cases) if cases > 0 => Ok(cases),
        _ => Err(format!("--cases needs a whole number above 0, such as 50000, not `{number}`.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases_of(args: &[&str]) -> Result<u32, String> {
        cases(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn cases_that_are_no_number_are_refused() {
        for args in [&["--cases"][..], &["--cases", "many"], &["--cases=0"], &["--case", "5"]] {
            assert!(cases_of(args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn cases_are_a_million_unless_told() {
        assert_eq!(cases_of(&[]), Ok(1_000_000));
        assert_eq!(cases_of(&["--cases", "50"]), Ok(50));
        assert_eq!(cases_of(&["--cases=60"]), Ok(60));
    }
}
