//! `tenure-sim`: lives through seeds and says what was seen. `cargo xtask sim` starts it.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use tenure_sim::runner::{Summary, hush_panics, run_seeds};
use tenure_sim::{Tally, Voice, run};

const USAGE: &str = "usage: tenure-sim [--seeds N] [--from S] [--seed S]";
const SEEDS_DEFAULT: u64 = 10_000;
/// The progress line is written anew after so many milliseconds.
const PROGRESS_MS: u128 = 500;

fn main() -> ExitCode {
    let (mut seeds, mut from, mut only) = (SEEDS_DEFAULT, 0, None);
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let number = args.next().and_then(|number| number.parse().ok());
        match (flag.as_str(), number) {
            ("--seeds", Some(number)) => seeds = number,
            ("--from", Some(number)) => from = number,
            ("--seed", Some(number)) => only = Some(number),
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::FAILURE;
            }
        }
    }
    hush_panics();
    match only {
        Some(seed) => one(seed),
        None => many(from, seeds),
    }
}

/// One seed, told aloud.
fn one(seed: u64) -> ExitCode {
    match run(seed, Voice::Loud) {
        Ok(ran) => {
            println!("seed {seed} breaks no law: hash {:016x}", ran.hash);
            ExitCode::SUCCESS
        }
        Err(failed) => {
            eprintln!("{failed}");
            ExitCode::FAILURE
        }
    }
}

fn many(from: u64, seeds: u64) -> ExitCode {
    let started_at = Instant::now();
    let mut shown_at = Instant::now();
    let ended = run_seeds(from..from.saturating_add(seeds), |summary| {
        if shown_at.elapsed().as_millis() > PROGRESS_MS {
            shown_at = Instant::now();
            print!("\r{}", progress(summary));
            let _ = std::io::stdout().flush();
        }
    });
    match ended {
        Ok(summary) => {
            println!("\r{}", progress(&summary));
            table(&summary, started_at.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(failed) => {
            eprintln!("\n{failed}");
            ExitCode::FAILURE
        }
    }
}

fn progress(summary: &Summary) -> String {
    let fault = |name| summary.tally.count("fault", name);
    let Summary { seeds, events, .. } = summary;
    let hours = summary.virtual_ms as f64 / 3_600_000.0;
    let (killed, power) = (fault("killed"), fault("power lost"));
    let (eio, full) = (fault("Eio"), fault("Enospc") + fault("disk full"));
    format!(
        "{seeds} seeds, {hours:.1} virtual hours, {events} events, {killed} kills, {power} power \
         losses, {eio} I/O errors, {full} times full "
    )
}

fn table(summary: &Summary, seconds: f64) {
    for kind in Tally::kinds() {
        println!("\n{kind} ({})", summary.tally.total(kind));
        for (name, count) in summary.tally.of(kind) {
            println!("  {count:>10}  {name}");
        }
    }
    let hours = summary.virtual_ms as f64 / 3_600_000.0;
    println!(
        "\n{} seeds in {seconds:.1} s: {:.1} a second, {:.1} virtual hours a minute, {} records",
        summary.seeds,
        summary.seeds as f64 / seconds,
        hours / seconds * 60.0,
        summary.records
    );
    let never = summary.tally.never();
    match never.is_empty() {
        true => println!("everything that can happen did"),
        false => println!("never happened: {}", never.join(", ")),
    }
}
