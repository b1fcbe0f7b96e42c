//! The lease keeper: a thread of its own with the worker's connection. It sends heartbeats and
//! reports however busy the handlers keep their runtime, and comes back after a cut with all that
//! it still holds.

use std::time::Duration;

use tenure_proto::v1;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use super::book::Book;
use super::drain::Phase;
use super::said::Slot;
use super::task::{Failure, Output, Task};
use crate::client::Server;
use crate::error::Error;
use crate::retry::Waits;

/// Messages on their way out.
const OUT_MAX: usize = 16;
/// Words of handlers that are dealt with together.
const WORDS_MAX: usize = 1_000;
/// A server that is silent for so long is asked whether it is there.
const PING_AFTER: Duration = Duration::from_secs(10);
/// A server that is silent for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(25);
/// How long a server may take to answer a hello or a goodbye.
const GREETING_MAX: Duration = Duration::from_secs(10);
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Word of a handler.
#[derive(Debug)]
pub(super) enum Word {
    /// It ended; without a result if it was stopped.
    Ended { lease_id: u64, result: Option<Result<Output, Failure>> },
    /// It says something about its work.
    Said { lease_id: u64, slot: Slot },
}

/// A task for a handler.
pub(super) type Begun = Task;

/// What a lease keeper needs.
pub(super) struct Keeper {
    pub(super) server: Server,
    /// What every hello says, but for the leases.
    pub(super) hello: v1::Hello,
    pub(super) book: Book,
    pub(super) begun: mpsc::UnboundedSender<Vec<Begun>>,
    pub(super) words: mpsc::UnboundedReceiver<Word>,
    /// The phase that the book is in.
    pub(super) known: Phase,
    pub(super) phase: watch::Receiver<Phase>,
}

/// How a stream ended, if not by a goodbye.
enum Cut {
    /// It can be tried again.
    Again,
    /// It makes no sense to try again.
    Refused(Error),
}

/// Something happened.
enum News {
    Server(Option<Box<v1::WorkResponse>>),
    Words,
    Phase(Phase),
    Time,
    /// Whoever ran the handlers is gone.
    Orphaned,
}

impl Keeper {
    /// Works until everything is done after a drain, or the server refuses this worker.
    pub(super) async fn run(mut self) -> Result<(), Error> {
        let mut waits = Waits::new(FIRST_WAIT, LONGEST_WAIT);
        loop {
            let began = Instant::now();
            match self.session().await {
                Ok(()) => return Ok(()),
                Err(Cut::Refused(error)) => return Err(error),
                Err(Cut::Again) => {}
            }
            if self.book.is_done() {
                return Ok(());
            }
            if began.elapsed() > LONGEST_WAIT {
                waits.reset();
            }
            let pause = tokio::time::sleep(waits.next());
            if self.meanwhile(pause).await.is_none() {
                return Ok(());
            }
        }
    }

    /// One stream, from its hello to its end.
    async fn session(&mut self) -> Result<(), Cut> {
        let server = self.server.clone();
        let connecting = async move { tokio::time::timeout(GREETING_MAX, server.connect()).await };
        let Some(connected) = self.meanwhile(connecting).await else { return Ok(()) };
        let Ok(Ok(mut workers)) = connected else { return Err(Cut::Again) };
        let (out, receive) = mpsc::channel(OUT_MAX);
        let held = self.book.reconnect();
        let hello = Some(v1::Hello { held: held.clone(), ..self.hello.clone() });
        let sent_at = Instant::now();
        let hello = v1::WorkRequest { hello, ..Default::default() };
        out.try_send(hello).map_err(|_| Cut::Again)?;
        let greeting = async move {
            let mut incoming = workers.work(ReceiverStream::new(receive)).await?.into_inner();
            let first = incoming.message().await?;
            Ok::<_, tonic::Status>((incoming, first))
        };
        let greeting = async move { tokio::time::timeout(GREETING_MAX, greeting).await };
        let Some(greeted) = self.meanwhile(greeting).await else { return Ok(()) };
        let (incoming, first) = match greeted {
            Ok(Ok(greeted)) => greeted,
            Ok(Err(status)) => return Err(judged(status)),
            Err(_) => return Err(Cut::Again),
        };
        let Some(welcome) = first.and_then(|first| first.welcome) else { return Err(Cut::Again) };
        self.book.welcome(&welcome, &held, sent_at, Instant::now());
        tracing::debug!(held = held.len(), "the worker is connected");
        self.work(incoming, out).await
    }

    async fn work(
        &mut self,
        mut incoming: Streaming<v1::WorkResponse>,
        out: mpsc::Sender<v1::WorkRequest>,
    ) -> Result<(), Cut> {
        let (mut heard_at, mut pinged) = (Instant::now(), false);
        let mut words = Vec::with_capacity(WORDS_MAX);
        loop {
            while let Some(message) = self.book.message(Instant::now()) {
                out.send(message).await.map_err(|_| Cut::Again)?;
            }
            if self.book.is_done() {
                return goodbye(incoming, out).await;
            }
            let silence = if pinged { SILENCE_MAX } else { PING_AFTER };
            let wake_at =
                (heard_at + silence).min(self.book.wake_at().unwrap_or(heard_at + silence));
            let known = self.known;
            let news = tokio::select! {
                message = incoming.message() => match message {
                    Ok(message) => News::Server(message.map(Box::new)),
                    Err(status) => return Err(judged(status)),
                },
                count = self.words.recv_many(&mut words, WORDS_MAX) => match count {
                    0 => News::Orphaned,
                    _ => News::Words,
                },
                phase = next(&mut self.phase, known) => News::Phase(phase),
                () = tokio::time::sleep_until(wake_at) => News::Time,
            };
            match news {
                News::Server(Some(message)) => {
                    (heard_at, pinged) = (Instant::now(), false);
                    if self.hear(*message) {
                        // The server stops; it will be back.
                        return Err(Cut::Again);
                    }
                }
                News::Server(None) => return Err(Cut::Again),
                News::Words => words.drain(..).for_each(|word| self.take(word)),
                News::Phase(phase) => self.enter(phase),
                News::Orphaned => return goodbye(incoming, out).await,
                News::Time => {
                    let silence = heard_at.elapsed();
                    if silence >= SILENCE_MAX {
                        return Err(Cut::Again);
                    }
                    if silence >= PING_AFTER && !pinged {
                        pinged = true;
                        let ping = Some(self.book.ping(Instant::now()));
                        let message = v1::WorkRequest { ping, ..Default::default() };
                        out.send(message).await.map_err(|_| Cut::Again)?;
                    }
                }
            }
        }
    }

    fn take(&mut self, word: Word) {
        match word {
            Word::Ended { lease_id, result } => self.book.finish(lease_id, result),
            Word::Said { lease_id, slot } => {
                self.book.say(lease_id, slot.take(), Instant::now());
            }
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.known = phase;
        match phase {
            Phase::Working => {}
            Phase::Draining => self.book.drain(),
            Phase::Leaving | Phase::AtOnce => self.book.leave(),
        }
    }

    /// Takes a message of the server; says whether the server stops.
    fn hear(&mut self, message: v1::WorkResponse) -> bool {
        let now = Instant::now();
        if let Some(pong) = message.pong {
            self.book.pong(pong);
        }
        if !message.leases.is_empty() {
            let mut begun = Vec::with_capacity(message.leases.len());
            for lease in message.leases {
                if let Some(signal) = self.book.begin(&lease, now) {
                    begun.push(Task::new(lease, signal));
                }
            }
            // If nobody takes them, that is noticed at the next turn.
            let _ = self.begun.send(begun);
        }
        for results in message.results {
            self.book.results(results, now);
        }
        for cancel in message.cancels {
            self.book.stop(cancel);
        }
        message.drain.is_some()
    }

    /// Waits for something while there is no stream: handlers end, leases run out. None if whoever
    /// ran the handlers is gone.
    async fn meanwhile<T>(&mut self, something: impl Future<Output = T>) -> Option<T> {
        let mut something = std::pin::pin!(something);
        loop {
            let wake_at = self.book.wake_at();
            let known = self.known;
            tokio::select! {
                done = &mut something => return Some(done),
                word = self.words.recv() => match word {
                    Some(word) => self.take(word),
                    None => return None,
                },
                phase = next(&mut self.phase, known) => self.enter(phase),
                () = until(wake_at) => {
                    self.book.expire(Instant::now());
                    // Heartbeats are overdue and cannot be sent: do not spin.
                    tokio::time::sleep(FIRST_WAIT).await;
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
    // Whoever could say more is gone, and so is the worker.
    phase.wait_for(|phase| *phase > known).await.map_or(Phase::Leaving, |phase| *phase)
}

/// Leaves in good order.
async fn goodbye(
    mut incoming: Streaming<v1::WorkResponse>,
    out: mpsc::Sender<v1::WorkRequest>,
) -> Result<(), Cut> {
    let goodbye = Some(v1::Goodbye {});
    // If the stream is gone there is nobody to say it to.
    let _ = out.send(v1::WorkRequest { goodbye, ..Default::default() }).await;
    drop(out);
    let end = async { while let Ok(Some(_)) = incoming.message().await {} };
    let _ = tokio::time::timeout(GREETING_MAX, end).await;
    Ok(())
}

fn judged(status: tonic::Status) -> Cut {
    let is_final = matches!(
        status.code(),
        tonic::Code::InvalidArgument | tonic::Code::Unauthenticated | tonic::Code::PermissionDenied
    );
    match is_final {
        true => Cut::Refused(status.into()),
        false => Cut::Again,
    }
}

pub(super) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
