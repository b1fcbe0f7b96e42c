//! Signals of the operating system: SIGTERM and SIGINT stop the server, others must not end it.

use tokio::signal::unix::{SignalKind, signal};

/// What SIGHUP does, which a terminal sends when it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangup {
    /// Nothing: a server outlives the terminal that it was started from.
    Ignore,
    /// An orderly stop.
    Stop,
}

/// From now on signals that would end the process on the spot only write a line. Needs a runtime.
pub(crate) fn ignore_the_rest(hangup: Hangup) {
    let hangup = (hangup == Hangup::Ignore).then_some(("SIGHUP", SignalKind::hangup()));
    let others =
        [("SIGUSR1", SignalKind::user_defined1()), ("SIGUSR2", SignalKind::user_defined2())];
    for (name, kind) in hangup.into_iter().chain(others) {
        // Where it cannot be had, the signal does what it always does.
        let Ok(mut received) = signal(kind) else { continue };
        tokio::spawn(async move {
            while received.recv().await.is_some() {
                tracing::info!("{name} is ignored; SIGTERM stops the server");
            }
        });
    }
}

/// Completes when the process is told to stop.
pub(crate) async fn told_to_stop(hangup: Hangup) {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt()];
    let hangup = (hangup == Hangup::Stop).then(SignalKind::hangup);
    let received = kinds.into_iter().chain(hangup).filter_map(|kind| signal(kind).ok());
    let waits = received.map(|mut received| Box::pin(async move { received.recv().await }));
    let waits: Vec<_> = waits.collect();
    if waits.is_empty() {
        return std::future::pending().await;
    }
    futures_util::future::select_all(waits).await;
}
