//! A task as the state holds it: a slot of fixed size that is copied freely. What few tasks have
//! (a key, tags, a deadline, failures) is in the cold part.

use std::sync::Arc;

use tenure_record::event::SubmitHash;
use tenure_record::id::{LeaseId, Lsn, RunId, TokenId};
use tenure_record::snapshot::LeaseEnd;
use tenure_record::state::TaskState;
use tenure_record::terms::{Backoff, Priority};
use tenure_record::time::{Clock, Timestamp};

use super::blobs::BlobRef;
use super::dense::{ColdRef, QueueRef, WorkerRef};

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

impl TaskPhase {
    /// The terminal state of that name.
    ///
    /// # Panics
    /// If the state is no end: `decide` writes only ends where it ends a task.
    pub(crate) fn ended(name: TaskState, at: Timestamp) -> Self {
        match name {
            TaskState::Completed => TaskPhase::Completed { at },
            TaskState::Failed => TaskPhase::Failed { at },
            TaskState::Dead => TaskPhase::Dead { at },
            TaskState::Canceled => TaskPhase::Canceled { at },
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
    pub(crate) fn name(&self) -> TaskState {
        self.state.name()
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.name().is_terminal()
    }

    /// When it ended, if it did.
    pub(crate) fn finished_at(&self) -> Option<Timestamp> {
        match self.state {
            TaskPhase::Waiting { .. } | TaskPhase::Leased { .. } => None,
            TaskPhase::Completed { at }
            | TaskPhase::Failed { at }
            | TaskPhase::Dead { at }
            | TaskPhase::Canceled { at } => Some(at),
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
    /// How long the latest lease lasts, where its worker asked for another span than the task's;
    /// zero otherwise.
    pub granted_ms: u32,
    /// Where the next attempt goes on, as a worker left it; gone when the task is done.
    pub checkpoint: Option<Arc<[u8]>>,
    /// The last few failures, oldest first.
    pub errors: Option<Arc<[TaskError]>>,
    /// The run and the token that it belongs to.
    pub run: Option<(RunId, TokenId)>,
}

impl Cold {
    /// Bytes of its texts and its checkpoint, about.
    pub(crate) fn text_bytes(&self) -> u64 {
        let text = |text: &Arc<str>| TEXT_BYTES + text.len();
        let key = self.key.as_ref().map_or(0, |key| text(&key.text));
        let tags = self.tags.iter().flat_map(|tags| tags.iter());
        let errors = self.errors.iter().flat_map(|errors| errors.iter());
        let tags: usize = tags.map(|(key, value)| text(key) + text(value)).sum();
        let errors: usize = errors.map(|error| text(&error.code) + text(&error.message)).sum();
        let checkpoint = self.checkpoint.as_ref().map_or(0, |bytes| TEXT_BYTES + bytes.len());
        (key + tags + errors + checkpoint) as u64
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
