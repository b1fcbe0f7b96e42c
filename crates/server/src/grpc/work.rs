//! The stream for workers: credit comes in, leases go out as soon as there is work, reports come
//! back many at a time. What a stream holds when it is cut is dropped after a grace.

use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tenure_code::Code;
use tenure_coordinator::request::{DropLeases, GetStatus, Lease, RegisterWorker};
use tenure_coordinator::{Grant, Pending, Refusal, Request};
use tenure_core::command::{
    Heartbeat, LeaseRef, LeaseTasks, ReleaseTask, ReportTasks, Reported, Rest, Swept,
};
use tenure_core::limits::{BATCH_ITEMS_MAX, LEASE_TASKS_MAX};
use tenure_proto::v1;
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::fast_path;
use super::hello::{self, Greeting};
use super::pushes::Pushes;
use super::status::{next_message, shown};
use super::stops::{Stop, Stops};
use super::streams::Place;
use crate::app::App;
use crate::limits::{BODY_TIMEOUT, CREDIT_MAX, PUSH_BYTES, PUSHES_MAX, STREAM_REQUESTS_MAX};
use crate::problem::Problem;
use crate::wire::artifact;

/// How long a request for work is parked before it is asked again. Less than a worker may be silent
/// before it is shown as dead.
const PARKED_MS: u64 = 30_000;
/// When there is too much to do, work is asked for again after so long.
const OVERLOADED_PAUSE: Duration = Duration::from_millis(200);

type Sent = Result<v1::WorkResponse, Status>;

/// Begins a stream.
pub(super) fn open(
    app: &Arc<App>,
    incoming: Streaming<v1::WorkRequest>,
) -> Result<ReceiverStream<Sent>, Problem> {
    let (send, receive) = mpsc::channel(PUSHES_MAX);
    let app = Arc::clone(app);
    tokio::spawn(async move {
        let failed = send.clone();
        if let Err(status) = serve(app, incoming, send).await {
            // Whoever is gone need not hear why.
            let _ = failed.send(Err(status)).await;
        }
    });
    Ok(ReceiverStream::new(receive))
}

async fn serve(
    app: Arc<App>,
    mut incoming: Streaming<v1::WorkRequest>,
    send: mpsc::Sender<Sent>,
) -> Result<(), Status> {
    let first = tokio::time::timeout(BODY_TIMEOUT, next_message(&mut incoming)).await;
    let first =
        first.map_err(|_| Problem::new(Code::RequestTimeout, "the hello did not come"))??;
    let mut first = first.unwrap_or_default();
    let Some(hello) = first.hello.take() else {
        return Err(Problem::invalid("the first message must have a hello").into());
    };
    let greeting = hello::hello(hello)?;
    let mut stream = Stream::welcome(app, incoming, send, greeting).await?;
    let end = match stream.take(first) {
        Ok(None) => stream.run().await,
        Ok(Some(end)) => Ok(end),
        Err(status) => Err(status),
    };
    stream.close(end).await
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The worker left in good order.
    Goodbye,
    /// It is gone, or did what it must not.
    Cut,
    /// The server stops. Its leases go on.
    Drained,
}

struct Stream {
    app: Arc<App>,
    place: Place,
    incoming: Streaming<v1::WorkRequest>,
    send: mpsc::Sender<Sent>,
    pushes: Pushes,
    stops: broadcast::Receiver<Stop>,
    /// What every request for work says, but for the number.
    request: LeaseTasks,
    grace: Duration,
    credit: u32,
    /// The request for work that is under way, if there is any credit.
    asked: Option<Pending<Lease>>,
    /// Until then nothing is asked for.
    pause: Option<Instant>,
    under_way: FuturesOrdered<Pin<Box<dyn Future<Output = Done> + Send>>>,
}

/// Something that a worker said was dealt with.
enum Done {
    Reported {
        sequence: u64,
        said: Said,
        outcome: Result<Vec<Reported>, Problem>,
    },
    Pong(v1::Pong),
    /// There is nobody who could answer.
    Nothing,
}

/// What a message of reports said, in the order of its results.
struct Said {
    heartbeats: usize,
    leases: Vec<LeaseRef>,
}

impl Stream {
    /// Answers a hello.
    async fn welcome(
        app: Arc<App>,
        incoming: Streaming<v1::WorkRequest>,
        send: mpsc::Sender<Sent>,
        greeting: Greeting,
    ) -> Result<Self, Status> {
        let Greeting { registration, lease_ms, disconnect_grace_ms, held } = greeting;
        if held.len() > BATCH_ITEMS_MAX {
            let detail = format!("held has {} leases; at most {BATCH_ITEMS_MAX}", held.len());
            return Err(Problem::invalid(detail).into());
        }
        let place = Place::take(&app, registration.worker.as_str())?;
        let stops = Stops::listen(&app);
        let request = LeaseTasks {
            worker: registration.worker.clone(),
            queues: registration.queues.clone(),
            tasks_max: NonZeroU32::MIN,
            lease_ms,
        };
        app.tenure.ask(RegisterWorker(registration)).await.map_err(Problem::from)?;
        let mut kept = Vec::new();
        if !held.is_empty() {
            // First nobody else may drop them; then they are looked at.
            place.take_over(&held);
            let heartbeats = held.iter().copied().map(Heartbeat::from).collect();
            let report = ReportTasks { heartbeats, ..ReportTasks::default() };
            let reported = app.tenure.ask(report).await.map_err(Problem::from)?;
            let mut holds = place.held();
            for (lease, reported) in held.iter().zip(&reported) {
                if reported.result.is_ok() {
                    holds.keep(*lease);
                }
                kept.push(fast_path::result(reported));
            }
        }
        let status = app.tenure.ask(GetStatus).await.map_err(Problem::from)?;
        let welcome = v1::Welcome { now: status.now.0, disconnect_grace_ms, held: kept };
        let stream = Self {
            app,
            place,
            incoming,
            send,
            pushes: Pushes::default(),
            stops,
            request,
            grace: Duration::from_millis(disconnect_grace_ms),
            credit: 0,
            asked: None,
            pause: None,
            under_way: FuturesOrdered::new(),
        };
        let welcome = v1::WorkResponse { welcome: Some(welcome), ..Default::default() };
        // If it is gone already, the loop finds out.
        let _ = stream.send.send(Ok(welcome)).await;
        Ok(stream)
    }

    async fn run(&mut self) -> Result<End, Status> {
        let mut stop = self.app.stopping();
        loop {
            self.ask_for_work();
            let has_room = self.under_way.len() < STREAM_REQUESTS_MAX;
            tokio::select! {
                biased;
                () = stop.told() => return Ok(self.drain().await),
                // Before word of stops: a lease must be known when its stop is heard of.
                outcome = answer(&mut self.asked) => {
                    self.asked = None;
                    match outcome {
                        Ok(grants) => {
                            if self.push(grants).await.is_err() {
                                return Ok(End::Cut);
                            }
                        }
                        Err(Refusal::Unavailable(_)) => return Ok(self.drain().await),
                        Err(Refusal::Overloaded { .. }) => {
                            self.pause = Some(Instant::now() + OVERLOADED_PAUSE);
                        }
                        Err(refusal) => return Err(Problem::from(refusal).into()),
                    }
                }
                Some(done) = self.under_way.next(), if !self.under_way.is_empty() => {
                    if self.tell(done).await.is_err() {
                        return Ok(End::Cut);
                    }
                }
                stop = self.stops.recv() => {
                    if let Ok(stop) = stop
                        && self.pass_on(stop).await.is_err()
                    {
                        return Ok(End::Cut);
                    }
                }
                message = next_message(&mut self.incoming), if has_room => {
                    let Some(message) = message? else { return Ok(End::Cut) };
                    if let Some(end) = self.take(message)? {
                        return Ok(end);
                    }
                }
                () = until(self.pause) => self.pause = None,
            }
        }
    }

    /// Keeps one request for work parked, for all credit that is left.
    fn ask_for_work(&mut self) {
        if self.asked.is_some() || self.pause.is_some() {
            return;
        }
        let Some(tasks_max) = NonZeroU32::new(self.credit.min(LEASE_TASKS_MAX)) else { return };
        let request = LeaseTasks { tasks_max, ..self.request.clone() };
        self.asked = Some(self.app.tenure.ask(Lease { request, wait_ms: PARKED_MS }));
    }

    /// Takes a message; says whether it was the last.
    fn take(&mut self, message: v1::WorkRequest) -> Result<Option<End>, Status> {
        if message.hello.is_some() {
            return Err(Problem::invalid("there was a hello already; say it once").into());
        }
        let credit = self.credit.checked_add(message.credit).filter(|sum| *sum <= CREDIT_MAX);
        self.credit = credit.ok_or_else(|| {
            let detail = format!(
                "credit goes from {} up by {}; at most {CREDIT_MAX} are allowed",
                self.credit, message.credit
            );
            Problem::invalid(detail)
        })?;
        if message.drain.is_some() {
            // What was granted in this very moment goes back.
            (self.credit, self.asked) = (0, None);
        }
        if let Some(reports) = message.reports {
            let done = self.report(reports);
            self.under_way.push_back(done);
        }
        if let Some(ping) = message.ping {
            let pending = self.app.tenure.ask(GetStatus);
            self.under_way.push_back(Box::pin(async move {
                match pending.await {
                    Ok(status) => {
                        Done::Pong(v1::Pong { sequence: ping.sequence, now: status.now.0 })
                    }
                    Err(_) => Done::Nothing,
                }
            }));
        }
        Ok(message.goodbye.map(|_| End::Goodbye))
    }

    /// Asks at once, and waits when it is polled.
    fn report(&self, reports: v1::Reports) -> Pin<Box<dyn Future<Output = Done> + Send>> {
        let sequence = reports.sequence;
        let (mut report, handed) = match fast_path::reports(reports, Some(&self.request.worker)) {
            Ok(parsed) => parsed,
            Err(problem) => {
                let said = Said { heartbeats: 0, leases: Vec::new() };
                let done = Done::Reported { sequence, said, outcome: Err(problem) };
                return Box::pin(std::future::ready(done));
            }
        };
        let leases = report.heartbeats.iter().map(|heartbeat| heartbeat.lease);
        let leases = leases.chain(report.completes.iter().map(|complete| complete.lease));
        let leases = leases.chain(report.fails.iter().map(|fail| fail.lease));
        let leases = leases.chain(report.releases.iter().map(|release| release.lease)).collect();
        let said = Said { heartbeats: report.heartbeats.len(), leases };
        let app = Arc::clone(&self.app);
        if handed.iter().any(|handed| !handed.is_empty()) {
            // Files are kept before a command may name them, which takes as long as the disk does.
            return Box::pin(async move {
                if let Err(problem) = artifact::keep_each(&app, &mut report, handed).await {
                    return Done::Reported { sequence, said, outcome: Err(problem) };
                }
                let pending = app.tenure.ask(report);
                answered(&app, sequence, said, pending).await
            });
        }
        let pending = app.tenure.ask(report);
        Box::pin(async move { answered(&app, sequence, said, pending).await })
    }

    /// Pushes leases, in messages of moderate size.
    async fn push(&mut self, grants: Vec<Grant>) -> Result<(), Gone> {
        self.credit = self.credit.saturating_sub(grants.len() as u32);
        {
            let mut held = self.place.held();
            grants.iter().for_each(|grant| held.keep(grant.lease()));
        }
        let (mut leases, mut bytes) = (Vec::with_capacity(grants.len()), 0);
        for grant in grants {
            bytes += grant.payload.len() + grant.checkpoint.as_ref().map_or(0, |bytes| bytes.len());
            // One that cannot be had now, because the server stops, runs out and is given again.
            leases.push(self.pushes.show(grant).await.map_err(|_| Gone)?);
            if bytes >= PUSH_BYTES {
                let leases = std::mem::take(&mut leases);
                self.say(v1::WorkResponse { leases, ..Default::default() }).await?;
                bytes = 0;
            }
        }
        match leases.is_empty() {
            true => Ok(()),
            false => self.say(v1::WorkResponse { leases, ..Default::default() }).await,
        }
    }

    /// Tells what became of something that the worker said.
    async fn tell(&mut self, done: Done) -> Result<(), Gone> {
        match self.settle(done) {
            Some(response) => self.say(response).await,
            None => Ok(()),
        }
    }

    /// Forgets leases that have ended, and makes the answer.
    fn settle(&mut self, done: Done) -> Option<v1::WorkResponse> {
        let (sequence, said, outcome) = match done {
            Done::Reported { sequence, said, outcome } => (sequence, said, outcome),
            Done::Pong(pong) => {
                return Some(v1::WorkResponse { pong: Some(pong), ..Default::default() });
            }
            Done::Nothing => return None,
        };
        let results = match outcome {
            Ok(reported) => {
                let mut held = self.place.held();
                let ended = said.leases.iter().zip(&reported).enumerate();
                for (at, (lease, reported)) in ended {
                    if at >= said.heartbeats || reported.result.is_err() {
                        held.forget(*lease);
                    }
                }
                let results = reported.iter().map(fast_path::result).collect();
                v1::Results { sequence, results, problem: None }
            }
            Err(problem) => {
                v1::Results { sequence, results: Vec::new(), problem: Some(shown(problem)) }
            }
        };
        Some(v1::WorkResponse { results: vec![results], ..Default::default() })
    }

    /// Tells the worker that a task of its own should stop.
    async fn pass_on(&mut self, stop: Stop) -> Result<(), Gone> {
        {
            let mut held = self.place.held();
            if !held.has(stop.lease) {
                return Ok(());
            }
            if stop.lost {
                held.forget(stop.lease);
            }
        }
        let LeaseRef { task_id, lease_id } = stop.lease;
        let cancel = v1::Cancel { task_id: task_id.0, lease_id: lease_id.0, lost: stop.lost };
        self.say(v1::WorkResponse { cancels: vec![cancel], ..Default::default() }).await
    }

    async fn drain(&mut self) -> End {
        let drain = Some(v1::Drain {});
        // Whoever is gone need not drain.
        let _ = self.say(v1::WorkResponse { drain, ..Default::default() }).await;
        End::Drained
    }

    async fn say(&mut self, response: v1::WorkResponse) -> Result<(), Gone> {
        self.send.send(Ok(response)).await.map_err(|_| Gone)
    }

    /// Deals with what the stream leaves behind.
    async fn close(mut self, end: Result<End, Status>) -> Result<(), Status> {
        // What is granted from here on goes back.
        self.asked = None;
        // What was said before the end still counts.
        let mut last_words = Vec::new();
        while let Some(done) = self.under_way.next().await {
            last_words.extend(self.settle(done));
        }
        match end {
            Ok(End::Drained) => {}
            Ok(End::Goodbye) => {
                let leases = self.place.held().take_all();
                for some in leases.chunks(BATCH_ITEMS_MAX) {
                    let releases = some.iter().copied().map(ReleaseTask::from).collect();
                    let report = ReportTasks { releases, ..ReportTasks::default() };
                    // If it cannot be done now, time does it.
                    let _ = self.app.tenure.ask(report).await;
                }
                // Last, as nobody knows whether it still reads.
                self.say_all(last_words).await;
            }
            Ok(End::Cut) => {
                // Who only stopped sending may still read.
                last_words.into_iter().for_each(|words| drop(self.send.try_send(Ok(words))));
                self.drop_after_grace();
            }
            Err(status) => {
                self.drop_after_grace();
                return Err(status);
            }
        }
        Ok(())
    }

    async fn say_all(&mut self, responses: Vec<v1::WorkResponse>) {
        for response in responses {
            if self.say(response).await.is_err() {
                return;
            }
        }
    }

    /// Drops what is held, unless the worker comes back for it.
    fn drop_after_grace(self) {
        let Self { app, place, grace, .. } = self;
        tokio::spawn(async move {
            let mut stop = app.stopping();
            tokio::select! {
                () = tokio::time::sleep(grace) => {}
                () = stop.told() => return,
            }
            let leases = place.held().take_all();
            if leases.is_empty() {
                return;
            }
            tracing::info!(leases = leases.len(), "a worker did not come back");
            for some in leases.chunks(BATCH_ITEMS_MAX) {
                // A lease that could not be dropped expires later.
                let drop_some = || app.tenure.ask(DropLeases(some.to_vec()));
                while let Ok(Swept { rest: Rest::More, .. }) = drop_some().await {}
            }
        });
    }
}

/// The other side does not read any more.
struct Gone;

async fn answer(asked: &mut Option<Pending<Lease>>) -> Result<Vec<Grant>, Refusal> {
    match asked {
        Some(pending) => pending.await,
        None => std::future::pending().await,
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// What became of reports, once it is durable.
async fn answered(app: &App, sequence: u64, said: Said, pending: Pending<ReportTasks>) -> Done {
    let outcome = pending.await;
    app.scribe.heard(ReportTasks::NAME, &outcome);
    Done::Reported { sequence, said, outcome: outcome.map_err(Problem::from) }
}
