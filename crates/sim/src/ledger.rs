//! A ledger of the log, kept without `apply`: the past of every task and every lease.

use std::collections::{BTreeMap, VecDeque};

use tenure_record::event::{Record, RunState};
use tenure_record::id::{LeaseId, Lsn, RunId, TaskId};
use tenure_record::state::TaskState;
use tenure_record::time::Timestamp;

use crate::item::{End, Item};

/// How long a purged task is remembered: until nobody can be told of it any more.
const REMEMBERED_MS: u64 = 600_000;

/// All that the records so far say.
#[derive(Debug, Default)]
pub(crate) struct TaskLedger {
    pub(crate) tasks: BTreeMap<TaskId, TaskEntry>,
    pub(crate) leases: BTreeMap<LeaseId, LeaseEntry>,
    /// Who holds which key in which queue.
    pub(crate) keys: BTreeMap<(String, String), TaskId>,
    pub(crate) last_lsn: Lsn,
    pub(crate) last_at: Timestamp,
    pub(crate) runs: BTreeMap<RunId, RunEntry>,
    /// The newest version of each workflow.
    pub(crate) workflows: BTreeMap<String, u32>,
    /// The newest task.
    pub(crate) last_task: TaskId,
    /// Ended tasks that belong to no run and were not purged.
    pub(crate) ended_beside_runs: u64,
    /// Tasks that were purged, and when.
    purged: VecDeque<(Timestamp, TaskId)>,
}

/// A run.
#[derive(Debug)]
pub(crate) struct RunEntry {
    pub(crate) workflow: String,
    pub(crate) key: Option<String>,
    /// The run that it is a child of.
    pub(crate) parent: Option<RunId>,
    pub(crate) state: RunState,
    pub(crate) tasks: Vec<TaskId>,
    /// Log time of the record that ended it.
    pub(crate) ended_at: Timestamp,
    pub(crate) is_purged: bool,
}

/// A task and its past.
#[derive(Debug)]
pub(crate) struct TaskEntry {
    pub(crate) queue: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) key: Option<String>,
    /// When another task may take its key.
    pub(crate) key_free_at: Option<Timestamp>,
    pub(crate) state: TaskState,
    /// Log time of the record that made it so.
    pub(crate) since: Timestamp,
    /// What it was after each record of its history.
    pub(crate) history: Vec<Seen>,
    pub(crate) lease: Option<LeaseId>,
    pub(crate) grants: u32,
    pub(crate) completed: Option<(LeaseId, Vec<u8>)>,
    /// The last checkpoint that a worker left; empty for none.
    pub(crate) checkpoint: Vec<u8>,
    pub(crate) is_purged: bool,
    /// The run that it belongs to.
    pub(crate) run: Option<RunId>,
    /// Its copy in a dead letter queue.
    pub(crate) copy: Option<TaskId>,
    /// The task that it is the copy of.
    pub(crate) copy_of: Option<TaskId>,
}

/// A task after a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) lsn: Lsn,
    pub(crate) state: TaskState,
    pub(crate) attempt: u32,
}

/// A lease that was given.
#[derive(Debug)]
pub(crate) struct LeaseEntry {
    pub(crate) task_id: TaskId,
    pub(crate) worker: String,
    pub(crate) attempt: u32,
    pub(crate) granted: Lsn,
    /// What earlier attempts left for it; empty for nothing.
    pub(crate) checkpoint: Vec<u8>,
    /// Its ends, as each was written; the last one counts.
    pub(crate) ends: Vec<Timestamp>,
    pub(crate) ended: Option<Lsn>,
}

impl LeaseEntry {
    pub(crate) fn expires_at(&self) -> Timestamp {
        self.ends.last().copied().unwrap_or_default()
    }
}

impl TaskEntry {
    /// A task that was just made.
    fn new(record: &Record<'_>, queue: &str, payload: Vec<u8>) -> Self {
        let mut task = Self {
            queue: queue.to_owned(),
            payload,
            key: None,
            key_free_at: None,
            state: TaskState::Waiting,
            since: record.at,
            history: Vec::new(),
            lease: None,
            grants: 0,
            completed: None,
            checkpoint: Vec::new(),
            is_purged: false,
            run: None,
            copy: None,
            copy_of: None,
        };
        task.now(record, TaskState::Waiting);
        task
    }

    /// What it was after the last of its records up to this one.
    pub(crate) fn seen_at(&self, lsn: Lsn) -> Option<Seen> {
        let after = self.history.partition_point(|seen| seen.lsn <= lsn);
        after.checked_sub(1).map(|at| self.history[at])
    }

    fn now(&mut self, record: &Record<'_>, state: TaskState) {
        let lsn = record.lsn;
        if self.state != state {
            self.since = record.at;
        }
        self.state = state;
        let seen = Seen { lsn, state, attempt: self.grants };
        match self.history.last_mut() {
            Some(last) if last.lsn == lsn => *last = seen,
            _ => self.history.push(seen),
        }
    }
}

impl TaskLedger {
    /// The task, if it exists and was not purged.
    pub(crate) fn task(&self, id: TaskId) -> Option<&TaskEntry> {
        self.tasks.get(&id).filter(|task| !task.is_purged)
    }

    /// Whether a run's parent exists and was not purged.
    pub(crate) fn has_parent(&self, run: &RunEntry) -> bool {
        run.parent.is_some_and(|parent| self.run(parent).is_some())
    }

    /// The run, if it exists and was not purged.
    pub(crate) fn run(&self, id: RunId) -> Option<&RunEntry> {
        self.runs.get(&id).filter(|run| !run.is_purged)
    }

    /// The lease that a task is held by.
    pub(crate) fn open_lease(&self, id: TaskId) -> Option<(LeaseId, &LeaseEntry)> {
        let lease_id = self.task(id)?.lease?;
        self.leases.get(&lease_id).map(|lease| (lease_id, lease))
    }

    /// Writes down what an item says. It was found lawful before.
    pub(crate) fn note(&mut self, record: &Record<'_>, item: Item<'_>) {
        let about = item.task();
        let before = self.is_kept(about);
        self.write_down(record, item);
        match (before, self.is_kept(about)) {
            (false, true) => self.ended_beside_runs += 1,
            (true, false) => self.ended_beside_runs -= 1,
            (false, false) | (true, true) => {}
        }
    }

    /// Whether a task has ended and is kept for itself.
    fn is_kept(&self, id: Option<TaskId>) -> bool {
        let task = id.and_then(|id| self.task(id));
        task.is_some_and(|task| task.run.is_none() && task.state.is_terminal())
    }

    /// Forgets what was purged long ago, and says what that was.
    pub(crate) fn forget(&mut self) -> Vec<TaskId> {
        let long_ago =
            self.purged.partition_point(|(at, _)| at.plus_ms(REMEMBERED_MS) <= self.last_at);
        let gone: Vec<TaskId> = self.purged.drain(..long_ago).map(|(_, id)| id).collect();
        gone.iter().for_each(|id| drop(self.tasks.remove(id)));
        gone
    }

    fn write_down(&mut self, record: &Record<'_>, item: Item<'_>) {
        let lsn = record.lsn;
        match item {
            Item::Created(item) => {
                let key = item.key.as_ref().map(|key| key.as_str().to_owned());
                if let Some(key) = &key {
                    let place = (item.queue.as_str().to_owned(), key.clone());
                    self.keys.insert(place, item.task_id);
                }
                let run = item.run.as_ref().map(|link| link.run_id);
                if let Some(run) = run.and_then(|run| self.runs.get_mut(&run)) {
                    run.tasks.push(item.task_id);
                }
                let free_at = Some(item.key_free_at).filter(|at| *at > Timestamp::ZERO);
                let payload = item.payload.to_vec();
                let task = TaskEntry::new(record, item.queue.as_str(), payload);
                let task = TaskEntry { key, key_free_at: free_at, run, ..task };
                self.add(item.task_id, task);
            }
            Item::Copied { of, item } => {
                let payload = self.tasks.get(&of.task_id).map(|task| task.payload.clone());
                let payload = payload.unwrap_or_default();
                let task = TaskEntry::new(record, item.queue.as_str(), payload);
                let copy_of = Some(of.task_id);
                self.add(item.task_id, TaskEntry { copy_of, ..task });
                if let Some(task) = self.tasks.get_mut(&of.task_id) {
                    task.copy = Some(item.task_id);
                }
            }
            Item::Granted { worker, item } => {
                let Some(task) = self.tasks.get_mut(&item.about.task_id) else { return };
                task.grants += 1;
                task.lease = Some(item.lease_id);
                task.now(record, TaskState::Leased);
                let lease = LeaseEntry {
                    task_id: item.about.task_id,
                    worker: worker.to_owned(),
                    attempt: task.grants,
                    granted: lsn,
                    checkpoint: task.checkpoint.clone(),
                    ends: vec![item.expires_at],
                    ended: None,
                };
                self.leases.insert(item.lease_id, lease);
            }
            Item::Extended(item) => self.move_end(item.lease_id, item.expires_at),
            Item::Checkpoint(id, bytes) => {
                if let Some(task) = self.tasks.get_mut(&id) {
                    task.checkpoint = bytes.to_vec();
                }
            }
            Item::AskedToStop { about, lease_id, expires_at } => {
                self.step(about.task_id, record, TaskState::Leased);
                self.move_end(lease_id, expires_at);
            }
            Item::Ended { about, lease_id, to, by } => {
                if let Some(lease) = self.leases.get_mut(&lease_id) {
                    lease.ended = Some(lsn);
                }
                if let Some(task) = self.tasks.get_mut(&about.task_id) {
                    task.lease = None;
                    if let End::Completed { output } = by {
                        task.completed = Some((lease_id, output.to_vec()));
                    }
                }
                self.step(about.task_id, record, to);
            }
            Item::Stale { about, state, .. } => self.step(about.task_id, record, state),
            Item::EndedWaiting { about, to } => self.step(about.task_id, record, to),
            Item::Retried { about } => self.step(about.task_id, record, TaskState::Waiting),
            Item::Purged(id) => {
                if let Some(task) = self.tasks.get_mut(&id) {
                    task.is_purged = true;
                    self.purged.push_back((record.at, id));
                    if let Some(key) = task.key.clone() {
                        let place = (task.queue.clone(), key);
                        // A later task may have taken the key.
                        if self.keys.get(&place) == Some(&id) {
                            self.keys.remove(&place);
                        }
                    }
                }
            }
            Item::Stopped(_)
            | Item::Registered { .. }
            | Item::Began(_)
            | Item::Finished(..)
            | Item::PurgedRun(_)
            | Item::Decided(..)
            | Item::Configured => self.note_run(record, item),
        }
    }

    /// What an item says about a run.
    fn note_run(&mut self, record: &Record<'_>, item: Item<'_>) {
        let lsn = record.lsn;
        match item {
            Item::Stopped(stopped) => {
                if let Some(lease) = self.leases.get_mut(&stopped.lease_id) {
                    lease.ended = Some(lsn);
                }
                if let Some(task) = self.tasks.get_mut(&stopped.task_id) {
                    task.lease = None;
                }
                self.step(stopped.task_id, record, TaskState::Canceled);
            }
            Item::Registered { workflow, version } => {
                self.workflows.insert(workflow.to_owned(), version);
            }
            Item::Began(run) => {
                let entry = RunEntry {
                    workflow: run.workflow.as_str().to_owned(),
                    key: run.key.as_ref().map(|key| key.as_str().to_owned()),
                    parent: run.parent.is_some().then_some(run.parent),
                    state: RunState::Running,
                    tasks: Vec::new(),
                    ended_at: record.at,
                    is_purged: false,
                };
                self.runs.insert(run.run_id, entry);
            }
            Item::Finished(id, state) => {
                if let Some(run) = self.runs.get_mut(&id) {
                    (run.state, run.ended_at) = (state, record.at);
                }
            }
            Item::PurgedRun(id) => {
                let Some(run) = self.runs.get_mut(&id) else { return };
                run.is_purged = true;
                for task in &run.tasks {
                    if let Some(entry) = self.tasks.get_mut(task) {
                        entry.is_purged = true;
                        self.purged.push_back((record.at, *task));
                    }
                }
            }
            Item::Created(_)
            | Item::Copied { .. }
            | Item::Granted { .. }
            | Item::Extended(_)
            | Item::Checkpoint(..)
            | Item::Ended { .. }
            | Item::Stale { .. }
            | Item::AskedToStop { .. }
            | Item::EndedWaiting { .. }
            | Item::Retried { .. }
            | Item::Purged(_)
            | Item::Decided(..)
            | Item::Configured => {}
        }
    }

    /// Ends a record.
    pub(crate) fn turn(&mut self, record: &Record<'_>) {
        (self.last_lsn, self.last_at) = (record.lsn, record.at);
    }

    fn add(&mut self, id: TaskId, task: TaskEntry) {
        self.tasks.insert(id, task);
        self.last_task = id;
    }

    fn step(&mut self, id: TaskId, record: &Record<'_>, to: TaskState) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.now(record, to);
        }
    }

    fn move_end(&mut self, lease_id: LeaseId, to: Timestamp) {
        if let Some(lease) = self.leases.get_mut(&lease_id) {
            lease.ends.push(to);
        }
    }
}
