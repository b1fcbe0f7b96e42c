//! The weather: the real rules, the real log and the real coordinator in a simulated world. One
//! thread, one virtual clock, one seed; the same seed gives the same run, to the last byte.
//!
//! Clients, workers and followers talk to the coordinator over a line that delays, loses, doubles
//! and reorders. The machine crashes at any call to its disk, loses its power or only its process,
//! runs out of room, and has its clock set. The laws (`check`) look at every record, every reply
//! and every recovery. Then the trouble ends, and everything has to come to an end.

mod actors;
mod callers;
mod check;
mod config;
mod coverage;
mod disk;
mod faults;
mod injector;
mod item;
mod last_frames;
mod ledger;
mod log;
mod model;
mod network;
mod plan;
mod process;
mod random;
mod request;
mod restarts;
pub mod runner;
mod shrink;
mod teardown;
mod trace;
// The same workflows that core's own tests play.
#[path = "../../core/tests/runs/workflows.rs"]
mod workflows;
mod world;

pub use check::{Broken, Sample};
pub use config::SimConfig;
pub use coverage::{Coverage, OUT_OF_REACH};
pub use faults::{SimFault, Without};
pub use plan::{Length, Plan};
pub use shrink::shrink;

use std::fmt;

/// What a run was like.
#[derive(Clone, Debug)]
pub struct Ran {
    /// One number for everything that happened.
    pub hash: u64,
    /// How much virtual time went by, in milliseconds.
    pub virtual_ms: u64,
    /// How many things happened.
    pub events: u64,
    /// Records that were written.
    pub records: u64,
    /// What happened how often.
    pub coverage: Coverage,
    /// What the seed drew.
    pub config: SimConfig,
    /// How much was kept, from time to time.
    pub curve: Vec<Sample>,
}

/// A run that broke a law.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Which run.
    pub plan: Plan,
    /// What its seed drew.
    pub config: SimConfig,
    /// When it was, in virtual milliseconds.
    pub at_ms: u64,
    /// What was broken.
    pub broken: Broken,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, config, at_ms, broken } = self;
        write!(
            f,
            "seed {} breaks a law after {at_ms} virtual milliseconds\n  {broken}\n  it drew \
             {config:?}\nrepeat it, and read along, with:\n    {plan}",
            plan.seed
        )
    }
}

/// Whether a run tells its story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// Only how it ended.
    Quiet,
    /// Every event, on stderr.
    Loud,
}

/// Lives through one run.
///
/// # Errors
/// The law that it broke.
pub fn run(plan: &Plan, voice: Voice) -> Result<Ran, Box<Failed>> {
    runner::guarded(plan, |plan| {
        let mut world = world::World::new(plan, voice == Voice::Loud);
        let held = world.run();
        (held, world)
    })
}
