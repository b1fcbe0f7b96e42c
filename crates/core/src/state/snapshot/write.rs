//! Facts to blocks, one at a time: however many tasks there are, only a block is in memory.

use super::items::{ColdItem, Counters, ErrorItem, QueueItem, TaskItem, Totals, WorkerItem, put};
use super::run_items::WorkflowItem;
use super::write_runs::RunWriter;
use super::{BLOCK_BYTES, Section};
use crate::codec::put_varint;
use crate::command::Rest;
use crate::event::{Json, Tag};
use crate::id::TaskId;
use crate::name::Text;
use crate::planted::{self, Bug};
use crate::state::dense::{Dense, WorkerRef};
use crate::state::facts::Facts;
use crate::state::run::Workflow;
use crate::state::task::{Cold, StateName, Task, TaskState};
use crate::time::{Clock, Timestamp};

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
            next_task_id: _,
            next_lease_id: _,
            runs: _,
            workflows: _,
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
    pub fn next_block(&mut self, out: &mut Vec<u8>) -> Rest {
        let Some(section) = self.section else { return Rest::Nothing };
        let mut block = std::mem::take(&mut self.block);
        block.clear();
        let rest = self.fill(section, &mut block);
        if rest == Rest::Nothing {
            (self.section, self.written) = (section.next(), 0);
        }
        put_varint(section as u64, out);
        put_varint(section.version().into(), out);
        put_varint(block.len() as u64, out);
        out.extend_from_slice(&block);
        self.block = block;
        if self.section.is_some() { Rest::More } else { Rest::Nothing }
    }

    /// Fills one block of a section, and says whether the section goes on.
    fn fill(&mut self, section: Section, block: &mut Vec<u8>) -> Rest {
        let facts = &self.facts;
        match section {
            Section::Counters => put(
                &Counters {
                    next_task_id: facts.next_task_id,
                    next_lease_id: facts.next_lease_id,
                    next_run_id: facts.next_run_id,
                    last_lsn: facts.last_lsn,
                    last_at: facts.last_at,
                },
                block,
            ),
            Section::Queues => {
                let (queues, next) = (&facts.queues, self.written);
                let next = fill_each(queues.iter(), next, block, |(_, queue), block| {
                    let item = QueueItem {
                        name: Text::Borrowed(&queue.name),
                        configured: queue.configured,
                        settings: queue.settings.clone(),
                    };
                    put(&item, block);
                });
                return self.went_on(next);
            }
            Section::Workers => {
                let (workers, next) = (&facts.workers, self.written);
                let next = fill_each(workers.iter(), next, block, |(_, worker), block| {
                    put(&WorkerItem { name: Text::Borrowed(&worker.name) }, block);
                });
                return self.went_on(next);
            }
            Section::Tasks => {
                let mut tasks = facts.tasks.up_from(self.written);
                let next = tasks.find_map(|(id, task)| {
                    if block.len() >= BLOCK_BYTES {
                        return Some(id);
                    }
                    let blobs = &facts.blobs;
                    let (payload, output) = (blobs.get(task.payload), blobs.get(task.output));
                    put(&self.task(TaskId(id), task, &payload, &output), block);
                    None
                });
                drop(tasks);
                return self.went_on(next);
            }
            Section::Workflows => {
                let (workflows, next) = (facts.workflows.values().flatten(), self.written);
                let next = fill_each(workflows, next, block, |workflow, block| {
                    put(&workflow_item(workflow), block);
                });
                return self.went_on(next);
            }
            Section::Runs => return self.runs.fill(facts, block),
            Section::End => {
                let queues = facts.queues.len() as u64;
                let workers = facts.workers.len() as u64;
                let workflows =
                    facts.workflows.values().map(|versions| versions.len() as u64).sum();
                let (tasks, runs) = (facts.tasks.len(), facts.runs.len());
                put(&Totals { queues, workers, tasks, workflows, runs }, block);
            }
        }
        Rest::Nothing
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
    ) -> TaskItem<'a> {
        let (moment, clock, worker) = parts(task.state);
        TaskItem {
            id,
            queue: self.queues.of_ref(task.queue.0),
            state: task.name(),
            moment,
            created_at: task.created_at,
            last_lsn: task.last_lsn,
            lease_ms: task.lease_ms,
            max_attempts: task.max_attempts,
            max_expiries: task.max_expiries,
            payload,
            priority: task.priority,
            lease_id: task.lease_id,
            attempt: task.attempt - u32::from(planted::has(Bug::SnapshotForgets)).min(task.attempt),
            started_at: task.started_at,
            granted_ms: task.granted_ms,
            output,
            lease_end: task.lease_end,
            clock,
            worker: worker.map_or(0, |worker| self.workers.of_ref(worker.0)),
            failures: task.failures,
            expiries: task.expiries,
            cancel_requested: task.cancel_requested,
            cold: self.facts.cold_of(task).map(cold),
        }
    }
}

/// Writes items from the nth on until the block is full; says which comes next, if any does.
fn fill_each<T>(
    items: impl Iterator<Item = T>,
    nth: u64,
    block: &mut Vec<u8>,
    mut put: impl FnMut(T, &mut Vec<u8>),
) -> Option<u64> {
    for (nth, item) in (0..).zip(items).skip(nth as usize) {
        if block.len() >= BLOCK_BYTES {
            return Some(nth);
        }
        put(item, block);
    }
    None
}

fn workflow_item(workflow: &Workflow) -> WorkflowItem<'_> {
    let Workflow { name, version, registered_at, definition } = workflow;
    WorkflowItem {
        name: Text::Borrowed(name),
        version: *version,
        registered_at: *registered_at,
        definition: Json(definition.source.clone()),
    }
}

/// A state's moment, and what only some states have.
fn parts(state: TaskState) -> (Timestamp, Clock, Option<WorkerRef>) {
    match state {
        TaskState::Waiting { not_before, clock } => (not_before, clock, None),
        TaskState::Leased { worker, expires_at } => (expires_at, Clock::Log, Some(worker)),
        TaskState::Completed { at }
        | TaskState::Failed { at }
        | TaskState::Dead { at }
        | TaskState::Canceled { at } => (at, Clock::Log, None),
    }
}

/// The state that `parts` took apart.
pub(super) fn joined(
    name: StateName,
    moment: Timestamp,
    clock: Clock,
    worker: Option<WorkerRef>,
) -> Option<TaskState> {
    Some(match name {
        StateName::Waiting => TaskState::Waiting { not_before: moment, clock },
        StateName::Leased => TaskState::Leased { worker: worker?, expires_at: moment },
        StateName::Completed | StateName::Failed | StateName::Dead | StateName::Canceled => {
            TaskState::ended(name, moment)
        }
    })
}

fn cold(cold: &Cold) -> ColdItem<'_> {
    let Cold {
        key,
        tags,
        backoff,
        run_at,
        timeout_ms,
        deadline_at,
        revoke_at,
        stale_lease,
        errors,
        // The token says whose it is.
        run: _,
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
        timeout_ms: *timeout_ms,
        deadline_at: *deadline_at,
        revoke_at: *revoke_at,
        stale_lease: *stale_lease,
        errors: errors
            .iter()
            .map(|error| ErrorItem {
                code: Text::Borrowed(&error.code),
                message: Text::Borrowed(&error.message),
            })
            .collect(),
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
