//! A task as the state holds it: a slot of fixed size that is copied freely. What few tasks have
//! (a key, tags, a deadline, failures) is in the cold part.

use std::fmt;
use std::sync::Arc;

use super::blobs::BlobRef;
use super::dense::{ColdRef, QueueRef, WorkerRef};
use crate::event::SubmitHash;
use crate::id::{LeaseId, Lsn, RunId, TokenId};
use crate::terms::{Backoff, Priority};
use crate::time::{Clock, Timestamp};

/// A task's place in its life, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateName {
    /// Ready, delayed or backing off.
    #[default]
    Waiting = 1,
    /// Owned by a worker until its lease ends.
    Leased = 2,
    /// Done; never changes again.
    Completed = 3,
    /// A worker said so, for good.
    Failed = 4,
    /// Its workers kept vanishing.
    Dead = 5,
    /// A client, a deadline or a workflow said so.
    Canceled = 6,
}

impl StateName {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Waiting, Self::Leased, Self::Completed, Self::Failed, Self::Dead, Self::Canceled];

    /// As it is written outside.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            StateName::Waiting => "WAITING",
            StateName::Leased => "LEASED",
            StateName::Completed => "COMPLETED",
            StateName::Failed => "FAILED",
            StateName::Dead => "DEAD",
            StateName::Canceled => "CANCELED",
        }
    }

    /// Whether nothing but an operator's retry can follow.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            StateName::Waiting | StateName::Leased => false,
            StateName::Completed | StateName::Failed | StateName::Dead | StateName::Canceled => {
                true
            }
        }
    }

    /// Whether one record item may take a task from this state to that one. Staying is allowed.
    #[must_use]
    pub fn may_become(self, to: Self) -> bool {
        use StateName::{Canceled, Completed, Dead, Failed, Leased, Waiting};
        match (self, to) {
            (Waiting, Leased | Canceled)
            | (Leased, Waiting | Completed | Failed | Dead | Canceled)
            | (Failed | Dead | Canceled, Waiting) => true,
            _ => self == to,
        }
    }

    pub(crate) fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u64 == number)
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A task's place in its life, with the facts that are true there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// Waits; not to be leased before that moment of that clock.
    Waiting {
        not_before: Timestamp,
        clock: Clock,
    },
    /// Owned by `worker` under the task's `lease_id` until `expires_at` of log time.
    Leased {
        worker: WorkerRef,
        expires_at: Timestamp,
    },
    Completed {
        at: Timestamp,
    },
    Failed {
        at: Timestamp,
    },
    Dead {
        at: Timestamp,
    },
    Canceled {
        at: Timestamp,
    },
}

impl TaskState {
    /// The terminal state of that name.
    ///
    /// # Panics
    /// If the state is no end: `decide` writes only ends where it ends a task.
    pub(crate) fn ended(name: StateName, at: Timestamp) -> Self {
        match name {
            StateName::Completed => TaskState::Completed { at },
            StateName::Failed => TaskState::Failed { at },
            StateName::Dead => TaskState::Dead { at },
            StateName::Canceled => TaskState::Canceled { at },
            StateName::Waiting | StateName::Leased => {
                unreachable!("{name} is no end")
            }
        }
    }

    pub(crate) fn name(self) -> StateName {
        match self {
            TaskState::Waiting { .. } => StateName::Waiting,
            TaskState::Leased { .. } => StateName::Leased,
            TaskState::Completed { .. } => StateName::Completed,
            TaskState::Failed { .. } => StateName::Failed,
            TaskState::Dead { .. } => StateName::Dead,
            TaskState::Canceled { .. } => StateName::Canceled,
        }
    }
}

/// What ended a task's latest lease. The same word from the same worker gets the same answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LeaseEnd {
    /// It runs, or there was none.
    #[default]
    Open,
    Completed,
    Failed,
    Released,
    /// Time, a disconnect, a deadline or a revocation.
    Taken,
}

/// A task's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub state: TaskState,
    pub created_at: Timestamp,
    /// The latest grant.
    pub started_at: Timestamp,
    /// The latest lease, which stays for life: a stale worker can never match a newer one.
    pub lease_id: LeaseId,
    /// The last record of its history.
    pub last_lsn: Lsn,
    pub payload: BlobRef,
    pub output: BlobRef,
    pub queue: QueueRef,
    pub cold: ColdRef,
    /// Grants so far.
    pub attempt: u32,
    /// How long a lease lasts unless its worker asks for another span.
    pub lease_ms: u32,
    /// How long the latest lease lasts. (It stands here and not in the state because there it
    /// would cost eight bytes in every slot.)
    pub granted_ms: u32,
    pub failures: u16,
    pub expiries: u16,
    pub max_attempts: u16,
    pub max_expiries: u16,
    pub priority: Priority,
    pub lease_end: LeaseEnd,
    pub cancel_requested: bool,
    /// It belongs to a run, and is kept as long as that.
    pub in_run: bool,
}

impl Task {
    pub(crate) fn name(&self) -> StateName {
        self.state.name()
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.name().is_terminal()
    }

    /// When it ended, if it did.
    pub(crate) fn finished_at(&self) -> Option<Timestamp> {
        match self.state {
            TaskState::Waiting { .. } | TaskState::Leased { .. } => None,
            TaskState::Completed { at }
            | TaskState::Failed { at }
            | TaskState::Dead { at }
            | TaskState::Canceled { at } => Some(at),
        }
    }
}

/// What few tasks have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cold {
    pub key: Option<Key>,
    pub tags: Option<Arc<[TagPair]>>,
    pub backoff: Option<Backoff>,
    /// When it was told to run, if it was told.
    pub run_at: Timestamp,
    pub timeout_ms: Option<u64>,
    /// When it must have ended, by log time; zero for never.
    pub deadline_at: Timestamp,
    /// The moment past which its lease cannot be extended; zero for none.
    pub revoke_at: Timestamp,
    /// The newest lease whose stale report is in the log.
    pub stale_lease: LeaseId,
    /// The last few failures, oldest first.
    pub errors: Option<Arc<[TaskError]>>,
    /// The run and the token that it belongs to.
    pub run: Option<(RunId, TokenId)>,
}

/// A tag's key and value.
pub(crate) type TagPair = (Arc<str>, Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub text: Arc<str>,
    pub hash: SubmitHash,
}

/// Why a task failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskError {
    /// For programs.
    pub code: Arc<str>,
    /// For people.
    pub message: Arc<str>,
}

const _: () = assert!(size_of::<Option<Task>>() <= 96, "ten million of these are in memory");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn illegal_jumps_are_known() {
        use StateName::{Canceled, Completed, Dead, Failed, Leased, Waiting};
        let legal = [
            (Waiting, Leased),
            (Waiting, Canceled),
            (Leased, Waiting),
            (Leased, Completed),
            (Leased, Failed),
            (Leased, Dead),
            (Leased, Canceled),
            (Failed, Waiting),
            (Dead, Waiting),
            (Canceled, Waiting),
        ];
        for from in StateName::ALL {
            for to in StateName::ALL {
                let expected = from == to || legal.contains(&(from, to));
                assert_eq!(from.may_become(to), expected, "{from} -> {to}");
            }
        }
    }
}
