//! `tenure-sim`: lives through seeds and says what was seen. `cargo xtask sim` starts it.

mod progress;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;

use tenure_sim::runner::{Summary, hush_panics, run_seeds};
use tenure_sim::{Failed, Length, Plan, Voice, run, shrink};

// As in the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "usage: tenure-sim [--seeds N] [--from S] [--seed S [--minutes M | --hours H] \
                     [--without A,B] [--clients N] [--workers N]]";
const SEEDS_DEFAULT: u64 = 10_000;
/// The progress line is written anew after so many milliseconds.
const PROGRESS_MS: u128 = 500;

/// What was asked for.
struct Asked {
    seeds: u64,
    from: u64,
    plan: Plan,
    is_one: bool,
}

fn main() -> ExitCode {
    match asked(std::env::args().skip(1)) {
        Ok(asked) => {
            hush_panics();
            match asked.is_one {
                true => one(&asked.plan),
                false => many(asked.from, asked.seeds),
            }
        }
        Err(sentence) => {
            eprintln!("{sentence}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn asked(mut args: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked { seeds: SEEDS_DEFAULT, from: 0, plan: Plan::of(0), is_one: false };
    while let Some(flag) = args.next() {
        let value = args.next().unwrap_or_default();
        let number = || value.parse().map_err(|_| format!("{flag} needs a number, not `{value}`"));
        match flag.as_str() {
            "--seeds" => asked.seeds = number()?,
            "--from" => asked.from = number()?,
            _ => {
                asked.plan.set(&flag, &value)?;
                asked.is_one = true;
            }
        }
    }
    Ok(asked)
}

/// One seed, told aloud unless it is long.
fn one(plan: &Plan) -> ExitCode {
    let started_at = Instant::now();
    let voice = match plan.length {
        Length::Hours(_) => Voice::Quiet,
        Length::Usual | Length::Minutes(_) => Voice::Loud,
    };
    match run(plan, voice) {
        Ok(ran) => {
            progress::curve(&ran.curve);
            let mut summary = Summary::default();
            summary.add(&ran);
            println!("{}", progress::line(&summary));
            println!("{}", progress::speed(&summary, started_at.elapsed().as_secs_f64()));
            println!("it drew {:?}", ran.config);
            println!("seed {} breaks no law: hash {:016x}", plan.seed, ran.hash);
            ExitCode::SUCCESS
        }
        Err(failed) => {
            eprintln!("{failed}");
            tell_shrunk(failed);
            ExitCode::FAILURE
        }
    }
}

/// The smallest run that fails for the same reason.
fn tell_shrunk(failed: Box<Failed>) {
    let plan = failed.plan.clone();
    let least = shrink(failed);
    if least.plan != plan {
        eprintln!("the same law breaks, with less around it, in:\n    {}", least.plan);
    }
    eprintln!("once it is mended, keep it in crates/sim/seeds/failed.txt");
}

fn many(from: u64, seeds: u64) -> ExitCode {
    let started_at = Instant::now();
    let mut shown_at = Instant::now();
    let is_watched = std::io::stdout().is_terminal();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let ended = run_seeds(from..from.saturating_add(seeds), threads, |summary| {
        if is_watched && shown_at.elapsed().as_millis() > PROGRESS_MS {
            shown_at = Instant::now();
            print!("\r{}", progress::line(summary));
            let _ = std::io::stdout().flush();
        }
    });
    match ended {
        Ok(summary) => {
            println!("\r{}", progress::line(&summary));
            progress::table(&summary);
            println!("evidence: T2 {}", progress::line(&summary));
            let seconds = started_at.elapsed().as_secs_f64();
            println!("evidence: T2 {}", progress::speed(&summary, seconds));
            ExitCode::SUCCESS
        }
        Err(failed) => {
            eprintln!("\n{failed}");
            tell_shrunk(failed);
            ExitCode::FAILURE
        }
    }
}
