//! How much memory the state takes, about. All figures are counters that every change keeps up, so
//! asking costs a few additions, however many tasks and runs there are.

use crate::state::State;
use crate::state::facts::{Queue, TaskName, Worker};

/// What a task takes in the indexes: its links, its place in a list, and an entry of a tree of
/// leases, delays or ends.
const TASK_INDEX_BYTES: u64 = 56;
/// What a queue takes in the indexes, and its name in the two tables.
const QUEUE_INDEX_BYTES: u64 = 1_024;
/// What a worker's name takes.
const WORKER_BYTES: u64 = 128;

/// Bytes of memory that the parts of the state take, about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateBytes {
    /// Tasks with their keys, tags and failures, and the queues that they are in.
    pub tasks: u64,
    /// Payloads and outputs, but for those on the shelf.
    pub payloads: u64,
    /// Runs with their contexts, outputs, tokens, branches and kept signals.
    pub runs: u64,
    /// Definitions of workflows, in all versions.
    pub definitions: u64,
}

impl StateBytes {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.tasks + self.payloads + self.runs + self.definitions
    }
}

impl State {
    /// How much memory it takes, about. O(1); only the payloads are known while records are
    /// replayed.
    #[must_use]
    pub fn bytes(&self) -> StateBytes {
        let facts = &self.facts;
        let slots = facts.tasks.bytes() + facts.cold.bytes();
        let names = facts.queues.len() as u64 * (size_of::<Queue>() as u64 + QUEUE_INDEX_BYTES)
            + facts.task_names.len() as u64 * (size_of::<TaskName>() as u64 + WORKER_BYTES)
            + facts.workers.len() as u64 * (size_of::<Worker>() as u64 + WORKER_BYTES);
        let indexes = self.indexes.as_ref();
        let texts = indexes.map_or(0, |it| it.text_bytes);
        StateBytes {
            tasks: slots + names + texts + facts.tasks.len() * TASK_INDEX_BYTES,
            payloads: facts.blobs.bytes(),
            runs: facts.runs.bytes() + indexes.map_or(0, |it| it.runs.bytes),
            definitions: indexes.map_or(0, |it| it.definition_bytes),
        }
    }
}
