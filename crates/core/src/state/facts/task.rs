//! A task as the state holds it: a slot of fixed size that is copied freely. What few tasks have
//! (a key, tags, a deadline, failures) is in the cold part.

use std::sync::Arc;

use tenure_record::event::SubmitHash;
use tenure_record::id::{LeaseId, Lsn, RunId, TaskId, TokenId};
use tenure_record::snapshot::LeaseEnd;
use tenure_record::state::TaskState;
use tenure_record::terms::{Backoff, Budget, Budgets, Priority};
use tenure_record::time::{Clock, Timestamp, WallOffset};

use crate::state::store::{BlobRef, ColdRef, NameRef, QueueRef, WorkerRef};

/// The phase of a task's life: its state, with the facts that are true there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskPhase {
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
    // When it ended: log time, which retention counts from, and how far the wall clock was from
    // that, which is shown.
    Completed {
        at: Timestamp,
        offset: PackedOffset,
    },
    Failed {
        at: Timestamp,
        offset: PackedOffset,
    },
    Dead {
        at: Timestamp,
        offset: PackedOffset,
    },
    Canceled {
        at: Timestamp,
        offset: PackedOffset,
    },
}

/// An offset in the seven bytes beside the name of a phase, which are unused otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackedOffset([u8; 7]);

impl PackedOffset {
    /// A million years: further apart no two clocks are that can be written as text.
    const MAX: i64 = (1 << 55) - 1;

    fn new(offset: WallOffset) -> Self {
        let [low @ .., _] = offset.0.clamp(-Self::MAX, Self::MAX).to_le_bytes();
        Self(low)
    }

    pub(crate) fn get(self) -> WallOffset {
        let Self([a, b, c, d, e, f, g]) = self;
        // The eighth byte is filled up with the sign.
        WallOffset(i64::from_le_bytes([0, a, b, c, d, e, f, g]) >> 8)
    }
}

impl TaskPhase {
    /// The terminal state of that name.
    ///
    /// # Panics
    /// If the state is no end: `decide` writes only ends where it ends a task.
    pub(crate) fn ended(name: TaskState, at: Timestamp, offset: WallOffset) -> Self {
        let offset = PackedOffset::new(offset);
        match name {
            TaskState::Completed => TaskPhase::Completed { at, offset },
            TaskState::Failed => TaskPhase::Failed { at, offset },
            TaskState::Dead => TaskPhase::Dead { at, offset },
            TaskState::Canceled => TaskPhase::Canceled { at, offset },
            TaskState::Waiting | TaskState::Leased => {
                unreachable!("{name} is no end")
            }
        }
    }

    pub(crate) fn name(self) -> TaskState {
        match self {
            TaskPhase::Waiting { .. } => TaskState::Waiting,
            TaskPhase::Leased { .. } => TaskState::Leased,
            TaskPhase::Completed { .. } => TaskState::Completed,
            TaskPhase::Failed { .. } => TaskState::Failed,
            TaskPhase::Dead { .. } => TaskState::Dead,
            TaskPhase::Canceled { .. } => TaskState::Canceled,
        }
    }
}

/// A task's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub state: TaskPhase,
    /// When it was submitted, by the wall clock: nothing is compared with it.
    pub created_at: Timestamp,
    /// The latest grant, by the wall clock: nothing is compared with it.
    pub started_at: Timestamp,
    /// The latest lease, which stays for life: a stale worker can never match a newer one.
    pub lease_id: LeaseId,
    /// The last record of its history.
    pub last_lsn: Lsn,
    pub payload: BlobRef,
    pub output: BlobRef,
    pub queue: QueueRef,
    pub cold: ColdRef,
    /// What kind of work it is.
    pub name: NameRef,
    /// Grants so far.
    pub attempt: u32,
    /// How long a lease lasts unless its worker asks for another span.
    pub lease_ms: u32,
    pub failures: u16,
    pub expiries: u16,
    pub max_failures: Option<Budget>,
    pub max_expiries: Option<Budget>,
    pub priority: Priority,
    pub lease_end: LeaseEnd,
    pub cancel_requested: bool,
    /// It belongs to a run, and is kept as long as that.
    pub in_run: bool,
}

/// A page of slots has to fit a size class of the allocator.
const _: () = assert!(size_of::<Task>() == 96);

impl Task {
    pub(crate) fn name(&self) -> TaskState {
        self.state.name()
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.name().is_terminal()
    }

    /// When it ended, if it did: by log time, and how far the wall clock was from it.
    pub(crate) fn ended(&self) -> Option<(Timestamp, WallOffset)> {
        match self.state {
            TaskPhase::Waiting { .. } | TaskPhase::Leased { .. } => None,
            TaskPhase::Completed { at, offset }
            | TaskPhase::Failed { at, offset }
            | TaskPhase::Dead { at, offset }
            | TaskPhase::Canceled { at, offset } => Some((at, offset.get())),
        }
    }
}

impl Task {
    /// Its budgets, with what the cold part says of them.
    pub(crate) fn budgets(&self, cold: Option<&Cold>) -> Budgets {
        Budgets {
            max_failures: self.max_failures,
            max_expiries: self.max_expiries,
            max_attempts: cold.and_then(|cold| cold.max_attempts),
        }
    }
}

/// What few tasks have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cold {
    pub key: Option<Key>,
    pub tags: Option<Arc<[TagPair]>>,
    pub backoff: Option<Backoff>,
    /// When it was told to run, if it was told, by the wall clock. Only shown: what counts is the
    /// moment of the phase.
    pub run_at: Timestamp,
    pub total_timeout_ms: Option<u64>,
    /// When it must have ended, by log time; zero for never.
    pub deadline_at: Timestamp,
    /// The moment past which its lease cannot be extended; zero for none.
    pub revoke_at: Timestamp,
    /// The newest lease whose stale report is in the log.
    pub stale_lease: LeaseId,
    /// How long the latest lease lasts, where its worker asked for another span than the task's;
    /// zero otherwise.
    pub granted_ms: u32,
    /// Where the next attempt goes on, as a worker left it; gone when the task is done.
    pub checkpoint: Option<Arc<[u8]>>,
    /// The last few failures, oldest first.
    pub errors: Option<Arc<[TaskError]>>,
    /// The run and the token that it belongs to.
    pub run: Option<(RunId, TokenId)>,
    /// Failures and expired leases that together end it.
    pub max_attempts: Option<Budget>,
    /// How long one attempt may take.
    pub attempt_timeout_ms: Option<u64>,
    /// When the attempt under way must have ended, by log time; zero for never.
    pub attempt_deadline_at: Timestamp,
    /// The W3C trace context of its submit.
    pub traceparent: Option<Arc<str>>,
    /// Its copy in a dead letter queue, from when it last ended FAILED or DEAD. It may be purged.
    pub dead_letter: TaskId,
    /// The task that it is the copy of, in a dead letter queue. It may be purged.
    pub dead_letter_of: TaskId,
}

impl Cold {
    /// The key that it holds, if it does.
    pub(crate) fn held_key(&self) -> Option<&Key> {
        self.key.as_ref().filter(|key| key.is_held)
    }

    /// Bytes of its texts and its checkpoint, about.
    pub(crate) fn text_bytes(&self) -> u64 {
        let text = |text: &Arc<str>| TEXT_BYTES + text.len();
        let key = self.key.as_ref().map_or(0, |key| text(&key.text));
        let tags = self.tags.iter().flat_map(|tags| tags.iter());
        let errors = self.errors.iter().flat_map(|errors| errors.iter());
        let tags: usize = tags.map(|(key, value)| text(key) + text(value)).sum();
        let errors: usize = errors.map(|error| text(&error.code) + text(&error.message)).sum();
        let traceparent = self.traceparent.as_ref().map_or(0, text);
        let checkpoint = self.checkpoint.as_ref().map_or(0, |bytes| TEXT_BYTES + bytes.len());
        (key + tags + errors + traceparent + checkpoint) as u64
    }
}

/// What a shared text takes beside its bytes.
const TEXT_BYTES: usize = 40;

/// A tag's key and value.
pub(crate) type TagPair = (Arc<str>, Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub text: Arc<str>,
    pub hash: SubmitHash,
    /// When another task may take it, by log time; zero for as long as this task exists.
    pub free_at: Timestamp,
    /// No other task has taken it.
    pub is_held: bool,
}

impl Key {
    /// Whether another task may take it.
    pub(crate) fn is_free(&self, now: Timestamp) -> bool {
        self.free_at > Timestamp::ZERO && self.free_at <= now
    }
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
    fn an_offset_is_kept_to_the_millisecond_over_all_times_that_can_be_written() {
        // From the year 9999 back to 1970, and the other way round.
        const YEARS: i64 = 253_402_300_799_999;
        for ms in [0, 1, -1, 255, -256, 946_080_000_000, -946_080_000_000, YEARS, -YEARS] {
            assert_eq!(PackedOffset::new(WallOffset(ms)).get(), WallOffset(ms));
        }
        assert_eq!(PackedOffset::new(WallOffset(i64::MIN)).get().0, -PackedOffset::MAX);
        assert_eq!(PackedOffset::new(WallOffset(i64::MAX)).get().0, PackedOffset::MAX);
    }
}
