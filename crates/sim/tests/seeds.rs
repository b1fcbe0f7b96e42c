//! T2: the simulation as every change meets it: many seeds, and nothing that can happen may never
//! happen.
//!
//! Proves P18, and looks for what would break most of the others.

use tenure_sim::runner::run_seeds;
use tenure_sim::{Plan, Voice, run, shrink};

/// How many seeds every change has to live through, each of ten virtual minutes.
const SEEDS: u64 = 500;
const THREADS: usize = 2;

#[test]
fn no_seed_breaks_a_law() {
    match run_seeds(0..SEEDS, THREADS, |_| {}) {
        Ok(summary) => {
            println!("{} seeds, {} events", summary.seeds, summary.events);
            // A path that nobody walks is not tested.
            assert_eq!(summary.coverage.never(), Vec::<String>::new());
        }
        Err(failed) => {
            panic!("{failed}\nor, with less around it:\n    {}", shrink(failed.clone()).plan)
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let hash = |seed| {
        let ran = run(&Plan::of(seed), Voice::Quiet);
        ran.map_or_else(|failed| panic!("{failed}"), |ran| ran.hash)
    };
    for seed in [1, 7, 19] {
        assert_eq!(hash(seed), hash(seed), "seed {seed}");
    }
    assert_ne!(hash(1), hash(2));
}
