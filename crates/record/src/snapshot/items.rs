//! The items of a snapshot's sections. The numbers are the format: they are never used for anything
//! else, and a new one needs a new version of its section.

use crate::codec::{Field, Malformed, Message, Reader, Wire, message, number_field};
use crate::event::{QueueSettings, SubmitHash, Tag};
use crate::id::{LeaseId, Lsn, RunId, TaskId};
use crate::name::Text;
use crate::state::TaskState;
use crate::terms::{Backoff, Budget, Priority};
use crate::time::{Clock, Timestamp, WallOffset};

message! {
    /// The counters of the log.
    pub struct Counters {
        /// The id of the next task.
        1 => next_task_id: TaskId,
        /// The id of the next lease.
        2 => next_lease_id: LeaseId,
        /// The last record that the snapshot covers.
        3 => last_lsn: Lsn,
        /// Log time of that record.
        4 => last_at: Timestamp,
        /// The id of the next run.
        5 => next_run_id: RunId,
    }

    /// A queue. The number of its tasks is counted again.
    pub struct QueueItem<'a> {
        /// Its name.
        1 => name: Text<'a>,
        /// An operator gave it settings; it stays without tasks.
        2 => configured: bool,
        /// Its settings.
        3 => settings: QueueSettings,
    }

    /// A worker. The number of leases that it holds is counted again.
    pub struct WorkerItem<'a> {
        /// Its name.
        1 => name: Text<'a>,
    }

    /// A task. Fields that nearly all tasks have come first: small numbers take less room.
    pub struct TaskItem<'a> {
        /// Its id.
        1 => id: TaskId,
        /// The position of its queue in the section of queues.
        2 => queue: u32,
        /// Its state.
        3 => state: TaskState,
        /// WAITING: not to be leased before. LEASED: the lease's end. Otherwise: when it ended.
        4 => moment: Timestamp,
        /// Once it has ended: how far the wall clock was from that moment of log time.
        30 => ended_offset: WallOffset,
        /// When it was submitted, by the wall clock.
        5 => created_at: Timestamp,
        /// The last record of its history.
        6 => last_lsn: Lsn,
        /// The length of a lease whose worker does not ask for another.
        7 => lease_ms: u32,
        /// Failures that end it, if so many alone do.
        8 => max_failures: Option<Budget>,
        /// Expired leases that end it, if so many alone do.
        9 => max_expiries: Option<Budget>,
        /// Its payload.
        10 => payload: &'a [u8],
        /// Its priority.
        11 => priority: Priority,
        /// Its latest lease.
        12 => lease_id: LeaseId,
        /// Grants so far.
        13 => attempt: u32,
        /// The latest grant, by the wall clock.
        14 => started_at: Timestamp,
        /// Its output.
        16 => output: &'a [u8],
        /// What ended the latest lease.
        17 => lease_end: LeaseEnd,
        /// While it waits: the clock of its moment.
        18 => clock: Clock,
        /// While it is leased: the position of its worker in the section of workers.
        19 => worker: u32,
        /// Failures so far.
        20 => failures: u16,
        /// Expired leases so far.
        21 => expiries: u16,
        /// A client wants it to stop.
        22 => cancel_requested: bool,
        /// What few tasks have.
        23 => cold: Option<ColdItem<'a>>,
        /// What kind of work it is, if its submit said.
        24 => name: Option<Text<'a>>,
    }

    /// The fields of a task that few tasks have.
    pub struct ColdItem<'a> {
        /// Its idempotency key.
        1 => key: Option<Text<'a>>,
        /// The hash of the submit under that key.
        2 => submit_hash: Option<SubmitHash>,
        /// Its tags.
        3 => tags: Vec<Tag<'a>>,
        /// The delays between its attempts.
        4 => backoff: Option<Backoff>,
        /// The calendar moment before which it must not run; zero for none.
        5 => run_at: Timestamp,
        /// The time that it may take from its submit or retry.
        6 => total_timeout_ms: Option<u64>,
        /// Its deadline on log time; zero for none.
        7 => deadline_at: Timestamp,
        /// The moment past which its lease cannot be extended; zero for none.
        8 => revoke_at: Timestamp,
        /// The newest lease whose stale report is in the log.
        9 => stale_lease: LeaseId,
        /// Its last few failures, oldest first.
        10 => errors: Vec<ErrorItem<'a>>,
        /// The length of the latest lease, where it is not the task's own; zero otherwise.
        11 => granted_ms: u32,
        /// Failures and expired leases that together end it, if so many do.
        12 => max_attempts: Option<Budget>,
        /// How long one attempt may take.
        13 => attempt_timeout_ms: Option<u64>,
        /// When the attempt under way must have ended, by log time; zero for never.
        14 => attempt_deadline_at: Timestamp,
        /// The W3C trace context of its submit.
        15 => traceparent: Option<Text<'a>>,
        /// When its key is free for another task, by log time; zero for as long as the task exists.
        16 => key_free_at: Timestamp,
        /// Another task has taken its key, which only shows since.
        17 => key_is_lost: bool,
        /// Where its next attempt goes on; empty for none.
        18 => checkpoint: &'a [u8],
        /// Its copy in a dead letter queue; zero for none.
        19 => dead_letter: TaskId,
        /// The task that it is the copy of, in a dead letter queue; zero for none.
        20 => dead_letter_of: TaskId,
    }

    /// A failure that a task keeps.
    pub struct ErrorItem<'a> {
        /// Its code, for programs.
        1 => code: Text<'a>,
        /// Its message, for people.
        2 => message: Text<'a>,
    }

    /// The number of items in each section.
    pub struct Totals {
        /// Queues.
        1 => queues: u64,
        /// Workers.
        2 => workers: u64,
        /// Tasks.
        3 => tasks: u64,
        /// Versions of workflows.
        4 => workflows: u64,
        /// Runs.
        5 => runs: u64,
    }
}

/// What ended a task's latest lease. A repeated report of the same worker gets the same answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseEnd {
    /// The lease runs, or there was none.
    #[default]
    Open,
    /// The worker completed the task.
    Completed,
    /// The worker reported a failure.
    Failed,
    /// The worker released the lease.
    Released,
    /// Time, a disconnect, a deadline or a revocation ended it.
    Taken,
}

impl LeaseEnd {
    const ALL: [Self; 5] = [Self::Open, Self::Completed, Self::Failed, Self::Released, Self::Taken];

    fn number(self) -> u64 {
        match self {
            LeaseEnd::Open => 0,
            LeaseEnd::Completed => 1,
            LeaseEnd::Failed => 2,
            LeaseEnd::Released => 3,
            LeaseEnd::Taken => 4,
        }
    }

    fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|end| end.number() == number)
    }
}

number_field! {
    LeaseEnd: LeaseEnd::number, LeaseEnd::from_number;
}

/// Writes an item at the end of a block.
pub(super) fn put<'a>(item: &impl Message<'a>, block: &mut Vec<u8>) {
    item.put(ITEM, block);
}

/// Reads the items of a block one after the other.
pub(super) fn each<'a, M: Message<'a>>(
    block: &'a [u8],
    mut visit: impl FnMut(M) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut from = Reader::new(block);
    while let Some((tag, wire)) = from.key()? {
        if (tag, wire) != (ITEM, Wire::Bytes) {
            return Err(Malformed::unknown_field("a block", tag));
        }
        visit(M::decode(from.bytes()?)?)?;
    }
    Ok(())
}

/// A block is a message with one repeated field.
const ITEM: u32 = 1;
