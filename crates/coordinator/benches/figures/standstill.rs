//! Whether the machine itself stands still: a virtual one gets no processor while its host has other
//! things to do, and whoever waits meanwhile does not wait for us.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::thread::CpuSet;

const NAP: Duration = Duration::from_millis(1);
/// Nobody wakes up sooner than that after a nap.
const LATE: Duration = Duration::from_millis(3);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
}

impl Span {
    pub(crate) fn took(&self) -> Duration {
        self.end - self.begin
    }

    pub(crate) fn overlap(&self, other: &Self) -> Duration {
        self.end.min(other.end).saturating_duration_since(self.begin.max(other.begin))
    }
}

/// A thread on each processor that does nothing but take naps, before everybody else's turn.
pub(crate) struct Machine {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Span>>>,
}

impl Machine {
    pub(crate) fn watch() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let allowed = rustix::thread::sched_getaffinity(None).expect("this thread runs somewhere");
        let processors = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor));
        let watch = |processor| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || nap(processor, &stop))
        };
        let threads = processors.map(watch).collect();
        Self { stop, threads }
    }

    /// When one of its processors stood still, since it is watched; no moment is told twice.
    pub(crate) fn stood_still(self) -> Vec<Span> {
        self.stop.store(true, Ordering::Relaxed);
        let naps = self.threads.into_iter();
        let mut late: Vec<Span> = naps.flat_map(|one| one.join().expect("it only naps")).collect();
        late.sort_by_key(|span| span.begin);
        let mut told: Vec<Span> = Vec::new();
        for span in late {
            match told.last_mut().filter(|last| span.begin <= last.end) {
                Some(last) => last.end = last.end.max(span.end),
                None => told.push(span),
            }
        }
        told
    }
}

/// The naps that took too long on this processor.
fn nap(processor: usize, stop: &AtomicBool) -> Vec<Span> {
    let mut here = CpuSet::new();
    here.set(processor);
    rustix::thread::sched_setaffinity(None, &here).expect("it was allowed to run here");
    // Of this thread alone. Where it is not allowed, our own threads count as standstill.
    let first = rustix::process::nice(-20);
    assert!(first.is_ok(), "only root can tell a busy machine from one that stands still");
    let mut late = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let begin = Instant::now() + NAP;
        std::thread::sleep(NAP);
        let span = Span { begin, end: Instant::now() };
        if span.end.saturating_duration_since(span.begin) > LATE {
            late.push(span);
        }
    }
    late
}
