//! Many seeds, one after the other: a panic is a broken law too, and all is counted.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::check::{Broken, Held};
use crate::mix::Mix;
use crate::random::Random;
use crate::tally::Tally;
use crate::world::World;
use crate::{Failed, Ran, Voice, run};

/// The name under which a panic is told.
pub const NO_PANIC: &str = "nothing panics";

thread_local! {
    static WHERE: Cell<Option<String>> = const { Cell::new(None) };
}

pub(crate) fn guarded(
    seed: u64,
    live: impl FnOnce(u64) -> (Held, World),
) -> Result<Ran, Box<Failed>> {
    let lived = catch_unwind(AssertUnwindSafe(|| live(seed)));
    let failed = |mix: Mix, at_ms, broken| Err(Box::new(Failed { seed, mix, at_ms, broken }));
    match lived {
        Ok((Ok(()), world)) => Ok(Ran {
            hash: world.trace.hash(),
            virtual_ms: world.now,
            events: world.trace.events,
            records: world.laws.read as u64,
            tally: world.tally,
        }),
        Ok((Err(broken), world)) => failed(world.mix, world.now, broken),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let place = WHERE.take().unwrap_or_default();
            let what = format!("{} {place}", text.unwrap_or_default());
            let mix = Mix::draw(&mut Random::new(seed));
            failed(mix, 0, Broken { law: NO_PANIC, what })
        }
    }
}

/// Panics are kept for the report instead of being printed where they happen.
pub fn hush_panics() {
    std::panic::set_hook(Box::new(|info| {
        WHERE.set(info.location().map(|place| format!("({place})")));
    }));
}

/// What many runs were like together.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many seeds were lived through.
    pub seeds: u64,
    /// How much virtual time went by, in milliseconds.
    pub virtual_ms: u64,
    /// How many things happened.
    pub events: u64,
    /// Records that were written.
    pub records: u64,
    /// What happened how often.
    pub tally: Tally,
}

impl Summary {
    /// Adds a run.
    pub fn add(&mut self, ran: &Ran) {
        self.seeds += 1;
        self.virtual_ms += ran.virtual_ms;
        self.events += ran.events;
        self.records += ran.records;
        self.tally.merge(&ran.tally);
    }
}

/// Lives through seeds until one breaks a law. `told` hears of each that did not.
pub fn run_seeds(
    seeds: impl Iterator<Item = u64>,
    mut told: impl FnMut(&Summary),
) -> Result<Summary, Box<Failed>> {
    let mut summary = Summary::default();
    for seed in seeds {
        summary.add(&run(seed, Voice::Quiet)?);
        told(&summary);
    }
    Ok(summary)
}
