//! The items of each section. The numbers are the format: they are never used for anything else,
//! and a new one needs a new version of its section.
#![allow(unreachable_pub, reason = "the macro makes its messages public")]

use crate::codec::{Field, Malformed, Message, Reader, Wire, message, number_field};
use crate::event::{QueueSettings, SubmitHash, Tag};
use crate::id::{LeaseId, Lsn, RunId, TaskId};
use crate::name::Text;
use crate::state::{LeaseEnd, StateName};
use crate::terms::{Backoff, Priority};
use crate::time::{Clock, Timestamp};

message! {
    /// What is there once.
    pub struct Counters {
        1 => next_task_id: TaskId,
        2 => next_lease_id: LeaseId,
        3 => last_lsn: Lsn,
        4 => last_at: Timestamp,
        5 => next_run_id: RunId,
    }

    /// A queue. How many tasks it has is counted again.
    pub struct QueueItem<'a> {
        1 => name: Text<'a>,
        2 => configured: bool,
        3 => settings: QueueSettings,
    }

    /// A worker. How many leases it holds is counted again.
    pub struct WorkerItem<'a> {
        1 => name: Text<'a>,
    }

    /// A task. What nearly all have comes first: small numbers take less room.
    pub struct TaskItem<'a> {
        1 => id: TaskId,
        /// Its queue's place in the section of queues.
        2 => queue: u32,
        3 => state: StateName,
        /// Not before, until, or since, as the state has it.
        4 => moment: Timestamp,
        5 => created_at: Timestamp,
        6 => last_lsn: Lsn,
        7 => lease_ms: u32,
        8 => max_attempts: u16,
        9 => max_expiries: u16,
        10 => payload: &'a [u8],
        11 => priority: Priority,
        12 => lease_id: LeaseId,
        13 => attempt: u32,
        14 => started_at: Timestamp,
        15 => granted_ms: u32,
        16 => output: &'a [u8],
        17 => lease_end: LeaseEnd,
        /// While it waits: the clock of its moment.
        18 => clock: Clock,
        /// While it is leased: its worker's place in the section of workers.
        19 => worker: u32,
        20 => failures: u16,
        21 => expiries: u16,
        22 => cancel_requested: bool,
        23 => cold: Option<ColdItem<'a>>,
    }

    /// What few tasks have.
    pub struct ColdItem<'a> {
        1 => key: Option<Text<'a>>,
        2 => submit_hash: Option<SubmitHash>,
        3 => tags: Vec<Tag<'a>>,
        4 => backoff: Option<Backoff>,
        5 => run_at: Timestamp,
        6 => timeout_ms: Option<u64>,
        7 => deadline_at: Timestamp,
        8 => revoke_at: Timestamp,
        9 => stale_lease: LeaseId,
        10 => errors: Vec<ErrorItem<'a>>,
    }

    /// Why a task failed.
    pub struct ErrorItem<'a> {
        1 => code: Text<'a>,
        2 => message: Text<'a>,
    }

    /// How many items each section had.
    pub struct Totals {
        1 => queues: u64,
        2 => workers: u64,
        3 => tasks: u64,
        4 => workflows: u64,
        5 => runs: u64,
    }
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

/// Writes an item into a block.
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
