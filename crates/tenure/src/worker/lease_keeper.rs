//! The lease keeper: one thread that leases tasks, extends their leases while handlers run, hears of
//! cancels and lost leases, and reports results.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use tenure_code::Code;
use tenure_coordinator::request::{Lease, RegisterWorker, SignOff};
use tenure_coordinator::{
    Engine, Followed, Follower, Grant, Pending, Position, ReadLog, Registration,
};
use tenure_core::command::{LeaseRef, LeaseTasks, ReportTasks, Reported};
use tenure_record::codec;
use tenure_record::id::LeaseId;
use tenure_record::name::{QueueName, WorkerName};
use tenure_record::state::TaskState;
use tenure_record::terms::{LeaseMs, Tags};
use tenure_record::time::Timestamp;

use super::drain::{Drain, Phase};
use super::mailbox::{Ended, Mailbox, thread_waker};
use super::task::{LeaseSignal, LeaseStatus, LeasedTask, Note, Notes};
use crate::error::Error;
use crate::outcome::{Failure, FailureReport, Output};
use crate::reports::Heartbeat;

/// How long one request for work waits. The keeper asks again, so that the worker counts as alive.
const POLL_MS: u64 = 20_000;
/// How long the keeper waits after a refusal that passes by itself.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);
/// Progress and checkpoints are sent at most this often between the regular heartbeats.
const NOTES_PAUSE: Duration = Duration::from_secs(1);
/// The keeper looks at everything at least this often.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// What a worker needs to keep leases.
#[derive(Debug)]
pub(super) struct LeaseKeeper {
    pub(super) engine: Engine,
    pub(super) worker: WorkerName,
    pub(super) queues: Vec<QueueName>,
    pub(super) slots: std::num::NonZeroU32,
    pub(super) lease_ms: Option<LeaseMs>,
    pub(super) drain: Drain,
    pub(super) drain_timeout: Option<Duration>,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) table: LeaseTable,
}

/// The leases that are held, and the reports that are not settled.
#[derive(Debug, Default)]
pub(super) struct LeaseTable {
    held: BTreeMap<LeaseId, Held>,
    /// Results that are not sent yet.
    results: ReportTasks,
    leasing: Option<Pending<Lease>>,
    reporting: Option<Reporting>,
    /// Nothing is sent before this moment, after a refusal.
    paused_until: Option<Instant>,
}

/// A lease whose handler runs.
#[derive(Debug)]
struct Held {
    lease: LeaseRef,
    signal: LeaseSignal,
    notes: Notes,
    /// When the lease is over, as far as this worker knows.
    expires_at: Instant,
    /// When the next heartbeat is due.
    heartbeat_at: Instant,
    /// When the last heartbeat was sent.
    sent_at: Instant,
}

/// Reports on their way.
#[derive(Debug)]
struct Reporting {
    pending: Pending<ReportTasks>,
    /// A copy, to be sent again if admission control refuses it.
    sent: ReportTasks,
}

impl Held {
    /// Counts from now to the moment at which the lease is over.
    fn extend(&mut self, wall_expires_at: Timestamp) {
        let now = Instant::now();
        let left = until(wall_expires_at);
        self.expires_at = now + left;
        self.heartbeat_at = now + left / 3;
    }

    /// When there is something to send or to notice.
    fn next_moment(&self) -> Instant {
        let regular = self.heartbeat_at.min(self.expires_at);
        match self.notes.is_empty() {
            true => regular,
            false => regular.min(self.sent_at + NOTES_PAUSE),
        }
    }
}

/// The time until a moment of the wall clock.
fn until(moment: Timestamp) -> Duration {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(moment.0);
    at.duration_since(SystemTime::now()).unwrap_or_default()
}

impl LeaseKeeper {
    /// Keeps leases until the worker has drained, and hands each task to `start`.
    pub(super) fn run(mut self, mut start: impl FnMut(LeasedTask)) -> Result<(), Error> {
        self.mailbox.open();
        let waker = thread_waker();
        self.drain.subscribe(&waker);
        self.register(false);
        let mut stops = self.follow_stops();
        let mut draining_since = None;
        let ended = loop {
            let phase = self.phase(&mut draining_since);
            let results = self.mailbox.take();
            results.into_iter().for_each(|ended| self.take_result(ended));
            if phase == Phase::Leaving {
                self.release_all();
            }
            self.hear_stops(&mut stops);
            self.notice_expired();
            let mut has_more = false;
            match self.pass(phase, &waker, &mut start) {
                Ok(more) => has_more |= more,
                Err(error) => break Err(error),
            }
            if phase >= Phase::Draining && self.is_empty() {
                break Ok(());
            }
            has_more |= stops.is_ready(&waker);
            if !has_more {
                std::thread::park_timeout(self.idle_time(phase, draining_since));
            }
        };
        // Handlers that still run are on their own.
        self.table.held.values().for_each(|held| held.signal.raise(LeaseStatus::Lost));
        drop(self.table.leasing.take());
        // A worker that nobody hears of any more is forgotten after a minute.
        let _ = self.engine.ask(SignOff(self.worker.clone())).wait();
        ended
    }

    /// Sends what there is to send and polls what was sent. Says whether something came back.
    fn pass(
        &mut self,
        phase: Phase,
        waker: &Waker,
        start: &mut impl FnMut(LeasedTask),
    ) -> Result<bool, Error> {
        let mut context = Context::from_waker(waker);
        if self.table.paused_until.is_none_or(|until| until <= Instant::now()) {
            self.table.paused_until = None;
            self.send_reports()?;
            self.ask_for_work(phase);
        }
        let has_settled = self.poll_reports(&mut context)?;
        let has_work = self.poll_work(&mut context, start)?;
        Ok(has_settled || has_work)
    }

    /// The phase of the worker, which leaves when draining takes too long.
    fn phase(&self, draining_since: &mut Option<Instant>) -> Phase {
        let phase = self.drain.phase();
        if phase == Phase::Working {
            return phase;
        }
        let since = *draining_since.get_or_insert_with(|| {
            self.register(true);
            Instant::now()
        });
        match self.drain_timeout {
            Some(timeout) if since.elapsed() >= timeout => Phase::Leaving,
            Some(_) | None => phase,
        }
    }

    /// Makes the worker known. It is shown in lists and decides nothing.
    fn register(&self, draining: bool) {
        let registration = Registration {
            worker: self.worker.clone(),
            display_name: None,
            queues: self.queues.clone(),
            slots: self.slots.get(),
            labels: Tags::default(),
            draining,
        };
        drop(self.engine.ask(RegisterWorker(registration)));
    }

    fn is_empty(&self) -> bool {
        let LeaseTable { held, results, reporting, .. } = &self.table;
        held.is_empty() && is_empty(results) && reporting.is_none()
    }

    fn idle_time(&self, phase: Phase, draining_since: Option<Instant>) -> Duration {
        let is_kept = |held: &&Held| held.signal.get() != LeaseStatus::Lost;
        let held = self.table.held.values().filter(is_kept).map(Held::next_moment).min();
        let drained = match (phase, draining_since, self.drain_timeout) {
            (Phase::Draining, Some(since), Some(timeout)) => Some(since + timeout),
            _ => None,
        };
        // While reports are under way, or were refused, heartbeats that are due wait.
        let may_send = self.table.reporting.is_none() && self.table.paused_until.is_none();
        let held = held.filter(|_| may_send);
        let moments = [held, drained, self.table.paused_until];
        let next = moments.into_iter().flatten().min();
        let wait = next.map(|at| at.saturating_duration_since(Instant::now()));
        wait.unwrap_or(IDLE_MAX).clamp(Duration::from_millis(1), IDLE_MAX)
    }

    fn follow_stops(&self) -> Follower<Box<dyn ReadLog>> {
        self.engine.follow(Position::after(self.engine.last_lsn()))
    }

    /// Hears of cancels and of leases that were taken back, from the log as it grows. What is missed
    /// here comes with the heartbeats.
    fn hear_stops(&mut self, stops: &mut Follower<Box<dyn ReadLog>>) {
        loop {
            let held = &self.table.held;
            let found = stops.next_where(codec::may_stop_a_task, |_, step| {
                let lease_id = step.lease_id.filter(|_| step.from == Some(TaskState::Leased));
                if let Some(held) = lease_id.and_then(|lease_id| held.get(&lease_id)) {
                    held.signal.raise(match step.to == TaskState::Leased {
                        true => LeaseStatus::Canceled,
                        false => LeaseStatus::Lost,
                    });
                }
            });
            match found {
                Ok(Followed::Frame) => {}
                Ok(Followed::UpToDate | Followed::Closed) => return,
                Ok(Followed::Trimmed(_)) | Err(_) => {
                    *stops = self.follow_stops();
                    return;
                }
            }
        }
    }

    /// A lease that was not extended in time is lost, whether or not the engine has noticed.
    fn notice_expired(&mut self) {
        let now = Instant::now();
        for held in self.table.held.values().filter(|held| held.expires_at <= now) {
            held.signal.raise(LeaseStatus::Lost);
        }
    }

    /// A handler has ended: its slot is free, and its result is reported unless the lease is lost.
    fn take_result(&mut self, ended: Ended) {
        let Some(held) = self.table.held.remove(&ended.lease_id) else { return };
        if held.signal.get() == LeaseStatus::Lost {
            return;
        }
        let checkpoint = held.notes.take().checkpoint;
        self.add_result(held.lease, ended.result, checkpoint);
    }

    fn add_result(
        &mut self,
        lease: LeaseRef,
        result: Result<Output, Failure>,
        checkpoint: Option<Vec<u8>>,
    ) {
        let results = &mut self.table.results;
        let worker = Some(self.worker.clone());
        let error = match result {
            Ok(output) => match output.parse(lease, worker.clone()) {
                Ok(complete) => return results.completes.push(complete),
                Err(error) => error,
            },
            Err(failure) => match failure.or_checkpoint(checkpoint).parse(lease, worker.clone()) {
                Ok(FailureReport::Fail(fail)) => return results.fails.push(fail),
                Ok(FailureReport::Release(release)) => return results.releases.push(release),
                Err(error) => error,
            },
        };
        // The result itself cannot be reported, and another attempt would give the same.
        let failure = Failure::permanent(&error).code(error.code().as_str());
        if let Ok(FailureReport::Fail(fail)) = failure.parse(lease, worker) {
            results.fails.push(fail);
        }
    }

    /// Releases the leases of all handlers that still run; what they return later is dropped.
    fn release_all(&mut self) {
        for (_, held) in std::mem::take(&mut self.table.held) {
            if held.signal.get() == LeaseStatus::Lost {
                continue;
            }
            held.signal.raise(LeaseStatus::Leaving);
            let checkpoint = held.notes.take().checkpoint;
            self.add_result(held.lease, Err(Failure::release()), checkpoint);
        }
    }

    /// Sends results and heartbeats that are due, unless reports are under way already.
    fn send_reports(&mut self) -> Result<(), Error> {
        if self.table.reporting.is_some() {
            return Ok(());
        }
        let now = Instant::now();
        let mut sent = std::mem::take(&mut self.table.results);
        for held in self.table.held.values_mut() {
            if held.next_moment() > now || held.signal.get() == LeaseStatus::Lost {
                continue;
            }
            held.sent_at = now;
            // The response sets both anew; until then no other heartbeat is sent.
            held.heartbeat_at = held.expires_at;
            let heartbeat = Heartbeat::new(held.lease);
            let Note { checkpoint, progress } = held.notes.take();
            let heartbeat = match progress {
                Some((fraction, message)) => heartbeat.progress(fraction, message),
                None => heartbeat,
            };
            let heartbeat = heartbeat.checkpoint(checkpoint.unwrap_or_default());
            // Notes that are not allowed must not cost the lease.
            sent.heartbeats.push(match heartbeat.parse() {
                Ok(heartbeat) => heartbeat,
                Err(_) => Heartbeat::new(held.lease).parse()?,
            });
        }
        if !is_empty(&sent) {
            let pending = self.engine.ask(sent.clone());
            self.table.reporting = Some(Reporting { pending, sent });
        }
        Ok(())
    }

    /// Hears what became of reports. Says whether they are settled.
    fn poll_reports(&mut self, context: &mut Context<'_>) -> Result<bool, Error> {
        let Some(reporting) = &mut self.table.reporting else { return Ok(false) };
        let Poll::Ready(outcome) = Pin::new(&mut reporting.pending).poll(context) else {
            return Ok(false);
        };
        let Some(Reporting { mut sent, .. }) = self.table.reporting.take() else {
            return Ok(false);
        };
        match outcome {
            Ok(reported) => self.settle(&sent, &reported),
            Err(refusal) if is_passing(refusal.code()) => {
                // Heartbeats are made anew; results are sent again, before later ones.
                self.table.paused_until = Some(Instant::now() + REFUSED_PAUSE);
                let now = Instant::now();
                for heartbeat in &sent.heartbeats {
                    if let Some(held) = self.table.held.get_mut(&heartbeat.lease.lease_id) {
                        held.heartbeat_at = now;
                    }
                }
                let later = std::mem::take(&mut self.table.results);
                sent.heartbeats.clear();
                sent.completes.extend(later.completes);
                sent.fails.extend(later.fails);
                sent.releases.extend(later.releases);
                self.table.results = sent;
            }
            Err(refusal) => return Err(refusal.into()),
        }
        Ok(true)
    }

    /// Heartbeats come first in a response. Results need no answer: a lease that is lost stays lost.
    fn settle(&mut self, sent: &ReportTasks, reported: &[Reported]) {
        for (heartbeat, reported) in sent.heartbeats.iter().zip(reported) {
            let Some(held) = self.table.held.get_mut(&heartbeat.lease.lease_id) else { continue };
            match &reported.result {
                Ok(accepted) => {
                    let Some(extended) = accepted.extended else { continue };
                    held.extend(extended.wall_expires_at);
                    if extended.cancel_requested {
                        held.signal.raise(LeaseStatus::Canceled);
                    }
                }
                Err(_) => held.signal.raise(LeaseStatus::Lost),
            }
        }
    }

    /// Asks for as many tasks as there are free slots, unless a request is under way already.
    fn ask_for_work(&mut self, phase: Phase) {
        if phase >= Phase::Draining {
            // Leases that the request would get are released.
            self.table.leasing = None;
            return;
        }
        let used = u32::try_from(self.table.held.len()).unwrap_or(u32::MAX);
        let free = std::num::NonZeroU32::new(self.slots.get().saturating_sub(used));
        if let Some(tasks_max) = free.filter(|_| self.table.leasing.is_none()) {
            let request = LeaseTasks {
                worker: self.worker.clone(),
                queues: self.queues.clone(),
                tasks_max,
                lease_ms: self.lease_ms,
            };
            self.table.leasing = Some(self.engine.ask(Lease { request, wait_ms: POLL_MS }));
        }
    }

    /// Takes leases that were granted. Says whether a request for work was answered.
    fn poll_work(
        &mut self,
        context: &mut Context<'_>,
        start: &mut impl FnMut(LeasedTask),
    ) -> Result<bool, Error> {
        let Some(leasing) = &mut self.table.leasing else { return Ok(false) };
        let Poll::Ready(outcome) = Pin::new(leasing).poll(context) else { return Ok(false) };
        self.table.leasing = None;
        match outcome {
            Ok(grants) => grants.into_iter().for_each(|grant| start(self.hold(grant))),
            Err(refusal) if is_passing(refusal.code()) => {
                self.table.paused_until = Some(Instant::now() + REFUSED_PAUSE);
            }
            Err(refusal) => return Err(refusal.into()),
        }
        Ok(true)
    }

    fn hold(&mut self, grant: Grant) -> LeasedTask {
        let (signal, notes, now) = (LeaseSignal::new(), Notes::default(), Instant::now());
        let mut held = Held {
            lease: grant.lease(),
            signal: signal.clone(),
            notes: notes.clone(),
            expires_at: now,
            heartbeat_at: now,
            sent_at: now,
        };
        held.extend(grant.wall_expires_at);
        self.table.held.insert(grant.lease_id, held);
        LeasedTask::new(grant, signal, notes, Arc::clone(&self.mailbox))
    }
}

/// Whether the request is refused only for a moment. An engine that stops does not come back.
fn is_passing(code: Code) -> bool {
    code.is_retryable() && code != Code::Unavailable
}

fn is_empty(reports: &ReportTasks) -> bool {
    let ReportTasks { heartbeats, completes, fails, releases, .. } = reports;
    heartbeats.is_empty() && completes.is_empty() && fails.is_empty() && releases.is_empty()
}
