//! The shutdown of a worker: it drains first, and then leaves.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// The phases of a shutdown, which only go forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Working,
    /// No further leases are accepted; running handlers finish.
    Draining,
    /// Handlers are told to stop, and their leases are released.
    Leaving,
    /// All handlers are dropped.
    AtOnce,
}

/// Shuts a worker down. Clones control the same worker.
#[derive(Clone, Debug)]
pub struct Drain(Arc<watch::Sender<Phase>>);

impl Drain {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Working)))
    }

    /// Accepts no further leases, and ends the worker when its running handlers have finished.
    pub fn drain(&self) {
        self.enter(Phase::Draining);
    }

    /// Stops the running handlers, lets those with something to clean up do so, and releases all leases.
    pub fn leave(&self) {
        self.enter(Phase::Leaving);
    }

    /// Drops every async handler, those with something to clean up included.
    pub fn leave_at_once(&self) {
        self.enter(Phase::AtOnce);
    }

    fn enter(&self, phase: Phase) {
        self.0.send_if_modified(|now| {
            let is_further = *now < phase;
            *now = phase.max(*now);
            is_further
        });
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Phase> {
        self.0.subscribe()
    }

    /// Waits for a phase.
    pub(super) async fn reached(&self, phase: Phase) {
        // The sender is here, so it cannot be gone.
        let _ = self.0.subscribe().wait_for(|now| *now >= phase).await;
    }

    /// Leaves when draining has taken longer than the timeout. Never returns.
    pub(super) async fn leave_after(&self, timeout: Option<Duration>) {
        if let Some(timeout) = timeout {
            self.reached(Phase::Draining).await;
            tokio::time::sleep(timeout).await;
            self.leave();
        }
        std::future::pending::<()>().await;
    }

    /// Drains at the first of these signals and leaves at once at the second. Never returns.
    pub(super) async fn heed(&self, signals: Signals) {
        let mut listener = SignalListener::new(signals);
        listener.next().await;
        tracing::info!("the worker drains: running tasks finish; signal it again to leave at once");
        self.drain();
        listener.next().await;
        tracing::info!("the worker leaves at once");
        self.leave_at_once();
        std::future::pending::<()>().await;
    }
}

/// The process signals that drain a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signals {
    None,
    Interrupt,
    InterruptAndTerminate,
}

/// Receives process signals. One listener receives all of them: a listener made anew for each would
/// miss a signal that arrives in between.
#[cfg(unix)]
struct SignalListener {
    interrupt: Option<tokio::signal::unix::Signal>,
    terminate: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl SignalListener {
    fn new(signals: Signals) -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind, is_wanted: bool| is_wanted.then(|| signal(kind).ok()).flatten();
        Self {
            interrupt: listen(SignalKind::interrupt(), signals != Signals::None),
            terminate: listen(SignalKind::terminate(), signals == Signals::InterruptAndTerminate),
        }
    }

    async fn next(&mut self) {
        tokio::select! {
            () = Self::receive(&mut self.interrupt) => {}
            () = Self::receive(&mut self.terminate) => {}
        }
    }

    async fn receive(listener: &mut Option<tokio::signal::unix::Signal>) {
        if let Some(listener) = listener
            && listener.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Receives interrupts, the only signal of platforms other than Unix.
#[cfg(not(unix))]
struct SignalListener(Signals);

#[cfg(not(unix))]
impl SignalListener {
    fn new(signals: Signals) -> Self {
        Self(signals)
    }

    async fn next(&mut self) {
        if self.0 == Signals::None || tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[tokio::test]
    async fn a_signal_that_arrives_between_two_waits_is_received() {
        let mut listener = SignalListener::new(Signals::Interrupt);
        for _ in 0..2 {
            let pid = std::process::id().to_string();
            let sent = std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
            assert!(sent.success());
            tokio::time::sleep(Duration::from_millis(50)).await;
            listener.next().await;
        }
    }

    #[tokio::test]
    async fn a_phase_only_goes_forward() {
        let drain = Drain::new();
        drain.leave_at_once();
        drain.leave();
        drain.drain();
        assert_eq!(*drain.subscribe().borrow(), Phase::AtOnce);
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_that_takes_too_long_becomes_a_leave() {
        let drain = Drain::new();
        let timeout = Some(Duration::from_secs(30));
        let early = tokio::time::timeout(Duration::from_secs(90), drain.leave_after(timeout)).await;
        assert!(
            early.is_err() && *drain.subscribe().borrow() == Phase::Working,
            "not draining yet"
        );
        drain.drain();
        tokio::select! {
            () = drain.leave_after(timeout) => {}
            () = drain.reached(Phase::Leaving) => {}
        }
        assert_eq!(*drain.subscribe().borrow(), Phase::Leaving);
    }
}
