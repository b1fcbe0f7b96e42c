//! A line now and then from a test that takes minutes: what, how many, and for how long.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(5);

pub(crate) struct Progress {
    what: &'static str,
    wanted: u64,
    done: AtomicU64,
    started_at: Instant,
    told_at: Mutex<Instant>,
}

impl Progress {
    pub(crate) fn new(what: &'static str, wanted: u64) -> Self {
        let now = Instant::now();
        Self { what, wanted, done: AtomicU64::new(0), started_at: now, told_at: Mutex::new(now) }
    }

    pub(crate) fn add(&self, count: u64) {
        let done = self.done.fetch_add(count, Ordering::Relaxed) + count;
        // Whoever finds it taken need not tell: another one does.
        if let Ok(mut told_at) = self.told_at.try_lock()
            && told_at.elapsed() > EVERY
        {
            *told_at = Instant::now();
            let seconds = self.started_at.elapsed().as_secs();
            println!("{}: {done} of {}, {seconds} s", self.what, self.wanted);
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.wanted
    }

    /// The line that `cargo xtask torture` repeats at its end.
    pub(crate) fn tally(&self, more: &str) {
        let (done, seconds) =
            (self.done.load(Ordering::Relaxed), self.started_at.elapsed().as_secs_f64());
        println!("tally: {done} {}{more} in {seconds:.1} s", self.what);
    }
}
