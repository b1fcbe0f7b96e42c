//! Facts to blocks, one at a time: however many tasks there are, only a block is in memory.

use std::io;

use tenure_record::codec::Malformed;
use tenure_record::event::{Json, Tag};
use tenure_record::id::TaskId;
use tenure_record::name::Text;
use tenure_record::snapshot::{
    BLOCK_BYTES, ColdItem, Counters, ErrorItem, Item, QueueItem, Section, TaskItem, Totals,
    WorkerItem, WorkflowItem, put_block,
};
use tenure_record::state::TaskState;
use tenure_record::time::{Clock, Timestamp, WallOffset};

use super::write_run::RunWriter;
use crate::command::Rest;
use crate::planted::{self, Bug};
use crate::state::facts::run::Workflow;
use crate::state::facts::task::{Cold, Task, TaskPhase};
use crate::state::facts::{Facts, Queue, Worker};
use crate::state::store::{Dense, WorkerRef};

/// Writes facts as blocks.
#[derive(Debug)]
pub struct Encoder {
    facts: Facts,
    /// What comes next; nothing after the end.
    section: Option<Section>,
    /// What of the section is written: of tasks all below this id, of the others so many. Of runs
    /// `runs` knows.
    written: u64,
    /// The place of each queue and worker in its section.
    queues: Places,
    workers: Places,
    runs: RunWriter,
    block: Vec<u8>,
}

impl Encoder {
    /// Begins. The facts are a view; it stays as it is.
    #[must_use]
    pub fn new(facts: Facts) -> Self {
        // All of them by name: whoever adds a fact has to say here in which section it is.
        let Facts {
            tasks: _,
            cold: _,
            blobs: _,
            queues,
            workers,
            task_names: _,
            next_task_id: _,
            next_lease_id: _,
            runs: _,
            workflows: _,
            deleted_workflows: _,
            next_run_id: _,
            last_lsn: _,
            last_at: _,
        } = &facts;
        let (queues, workers) = (Places::of(queues), Places::of(workers));
        let section = Some(Section::Counters);
        let runs = RunWriter::default();
        Self { facts, section, written: 0, queues, workers, runs, block: Vec::new() }
    }

    /// What is being written.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Writes the next block behind what is in `out`, and says whether there are more.
    ///
    /// # Errors
    /// A payload or an output on the shelf cannot be read. Then it must not be called again.
    pub fn next_block(&mut self, out: &mut Vec<u8>) -> io::Result<Rest> {
        let Some(section) = self.section else { return Ok(Rest::Nothing) };
        let mut block = std::mem::take(&mut self.block);
        block.clear();
        let rest = self.fill(section, &mut block)?;
        if rest == Rest::Nothing {
            (self.section, self.written) = (section.next(), 0);
        }
        put_block(section, &block, out);
        self.block = block;
        Ok(if self.section.is_some() { Rest::More } else { Rest::Nothing })
    }

    /// Fills one block of a section, and says whether the section goes on.
    fn fill(&mut self, section: Section, block: &mut Vec<u8>) -> io::Result<Rest> {
        let facts = &self.facts;
        match section {
            Section::Counters => counters(facts).put(block),
            Section::Queues => {
                let (queues, next) = (&facts.queues, self.written);
                let next = fill_each(queues.iter(), next, block, |(_, item)| queue(item));
                return Ok(self.went_on(next));
            }
            Section::Workers => {
                let (workers, next) = (&facts.workers, self.written);
                let next = fill_each(workers.iter(), next, block, |(_, item)| worker(item));
                return Ok(self.went_on(next));
            }
            Section::Tasks => {
                let mut tasks = facts.tasks.up_from(self.written);
                let next = loop {
                    let Some((id, task)) = tasks.next() else { break None };
                    if block.len() >= BLOCK_BYTES {
                        break Some(id);
                    }
                    let blobs = &facts.blobs;
                    let (payload, output) = (blobs.get(task.payload)?, blobs.get(task.output)?);
                    self.task(TaskId(id), task, &payload, &output).put(block);
                };
                drop(tasks);
                return Ok(self.went_on(next));
            }
            Section::Workflows => {
                let next = fill_each(workflows(facts), self.written, block, |item| item);
                return Ok(self.went_on(next));
            }
            Section::Runs => return Ok(self.runs.fill(facts, block)),
            Section::End => totals(facts).put(block),
        }
        Ok(Rest::Nothing)
    }

    fn went_on(&mut self, next: Option<u64>) -> Rest {
        self.written = next.unwrap_or(self.written);
        if next.is_some() { Rest::More } else { Rest::Nothing }
    }

    fn task<'a>(
        &'a self,
        id: TaskId,
        task: &Task,
        payload: &'a [u8],
        output: &'a [u8],
    ) -> Item<'a> {
        let (moment, clock, worker) = parts(task.state);
        Item::Task(TaskItem {
            id,
            queue: self.queues.of_ref(task.queue.0),
            state: task.name(),
            moment,
            ended_offset: task.ended().map_or(WallOffset::ZERO, |(_, offset)| offset),
            created_at: task.created_at,
            last_lsn: task.last_lsn,
            lease_ms: task.lease_ms,
            max_failures: task.max_failures,
            max_expiries: task.max_expiries,
            payload,
            priority: task.priority,
            lease_id: task.lease_id,
            attempt: task.attempt - u32::from(planted::has(Bug::SnapshotForgets)).min(task.attempt),
            started_at: task.started_at,
            output,
            lease_end: task.lease_end,
            clock,
            worker: worker.map_or(0, |worker| self.workers.of_ref(worker.0)),
            failures: task.failures,
            expiries: task.expiries,
            cancel_requested: task.cancel_requested,
            cold: self.facts.cold_of(task).map(cold),
            name: self.facts.task_name(task).map(|name| Text::Borrowed(name)),
        })
    }
}

/// Hands every item of the facts to `visit`, in the order of a snapshot. Payloads and outputs of
/// tasks are left empty.
pub fn each_item(
    facts: &Facts,
    mut visit: impl FnMut(Item<'_>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let encoder = Encoder::new(facts.clone());
    visit(counters(facts))?;
    facts.queues.iter().try_for_each(|(_, item)| visit(queue(item)))?;
    facts.workers.iter().try_for_each(|(_, item)| visit(worker(item)))?;
    for (id, task) in facts.tasks.iter() {
        visit(encoder.task(TaskId(id), task, &[], &[]))?;
    }
    workflows(facts).try_for_each(&mut visit)?;
    let mut runs = RunWriter::default();
    for (id, stored) in facts.runs.iter() {
        runs.begin(id);
        while let Some(part) = runs.part(stored) {
            visit(Item::RunPart(part))?;
        }
    }
    visit(totals(facts))
}

/// Writes items from the nth on until the block is full; says which comes next, if any does.
fn fill_each<'a, T>(
    items: impl Iterator<Item = T>,
    nth: u64,
    block: &mut Vec<u8>,
    item: impl Fn(T) -> Item<'a>,
) -> Option<u64> {
    for (nth, it) in (0..).zip(items).skip(nth as usize) {
        if block.len() >= BLOCK_BYTES {
            return Some(nth);
        }
        item(it).put(block);
    }
    None
}

fn counters(facts: &Facts) -> Item<'static> {
    Item::Counters(Counters {
        next_task_id: facts.next_task_id,
        next_lease_id: facts.next_lease_id,
        next_run_id: facts.next_run_id,
        last_lsn: facts.last_lsn,
        last_at: facts.last_at,
    })
}

fn queue(queue: &Queue) -> Item<'_> {
    Item::Queue(QueueItem {
        name: Text::Borrowed(&queue.name),
        configured: queue.configured,
        settings: queue.settings.clone(),
    })
}

fn worker(worker: &Worker) -> Item<'_> {
    Item::Worker(WorkerItem { name: Text::Borrowed(&worker.name) })
}

/// The versions of each workflow, and the last numbers of those whose definitions are gone.
fn workflows(facts: &Facts) -> impl Iterator<Item = Item<'_>> {
    let kept = facts.workflows.iter().flat_map(|(name, versions)| {
        let last = versions.deleted_last().map(|last| deleted(name, last));
        versions.into_iter().map(|it| workflow(it)).chain(last)
    });
    kept.chain(facts.deleted_workflows.iter().map(|(name, last)| deleted(name, *last)))
}

fn deleted(name: &str, version: u32) -> Item<'_> {
    let (name, is_deleted) = (Text::Borrowed(name), true);
    Item::Workflow(WorkflowItem { name, version, is_deleted, ..WorkflowItem::default() })
}

fn workflow(workflow: &Workflow) -> Item<'_> {
    Item::Workflow(WorkflowItem {
        name: Text::Borrowed(&workflow.name),
        version: workflow.version,
        registered_at: workflow.registered_at,
        definition: Json(workflow.source.clone()),
        nodes: workflow.nodes.iter().map(|name| Text::Borrowed(name)).collect(),
        transitions: workflow.transitions,
        groups: workflow.groups,
        is_deleted: false,
    })
}

fn totals(facts: &Facts) -> Item<'static> {
    Item::Totals(Totals {
        queues: facts.queues.len() as u64,
        workers: facts.workers.len() as u64,
        tasks: facts.tasks.len(),
        workflows: workflows(facts).count() as u64,
        runs: facts.runs.len(),
    })
}

/// A state's moment, and what only some states have.
fn parts(state: TaskPhase) -> (Timestamp, Clock, Option<WorkerRef>) {
    match state {
        TaskPhase::Waiting { not_before, clock } => (not_before, clock, None),
        TaskPhase::Leased { worker, expires_at } => (expires_at, Clock::Log, Some(worker)),
        TaskPhase::Completed { at, .. }
        | TaskPhase::Failed { at, .. }
        | TaskPhase::Dead { at, .. }
        | TaskPhase::Canceled { at, .. } => (at, Clock::Log, None),
    }
}

/// The state that `parts` took apart.
pub(super) fn joined(item: &TaskItem<'_>, worker: Option<WorkerRef>) -> Option<TaskPhase> {
    let TaskItem { state: name, moment, ended_offset, clock, .. } = *item;
    Some(match name {
        TaskState::Waiting => TaskPhase::Waiting { not_before: moment, clock },
        TaskState::Leased => TaskPhase::Leased { worker: worker?, expires_at: moment },
        TaskState::Completed | TaskState::Failed | TaskState::Dead | TaskState::Canceled => {
            TaskPhase::ended(name, moment, ended_offset)
        }
    })
}

fn cold(cold: &Cold) -> ColdItem<'_> {
    let Cold {
        key,
        tags,
        backoff,
        run_at,
        total_timeout_ms,
        deadline_at,
        revoke_at,
        stale_lease,
        granted_ms,
        checkpoint,
        errors,
        // The token says whose it is.
        run: _,
        max_attempts,
        attempt_timeout_ms,
        attempt_deadline_at,
        traceparent,
        dead_letter,
        dead_letter_of,
    } = cold;
    let tags = tags.as_deref().unwrap_or_default();
    let errors = errors.as_deref().unwrap_or_default();
    ColdItem {
        key: key.as_ref().map(|key| Text::Borrowed(&key.text)),
        submit_hash: key.as_ref().map(|key| key.hash),
        tags: tags
            .iter()
            .map(|(key, value)| Tag { key: Text::Borrowed(key), value: Text::Borrowed(value) })
            .collect(),
        backoff: backoff.clone(),
        run_at: *run_at,
        total_timeout_ms: *total_timeout_ms,
        deadline_at: *deadline_at,
        revoke_at: *revoke_at,
        stale_lease: *stale_lease,
        granted_ms: *granted_ms,
        checkpoint: checkpoint.as_deref().unwrap_or_default(),
        errors: errors
            .iter()
            .map(|error| ErrorItem {
                code: Text::Borrowed(&error.code),
                message: Text::Borrowed(&error.message),
            })
            .collect(),
        max_attempts: *max_attempts,
        attempt_timeout_ms: *attempt_timeout_ms,
        attempt_deadline_at: *attempt_deadline_at,
        traceparent: traceparent.as_ref().map(|text| Text::Borrowed(text)),
        key_free_at: key.as_ref().map(|key| key.free_at).unwrap_or_default(),
        key_is_lost: key.as_ref().is_some_and(|key| !key.is_held),
        dead_letter: *dead_letter,
        dead_letter_of: *dead_letter_of,
    }
}

/// From a reference, which is a matter of memory, to a place in a section.
#[derive(Debug)]
struct Places(Vec<u32>);

impl Places {
    fn of<R: From<u32> + Into<u32>, T: Clone>(dense: &Dense<R, T>) -> Self {
        let mut places = Vec::new();
        for (place, (at, _)) in (0..).zip(dense.iter()) {
            let at: u32 = at.into();
            places.resize(at as usize + 1, u32::MAX);
            places[at as usize] = place;
        }
        Self(places)
    }

    fn of_ref(&self, at: u32) -> u32 {
        self.0[at as usize]
    }
}
