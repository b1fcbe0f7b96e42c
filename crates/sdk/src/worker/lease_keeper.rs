//! The lease keeper: a thread with the worker's connection, which sends heartbeats and reports however
//! busy the handlers keep their runtime, and reconnects with the leases that it still holds.

use std::time::Duration;

use tenure_proto::v1;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use super::drain::Phase;
use super::lease_table::LeaseTable;
use super::outcome::{Failure, Output};
use super::progress::ProgressSlot;
use super::task::LeasedTask;
use crate::connection::Server;
use crate::delays::RetryDelays;
use crate::error::Error;

/// Messages that wait to be sent.
const OUTGOING_MAX: usize = 16;
/// Events of handlers that are handled together.
const EVENTS_MAX: usize = 1_000;
/// The silence after which a server is pinged.
const PING_AFTER: Duration = Duration::from_secs(10);
/// The silence after which a connection is given up.
const SILENCE_MAX: Duration = Duration::from_secs(25);
/// The time in which a server has to answer a hello or a goodbye.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const RETRY_DELAY_MIN: Duration = Duration::from_millis(50);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(2);

/// What a handler tells the lease keeper.
#[derive(Debug)]
pub(super) enum HandlerEvent {
    /// The handler ended, without a result if it was stopped.
    Ended { lease_id: u64, result: Option<Result<Output, Failure>> },
    /// The handler reported progress or saved a checkpoint.
    Progressed { lease_id: u64, slot: ProgressSlot },
}

/// Keeps the leases of a worker.
pub(super) struct LeaseKeeper {
    pub(super) server: Server,
    /// The hello of every stream, without the leases.
    pub(super) hello: v1::Hello,
    pub(super) table: LeaseTable,
    /// New tasks for handlers.
    pub(super) tasks: mpsc::UnboundedSender<Vec<LeasedTask>>,
    pub(super) events: mpsc::UnboundedReceiver<HandlerEvent>,
    /// The phase that the lease table is in.
    pub(super) known: Phase,
    pub(super) phase: watch::Receiver<Phase>,
}

/// Why a stream ended without a goodbye.
enum Disconnected {
    /// Another connection may succeed.
    Retryable,
    /// The server refuses this worker.
    Refused(Error),
}

/// Why the lease keeper woke up.
enum Wakeup {
    Server(Option<Box<v1::WorkResponse>>),
    Handlers,
    Phase(Phase),
    Time,
    /// The worker that ran the handlers was dropped.
    Orphaned,
}

impl LeaseKeeper {
    /// Runs until a drain is complete, or the server refuses this worker.
    pub(super) async fn run(mut self) -> Result<(), Error> {
        let mut delays = RetryDelays::new(RETRY_DELAY_MIN, RETRY_DELAY_MAX);
        loop {
            let began = Instant::now();
            match self.session().await {
                Ok(()) => return Ok(()),
                Err(Disconnected::Refused(error)) => return Err(error),
                Err(Disconnected::Retryable) => {}
            }
            if self.table.is_done() {
                return Ok(());
            }
            if began.elapsed() > RETRY_DELAY_MAX {
                delays.reset();
            }
            let pause = tokio::time::sleep(delays.next());
            if self.meanwhile(pause).await.is_none() {
                return Ok(());
            }
        }
    }

    /// One stream, from its hello to its end.
    async fn session(&mut self) -> Result<(), Disconnected> {
        let server = self.server.clone();
        let connecting =
            async move { tokio::time::timeout(HANDSHAKE_TIMEOUT, server.connect_worker()).await };
        let Some(connected) = self.meanwhile(connecting).await else { return Ok(()) };
        let Ok(Ok(mut workers)) = connected else { return Err(Disconnected::Retryable) };
        let (outgoing, receive) = mpsc::channel(OUTGOING_MAX);
        let held = self.table.reconnect();
        let hello = Some(v1::Hello { held: held.clone(), ..self.hello.clone() });
        let sent_at = Instant::now();
        let hello = v1::WorkRequest { hello, ..Default::default() };
        outgoing.try_send(hello).map_err(|_| Disconnected::Retryable)?;
        let handshake = async move {
            let mut incoming = workers.work(ReceiverStream::new(receive)).await?.into_inner();
            let first = incoming.message().await?;
            Ok::<_, tonic::Status>((incoming, first))
        };
        let handshake = async move { tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await };
        let Some(established) = self.meanwhile(handshake).await else { return Ok(()) };
        let (incoming, first) = match established {
            Ok(Ok(established)) => established,
            Ok(Err(status)) => return Err(disconnected(status)),
            Err(_) => return Err(Disconnected::Retryable),
        };
        let Some(welcome) = first.and_then(|first| first.welcome) else {
            return Err(Disconnected::Retryable);
        };
        self.table.welcome(&welcome, &held, sent_at, Instant::now());
        tracing::debug!(held = held.len(), "the worker is connected");
        self.work(incoming, outgoing).await
    }

    async fn work(
        &mut self,
        mut incoming: Streaming<v1::WorkResponse>,
        outgoing: mpsc::Sender<v1::WorkRequest>,
    ) -> Result<(), Disconnected> {
        let (mut received_at, mut pinged) = (Instant::now(), false);
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            while let Some(message) = self.table.message(Instant::now()) {
                outgoing.send(message).await.map_err(|_| Disconnected::Retryable)?;
            }
            if self.table.is_done() {
                return goodbye(incoming, outgoing).await;
            }
            let silence = if pinged { SILENCE_MAX } else { PING_AFTER };
            let wake_at =
                (received_at + silence).min(self.table.wake_at().unwrap_or(received_at + silence));
            let known = self.known;
            let wakeup = tokio::select! {
                message = incoming.message() => match message {
                    Ok(message) => Wakeup::Server(message.map(Box::new)),
                    Err(status) => return Err(disconnected(status)),
                },
                count = self.events.recv_many(&mut events, EVENTS_MAX) => match count {
                    0 => Wakeup::Orphaned,
                    _ => Wakeup::Handlers,
                },
                phase = next(&mut self.phase, known) => Wakeup::Phase(phase),
                () = tokio::time::sleep_until(wake_at) => Wakeup::Time,
            };
            match wakeup {
                Wakeup::Server(Some(message)) => {
                    (received_at, pinged) = (Instant::now(), false);
                    if self.receive(*message) {
                        // The server stops, and another one will be there.
                        return Err(Disconnected::Retryable);
                    }
                }
                Wakeup::Server(None) => return Err(Disconnected::Retryable),
                Wakeup::Handlers => events.drain(..).for_each(|event| self.take(event)),
                Wakeup::Phase(phase) => self.enter(phase),
                Wakeup::Orphaned => return goodbye(incoming, outgoing).await,
                Wakeup::Time => {
                    let silence = received_at.elapsed();
                    if silence >= SILENCE_MAX {
                        return Err(Disconnected::Retryable);
                    }
                    if silence >= PING_AFTER && !pinged {
                        pinged = true;
                        let ping = Some(self.table.ping(Instant::now()));
                        let message = v1::WorkRequest { ping, ..Default::default() };
                        outgoing.send(message).await.map_err(|_| Disconnected::Retryable)?;
                    }
                }
            }
        }
    }

    fn take(&mut self, event: HandlerEvent) {
        match event {
            HandlerEvent::Ended { lease_id, result } => self.table.finish(lease_id, result),
            HandlerEvent::Progressed { lease_id, slot } => {
                self.table.progress(lease_id, slot.take(), Instant::now());
            }
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.known = phase;
        match phase {
            Phase::Working => {}
            Phase::Draining => self.table.drain(),
            Phase::Leaving | Phase::AtOnce => self.table.leave(),
        }
    }

    /// Takes a message of the server, and returns whether the server stops.
    fn receive(&mut self, message: v1::WorkResponse) -> bool {
        let now = Instant::now();
        if let Some(pong) = message.pong {
            self.table.pong(pong);
        }
        if !message.leases.is_empty() {
            let mut tasks = Vec::with_capacity(message.leases.len());
            for lease in message.leases {
                if let Some(signal) = self.table.begin(&lease, now) {
                    tasks.push(LeasedTask::new(lease, signal));
                }
            }
            // If the receiver is gone, the next wakeup is `Orphaned`.
            let _ = self.tasks.send(tasks);
        }
        for results in message.results {
            self.table.results(results, now);
        }
        for cancel in message.cancels {
            self.table.stop(cancel);
        }
        message.drain.is_some()
    }

    /// Awaits a future while there is no stream: handlers end, leases expire. None if the worker that
    /// ran the handlers was dropped.
    async fn meanwhile<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = std::pin::pin!(future);
        loop {
            let wake_at = self.table.wake_at();
            let known = self.known;
            tokio::select! {
                done = &mut future => return Some(done),
                event = self.events.recv() => match event {
                    Some(event) => self.take(event),
                    None => return None,
                },
                phase = next(&mut self.phase, known) => self.enter(phase),
                () = until(wake_at) => {
                    self.table.expire(Instant::now());
                    // Overdue heartbeats cannot be sent without a stream: do not spin.
                    tokio::time::sleep(RETRY_DELAY_MIN).await;
                }
            }
        }
    }
}

/// Waits for a phase beyond the known one.
async fn next(phase: &mut watch::Receiver<Phase>, known: Phase) -> Phase {
    if known >= Phase::Leaving {
        return std::future::pending().await;
    }
    // A closed channel means that the worker is gone.
    phase.wait_for(|phase| *phase > known).await.map_or(Phase::Leaving, |phase| *phase)
}

/// Ends a stream in order.
async fn goodbye(
    mut incoming: Streaming<v1::WorkResponse>,
    outgoing: mpsc::Sender<v1::WorkRequest>,
) -> Result<(), Disconnected> {
    let goodbye = Some(v1::Goodbye {});
    // A stream that is gone needs no goodbye.
    let _ = outgoing.send(v1::WorkRequest { goodbye, ..Default::default() }).await;
    drop(outgoing);
    let end = async { while let Ok(Some(_)) = incoming.message().await {} };
    let _ = tokio::time::timeout(HANDSHAKE_TIMEOUT, end).await;
    Ok(())
}

fn disconnected(status: tonic::Status) -> Disconnected {
    let is_final = matches!(
        status.code(),
        tonic::Code::InvalidArgument | tonic::Code::Unauthenticated | tonic::Code::PermissionDenied
    );
    match is_final {
        true => Disconnected::Refused(Error::from_status(status)),
        false => Disconnected::Retryable,
    }
}

pub(super) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
