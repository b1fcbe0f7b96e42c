//! The leases and pending reports of a worker, without sockets and without a clock: the lease keeper
//! passes the time in.
//!
//! A lease expires by the server's clock. The server sends a response after the request was sent, so
//! the `now` of a response is taken as the time at which the request was sent. The worker's estimate
//! of an expiry therefore errs on the early side.

mod report;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use tenure_code::Code;
use tenure_proto::v1;
use tokio::time::Instant;

use self::report::{Outcome, Report, encode};
use super::outcome::{Failure, Output};
use super::progress::ProgressUpdate;
use super::task::{LeaseSignal, LeaseStatus};

/// The most reports in one message, and their bytes.
const REPORTS_MAX: usize = 1_000;
const REPORT_BYTES_MAX: usize = 4 << 20;
/// The most messages of reports that may be unanswered. Reports that wait meanwhile are batched.
const UNANSWERED_MAX: usize = 8;
/// The number of heartbeats in the length of a lease.
const HEARTBEATS_PER_LEASE: u32 = 3;
/// The shortest interval between heartbeats, however short the lease is.
const HEARTBEAT_INTERVAL_MIN: Duration = Duration::from_millis(10);
/// The shortest interval between heartbeats that carry progress.
const PROGRESS_INTERVAL_MIN: Duration = Duration::from_millis(200);
/// The delay before reports that the server could not accept are resent, unless it names one.
const RESEND_DELAY: Duration = Duration::from_millis(500);

/// The leases that a worker holds, and the reports that the server has not answered.
#[derive(Debug)]
pub(super) struct LeaseTable {
    slots: u32,
    /// Handlers that are running, those of lost leases included.
    busy: u32,
    /// Free slots that the server was not told of yet.
    credit: u32,
    is_draining: bool,
    drain_sent: bool,
    clock: Option<(Instant, u64)>,
    running: HashMap<u64, Running>,
    /// The earliest moment at which something in `running` is due.
    due: Option<Instant>,
    pending: VecDeque<Report>,
    paused_until: Option<Instant>,
    unanswered: BTreeMap<u64, Unanswered>,
    pings: BTreeMap<u64, Instant>,
    /// The estimate of the server's clock may be far too early, as a late response makes it.
    clock_suspect: bool,
    sequence: u64,
}

#[derive(Debug)]
struct Running {
    task_id: u64,
    deadline: Instant,
    extend_at: Instant,
    /// When the latest heartbeat was sent.
    extended_at: Option<Instant>,
    signal: LeaseSignal,
    progress: ProgressUpdate,
}

/// A message of reports that the server has not answered.
#[derive(Debug)]
struct Unanswered {
    heartbeats: Vec<v1::HeartbeatReport>,
    reports: Vec<Report>,
}

impl LeaseTable {
    pub(super) fn new(slots: u32) -> Self {
        Self {
            slots,
            busy: 0,
            credit: 0,
            is_draining: false,
            drain_sent: false,
            clock: None,
            running: HashMap::new(),
            due: None,
            pending: VecDeque::new(),
            paused_until: None,
            unanswered: BTreeMap::new(),
            pings: BTreeMap::new(),
            clock_suspect: false,
            sequence: 0,
        }
    }

    /// Accepts no further leases.
    pub(super) fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Tells all handlers to stop.
    pub(super) fn leave(&mut self) {
        self.drain();
        self.running.values().for_each(|running| running.signal.raise(LeaseStatus::Leaving));
    }

    /// Whether a draining worker has no handler running and no report unanswered.
    pub(super) fn is_done(&self) -> bool {
        self.is_draining && self.busy == 0 && self.pending.is_empty() && self.unanswered.is_empty()
    }

    /// Prepares for a new stream: unanswered reports become pending again. Returns the leases that are
    /// still held.
    pub(super) fn reconnect(&mut self) -> Vec<v1::LeaseRef> {
        for message in std::mem::take(&mut self.unanswered).into_values().rev() {
            message.heartbeats.into_iter().for_each(|heartbeat| self.restore_checkpoint(heartbeat));
            message.reports.into_iter().rev().for_each(|report| self.pending.push_front(report));
        }
        self.pings.clear();
        (self.paused_until, self.drain_sent) = (None, false);
        self.credit = self.slots.saturating_sub(self.busy);
        let lease = |task_id, lease_id| v1::LeaseRef { task_id, lease_id };
        let running = self.running.iter().map(|(id, running)| lease(running.task_id, *id));
        let reported = self.pending.iter().map(|report| lease(report.task_id, report.lease_id));
        running.chain(reported).collect()
    }

    /// Takes the response to a hello that was sent at `sent_at` with the leases in `held`.
    pub(super) fn welcome(
        &mut self,
        welcome: &v1::Welcome,
        held: &[v1::LeaseRef],
        sent_at: Instant,
        now: Instant,
    ) {
        self.clock = Some((sent_at, welcome.now));
        // A server that has just started may take long to respond. Without a better estimate every
        // lease that is shorter than that would seem expired when it arrives.
        self.clock_suspect = true;
        for (lease, result) in held.iter().zip(&welcome.held) {
            if result.code.is_empty() {
                self.extended(lease.lease_id, result, now);
            } else {
                self.lose(lease.lease_id);
                self.pending.retain(|report| report.lease_id != lease.lease_id);
            }
        }
    }

    /// Takes a lease; none if it is released at once.
    pub(super) fn begin(&mut self, lease: &v1::Lease, now: Instant) -> Option<LeaseSignal> {
        let v1::Lease { task_id, lease_id, .. } = *lease;
        if self.is_draining {
            let outcome = Outcome::Release { delay: Duration::ZERO, checkpoint: Vec::new() };
            self.pending.push_back(Report { task_id, lease_id, outcome, alone: false });
            return None;
        }
        let signal = LeaseSignal::new();
        let deadline = self.deadline(lease.log_expires_at, now);
        let extend_at = next_heartbeat(deadline, now);
        let running = Running {
            task_id,
            deadline,
            extend_at,
            extended_at: None,
            signal: signal.clone(),
            progress: ProgressUpdate::default(),
        };
        self.running.insert(lease_id, running);
        self.busy += 1;
        self.due_by(extend_at);
        Some(signal)
    }

    /// Takes the result of a handler, which is dropped if its lease is lost.
    pub(super) fn finish(&mut self, lease_id: u64, result: Option<Result<Output, Failure>>) {
        self.busy = self.busy.saturating_sub(1);
        self.credit += 1;
        let Some(running) = self.running.remove(&lease_id) else { return };
        let result = result.unwrap_or_else(|| Err(Failure::release()));
        let outcome = Outcome::of(result, running.progress.checkpoint);
        let task_id = running.task_id;
        self.pending.push_back(Report { task_id, lease_id, outcome, alone: false });
    }

    /// Takes progress of a handler, which a heartbeat carries: at once, or soon if the latest heartbeat
    /// has just been sent.
    pub(super) fn progress(&mut self, lease_id: u64, update: ProgressUpdate, now: Instant) {
        let Some(running) = self.running.get_mut(&lease_id) else { return };
        running.progress.merge(update);
        let soon = running.extended_at.map_or(now, |at| at + PROGRESS_INTERVAL_MIN).max(now);
        running.extend_at = running.extend_at.min(soon);
        let extend_at = running.extend_at;
        self.due_by(extend_at);
    }

    /// Puts the checkpoint of a heartbeat that had no effect into the next one, unless there is a newer
    /// checkpoint.
    fn restore_checkpoint(&mut self, heartbeat: v1::HeartbeatReport) {
        if let Some(running) = self.running.get_mut(&heartbeat.lease_id)
            && running.progress.checkpoint.is_empty()
        {
            running.progress.checkpoint = heartbeat.checkpoint;
        }
    }

    /// When the lease table needs attention next, if nothing arrives before.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let paused = self.paused_until.filter(|_| !self.pending.is_empty());
        [self.due, paused].into_iter().flatten().min()
    }

    /// Drops the leases that have expired.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        let over = |(id, running): (&u64, &Running)| (running.deadline <= now).then_some(*id);
        let over: Vec<_> = self.running.iter().filter_map(over).collect();
        self.clock_suspect |= !over.is_empty();
        over.into_iter().for_each(|lease_id| self.lose(lease_id));
        self.due = self.running.values().map(|r| r.extend_at.min(r.deadline)).min();
    }

    /// The next message to send, if there is one; it counts as sent at `now`.
    pub(super) fn message(&mut self, now: Instant) -> Option<v1::WorkRequest> {
        self.expire(now);
        let mut message = v1::WorkRequest::default();
        let heartbeats = self.due_heartbeats(now);
        self.paused_until = self.paused_until.filter(|until| now < *until);
        let may_report = self.unanswered.len() < UNANSWERED_MAX && self.paused_until.is_none();
        let reports = if may_report { self.next_reports() } else { Vec::new() };
        if !heartbeats.is_empty() || !reports.is_empty() {
            let sequence = self.next_sequence();
            if !heartbeats.is_empty() {
                message.ping = Some(self.ping(now));
            }
            message.reports = Some(encode(sequence, &heartbeats, &reports));
            self.unanswered.insert(sequence, Unanswered { heartbeats, reports });
        }
        if std::mem::take(&mut self.clock_suspect) && message.ping.is_none() {
            message.ping = Some(self.ping(now));
        }
        if self.is_draining {
            if !self.drain_sent {
                message.drain = Some(v1::Drain {});
                self.drain_sent = true;
            }
        } else {
            message.credit = std::mem::take(&mut self.credit);
        }
        (message != v1::WorkRequest::default()).then_some(message)
    }

    /// A ping that is sent at `now`.
    pub(super) fn ping(&mut self, now: Instant) -> v1::Ping {
        let sequence = self.next_sequence();
        self.pings.insert(sequence, now);
        v1::Ping { sequence }
    }

    /// Takes the response to a ping.
    pub(super) fn pong(&mut self, pong: v1::Pong) {
        if let Some(sent_at) = self.pings.remove(&pong.sequence) {
            self.pings = self.pings.split_off(&pong.sequence);
            self.clock = Some((sent_at, pong.now));
        }
    }

    /// Takes a request of the server to stop a task.
    pub(super) fn stop(&mut self, cancel: v1::Cancel) {
        if cancel.lost {
            self.lose(cancel.lease_id);
        } else if let Some(running) = self.running.get(&cancel.lease_id) {
            running.signal.raise(LeaseStatus::Canceled);
        }
    }

    /// Takes the results of reports.
    pub(super) fn results(&mut self, results: v1::Results, now: Instant) {
        let Some(Unanswered { heartbeats, reports }) = self.unanswered.remove(&results.sequence)
        else {
            return;
        };
        if let Some(problem) = results.problem {
            return self.refused(&problem, heartbeats, reports, now);
        }
        let mut results = results.results.into_iter();
        for (heartbeat, result) in heartbeats.into_iter().zip(results.by_ref()) {
            match result.code.is_empty() {
                true => self.extended(heartbeat.lease_id, &result, now),
                false => self.lose(heartbeat.lease_id),
            }
        }
        for (report, result) in reports.into_iter().zip(results) {
            if !result.code.is_empty() {
                tracing::warn!(
                    task = report.task_id,
                    "the server dropped a result: {}",
                    result.message
                );
            }
        }
    }

    /// Handles a message of reports that the server refused as a whole: retryable ones are resent,
    /// others one by one, to find out which one is at fault.
    fn refused(
        &mut self,
        problem: &v1::Problem,
        heartbeats: Vec<v1::HeartbeatReport>,
        reports: Vec<Report>,
        now: Instant,
    ) {
        let is_retryable = problem.code.parse().is_ok_and(Code::is_retryable);
        for heartbeat in heartbeats {
            if let Some(running) = self.running.get_mut(&heartbeat.lease_id) {
                running.extend_at = now + RESEND_DELAY;
                self.due_by(now + RESEND_DELAY);
            }
            match is_retryable {
                true => self.restore_checkpoint(heartbeat),
                // A checkpoint that was refused once would be refused again, and lose the lease.
                false => tracing::error!(
                    task = heartbeat.task_id,
                    "the server refused a heartbeat: {}",
                    problem.message
                ),
            }
        }
        if is_retryable {
            let delay = problem.retry_after_ms.map_or(RESEND_DELAY, Duration::from_millis);
            self.paused_until = Some(now + delay);
            reports.into_iter().rev().for_each(|report| self.pending.push_front(report));
            return;
        }
        let was_alone = reports.len() == 1;
        for report in reports.into_iter().rev() {
            let message = &problem.message;
            match report.outcome {
                _ if !was_alone => self.pending.push_front(Report { alone: true, ..report }),
                Outcome::Complete(_) => {
                    let outcome = Outcome::Fail(Failure::permanent(message));
                    self.pending.push_front(Report { outcome, ..report });
                }
                // The lease expires, and another attempt follows.
                Outcome::Fail(_) | Outcome::Release { .. } => {
                    tracing::error!(
                        task = report.task_id,
                        "the server refused a report: {message}"
                    );
                }
            }
        }
    }

    fn extended(&mut self, lease_id: u64, result: &v1::ReportResult, now: Instant) {
        let deadline = self.deadline(result.log_expires_at, now);
        let Some(running) = self.running.get_mut(&lease_id) else { return };
        running.deadline = deadline;
        running.extend_at = next_heartbeat(deadline, now);
        if result.cancel_requested {
            running.signal.raise(LeaseStatus::Canceled);
        }
        let extend_at = running.extend_at;
        self.due_by(extend_at);
    }

    fn lose(&mut self, lease_id: u64) {
        if let Some(running) = self.running.remove(&lease_id) {
            running.signal.raise(LeaseStatus::Lost);
        }
    }

    fn due_by(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    fn due_heartbeats(&mut self, now: Instant) -> Vec<v1::HeartbeatReport> {
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        let (mut due, mut bytes) = (Vec::new(), 0);
        for (lease_id, running) in &mut self.running {
            // Heartbeats that do not fit are sent with the next message.
            if running.extend_at <= now && bytes <= REPORT_BYTES_MAX {
                let ProgressUpdate { fraction, message, checkpoint } =
                    std::mem::take(&mut running.progress);
                bytes += checkpoint.len();
                due.push(v1::HeartbeatReport {
                    task_id: running.task_id,
                    lease_id: *lease_id,
                    progress: fraction,
                    message,
                    checkpoint,
                    lease_ms: None,
                    // The stream knows its worker.
                    worker: None,
                });
                running.extended_at = Some(now);
                running.extend_at = next_heartbeat(running.deadline, now);
            }
        }
        self.due = self.running.values().map(|r| r.extend_at.min(r.deadline)).min();
        due
    }

    fn next_reports(&mut self) -> Vec<Report> {
        let (mut reports, mut bytes) = (Vec::new(), 0);
        while let Some(report) = self.pending.front() {
            bytes += report.outcome.bytes();
            let is_full = reports.len() >= REPORTS_MAX || bytes > REPORT_BYTES_MAX;
            if !reports.is_empty() && (is_full || report.alone) {
                break;
            }
            let is_alone = report.alone;
            reports.extend(self.pending.pop_front());
            if is_alone {
                break;
            }
        }
        reports.sort_by_key(|report| report.outcome.order());
        reports
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// A moment of the server's log time by the worker's clock, erring on the early side.
    fn deadline(&self, log_expires_at: u64, now: Instant) -> Instant {
        match self.clock {
            Some((sent_at, server_now)) => {
                sent_at + Duration::from_millis(log_expires_at.saturating_sub(server_now))
            }
            None => now,
        }
    }
}

fn next_heartbeat(deadline: Instant, now: Instant) -> Instant {
    let wait = deadline.saturating_duration_since(now) / HEARTBEATS_PER_LEASE;
    now + wait.max(HEARTBEAT_INTERVAL_MIN)
}

#[cfg(test)]
mod tests;
