//! How a worker ends: first it takes nothing new, then it waits no longer.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// How near a worker is to its end. It only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Working,
    /// Nothing new is taken; what has begun is finished.
    Draining,
    /// Handlers are told to stop, and their leases are given back.
    Leaving,
    /// Handlers are dropped wherever they are.
    AtOnce,
}

/// Tells a worker to finish what it has begun, take nothing new, and leave.
#[derive(Clone, Debug)]
pub struct Drain(Arc<watch::Sender<Phase>>);

impl Drain {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Working)))
    }

    /// Tells it.
    pub fn drain(&self) {
        self.enter(Phase::Draining);
    }

    /// Tells it to wait no longer: handlers are stopped, those with something to clean up may do
    /// that, and all leases are given back.
    pub fn leave(&self) {
        self.enter(Phase::Leaving);
    }

    /// Tells it to leave at once: every async handler is dropped.
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

    /// Leaves when draining has taken so long. Never returns.
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
        let mut heard = Heard::new(signals);
        heard.next().await;
        tracing::info!(
            "the worker drains: it finishes what it has begun; tell it again to leave now"
        );
        self.drain();
        heard.next().await;
        tracing::info!("the worker leaves at once");
        self.leave_at_once();
        std::future::pending::<()>().await;
    }
}

/// Which signals of the system a worker heeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signals {
    None,
    Interrupt,
    InterruptAndTerminate,
}

/// Signals as they come. Without a listener for them the process would end, and a listener that is
/// made anew for each would miss one that comes in between.
#[cfg(unix)]
struct Heard {
    interrupt: Option<tokio::signal::unix::Signal>,
    terminate: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Heard {
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
            () = Self::heard(&mut self.interrupt) => {}
            () = Self::heard(&mut self.terminate) => {}
        }
    }

    async fn heard(listener: &mut Option<tokio::signal::unix::Signal>) {
        if let Some(listener) = listener
            && listener.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Interrupts as they come, where there is nothing else.
#[cfg(not(unix))]
struct Heard(Signals);

#[cfg(not(unix))]
impl Heard {
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
    async fn a_signal_that_comes_while_nobody_listens_is_heard() {
        let mut heard = Heard::new(Signals::Interrupt);
        for _ in 0..2 {
            let pid = std::process::id().to_string();
            let sent = std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
            assert!(sent.success());
            tokio::time::sleep(Duration::from_millis(50)).await;
            heard.next().await;
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
