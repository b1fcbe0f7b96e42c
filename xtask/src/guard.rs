//! `cargo xtask guard`: the cost of the hot paths, held to the figures in `xtask/guard.txt`.
//!
//! Instructions and bytes hardly depend on the machine, so a change that makes a path a few percent
//! costlier fails the tests of that change instead of being found months later.

use std::fmt::Write as _;

use crate::bench::{self, Count};
use crate::command::{self, program, root};
use crate::tools;

const FIGURES: &str = "xtask/guard.txt";

/// Benches of core and the cases whose instructions are counted: the name of the figure, the bench,
/// the case, and how many things the case does for each event that it reports.
const INSTRUCTIONS: [(&str, &str, &str, f64); 4] = [
    ("instructions_per_lifecycle", "figures", "submit_lease_complete", 3.0),
    ("instructions_per_replayed_record", "figures", "replay", 1.0),
    ("instructions_per_run_event", "runs", "run_of_three", 1.0),
    ("instructions_per_branch_event", "runs", "fan_out", 1.0),
];

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    match args {
        [] => check(),
        [flag] if flag == "--update" => update(),
        [arg, ..] => Err(command::unknown_argument("guard", arg)),
    }
}

fn check() -> Result<(), String> {
    if !bench::has_valgrind() {
        let advice = "The guard counts instructions with valgrind, which was not found. Install it \
                      (`apt install valgrind`) and repeat `cargo xtask guard`.";
        if tools::is_ci() {
            return Err(advice.to_owned());
        }
        println!("SKIPPED. {advice}");
        return Ok(());
    }
    let recorded = recorded()?;
    let mut worse = Vec::new();
    println!("{:<34} {:>12} {:>12} {:>8}", "figure", "recorded", "now", "change");
    for (name, now) in measure()? {
        let figure = recorded.iter().find(|figure| figure.name == name).ok_or_else(|| {
            format!("{FIGURES} has no `{name}`; `cargo xtask guard --update` records it.")
        })?;
        let percent = (now / figure.value - 1.0) * 100.0;
        println!("{name:<34} {:>12.2} {now:>12.2} {percent:>+7.2}%", figure.value);
        if percent > figure.tolerance_percent {
            worse
                .push(format!("{name} by {percent:.2} % (allowed {} %)", figure.tolerance_percent));
        }
    }
    match worse.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "The hot paths cost more than recorded: {}. Find the cause, or say in the commit why it is \
             worth it and record the new figures with `cargo xtask guard --update`.",
            worse.join(", ")
        )),
    }
}

fn update() -> Result<(), String> {
    let recorded = recorded().unwrap_or_default();
    let mut text = String::from(HEADER);
    for (name, value) in measure()? {
        let before = recorded.iter().find(|figure| figure.name == name);
        let tolerance = before.map_or(TOLERANCE_PERCENT, |figure| figure.tolerance_percent);
        let _ = writeln!(text, "{name} {value:.2} {tolerance}");
    }
    std::fs::write(root().join(FIGURES), &text)
        .map_err(|error| format!("{FIGURES} could not be written: {error}."))?;
    println!("{text}\nRecorded in {FIGURES}.");
    Ok(())
}

const TOLERANCE_PERCENT: f64 = 3.0;
const HEADER: &str = "\
# What the hot paths cost: figure, value, and by how many percent it may grow unnoticed.
# `cargo xtask guard` compares, `cargo xtask guard --update` records. Payloads have 100 bytes.
";

struct Figure {
    name: String,
    value: f64,
    tolerance_percent: f64,
}

fn recorded() -> Result<Vec<Figure>, String> {
    let text = std::fs::read_to_string(root().join(FIGURES))
        .map_err(|error| format!("{FIGURES} could not be read: {error}."))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Figure>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let figure = |line: &str| {
        let mut words = line.split(' ');
        Some(Figure {
            name: words.next()?.to_owned(),
            value: words.next()?.parse().ok().filter(|value| *value > 0.0)?,
            tolerance_percent: words.next()?.parse().ok()?,
        })
    };
    lines
        .map(|line| {
            figure(line).ok_or_else(|| format!("{FIGURES} has a line that says nothing: {line}"))
        })
        .collect()
}

/// All figures, in the order in which they are recorded.
fn measure() -> Result<Vec<(String, f64)>, String> {
    let benches = [("figures", bench::build("figures")?), ("runs", bench::build("runs")?)];
    let mut figures = Vec::new();
    for (name, bench, case, each) in INSTRUCTIONS {
        let executable = &benches.iter().find(|(it, _)| *it == bench).expect("it was built").1;
        let Count { instructions, events } = bench::count(executable, case)?;
        figures.push((name.to_owned(), instructions as f64 / events as f64 * each));
    }
    for (_, executable) in &benches {
        let printed = command::stdout_of(program(executable).arg("--bytes"))?;
        figures.extend(printed.lines().filter_map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        }));
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_value_is_refused() {
        assert!(parse("lifecycle\n").is_err());
        assert!(parse("lifecycle 0 3\n").is_err(), "a change of nothing has no percent");
        let figures = parse("# comment\n\nlifecycle 12.5 3\n").unwrap();
        assert_eq!((figures.len(), figures[0].value, figures[0].tolerance_percent), (1, 12.5, 3.0));
    }

    #[test]
    fn the_recorded_figures_can_be_read() {
        let names: Vec<_> = recorded().unwrap().into_iter().map(|figure| figure.name).collect();
        assert_eq!(names.len(), INSTRUCTIONS.len() + 3, "{names:?}");
    }
}
