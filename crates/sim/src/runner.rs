//! Many seeds, on several threads: a panic is a broken law too, and all is counted.

use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::check::{Broken, LawResult};
use crate::config::SimConfig;
use crate::coverage::Coverage;
use crate::plan::Plan;
use crate::random::Random;
use crate::world::World;
use crate::{Failed, Ran, Voice, run};

/// The name under which a panic is told.
pub const NO_PANIC: &str = "nothing panics";

thread_local! {
    static WHERE: Cell<Option<String>> = const { Cell::new(None) };
}

pub(crate) fn guarded(
    plan: &Plan,
    live: impl FnOnce(&Plan) -> (LawResult, World),
) -> Result<Ran, Box<Failed>> {
    let lived = catch_unwind(AssertUnwindSafe(|| live(plan)));
    let failed = |config: SimConfig, at_ms, broken| {
        let plan = plan.clone();
        Err(Box::new(Failed { plan, config, at_ms, broken }))
    };
    match lived {
        Ok((Ok(()), world)) => Ok(Ran {
            hash: world.trace.hash(),
            virtual_ms: world.now,
            events: world.trace.events,
            records: world.laws.read as u64,
            config: world.config,
            curve: world.laws.disk.curve,
            coverage: world.coverage,
        }),
        Ok((Err(broken), world)) => failed(world.config, world.now, broken),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let place = WHERE.take().unwrap_or_default();
            let what = format!("{} {place}", text.unwrap_or_default());
            let config = SimConfig::of(plan, &mut Random::new(plan.seed));
            failed(config, 0, Broken { law: NO_PANIC, what })
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
    pub coverage: Coverage,
}

impl Summary {
    /// Adds a run.
    pub fn add(&mut self, ran: &Ran) {
        self.seeds += 1;
        self.virtual_ms += ran.virtual_ms;
        self.events += ran.events;
        self.records += ran.records;
        self.coverage.merge(&ran.coverage);
    }
}

/// Lives through seeds, on so many threads, until one breaks a law. `told` hears of each that did
/// not.
///
/// # Errors
/// The first seed that broke a law, of those that were begun.
pub fn run_seeds(
    seeds: Range<u64>,
    threads: usize,
    told: impl FnMut(&Summary) + Send,
) -> Result<Summary, Box<Failed>> {
    let next = AtomicU64::new(seeds.start);
    let shared = Mutex::new((Summary::default(), told, None::<Box<Failed>>));
    let live = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= seeds.end {
            return;
        }
        let ran = run(&Plan::of(seed), Voice::Quiet);
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let (summary, told, failed) = &mut *shared;
        match ran {
            Ok(ran) => {
                summary.add(&ran);
                told(summary);
            }
            Err(found) => {
                next.store(seeds.end, Ordering::Relaxed);
                if failed.as_ref().is_none_or(|failed| found.plan.seed < failed.plan.seed) {
                    *failed = Some(found);
                }
            }
        }
    };
    std::thread::scope(|scope| (0..threads.max(1)).for_each(|_| drop(scope.spawn(live))));
    let (summary, _, failed) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(summary), Err)
}
