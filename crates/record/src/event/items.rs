//! The parts of events. The numbers are the wire format of `proto/tenure/log/v1/record.proto`:
//! they are never used for anything else, and a new one needs a new format version.

use std::borrow::Cow;
use std::sync::Arc;

use super::decision::Decision;
use super::run::{JoinTimedOut, RunDeadlinePassed, RunLink, TokenDue};
use crate::codec::{
    Field, Malformed, Message, Numbers, Reader, Wire, message, number_field, one_of, put_bytes,
};
use crate::id::{LeaseId, Lsn, RunId, TaskId};
use crate::name::Text;
use crate::state::TaskState;
use crate::terms::{Backoff, Budget, Priority};
use crate::time::{Clock, Timestamp};

message! {
    /// The task that an item is about, as an observer wants to hear of it.
    pub struct About<'a> {
        /// Which task.
        1 => task_id: TaskId,
        /// Its queue.
        2 => queue: Text<'a>,
        /// Its priority.
        3 => priority: Priority,
        /// How many leases it had, this one included.
        4 => attempt: u32,
        /// The record before this one that is part of its history; this very record when an
        /// earlier item of it touched the task already.
        5 => previous: Lsn,
        /// The run that it belongs to; zero for none.
        6 => run_id: RunId,
    }

    /// Tasks that were submitted together.
    pub struct TaskCreated<'a> {
        /// In the order in which they were given.
        1 => tasks: Vec<Created<'a>>,
    }

    /// A new task.
    pub struct Created<'a> {
        /// Its number.
        1 => task_id: TaskId,
        /// Where it waits.
        2 => queue: Text<'a>,
        /// How urgent it is.
        3 => priority: Priority,
        /// What the worker gets.
        4 => payload: Cow<'a, [u8]>,
        /// When it may run first, by `clock`; zero for at once.
        5 => not_before: Timestamp,
        /// How long a lease lasts unless the worker asks for another span.
        6 => lease_ms: u32,
        /// Failures that end it, if so many alone do.
        7 => max_failures: Option<Budget>,
        /// Expired leases that end it, if so many alone do.
        8 => max_expiries: Option<Budget>,
        /// How it waits between failures, if not as usual.
        9 => backoff: Option<Backoff>,
        /// How long it may take from here to its end.
        10 => total_timeout_ms: Option<u64>,
        /// Its idempotency key.
        11 => key: Option<Text<'a>>,
        /// What the submit looked like, to tell the same from another one under the same key.
        12 => submit_hash: Option<SubmitHash>,
        /// Labels for people, ordered by key.
        13 => tags: Vec<Tag<'a>>,
        /// When it must have ended, by log time; zero for never.
        14 => deadline_at: Timestamp,
        /// Which clock says when it may run: the wall clock for an appointment.
        15 => clock: Clock,
        /// The run that it belongs to, if one made it.
        16 => run: Option<RunLink<'a>>,
        /// Failures and expired leases that together end it, if so many do.
        17 => max_attempts: Option<Budget>,
        /// How long one attempt may take, with heartbeats or without.
        18 => attempt_timeout_ms: Option<u64>,
        /// The W3C trace context of its submit.
        19 => traceparent: Option<Text<'a>>,
        /// When its key is free for another task, by log time; zero for as long as the task exists.
        20 => key_free_at: Timestamp,
        /// The task that held its key until now, if the key was free and still held.
        21 => key_from: TaskId,
        /// What kind of work it is, if its submit says.
        22 => name: Option<Text<'a>>,
    }

    /// A label.
    pub struct Tag<'a> {
        /// Left side.
        1 => key: Text<'a>,
        /// Right side.
        2 => value: Text<'a>,
    }

    /// Leases that one worker got with one request.
    pub struct LeaseGranted<'a> {
        /// Who got them.
        1 => worker: Text<'a>,
        /// In the order in which they were given.
        2 => grants: Vec<Granted<'a>>,
    }

    /// A lease given.
    pub struct Granted<'a> {
        /// The task.
        1 => about: About<'a>,
        /// The lease's number.
        2 => lease_id: LeaseId,
        /// How long it lasts, and how far each heartbeat moves its end.
        3 => lease_ms: u32,
        /// When it ends unless it is extended.
        4 => expires_at: Timestamp,
        /// When the attempt must have ended, heartbeats or not, by log time; zero for never.
        5 => attempt_deadline_at: Timestamp,
    }

    /// A lease extended.
    pub struct LeaseExtended<'a> {
        /// The task.
        1 => task_id: TaskId,
        /// The lease.
        2 => lease_id: LeaseId,
        /// Its new end.
        3 => expires_at: Timestamp,
        /// The span that this heartbeat asked for; zero for the lease's own.
        4 => lease_ms: u32,
        /// Where the next attempt goes on; empty if the task keeps the checkpoint that it has.
        5 => checkpoint: &'a [u8],
    }

    /// Leases that ended without a word from their workers.
    pub struct LeaseExpired<'a> {
        /// In the order of (end, lease).
        1 => leases: Vec<Expired<'a>>,
    }

    /// A lease that ended without a word from its worker.
    pub struct Expired<'a> {
        /// The task.
        1 => about: About<'a>,
        /// The lease.
        2 => lease_id: LeaseId,
        /// Who held it.
        3 => worker: Text<'a>,
        /// WAITING, DEAD or CANCELED; FAILED instead of DEAD if the attempt took too long.
        4 => to: TaskState,
        /// How many of the task's leases have now expired.
        5 => expiries: u16,
        /// Why it ended.
        6 => cause: ExpiryCause,
        /// What was decided about its run, if the task belongs to one and ended.
        7 => cascade: Vec<Decision<'a>>,
        /// If the attempt took too long: how often the task has failed by now. Otherwise zero.
        8 => failures: u16,
        /// If the attempt took too long and another follows: when that may run, by log time.
        9 => not_before: Timestamp,
        /// Its copy, if it is FAILED or DEAD now and its queue has a dead letter queue.
        10 => dead_letter: Option<Box<DeadLetter<'a>>>,
    }

    /// A copy of a task that ended FAILED or DEAD, in the dead letter queue of its queue. Its name,
    /// payload, tags, priority, errors and trace context are those of that task, and are not repeated
    /// here.
    pub struct DeadLetter<'a> {
        /// The copy's number.
        1 => task_id: TaskId,
        /// The dead letter queue, where the copy waits.
        2 => queue: Text<'a>,
        /// How long a lease of the copy lasts unless the worker asks for another span.
        3 => lease_ms: u32,
        /// Failures that end the copy.
        4 => max_failures: Option<Budget>,
        /// Expired leases that end the copy.
        5 => max_expiries: Option<Budget>,
    }

    /// A lease given back.
    pub struct LeaseReleased<'a> {
        /// The task.
        1 => about: About<'a>,
        /// The lease.
        2 => lease_id: LeaseId,
        /// Who held it.
        3 => worker: Text<'a>,
        /// WAITING, or CANCELED if that was asked for.
        4 => to: TaskState,
        /// What was decided about its run, if the task belongs to one and ended.
        5 => cascade: Vec<Decision<'a>>,
        /// When it may run again, by log time; zero for at once.
        6 => not_before: Timestamp,
        /// Its new priority; without one the task keeps its own.
        7 => priority: Option<Priority>,
        /// Where the next attempt goes on; empty if the task keeps the checkpoint that it has.
        8 => checkpoint: &'a [u8],
    }

    /// A task done.
    pub struct TaskCompleted<'a> {
        /// The task.
        1 => about: About<'a>,
        /// The lease under which it was done.
        2 => lease_id: LeaseId,
        /// Who did it.
        3 => worker: Text<'a>,
        /// What came out.
        4 => output: &'a [u8],
        /// What was decided about its run, if the task belongs to one and ended.
        5 => cascade: Vec<Decision<'a>>,
    }

    /// An attempt failed.
    pub struct TaskFailed<'a> {
        /// The task.
        1 => about: About<'a>,
        /// The lease under which it failed.
        2 => lease_id: LeaseId,
        /// Whose attempt it was.
        3 => worker: Text<'a>,
        /// WAITING, FAILED or CANCELED.
        4 => to: TaskState,
        /// How often it has failed by now.
        5 => failures: u16,
        /// When it may run again, by log time.
        6 => not_before: Timestamp,
        /// The failure's code, for programs.
        7 => code: Text<'a>,
        /// The failure's reason, for people.
        8 => reason: Text<'a>,
        /// What was decided about its run, if the task belongs to one and ended.
        9 => cascade: Vec<Decision<'a>>,
        /// Where the next attempt goes on; empty if the task keeps the checkpoint that it has.
        10 => checkpoint: &'a [u8],
        /// Its copy, if it is FAILED now and its queue has a dead letter queue.
        11 => dead_letter: Option<Box<DeadLetter<'a>>>,
    }

    /// A result or failure reported under a lease that was over. Nothing changed.
    pub struct StaleReportRejected<'a> {
        /// The task.
        1 => about: About<'a>,
        /// The lease that was over.
        2 => lease_id: LeaseId,
        /// The task's state, which stays.
        3 => state: TaskState,
        /// The worker, as the report names it; empty if it does not.
        4 => worker: Text<'a>,
    }

    /// Reports of one request. A report that comes alone is a batch of one.
    pub struct ReportsApplied<'a> {
        /// Those that are recorded, in the order of the request.
        1 => reports: Vec<Report<'a>>,
    }

    /// A wish that a task stop.
    pub struct CancelRequested<'a> {
        /// The task.
        1 => about: About<'a>,
        /// WAITING or LEASED.
        2 => from: TaskState,
        /// CANCELED if it waited, or if its worker got no grace; LEASED as long as a worker may
        /// still answer.
        3 => to: TaskState,
        /// Who holds the lease, if anybody.
        4 => worker: Text<'a>,
        /// The lease, if there is one.
        5 => lease_id: LeaseId,
        /// The lease's end, which a grace may have moved nearer.
        6 => expires_at: Timestamp,
        /// The moment past which the lease cannot be extended; zero for none.
        7 => revoke_at: Timestamp,
        /// What was decided about its run, if the task belongs to one and ended.
        8 => cascade: Vec<Decision<'a>>,
    }

    /// Another round for a task that had ended.
    pub struct TaskRetried<'a> {
        /// The task.
        1 => about: About<'a>,
        /// FAILED, DEAD or CANCELED.
        2 => from: TaskState,
        /// When it may run, by log time: now. Written down so that the task goes back to its old place, not
        /// to the end of the line.
        3 => not_before: Timestamp,
        /// Its new deadline; zero for none.
        4 => deadline_at: Timestamp,
    }

    /// Timers that fired together. Moments never go back from one item to the next, over all lists: a
    /// record ends where the next timer belongs to an earlier list.
    pub struct TimerFired<'a> {
        /// Tasks that took too long, in the order of (deadline, task).
        1 => deadlines: Vec<DeadlinePassed<'a>>,
        /// Runs that took too long, in the order of (deadline, run).
        2 => runs: Vec<RunDeadlinePassed<'a>>,
        /// Joins that waited too long, in the order of (deadline, run, group).
        3 => joins: Vec<JoinTimedOut<'a>>,
        /// Nodes that took too long, in the order of (deadline, run, token).
        4 => nodes: Vec<TokenDue<'a>>,
        /// Timer nodes whose moment has come, on either clock: the one that is late the longest first, then
        /// by (run, token).
        5 => timers: Vec<TokenDue<'a>>,
    }

    /// A task that took too long; it ends, leased or not.
    pub struct DeadlinePassed<'a> {
        /// The task.
        1 => about: About<'a>,
        /// WAITING or LEASED.
        2 => from: TaskState,
        /// Who holds the lease, if anybody.
        3 => worker: Text<'a>,
        /// The lease, if there is one.
        4 => lease_id: LeaseId,
        /// When it should have been done.
        5 => deadline_at: Timestamp,
        /// What was decided about its run, if the task belongs to one and ended.
        6 => cascade: Vec<Decision<'a>>,
        /// FAILED, or CANCELED if that was asked for.
        7 => to: TaskState,
        /// Its copy, if it is FAILED now and its queue has a dead letter queue.
        8 => dead_letter: Option<Box<DeadLetter<'a>>>,
    }

    /// A queue's settings are now these.
    pub struct QueueConfigured<'a> {
        /// Which queue.
        1 => queue: Text<'a>,
        /// All of its settings.
        2 => settings: QueueSettings,
    }

    /// A queue without tasks was deleted, with its settings.
    pub struct QueueDeleted<'a> {
        /// Which queue.
        1 => queue: Text<'a>,
    }

    /// What can be set for a queue.
    pub struct QueueSettings {
        /// No leases are given while this is set.
        1 => paused: bool,
        /// How long its finished tasks are kept, if not as usual.
        2 => retention_ms: Option<u64>,
        /// No leases are given before this moment of the wall clock; zero for none.
        3 => paused_until: Timestamp,
        /// The queue that gets a copy of each task that ends FAILED or DEAD, if there is one.
        4 => dead_letter_queue: Option<Arc<str>>,
        /// With this number of waiting tasks, the queue takes no further submit.
        5 => max_waiting: Option<u64>,
    }

    /// Finished tasks that were forgotten.
    pub struct TasksPurged {
        /// Which, in the order in which they were due.
        1 => tasks: Vec<TaskId>,
        /// Finished runs that were forgotten, each with all its tasks.
        2 => runs: Vec<RunId>,
    }

    /// The counters jumped ahead.
    pub struct IdsSkipped {
        /// The next task's number.
        1 => next_task_id: TaskId,
        /// The next lease's number.
        2 => next_lease_id: LeaseId,
        /// The next run's number; zero where there were no runs yet.
        3 => next_run_id: RunId,
    }
}

one_of! {
    /// One report of a worker.
    pub enum Report<'a> {
        /// A heartbeat.
        1 => LeaseExtended(LeaseExtended<'a>),
        /// A task done.
        2 => TaskCompleted(TaskCompleted<'a>),
        /// An attempt failed.
        3 => TaskFailed(TaskFailed<'a>),
        /// A lease given back.
        4 => LeaseReleased(LeaseReleased<'a>),
        /// A report under a lease that was over.
        5 => StaleReportRejected(StaleReportRejected<'a>),
    }
}

impl Default for Report<'_> {
    fn default() -> Self {
        Report::LeaseExtended(LeaseExtended::default())
    }
}

impl<'a> Message<'a> for Report<'a> {
    const NAME: &'static str = "Report";
    // It is one of its variants, which have the fields.
    const FIELDS: Numbers = &[];

    fn put_fields(&self, out: &mut Vec<u8>) {
        self.put_one(out);
    }

    fn take_field(&mut self, tag: u32, wire: Wire, from: &mut Reader<'a>) -> Result<(), Malformed> {
        *self = Report::take_one(tag, wire, from)?;
        Ok(())
    }

    #[inline]
    fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut from = Reader::new(bytes);
        let Some((tag, wire)) = from.key()? else {
            return Err(Malformed::new("a report says nothing"));
        };
        let report = Report::take_one(tag, wire, &mut from)?;
        match from.is_empty() {
            true => Ok(report),
            false => Err(Malformed::new("a report says more than one thing")),
        }
    }
}

impl QueueSettings {
    /// The settings as a record has them. A setting that is not set takes no bytes, so a new setting
    /// changes the bytes of no queue that does not use it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put_fields(&mut bytes);
        bytes
    }

    /// Whether no leases are given at that moment of the wall clock.
    #[must_use]
    pub fn is_paused_at(&self, wall: Timestamp) -> bool {
        self.paused || wall < self.paused_until
    }
}

/// Why a lease ended without a word from its worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpiryCause {
    /// Its time was up.
    #[default]
    RanOut = 0,
    /// The worker's stream closed and did not come back.
    Disconnected = 1,
    /// A cancel's grace was up.
    Revoked = 2,
    /// The attempt took longer than the task allows, which is a failure.
    AttemptTimedOut = 3,
}

impl ExpiryCause {
    /// As it is told outside.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ExpiryCause::RanOut => "ran_out",
            ExpiryCause::Disconnected => "disconnected",
            ExpiryCause::Revoked => "revoked",
            ExpiryCause::AttemptTimedOut => "attempt_timed_out",
        }
    }

    fn from_number(number: u64) -> Option<Self> {
        let all = [Self::RanOut, Self::Disconnected, Self::Revoked, Self::AttemptTimedOut];
        all.into_iter().find(|cause| *cause as u64 == number)
    }
}

number_field! {
    ExpiryCause: |cause: ExpiryCause| cause as u64, ExpiryCause::from_number;
    TaskState: |state: TaskState| state as u64, TaskState::from_number;
}

/// 128 bits that tell one submit, start of a run or signal from another under its key or id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitHash(pub [u8; 16]);

impl Field<'_> for SubmitHash {
    fn is_default(&self) -> bool {
        false
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        put_bytes(tag, &self.0, out);
    }

    fn take(&mut self, wire: Wire, from: &mut Reader<'_>) -> Result<(), Malformed> {
        let mut bytes: &[u8] = &[];
        bytes.take(wire, from)?;
        self.0 = bytes.try_into().map_err(|_| Malformed::new("a submit hash is not 16 bytes"))?;
        Ok(())
    }
}
