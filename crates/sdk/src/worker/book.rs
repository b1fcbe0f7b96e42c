//! What a worker knows of its leases and of its reports. No sockets and no clock of its own: the
//! lease keeper hands in the time.
//!
//! The end of a lease is a moment of the server's clock. A worker knows only this: what the server
//! said in answer to something was said after that something was sent. So the server's `now` is
//! put at the moment of sending, and a lease is believed to end rather too early than too late.

mod report;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use tenure_code::Code;
use tenure_proto::v1;
use tokio::time::Instant;

use self::report::{Report, What, written};
use super::said::Said;
use super::task::{Failure, Output, Signal, Standing};

/// Reports in one message, and their bytes.
const REPORTS_MAX: usize = 1_000;
const REPORT_BYTES_MAX: usize = 4 << 20;
/// Messages of reports that may be without an answer. What waits meanwhile goes together.
const SENT_MAX: usize = 8;
/// Heartbeats come so many times in the length of a lease.
const HEARTBEATS_PER_LEASE: u32 = 3;
/// However short a lease is, heartbeats come no faster.
const HEARTBEAT_WAIT_MIN: Duration = Duration::from_millis(10);
/// However often a handler says something, heartbeats that tell of it come no faster.
const SAY_WAIT: Duration = Duration::from_millis(200);
/// When reports cannot be taken, they are sent again after so long unless the server says better.
const PAUSE: Duration = Duration::from_millis(500);

/// Everything that a worker holds and has still to say.
#[derive(Debug)]
pub(super) struct Book {
    slots: u32,
    /// Handlers that have begun and not ended, those of lost leases included.
    busy: u32,
    /// Slots that the server was not told of yet.
    credit: u32,
    is_draining: bool,
    drain_told: bool,
    clock: Option<(Instant, u64)>,
    running: HashMap<u64, Running>,
    /// Nothing in `running` is due before this.
    due: Option<Instant>,
    waiting: VecDeque<Report>,
    paused_until: Option<Instant>,
    sent: BTreeMap<u64, Sent>,
    pings: BTreeMap<u64, Instant>,
    /// The clock may be far too early: an answer that came late moves it by as much.
    doubts_clock: bool,
    sequence: u64,
}

#[derive(Debug)]
struct Running {
    task_id: u64,
    deadline: Instant,
    extend_at: Instant,
    /// When the last heartbeat was sent.
    extended_at: Option<Instant>,
    signal: Signal,
    said: Said,
}

#[derive(Debug)]
struct Sent {
    heartbeats: Vec<v1::HeartbeatReport>,
    reports: Vec<Report>,
}

impl Book {
    pub(super) fn new(slots: u32) -> Self {
        Self {
            slots,
            busy: 0,
            credit: 0,
            is_draining: false,
            drain_told: false,
            clock: None,
            running: HashMap::new(),
            due: None,
            waiting: VecDeque::new(),
            paused_until: None,
            sent: BTreeMap::new(),
            pings: BTreeMap::new(),
            doubts_clock: false,
            sequence: 0,
        }
    }

    /// Nothing new is taken from here on.
    pub(super) fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Nothing is waited for any longer: handlers are told to stop.
    pub(super) fn leave(&mut self) {
        self.drain();
        self.running.values().for_each(|running| running.signal.raise(Standing::Leaving));
    }

    /// Whether nothing runs and everything was said and heard.
    pub(super) fn is_done(&self) -> bool {
        self.is_draining && self.busy == 0 && self.waiting.is_empty() && self.sent.is_empty()
    }

    /// A new stream begins: what had no answer is said again, and these leases are still held.
    pub(super) fn reconnect(&mut self) -> Vec<v1::LeaseRef> {
        for sent in std::mem::take(&mut self.sent).into_values().rev() {
            sent.heartbeats.into_iter().for_each(|heartbeat| self.say_again(heartbeat));
            sent.reports.into_iter().rev().for_each(|report| self.waiting.push_front(report));
        }
        self.pings.clear();
        (self.paused_until, self.drain_told) = (None, false);
        self.credit = self.slots.saturating_sub(self.busy);
        let lease = |task_id, lease_id| v1::LeaseRef { task_id, lease_id };
        let running = self.running.iter().map(|(id, running)| lease(running.task_id, *id));
        let reported = self.waiting.iter().map(|report| lease(report.task_id, report.lease_id));
        running.chain(reported).collect()
    }

    /// The answer to a hello that was sent at that moment with those leases.
    pub(super) fn welcome(
        &mut self,
        welcome: &v1::Welcome,
        held: &[v1::LeaseRef],
        sent_at: Instant,
        now: Instant,
    ) {
        self.clock = Some((sent_at, welcome.now));
        // A server that has just started may take long to say it. Without a better clock every
        // lease that is shorter than that would seem to be over when it comes.
        self.doubts_clock = true;
        for (lease, result) in held.iter().zip(&welcome.held) {
            if result.code.is_empty() {
                self.extended(lease.lease_id, result, now);
            } else {
                self.lose(lease.lease_id);
                self.waiting.retain(|report| report.lease_id != lease.lease_id);
            }
        }
    }

    /// A lease came. None if it is given back at once.
    pub(super) fn begin(&mut self, lease: &v1::Lease, now: Instant) -> Option<Signal> {
        let v1::Lease { task_id, lease_id, .. } = *lease;
        if self.is_draining {
            let what = What::Release { wait: Duration::ZERO, checkpoint: Vec::new() };
            self.waiting.push_back(Report { task_id, lease_id, what, alone: false });
            return None;
        }
        let signal = Signal::new();
        let deadline = self.deadline(lease.log_expires_at, now);
        let extend_at = next_heartbeat(deadline, now);
        let (signal_of, said) = (signal.clone(), Said::default());
        let running =
            Running { task_id, deadline, extend_at, extended_at: None, signal: signal_of, said };
        self.running.insert(lease_id, running);
        self.busy += 1;
        self.due_by(extend_at);
        Some(signal)
    }

    /// A handler ended. What comes of a lost lease is dropped.
    pub(super) fn finish(&mut self, lease_id: u64, result: Option<Result<Output, Failure>>) {
        self.busy = self.busy.saturating_sub(1);
        self.credit += 1;
        let Some(running) = self.running.remove(&lease_id) else { return };
        let result = result.unwrap_or_else(|| Err(Failure::give_back()));
        let what = What::of(result, running.said.checkpoint);
        let task_id = running.task_id;
        self.waiting.push_back(Report { task_id, lease_id, what, alone: false });
    }

    /// A handler says something about its work. It goes out with a heartbeat: at once, or soon if
    /// the last one has just been sent.
    pub(super) fn say(&mut self, lease_id: u64, said: Said, now: Instant) {
        let Some(running) = self.running.get_mut(&lease_id) else { return };
        running.said.add(said);
        let soon = running.extended_at.map_or(now, |at| at + SAY_WAIT).max(now);
        running.extend_at = running.extend_at.min(soon);
        let extend_at = running.extend_at;
        self.due_by(extend_at);
    }

    /// A heartbeat had no effect: its checkpoint goes with the next one, unless there is a newer.
    fn say_again(&mut self, heartbeat: v1::HeartbeatReport) {
        if let Some(running) = self.running.get_mut(&heartbeat.lease_id)
            && running.said.checkpoint.is_empty()
        {
            running.said.checkpoint = heartbeat.checkpoint;
        }
    }

    /// When there is something to do without anybody saying so.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let paused = self.paused_until.filter(|_| !self.waiting.is_empty());
        [self.due, paused].into_iter().flatten().min()
    }

    /// Gives up leases whose time is over.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        let over = |(id, running): (&u64, &Running)| (running.deadline <= now).then_some(*id);
        let over: Vec<_> = self.running.iter().filter_map(over).collect();
        self.doubts_clock |= !over.is_empty();
        over.into_iter().for_each(|lease_id| self.lose(lease_id));
        self.due = self.running.values().map(|r| r.extend_at.min(r.deadline)).min();
    }

    /// The next thing to say, if there is any. It counts as said at `now`.
    pub(super) fn message(&mut self, now: Instant) -> Option<v1::WorkRequest> {
        self.expire(now);
        let mut message = v1::WorkRequest::default();
        let heartbeats = self.due_heartbeats(now);
        self.paused_until = self.paused_until.filter(|until| now < *until);
        let may_report = self.sent.len() < SENT_MAX && self.paused_until.is_none();
        let reports = if may_report { self.next_reports() } else { Vec::new() };
        if !heartbeats.is_empty() || !reports.is_empty() {
            let sequence = self.next_sequence();
            if !heartbeats.is_empty() {
                message.ping = Some(self.ping(now));
            }
            message.reports = Some(written(sequence, &heartbeats, &reports));
            self.sent.insert(sequence, Sent { heartbeats, reports });
        }
        if std::mem::take(&mut self.doubts_clock) && message.ping.is_none() {
            message.ping = Some(self.ping(now));
        }
        if self.is_draining {
            if !self.drain_told {
                message.drain = Some(v1::Drain {});
                self.drain_told = true;
            }
        } else {
            message.credit = std::mem::take(&mut self.credit);
        }
        (message != v1::WorkRequest::default()).then_some(message)
    }

    /// A ping that is sent at that moment.
    pub(super) fn ping(&mut self, now: Instant) -> v1::Ping {
        let sequence = self.next_sequence();
        self.pings.insert(sequence, now);
        v1::Ping { sequence }
    }

    /// The answer to a ping.
    pub(super) fn pong(&mut self, pong: v1::Pong) {
        if let Some(sent_at) = self.pings.remove(&pong.sequence) {
            self.pings = self.pings.split_off(&pong.sequence);
            self.clock = Some((sent_at, pong.now));
        }
    }

    /// A task should stop.
    pub(super) fn stop(&mut self, cancel: v1::Cancel) {
        if cancel.lost {
            self.lose(cancel.lease_id);
        } else if let Some(running) = self.running.get(&cancel.lease_id) {
            running.signal.raise(Standing::Canceled);
        }
    }

    /// What became of reports.
    pub(super) fn results(&mut self, results: v1::Results, now: Instant) {
        let Some(Sent { heartbeats, reports }) = self.sent.remove(&results.sequence) else {
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
                tracing::warn!(task = report.task_id, "a result was dropped: {}", result.message);
            }
        }
    }

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
                running.extend_at = now + PAUSE;
                self.due_by(now + PAUSE);
            }
            match is_retryable {
                true => self.say_again(heartbeat),
                // Said again, it would be refused again and take the lease with it.
                false => tracing::error!(
                    task = heartbeat.task_id,
                    "a heartbeat was refused: {}",
                    problem.message
                ),
            }
        }
        if is_retryable {
            let pause = problem.retry_after_ms.map_or(PAUSE, Duration::from_millis);
            self.paused_until = Some(now + pause);
            reports.into_iter().rev().for_each(|report| self.waiting.push_front(report));
            return;
        }
        let was_alone = reports.len() == 1;
        for report in reports.into_iter().rev() {
            let message = &problem.message;
            match report.what {
                _ if !was_alone => self.waiting.push_front(Report { alone: true, ..report }),
                What::Complete(_) => {
                    let what = What::Fail(Failure::new(message).last());
                    self.waiting.push_front(Report { what, ..report });
                }
                // Its lease runs out, and another attempt follows.
                What::Fail(_) | What::Release { .. } => {
                    tracing::error!(task = report.task_id, "a report was refused: {message}");
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
            running.signal.raise(Standing::Canceled);
        }
        let extend_at = running.extend_at;
        self.due_by(extend_at);
    }

    fn lose(&mut self, lease_id: u64) {
        if let Some(running) = self.running.remove(&lease_id) {
            running.signal.raise(Standing::Lost);
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
            // What does not fit goes with the next message.
            if running.extend_at <= now && bytes <= REPORT_BYTES_MAX {
                let Said { fraction, message, checkpoint } = std::mem::take(&mut running.said);
                bytes += checkpoint.len();
                due.push(v1::HeartbeatReport {
                    task_id: running.task_id,
                    lease_id: *lease_id,
                    progress: fraction,
                    message,
                    checkpoint,
                    lease_ms: None,
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
        while let Some(report) = self.waiting.front() {
            bytes += report.what.bytes();
            let is_full = reports.len() >= REPORTS_MAX || bytes > REPORT_BYTES_MAX;
            if !reports.is_empty() && (is_full || report.alone) {
                break;
            }
            let is_alone = report.alone;
            reports.extend(self.waiting.pop_front());
            if is_alone {
                break;
            }
        }
        reports.sort_by_key(|report| report.what.place());
        reports
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// A moment of the server's log time by our clock, or a little earlier.
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
    now + wait.max(HEARTBEAT_WAIT_MIN)
}

#[cfg(test)]
mod tests;
