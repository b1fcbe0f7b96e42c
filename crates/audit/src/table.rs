//! The audit's own table of tasks: what the laws need of each, and nothing else.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashMap;
use tenure_record::id::{LeaseId, Lsn, TaskId};
use tenure_record::state::TaskState;
use tenure_record::terms::{Budget, Budgets, Priority};
use tenure_record::time::Timestamp;

use super::names::NameRef;

type FixedState = foldhash::fast::FixedState;

/// Rows that are made and dropped together.
const CHUNK_ROWS: u64 = 1024;

/// A task, as the records so far have left it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// The latest lease, open or not.
    pub lease: LeaseId,
    /// While it waits, the moment before which it is not leased; while it is leased, the lease's
    /// end.
    pub moment: Timestamp,
    /// The last record of its history.
    pub last_lsn: Lsn,
    pub attempt: u32,
    /// How long the latest lease lasts.
    pub lease_ms: u32,
    pub failures: u16,
    pub expiries: u16,
    pub max_failures: Option<Budget>,
    pub max_expiries: Option<Budget>,
    pub queue: NameRef,
    /// Who holds the lease, while there is one.
    pub worker: NameRef,
    pub priority: Priority,
    pub state: TaskState,
    pub cancel_requested: bool,
    /// Its moment is an appointment on the wall clock.
    pub by_wall_clock: bool,
}

impl Row {
    /// A task that was just created and may be leased at once.
    pub(super) fn new(queue: NameRef, priority: Priority, last_lsn: Lsn) -> Self {
        Self {
            lease: LeaseId::NONE,
            moment: Timestamp::ZERO,
            last_lsn,
            attempt: 0,
            lease_ms: 0,
            failures: 0,
            expiries: 0,
            max_failures: None,
            max_expiries: None,
            queue,
            worker: NameRef::default(),
            priority,
            state: TaskState::Waiting,
            cancel_requested: false,
            by_wall_clock: false,
        }
    }
}

const _: () = assert!(size_of::<Option<Row>>() <= 64, "ten million of these are in memory");

/// What few tasks have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rare {
    pub key: Option<Arc<str>>,
    pub total_timeout_ms: Option<u64>,
    /// Failures and expired leases that together end it.
    pub max_attempts: Option<Budget>,
    pub attempt_timeout_ms: Option<u64>,
    /// Of the attempt under way; zero for none.
    pub attempt_deadline_at: Timestamp,
    /// Zero for never.
    pub key_free_at: Timestamp,
    /// Another task has taken its key.
    pub key_is_lost: bool,
    /// Zero for none.
    pub deadline_at: Timestamp,
    /// Zero for none.
    pub revoke_at: Timestamp,
    /// The newest lease whose stale report is on record.
    pub stale_lease: LeaseId,
    /// A hash of the checkpoint; zero for none.
    pub checkpoint: u64,
    /// Its copy in a dead letter queue; zero for none.
    pub dead_letter: TaskId,
    /// The task that it is the copy of; zero for none.
    pub dead_letter_of: TaskId,
}

/// What tells one checkpoint from another; zero for none.
pub(super) fn checkpoint_hash(bytes: &[u8]) -> u64 {
    if bytes.is_empty() { 0 } else { FixedState::default().hash_one(bytes).max(1) }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    chunks: HashMap<u64, Chunk, FixedState>,
    /// The chunk of the newest task, which stays even when it is empty.
    newest: u64,
    len: u64,
    rare: HashMap<u64, Rare, FixedState>,
}

#[derive(Clone, Debug)]
struct Chunk {
    rows: Box<[Option<Row>]>,
    used: u32,
}

impl Table {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn get(&self, id: TaskId) -> Option<&Row> {
        let (chunk, at) = place(id);
        self.chunks.get(&chunk)?.rows[at].as_ref()
    }

    /// Stores a task that is there or is new.
    pub(super) fn put(&mut self, id: TaskId, row: Row) {
        let (number, at) = place(id);
        let chunk = self.chunks.entry(number).or_insert_with(|| Chunk {
            rows: vec![None; CHUNK_ROWS as usize].into_boxed_slice(),
            used: 0,
        });
        if chunk.rows[at].replace(row).is_none() {
            chunk.used += 1;
            self.len += 1;
            let before = std::mem::replace(&mut self.newest, number);
            if before != number {
                self.drop_if_empty(before);
            }
        }
    }

    pub(super) fn remove(&mut self, id: TaskId) -> Option<Rare> {
        let (number, at) = place(id);
        if let Some(chunk) = self.chunks.get_mut(&number)
            && chunk.rows[at].take().is_some()
        {
            chunk.used -= 1;
            self.len -= 1;
            if number != self.newest {
                self.drop_if_empty(number);
            }
        }
        self.rare.remove(&id.0)
    }

    pub(super) fn rare(&self, id: TaskId) -> Option<&Rare> {
        self.rare.get(&id.0)
    }

    pub(super) fn rare_mut(&mut self, id: TaskId) -> &mut Rare {
        self.rare.entry(id.0).or_default()
    }

    /// Whether the task's budgets allow another attempt.
    pub(super) fn allow(&self, id: TaskId, row: &Row) -> bool {
        let budgets = Budgets {
            max_failures: row.max_failures,
            max_expiries: row.max_expiries,
            max_attempts: self.rare(id).and_then(|rare| rare.max_attempts),
        };
        budgets.allow(row.failures, row.expiries)
    }

    /// All tasks, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TaskId, &Row)> {
        self.chunks.iter().flat_map(|(number, chunk)| {
            let ids = number * CHUNK_ROWS..;
            ids.zip(&chunk.rows).filter_map(|(id, row)| Some((TaskId(id), row.as_ref()?)))
        })
    }

    fn drop_if_empty(&mut self, number: u64) {
        if self.chunks.get(&number).is_some_and(|chunk| chunk.used == 0) {
            self.chunks.remove(&number);
        }
    }
}

fn place(id: TaskId) -> (u64, usize) {
    (id.0 / CHUNK_ROWS, (id.0 % CHUNK_ROWS) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            lease: LeaseId::NONE,
            moment: Timestamp::ZERO,
            last_lsn: Lsn(1),
            attempt: 0,
            lease_ms: 0,
            failures: 0,
            expiries: 0,
            max_failures: None,
            max_expiries: None,
            queue: NameRef::default(),
            worker: NameRef::default(),
            priority: Priority::default(),
            state: TaskState::Waiting,
            cancel_requested: false,
            by_wall_clock: false,
        }
    }

    #[test]
    fn what_is_purged_takes_no_room_and_neither_does_a_gap() {
        let mut table = Table::default();
        let mut id = TaskId(1);
        for round in 0..3_000_u64 {
            table.put(id, row());
            table.rare_mut(id).stale_lease = LeaseId(round + 1);
            assert!(table.remove(id).is_some());
            id = if round % 100 == 0 { TaskId(id.0 + (1 << 36)) } else { id.next() };
        }
        assert_eq!((table.len(), table.chunks.len(), table.rare.len()), (0, 1, 0));
    }
}
