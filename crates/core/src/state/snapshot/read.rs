//! Snapshot items to a state. Tasks go straight into their pages.

use std::sync::Arc;

use tenure_record::codec::Malformed;
use tenure_record::id::TaskId;
use tenure_record::name::Text;
use tenure_record::snapshot::{
    Blocks, ColdItem, Counters, Item, QueueItem, TaskItem, Totals, WorkerItem,
};
use tenure_record::state::TaskState;

use super::read_run::{self, RunReader};
use super::write::joined;
use crate::shelf::Shelf;
use crate::state::State;
use crate::state::facts::task::{Cold, Key, Task, TaskError};
use crate::state::facts::{Facts, Queue, TaskName, Worker};
use crate::state::index::Names;
use crate::state::store::{BlobKind, ColdRef, NameRef, QueueRef, WorkerRef};

/// Reads a stream of blocks, in pieces of any size.
#[derive(Debug)]
pub struct Decoder {
    facts: Facts,
    queue_names: Names<QueueRef>,
    worker_names: Names<WorkerRef>,
    task_names: Names<NameRef>,
    table_seed: u64,
    /// By their place in their sections.
    queues: Vec<QueueRef>,
    workers: Vec<WorkerRef>,
    blocks: Blocks,
    last_task: TaskId,
    totals: Totals,
    runs: RunReader,
}

impl Decoder {
    /// Begins. `table_seed` is any number that strangers cannot foretell.
    #[must_use]
    pub fn new(table_seed: u64) -> Self {
        Self {
            facts: Facts::new(),
            queue_names: Names::new(table_seed),
            worker_names: Names::new(table_seed),
            task_names: Names::new(table_seed),
            table_seed,
            queues: Vec::new(),
            workers: Vec::new(),
            blocks: Blocks::default(),
            last_task: TaskId::NONE,
            totals: Totals::default(),
            runs: RunReader::default(),
        }
    }

    /// The same, and what is large goes to a shelf, if there is one.
    #[must_use]
    pub fn on_shelf(mut self, shelf: Option<Arc<dyn Shelf>>) -> Self {
        self.facts.blobs.set_shelf(shelf);
        self
    }

    /// Reads on. A stream that was refused must not be fed more.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let mut blocks = std::mem::take(&mut self.blocks);
        let fed = blocks.feed(bytes, |item| self.item(item));
        self.blocks = blocks;
        fed
    }

    /// The state, once all was read. Call [`State::serve`] after the records that follow it.
    pub fn finish(self) -> Result<State, Malformed> {
        self.blocks.finish()?;
        let Self { facts, queue_names, worker_names, task_names, table_seed, .. } = self;
        let rest = State::replaying(table_seed);
        Ok(State { facts, queue_names, worker_names, task_names, ..rest })
    }

    fn item(&mut self, item: Item<'_>) -> Result<(), Malformed> {
        match item {
            Item::Counters(item) => {
                let Counters { next_task_id, next_lease_id, last_lsn, last_at, next_run_id } = item;
                self.facts.next_run_id = next_run_id;
                (self.facts.next_task_id, self.facts.next_lease_id) = (next_task_id, next_lease_id);
                (self.facts.last_lsn, self.facts.last_at) = (last_lsn, last_at);
                Ok(())
            }
            Item::Queue(item) => self.queue(&item),
            Item::Worker(item) => self.worker(&item),
            Item::Task(item) => self.task(&item),
            Item::Workflow(item) => {
                self.totals.workflows += 1;
                read_run::workflow(&mut self.facts, &item)
            }
            Item::RunPart(part) => self.runs.part(&mut self.facts, &part),
            Item::Totals(totals) => self.end(&totals),
        }
    }

    fn end(&mut self, totals: &Totals) -> Result<(), Malformed> {
        self.runs.close(&mut self.facts)?;
        self.totals.runs = self.facts.runs.len();
        match *totals == self.totals {
            true => Ok(()),
            false => Err(Malformed::new("a snapshot lacks some of its items")),
        }
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

    /// The reference of a task's name, with this task counted.
    fn task_name(&mut self, name: &Text<'_>) -> NameRef {
        let facts = &mut self.facts;
        let known = |at| &**facts.text_of(at) == name.as_str();
        let at = self.task_names.find(name.as_str(), known).unwrap_or_else(|| {
            let at = facts.task_names.insert(TaskName { text: name.to_shared(), tasks: 0 });
            self.task_names.insert(name.as_str(), at);
            at
        });
        if let Some(name) = facts.task_names.get_mut(at) {
            name.tasks += 1;
        }
        at
    }

    fn task(&mut self, item: &TaskItem<'_>) -> Result<(), Malformed> {
        if item.id <= self.last_task || item.id >= self.facts.next_task_id {
            return Err(Malformed::new(format!("task {} is out of place", item.id)));
        }
        self.last_task = item.id;
        let lost = |what| Malformed::new(format!("task {} has no {what}", item.id));
        let queue = *self.queues.get(item.queue as usize).ok_or_else(|| lost("queue"))?;
        let worker = match item.state {
            TaskState::Leased => self.workers.get(item.worker as usize).copied(),
            TaskState::Waiting
            | TaskState::Completed
            | TaskState::Failed
            | TaskState::Dead
            | TaskState::Canceled => None,
        };
        let state = joined(item, worker);
        let state = state.ok_or_else(|| lost("worker"))?;
        let name = item.name.as_ref().map_or(NameRef::NONE, |name| self.task_name(name));
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
            name,
            attempt: item.attempt,
            lease_ms: item.lease_ms,
            failures: item.failures,
            expiries: item.expiries,
            max_failures: item.max_failures,
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
        (Some(text), Some(hash)) => Some(Key {
            text: text.to_shared(),
            hash,
            free_at: item.key_free_at,
            is_held: !item.key_is_lost,
        }),
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
        total_timeout_ms: item.total_timeout_ms,
        deadline_at: item.deadline_at,
        revoke_at: item.revoke_at,
        stale_lease: item.stale_lease,
        granted_ms: item.granted_ms,
        checkpoint: (!item.checkpoint.is_empty()).then(|| Arc::from(item.checkpoint)),
        errors: (!item.errors.is_empty()).then(|| errors.collect()),
        // The token says whose it is.
        run: None,
        max_attempts: item.max_attempts,
        attempt_timeout_ms: item.attempt_timeout_ms,
        attempt_deadline_at: item.attempt_deadline_at,
        traceparent: item.traceparent.as_ref().map(Text::to_shared),
        dead_letter: item.dead_letter,
        dead_letter_of: item.dead_letter_of,
    })
}
