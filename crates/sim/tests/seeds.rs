//! The simulation as every change meets it: many seeds, and those that once failed, for ever.

use tenure_sim::runner::run_seeds;
use tenure_sim::{Voice, run};

/// How many seeds every change has to live through.
const SEEDS: u64 = 300;

#[test]
fn no_seed_breaks_a_law() {
    match run_seeds(0..SEEDS, |_| {}) {
        Ok(summary) => {
            println!("{} seeds, {} events", summary.seeds, summary.events);
            println!("never: {:?}", summary.tally.never());
        }
        Err(failed) => panic!("{failed}"),
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [1, 7, 19] {
        let hash =
            || run(seed, Voice::Quiet).map_or_else(|failed| panic!("{failed}"), |ran| ran.hash);
        assert_eq!(hash(), hash(), "seed {seed}");
    }
    assert_ne!(run(1, Voice::Quiet).unwrap().hash, run(2, Voice::Quiet).unwrap().hash);
}
