//! Blocks to a state. The tasks go straight into their pages.

use std::sync::Arc;

use super::items::{ColdItem, Counters, QueueItem, TaskItem, Totals, WorkerItem, each};
use super::read_runs::{self, RunReader};
use super::write::joined;
use super::{BLOCK_BYTES_MAX, Section};
use crate::codec::{Malformed, Reader};
use crate::id::TaskId;
use crate::shelf::Shelf;
use crate::state::State;
use crate::state::blobs::BlobKind;
use crate::state::dense::{ColdRef, QueueRef, WorkerRef};
use crate::state::facts::{Facts, Queue, Worker};
use crate::state::index::Names;
use crate::state::task::{Cold, Key, StateName, Task, TaskError};

/// The longest beginning of a block: three numbers.
const HEAD_BYTES_MAX: usize = 30;

/// Reads a stream of blocks, in pieces of any size.
#[derive(Debug)]
pub struct Decoder {
    facts: Facts,
    queue_names: Names<QueueRef>,
    worker_names: Names<WorkerRef>,
    table_seed: u64,
    /// By their place in their sections.
    queues: Vec<QueueRef>,
    workers: Vec<WorkerRef>,
    /// The section of the last block.
    section: Option<Section>,
    last_task: TaskId,
    totals: Totals,
    runs: RunReader,
    /// The beginning of a block whose end is still to come.
    begun: Vec<u8>,
}

impl Decoder {
    /// Begins. `table_seed` is any number that strangers cannot foretell.
    #[must_use]
    pub fn new(table_seed: u64) -> Self {
        Self {
            facts: Facts::new(),
            queue_names: Names::new(table_seed),
            worker_names: Names::new(table_seed),
            table_seed,
            queues: Vec::new(),
            workers: Vec::new(),
            section: None,
            last_task: TaskId::NONE,
            totals: Totals::default(),
            runs: RunReader::default(),
            begun: Vec::new(),
        }
    }

    /// The same, and what is large goes to a shelf, if there is one.
    #[must_use]
    pub fn on_shelf(mut self, shelf: Option<Arc<dyn Shelf>>) -> Self {
        self.facts.blobs.set_shelf(shelf);
        self
    }

    /// Reads on. What was refused once must not be fed more.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        if self.begun.is_empty() {
            let rest = self.read_blocks(bytes)?;
            self.begun.extend_from_slice(rest);
            return Ok(());
        }
        let mut begun = std::mem::take(&mut self.begun);
        begun.extend_from_slice(bytes);
        let rest = self.read_blocks(&begun)?.len();
        begun.drain(..begun.len() - rest);
        self.begun = begun;
        Ok(())
    }

    /// The state, once all was read. Call [`State::serve`] after the records that follow it.
    pub fn finish(self) -> Result<State, Malformed> {
        if self.section != Some(Section::End) || !self.begun.is_empty() {
            return Err(Malformed::new("a snapshot has no end"));
        }
        let Self { facts, queue_names, worker_names, table_seed, .. } = self;
        let rest = State::replaying(table_seed);
        Ok(State { facts, queue_names, worker_names, ..rest })
    }

    /// Reads whole blocks, and gives back what follows the last of them.
    fn read_blocks<'b>(&mut self, mut bytes: &'b [u8]) -> Result<&'b [u8], Malformed> {
        while let Some(head) = head(bytes)? {
            let Some((block, rest)) = bytes[head.bytes..].split_at_checked(head.size) else {
                break;
            };
            self.block(head.section, head.version, block)?;
            bytes = rest;
        }
        Ok(bytes)
    }

    fn block(&mut self, number: u64, version: u64, block: &[u8]) -> Result<(), Malformed> {
        let Some(section) = Section::from_number(number) else {
            return Err(Malformed::new(format!(
                "a snapshot has section {number}, which this version does not know"
            )));
        };
        if version != u64::from(section.version()) && !self.is_old_end(section, version) {
            return Err(Malformed::new(format!(
                "section {section:?} has version {version}; this binary reads {}",
                section.version()
            )));
        }
        let follows = match self.section {
            None => section == Section::Counters,
            Some(before) => {
                let goes_on = section == before || before.next() == Some(section);
                before != Section::End && (goes_on || self.is_old_end(section, version))
            }
        };
        if !follows {
            return Err(Malformed::new(format!("section {section:?} is out of place")));
        }
        self.section = Some(section);
        match section {
            Section::Counters => each(block, |item: Counters| {
                let Counters { next_task_id, next_lease_id, last_lsn, last_at, next_run_id } = item;
                self.facts.next_run_id = next_run_id;
                (self.facts.next_task_id, self.facts.next_lease_id) = (next_task_id, next_lease_id);
                (self.facts.last_lsn, self.facts.last_at) = (last_lsn, last_at);
                Ok(())
            }),
            Section::Queues => each(block, |item| self.queue(&item)),
            Section::Workers => each(block, |item| self.worker(&item)),
            Section::Tasks => each(block, |item| self.task(&item)),
            Section::Workflows => each(block, |item| {
                self.totals.workflows += 1;
                read_runs::workflow(&mut self.facts, &item)
            }),
            Section::Runs => self.runs.block(&mut self.facts, block),
            Section::End => self.end(block),
        }
    }

    fn end(&mut self, block: &[u8]) -> Result<(), Malformed> {
        self.runs.close(&mut self.facts)?;
        self.totals.runs = self.facts.runs.len();
        each(block, |totals: Totals| match totals == self.totals {
            true => Ok(()),
            false => Err(Malformed::new("a snapshot lacks some of its items")),
        })
    }

    /// Before there were workflows, a snapshot ended after its tasks.
    fn is_old_end(&self, section: Section, version: u64) -> bool {
        (section, version) == (Section::End, 1) && self.section == Some(Section::Tasks)
    }

    fn queue(&mut self, item: &QueueItem<'_>) -> Result<(), Malformed> {
        let QueueItem { name, configured, settings } = item;
        let name = name.to_shared();
        let known = |at| self.facts.queues.get(at).is_some_and(|queue| queue.name == name);
        if self.queue_names.find(&*name, known).is_some() {
            return Err(Malformed::new("a snapshot has a queue twice"));
        }
        let (configured, settings) = (*configured, settings.clone());
        let queue = Queue { name: Arc::clone(&name), settings, configured, tasks: 0 };
        let at = self.facts.queues.insert(queue);
        self.queue_names.insert(&*name, at);
        self.queues.push(at);
        self.totals.queues += 1;
        Ok(())
    }

    fn worker(&mut self, item: &WorkerItem<'_>) -> Result<(), Malformed> {
        let WorkerItem { name } = item;
        let name = name.to_shared();
        let known = |at| self.facts.workers.get(at).is_some_and(|worker| worker.name == name);
        if self.worker_names.find(&*name, known).is_some() {
            return Err(Malformed::new("a snapshot has a worker twice"));
        }
        let at = self.facts.workers.insert(Worker { name: Arc::clone(&name), leases: 0 });
        self.worker_names.insert(&*name, at);
        self.workers.push(at);
        self.totals.workers += 1;
        Ok(())
    }

    fn task(&mut self, item: &TaskItem<'_>) -> Result<(), Malformed> {
        if item.id <= self.last_task || item.id >= self.facts.next_task_id {
            return Err(Malformed::new(format!("task {} is out of place", item.id)));
        }
        self.last_task = item.id;
        let lost = |what| Malformed::new(format!("task {} has no {what}", item.id));
        let queue = *self.queues.get(item.queue as usize).ok_or_else(|| lost("queue"))?;
        let worker = match item.state {
            StateName::Leased => self.workers.get(item.worker as usize).copied(),
            StateName::Waiting
            | StateName::Completed
            | StateName::Failed
            | StateName::Dead
            | StateName::Canceled => None,
        };
        let state = joined(item.state, item.moment, item.clock, worker);
        let state = state.ok_or_else(|| lost("worker"))?;
        let facts = &mut self.facts;
        if let Some(worker) = worker.and_then(|worker| facts.workers.get_mut(worker)) {
            worker.leases += 1;
        }
        facts.queues.get_mut(queue).ok_or_else(|| lost("queue"))?.tasks += 1;
        let cold = item.cold.as_ref().map(cold).transpose()?;
        let task = Task {
            state,
            created_at: item.created_at,
            started_at: item.started_at,
            lease_id: item.lease_id,
            last_lsn: item.last_lsn,
            payload: facts.blobs.put(item.id, BlobKind::Payload, item.payload),
            output: facts.blobs.put(item.id, BlobKind::Output, item.output),
            queue,
            cold: cold.map_or(ColdRef::NONE, |cold| facts.cold.insert(cold)),
            attempt: item.attempt,
            lease_ms: item.lease_ms,
            granted_ms: item.granted_ms,
            failures: item.failures,
            expiries: item.expiries,
            max_attempts: item.max_attempts,
            max_expiries: item.max_expiries,
            priority: item.priority,
            lease_end: item.lease_end,
            cancel_requested: item.cancel_requested,
            in_run: false,
        };
        facts.tasks.insert(item.id.0, task);
        self.totals.tasks += 1;
        Ok(())
    }
}

fn cold(item: &ColdItem<'_>) -> Result<Cold, Malformed> {
    let key = match (&item.key, item.submit_hash) {
        (Some(text), Some(hash)) => Some(Key { text: text.to_shared(), hash }),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err(Malformed::new("a key and its hash do not come together"));
        }
    };
    let tags = item.tags.iter().map(|tag| (tag.key.to_shared(), tag.value.to_shared()));
    let errors = item.errors.iter().map(|error| TaskError {
        code: error.code.to_shared(),
        message: error.message.to_shared(),
    });
    Ok(Cold {
        key,
        tags: (!item.tags.is_empty()).then(|| tags.collect()),
        backoff: item.backoff.clone(),
        run_at: item.run_at,
        timeout_ms: item.timeout_ms,
        deadline_at: item.deadline_at,
        revoke_at: item.revoke_at,
        stale_lease: item.stale_lease,
        errors: (!item.errors.is_empty()).then(|| errors.collect()),
        // The token says whose it is.
        run: None,
    })
}

/// The beginning of a block.
struct Head {
    section: u64,
    version: u64,
    size: usize,
    /// How long the beginning itself is.
    bytes: usize,
}

/// The beginning of the next block, if it is there.
fn head(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    let mut from = Reader::new(&bytes[..bytes.len().min(HEAD_BYTES_MAX)]);
    let numbers = (|| Ok::<_, Malformed>((from.varint()?, from.varint()?, from.varint()?)))();
    let (section, version, size) = match numbers {
        Ok(numbers) => numbers,
        // It is cut off, and goes on with the next piece.
        Err(_) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        Err(malformed) => return Err(malformed),
    };
    let size = usize::try_from(size).ok().filter(|size| *size <= BLOCK_BYTES_MAX);
    let Some(size) = size else {
        return Err(Malformed::new(format!(
            "a block of a snapshot is over {BLOCK_BYTES_MAX} bytes"
        )));
    };
    Ok(Some(Head { section, version, size, bytes: bytes.len().min(HEAD_BYTES_MAX) - from.len() }))
}
