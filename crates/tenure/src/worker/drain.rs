//! How a worker ends: it drains, or it leaves at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Ends a worker from outside. Clones share it, and one drain can end several workers.
///
/// ```no_run
/// # fn main() -> Result<(), tenure::Error> {
/// # let tenure = tenure::Tenure::open("data")?;
/// let worker = tenure.worker("mailer").handle("mail", |_task| Ok(()));
/// let drain = worker.drain();
/// let running = std::thread::spawn(move || worker.run());
/// // Later, for instance in a signal handler:
/// drain.start();
/// running.join().expect("the worker does not panic")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    keepers: Vec<Waker>,
}

/// How far a worker is with its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    #[default]
    Working,
    /// No more tasks are leased; handlers finish.
    Draining,
    /// The leases of handlers that still run are released.
    Leaving,
}

impl Drain {
    /// A drain that has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to drain: no more tasks are leased, and the worker ends when its handlers have finished.
    pub fn start(&self) {
        self.reach(Phase::Draining);
    }

    /// Leaves at once: the leases of running handlers are released, which costs their tasks nothing,
    /// and the worker ends without waiting for the handlers.
    pub fn leave(&self) {
        self.reach(Phase::Leaving);
    }

    fn reach(&self, phase: Phase) {
        let mut state = self.lock();
        state.phase = state.phase.max(phase);
        state.keepers.iter().for_each(Waker::wake_by_ref);
    }

    /// Wakes a keeper whenever the phase changes.
    pub(super) fn subscribe(&self, keeper: &Waker) {
        self.lock().keepers.push(keeper.clone());
    }

    pub(super) fn phase(&self) -> Phase {
        self.lock().phase
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
