//! Reading: a task or a queue as people and programs want to see it.

use std::borrow::Cow;
use std::sync::Arc;

use tenure_record::event::QueueSettings;
use tenure_record::id::{LeaseId, Lsn, RunId, TaskId, TokenId};
use tenure_record::state::TaskState;
use tenure_record::terms::{Backoff, Budgets, Priority};
use tenure_record::time::{Clock, Timestamp};

use crate::state::facts::Facts;
use crate::state::facts::task::{Cold, Task, TaskError, TaskPhase};
use crate::state::index::StateCounts;
use crate::state::read::Eligibility;
use crate::state::store::SharedBytes;
use crate::state::{QueueRef, State};

/// A task.
#[derive(Clone, Debug)]
pub struct TaskView<'a> {
    facts: &'a Facts,
    task: &'a Task,
    cold: Option<&'a Cold>,
    /// Its number.
    pub id: TaskId,
}

/// A lease that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseView {
    /// Its number.
    pub lease_id: LeaseId,
    /// Who holds it.
    pub worker: Arc<str>,
    /// When it ends, by log time.
    pub expires_at: Timestamp,
}

/// A queue.
#[derive(Clone, Debug)]
pub struct QueueView {
    /// Its name.
    pub name: Arc<str>,
    /// Its settings.
    pub settings: QueueSettings,
    /// Whether leases are given now, by the clocks as far as they were followed.
    pub eligibility: Eligibility,
    /// Its tasks by state.
    pub counts: StateCounts,
    /// When its oldest waiting task was submitted.
    pub oldest_waiting_at: Option<Timestamp>,
}

impl State {
    /// A task by its number.
    #[must_use]
    pub fn task(&self, id: TaskId) -> Option<TaskView<'_>> {
        self.facts.task(id)
    }

    /// A queue by its name.
    #[must_use]
    pub fn queue(&self, name: &str) -> Option<QueueView> {
        self.queue_ref(name).map(|at| self.view_queue(at))
    }

    /// All queues, by name.
    #[must_use]
    pub fn queues(&self) -> Vec<QueueView> {
        self.queues_after(None, usize::MAX)
    }

    /// The first so many queues after a name, by name.
    #[must_use]
    pub fn queues_after(&self, after: Option<&str>, limit: usize) -> Vec<QueueView> {
        let named = self.facts.queues.iter().map(|(at, queue)| (&queue.name, at));
        let named = named.filter(|(name, _)| after.is_none_or(|after| &***name > after));
        let mut named: Vec<_> = named.collect();
        if named.len() > limit {
            named.select_nth_unstable(limit);
            named.truncate(limit);
        }
        named.sort_unstable();
        named.into_iter().map(|(_, at)| self.view_queue(at)).collect()
    }

    /// The first queue, by name, whose dead letter queue this one is.
    pub(crate) fn dead_letters_of(&self, name: &str) -> Option<Arc<str>> {
        let queues = self.facts.queues.iter().map(|(_, queue)| queue);
        let found = queues.filter(|it| it.settings.dead_letter_queue.as_deref() == Some(name));
        found.map(|queue| Arc::clone(&queue.name)).min()
    }

    /// How many leases a worker holds.
    #[must_use]
    pub fn leases_of(&self, worker: &str) -> u32 {
        let worker = self.worker_ref(worker).and_then(|at| self.facts.workers.get(at));
        worker.map_or(0, |worker| worker.leases)
    }

    fn view_queue(&self, at: QueueRef) -> QueueView {
        let queue = self.facts.queues.get(at).expect("a queue that was found exists");
        let waiting = self.live().list(at, TaskState::Waiting);
        let oldest = waiting.and_then(|ids| self.task_slot(TaskId(ids.first()?)));
        QueueView {
            name: Arc::clone(&queue.name),
            settings: queue.settings.clone(),
            eligibility: self.eligibility(at),
            counts: self.live().counts_in(at),
            oldest_waiting_at: oldest.map(|task| task.created_at),
        }
    }
}

impl Facts {
    /// A task by its number.
    #[must_use]
    pub fn task(&self, id: TaskId) -> Option<TaskView<'_>> {
        self.tasks.get(id.0).map(|task| self.view(id, task))
    }

    /// All tasks, oldest first.
    pub fn tasks(&self) -> impl DoubleEndedIterator<Item = TaskView<'_>> {
        self.tasks.iter().map(|(id, task)| self.view(TaskId(id), task))
    }

    fn view<'a>(&'a self, id: TaskId, task: &'a Task) -> TaskView<'a> {
        TaskView { facts: self, task, cold: self.cold_of(task), id }
    }
}

impl<'a> TaskView<'a> {
    /// Its queue.
    #[must_use]
    pub fn queue(&self) -> &'a Arc<str> {
        self.facts.queue_name(self.task.queue)
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.task.name()
    }

    /// How urgent it is.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.task.priority
    }

    /// What its worker gets, for checks and tests.
    ///
    /// # Panics
    /// The payload is large and the shelf cannot be read; [`TaskView::shared_payload`] tells.
    #[must_use]
    pub fn payload(&self) -> Cow<'a, [u8]> {
        self.facts.blobs.get(self.task.payload).expect("a check reads what is kept")
    }

    /// How long that is; nothing is read for it.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.facts.blobs.len(self.task.payload)
    }

    /// The payload, for keeping beyond the next change. Nothing is read.
    #[must_use]
    pub fn shared_payload(&self) -> SharedBytes {
        self.facts.blobs.share(self.task.payload)
    }

    /// What its worker gave back, for checks and tests; empty if nothing.
    ///
    /// # Panics
    /// The output is large and the shelf cannot be read; [`TaskView::shared_output`] tells.
    #[must_use]
    pub fn output(&self) -> Cow<'a, [u8]> {
        self.facts.blobs.get(self.task.output).expect("a check reads what is kept")
    }

    /// The output, for keeping beyond the next change. Nothing is read.
    #[must_use]
    pub fn shared_output(&self) -> SharedBytes {
        self.facts.blobs.share(self.task.output)
    }

    /// Grants so far.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.task.attempt
    }

    /// Failures since it was submitted or retried.
    #[must_use]
    pub fn failures(&self) -> u16 {
        self.task.failures
    }

    /// Expired leases since it was submitted or retried.
    #[must_use]
    pub fn expiries(&self) -> u16 {
        self.task.expiries
    }

    /// How many failures and expired leases end it.
    #[must_use]
    pub fn budgets(&self) -> Budgets {
        self.task.budgets(self.cold)
    }

    /// How long a lease lasts unless the worker asks for another span.
    #[must_use]
    pub fn lease_ms(&self) -> u32 {
        self.task.lease_ms
    }

    /// Whether a client asked it to stop.
    #[must_use]
    pub fn cancel_requested(&self) -> bool {
        self.task.cancel_requested
    }

    /// The lease that holds, if one does.
    #[must_use]
    pub fn lease(&self) -> Option<LeaseView> {
        let TaskPhase::Leased { worker, expires_at, .. } = self.task.state else { return None };
        let worker = Arc::clone(self.facts.worker_name(worker));
        Some(LeaseView { lease_id: self.task.lease_id, worker, expires_at })
    }

    /// The latest lease, whether it holds or not.
    #[must_use]
    pub fn last_lease_id(&self) -> LeaseId {
        self.task.lease_id
    }

    /// While it waits: when it may run; zero for at once.
    #[must_use]
    pub fn not_before(&self) -> Option<Timestamp> {
        match self.task.state {
            TaskPhase::Waiting { not_before, .. } => Some(not_before),
            TaskPhase::Leased { .. }
            | TaskPhase::Completed { .. }
            | TaskPhase::Failed { .. }
            | TaskPhase::Dead { .. }
            | TaskPhase::Canceled { .. } => None,
        }
    }

    /// While it waits: the clock of that moment.
    #[must_use]
    pub fn not_before_clock(&self) -> Clock {
        match self.task.state {
            TaskPhase::Waiting { clock, .. } => clock,
            TaskPhase::Leased { .. }
            | TaskPhase::Completed { .. }
            | TaskPhase::Failed { .. }
            | TaskPhase::Dead { .. }
            | TaskPhase::Canceled { .. } => Clock::Log,
        }
    }

    /// When it was submitted, by the wall clock.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.task.created_at
    }

    /// When it was told to run first, if it was told, by the wall clock.
    #[must_use]
    pub fn run_at(&self) -> Option<Timestamp> {
        self.cold.map(|cold| cold.run_at).filter(|at| *at > Timestamp::ZERO)
    }

    /// The latest grant, by the wall clock.
    #[must_use]
    pub fn started_at(&self) -> Option<Timestamp> {
        Some(self.task.started_at).filter(|at| *at > Timestamp::ZERO)
    }

    /// When it ended, by the wall clock.
    #[must_use]
    pub fn finished_at(&self) -> Option<Timestamp> {
        self.task.ended().map(|(at, offset)| offset.shown(at))
    }

    /// How long it may take from submit to end.
    #[must_use]
    pub fn total_timeout_ms(&self) -> Option<u64> {
        self.cold.and_then(|cold| cold.total_timeout_ms)
    }

    /// When it must have ended.
    #[must_use]
    pub fn deadline_at(&self) -> Option<Timestamp> {
        self.cold.map(|cold| cold.deadline_at).filter(|at| *at > Timestamp::ZERO)
    }

    /// How long one attempt may take.
    #[must_use]
    pub fn attempt_timeout_ms(&self) -> Option<u64> {
        self.cold.and_then(|cold| cold.attempt_timeout_ms)
    }

    /// When the attempt under way must have ended.
    #[must_use]
    pub fn attempt_deadline_at(&self) -> Option<Timestamp> {
        self.cold.map(|cold| cold.attempt_deadline_at).filter(|at| *at > Timestamp::ZERO)
    }

    /// What kind of work it is.
    #[must_use]
    pub fn name(&self) -> Option<&'a Arc<str>> {
        self.facts.task_name(self.task)
    }

    /// The W3C trace context of its submit.
    #[must_use]
    pub fn traceparent(&self) -> Option<Arc<str>> {
        self.cold.and_then(|cold| cold.traceparent.clone())
    }

    /// Its copy in a dead letter queue, from when it last ended FAILED or DEAD. It may be purged.
    #[must_use]
    pub fn dead_letter(&self) -> Option<TaskId> {
        self.cold.map(|cold| cold.dead_letter).filter(|id| id.is_some())
    }

    /// The task that it is the copy of, in a dead letter queue. It may be purged.
    #[must_use]
    pub fn dead_letter_of(&self) -> Option<TaskId> {
        self.cold.map(|cold| cold.dead_letter_of).filter(|id| id.is_some())
    }

    /// When its key is free for another task, if that is before the task is forgotten.
    #[must_use]
    pub fn key_free_at(&self) -> Option<Timestamp> {
        let key = self.cold.and_then(|cold| cold.key.as_ref())?;
        Some(key.free_at).filter(|at| *at > Timestamp::ZERO)
    }

    /// Whether it has a key that no other task has taken.
    #[must_use]
    pub fn holds_key(&self) -> bool {
        self.cold.is_some_and(|cold| cold.held_key().is_some())
    }

    /// When its lease is taken away for a cancel, whatever the worker says.
    #[must_use]
    pub fn revoke_at(&self) -> Option<Timestamp> {
        self.cold.map(|cold| cold.revoke_at).filter(|at| *at > Timestamp::ZERO)
    }

    /// How it waits between failures.
    #[must_use]
    pub fn backoff(&self) -> Backoff {
        self.cold.and_then(|cold| cold.backoff.clone()).unwrap_or(Backoff::STANDARD)
    }

    /// Its idempotency key.
    #[must_use]
    pub fn key(&self) -> Option<&'a str> {
        self.cold.and_then(|cold| cold.key.as_ref()).map(|key| &*key.text)
    }

    /// The key, for keeping beyond the next change.
    #[must_use]
    pub fn shared_key(&self) -> Option<Arc<str>> {
        self.cold.and_then(|cold| cold.key.as_ref()).map(|key| Arc::clone(&key.text))
    }

    /// Its tags, by key.
    #[must_use]
    pub fn tags(&self) -> &'a [(Arc<str>, Arc<str>)] {
        self.cold.and_then(|cold| cold.tags.as_deref()).unwrap_or_default()
    }

    /// Its last few failures, oldest first.
    #[must_use]
    pub fn errors(&self) -> &'a [TaskError] {
        self.cold.and_then(|cold| cold.errors.as_deref()).unwrap_or_default()
    }

    /// Where its next attempt goes on.
    #[must_use]
    pub fn checkpoint(&self) -> Option<&'a Arc<[u8]>> {
        self.cold.and_then(|cold| cold.checkpoint.as_ref())
    }

    /// The newest lease whose stale report is in the log.
    #[must_use]
    pub fn stale_lease_id(&self) -> LeaseId {
        self.cold.map_or(LeaseId::NONE, |cold| cold.stale_lease)
    }

    /// The run and the token that it belongs to.
    #[must_use]
    pub fn run(&self) -> Option<(RunId, TokenId)> {
        self.cold.and_then(|cold| cold.run)
    }

    /// The node of its run that it is for.
    #[must_use]
    pub fn node(&self) -> Option<&'a Arc<str>> {
        let (run, token) = self.run()?;
        Some(self.facts.run(run)?.token(token)?.node())
    }

    /// The last record of its history.
    #[must_use]
    pub fn last_lsn(&self) -> Lsn {
        self.task.last_lsn
    }
}
