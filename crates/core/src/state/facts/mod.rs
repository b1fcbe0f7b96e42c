//! The facts: all that the log has established, and nothing else. A clone shares the pages, so it
//! serves as a view that stays as it is while the writer goes on.

pub(in crate::state) mod run;
pub(in crate::state) mod task;

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_record::event::QueueSettings;
use tenure_record::id::{LeaseId, Lsn, RunId, TaskId};
use tenure_record::time::Timestamp;

use crate::state::facts::run::{StoredRun, Versions};
use crate::state::facts::task::{Cold, Task};
use crate::state::store::{Blobs, ColdRef, Dense, NameRef, Paged, QueueRef, WorkerRef};

/// About a thousand, and a page with its header just fits a size class of the allocator (96 KiB).
const TASKS_PER_PAGE: usize = 1020;

/// Runs are large and have owned parts, so a page of them is small.
const RUNS_PER_PAGE: usize = 64;

/// What the log says. Read it, hash it, keep a clone of it; only `apply` changes the original.
#[derive(Clone, Debug)]
pub struct Facts {
    pub(crate) tasks: Paged<Task, TASKS_PER_PAGE>,
    pub(crate) cold: Dense<ColdRef, Cold>,
    pub(crate) blobs: Blobs,
    pub(crate) queues: Dense<QueueRef, Queue>,
    pub(crate) workers: Dense<WorkerRef, Worker>,
    pub(crate) task_names: Dense<NameRef, TaskName>,
    pub(crate) next_task_id: TaskId,
    pub(crate) next_lease_id: LeaseId,
    pub(crate) runs: Paged<Arc<StoredRun>, RUNS_PER_PAGE>,
    /// By name; each has at least one version.
    pub(crate) workflows: Arc<BTreeMap<Arc<str>, Versions>>,
    /// The last version of each workflow that has none left.
    pub(crate) deleted_workflows: Arc<BTreeMap<Arc<str>, u32>>,
    pub(crate) next_run_id: RunId,
    pub(crate) last_lsn: Lsn,
    pub(crate) last_at: Timestamp,
}

/// A queue exists while it has tasks or settings.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub name: Arc<str>,
    pub settings: QueueSettings,
    /// Somebody set something; it stays even when it is empty.
    pub configured: bool,
    pub tasks: u64,
}

/// A task's name exists while some task has it.
#[derive(Clone, Debug)]
pub(crate) struct TaskName {
    pub text: Arc<str>,
    pub tasks: u64,
}

/// A worker's name exists while it holds leases.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub name: Arc<str>,
    pub leases: u32,
}

impl Facts {
    pub(crate) fn new() -> Self {
        Self {
            tasks: Paged::default(),
            cold: Dense::default(),
            blobs: Blobs::default(),
            queues: Dense::default(),
            workers: Dense::default(),
            task_names: Dense::default(),
            next_task_id: TaskId(1),
            next_lease_id: LeaseId(1),
            runs: Paged::default(),
            workflows: Arc::default(),
            deleted_workflows: Arc::default(),
            next_run_id: RunId(1),
            last_lsn: Lsn::NONE,
            last_at: Timestamp::ZERO,
        }
    }

    /// The last record that these facts include.
    #[must_use]
    pub fn last_lsn(&self) -> Lsn {
        self.last_lsn
    }

    /// Log time of that record.
    #[must_use]
    pub fn last_at(&self) -> Timestamp {
        self.last_at
    }

    /// How many tasks there are, finished ones included.
    #[must_use]
    pub fn task_count(&self) -> u64 {
        self.tasks.len()
    }

    /// How many workflows there are.
    #[must_use]
    pub fn workflow_count(&self) -> usize {
        self.workflows.len()
    }

    /// The last version that a workflow ever had; zero if it was never registered.
    pub(crate) fn last_version(&self, name: &str) -> u32 {
        let known = self.workflows.get(name).map(|versions| versions.last);
        known.or_else(|| self.deleted_workflows.get(name).copied()).unwrap_or_default()
    }

    /// How many runs there are, finished ones included.
    #[must_use]
    pub fn run_count(&self) -> u64 {
        self.runs.len()
    }

    pub(crate) fn cold_of(&self, task: &Task) -> Option<&Cold> {
        self.cold.get(task.cold.get()?)
    }

    pub(crate) fn queue_name(&self, queue: QueueRef) -> &Arc<str> {
        &self.queues.get(queue).expect("a task's queue exists").name
    }

    pub(crate) fn task_name(&self, task: &Task) -> Option<&Arc<str>> {
        task.name.get().map(|name| self.text_of(name))
    }

    pub(crate) fn text_of(&self, name: NameRef) -> &Arc<str> {
        &self.task_names.get(name).expect("a task's name exists").text
    }

    pub(crate) fn worker_name(&self, worker: WorkerRef) -> &Arc<str> {
        &self.workers.get(worker).expect("a leased task's worker has a name").name
    }
}
