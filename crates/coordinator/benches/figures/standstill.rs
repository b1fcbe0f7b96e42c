//! Whether the machine itself stands still: a virtual one gets no processor while its host has other
//! things to do, and whoever waits meanwhile does not wait for us.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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

/// A thread that does nothing but take naps, before everybody else's turn.
pub(crate) struct Machine {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Span>>,
}

impl Machine {
    pub(crate) fn watch() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            // Of this thread alone. Where it is not allowed, our own threads count as standstill.
            let first = rustix::process::nice(-20);
            assert!(first.is_ok(), "only root can tell a busy machine from one that stands still");
            let mut late = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let begin = Instant::now() + NAP;
                std::thread::sleep(NAP);
                let span = Span { begin, end: Instant::now() };
                if span.end.saturating_duration_since(span.begin) > LATE {
                    late.push(span);
                }
            }
            late
        });
        Self { stop, thread }
    }

    /// When it stood still, since it is watched.
    pub(crate) fn stood_still(self) -> Vec<Span> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("it only naps")
    }
}
