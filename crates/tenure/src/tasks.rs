//! The verbs of tasks: submit, read, cancel, retry, lease and report.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use tenure_coordinator::request::{ExplainTask, GetTask, Lease, ListTasks, RetryTask};
use tenure_coordinator::{Explained, Grant, History, TaskFilter, TaskInfo, TaskPage};
use tenure_core::command::{
    CancelTask, Extended, LeaseRef, LeaseTasks, Reported, SubmitTasks, Submitted,
};
use tenure_core::limits::{LEASE_TASKS_MAX, LIST_ITEMS_MAX};
use tenure_record::id::{RunId, TaskId};
use tenure_record::name::{QueueName, TaskName, WorkerName};
use tenure_record::state::TaskState;

use crate::call::Call;
use crate::error::Error;
use crate::handle::Tenure;
use crate::new_task::NewTask;
use crate::outcome::{Failure, FailureReport, Output};
use crate::reports::{Heartbeat, Release, Reports};
use crate::terms;

/// The default size of a page.
pub(crate) const PAGE_ITEMS: usize = 100;

impl Tenure {
    /// Submits a task. An equal submit with the same key returns the task that exists.
    pub fn submit(&self, task: NewTask) -> Call<Submitted> {
        let request = task.parse().map(|task| SubmitTasks { tasks: vec![task] });
        self.call(request, |submitted| *submitted.first().expect("a submitted task has an id"))
    }

    /// Submits tasks, all or none, in one record.
    pub fn submit_batch(&self, tasks: impl IntoIterator<Item = NewTask>) -> Call<Vec<Submitted>> {
        let tasks = tasks.into_iter().map(NewTask::parse).collect::<Result<_, _>>();
        self.call(tasks.map(|tasks| SubmitTasks { tasks }), |submitted| submitted)
    }

    /// A task as it is now.
    pub fn get(&self, task_id: TaskId) -> Call<TaskInfo> {
        self.call(Ok(GetTask { task_id, wait_ms: 0 }), |task| *task)
    }

    /// A task once it has ended, or as it is after the timeout.
    pub fn wait(&self, task_id: TaskId, timeout: Duration) -> Call<TaskInfo> {
        let (engine, until) = (self.engine().clone(), Instant::now().checked_add(timeout));
        let mut pending = engine.ask(GetTask { task_id, wait_ms: terms::ms(timeout) });
        Call::new(async move {
            loop {
                let task = *pending.await?;
                let left = time_left(until);
                if task.state.is_terminal() || left.is_zero() {
                    return Ok(task);
                }
                // The engine bounds one wait, so a long one is several.
                pending = engine.ask(GetTask { task_id, wait_ms: terms::ms(left).max(1) });
            }
        })
    }

    /// A page of tasks, newest first.
    pub fn list(&self, query: TaskQuery) -> Call<TaskPage> {
        self.call(query.parse().map(ListTasks), |page| page)
    }

    /// Cancels a task. A waiting task is CANCELED at once; the worker of a leased task is told to stop.
    pub fn cancel(&self, task_id: TaskId) -> Call<TaskInfo> {
        self.call(Ok(CancelTask { task_id, grace_ms: None }), |task| *task)
    }

    /// Cancels a task, and revokes the lease of its worker after this grace period.
    pub fn cancel_within(&self, task_id: TaskId, grace: Duration) -> Call<TaskInfo> {
        let grace_ms = terms::span("grace", grace).map_err(Error::from);
        let request = grace_ms.map(|grace| CancelTask { task_id, grace_ms: Some(grace) });
        self.call(request, |task| *task)
    }

    /// Gives a task that has ended another round, with fresh budgets.
    pub fn retry(&self, task_id: TaskId) -> Call<TaskInfo> {
        self.call(Ok(RetryTask(task_id)), |task| *task)
    }

    /// Why a task is not done yet: its place in the queue, a pause, a delay, its run.
    pub fn explain(&self, task_id: TaskId) -> Call<Explained> {
        self.call(Ok(ExplainTask(task_id)), |explained| *explained)
    }

    /// What happened to a task, as far back as the log goes. The log is read on a thread.
    pub fn history(&self, task_id: TaskId) -> Call<History> {
        let engine = self.engine().clone();
        Call::on_thread(move || Ok(engine.history(task_id)?))
    }

    /// Leases tasks for a worker. It waits for the first task, if the request says so. A call that is
    /// dropped releases the leases that were granted to it.
    ///
    /// [`Tenure::worker`] does this in a loop, with heartbeats.
    pub fn lease(&self, request: LeaseRequest) -> Call<Vec<Grant>> {
        self.call(request.parse(), |grants| grants)
    }

    /// Extends a lease, and may save a checkpoint and report progress. The response says whether the
    /// task should stop.
    pub fn heartbeat(&self, heartbeat: impl Into<Heartbeat>) -> Call<Extended> {
        self.call(heartbeat.into().parse(), |extended| extended)
    }

    /// Completes a task under its lease.
    pub fn complete(&self, lease: LeaseRef, output: impl Into<Output>) -> Call<TaskInfo> {
        self.call(output.into().parse(lease, None), |task| *task)
    }

    /// Reports that an attempt did not succeed. The failure says whether another one follows, or that
    /// the lease is only released.
    pub fn fail(&self, lease: LeaseRef, failure: Failure) -> Call<TaskInfo> {
        match failure.parse(lease, None) {
            Ok(FailureReport::Fail(fail)) => self.call(Ok(fail), |task| *task),
            Ok(FailureReport::Release(release)) => self.call(Ok(release), |task| *task),
            Err(error) => Call::failed(error),
        }
    }

    /// Releases a lease: another worker gets the task, and no failure is counted.
    pub fn release(&self, release: impl Into<Release>) -> Call<TaskInfo> {
        self.call(release.into().parse(), |task| *task)
    }

    /// Makes many reports with one call. Each is decided by itself; the results have the order
    /// heartbeats, completions, failures, releases.
    pub fn report(&self, reports: Reports) -> Call<Vec<Reported>> {
        self.call(reports.parse(), |reported| reported)
    }
}

/// The time until a moment; no moment is never.
pub(crate) fn time_left(until: Option<Instant>) -> Duration {
    until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()))
}

/// Which tasks to lease, and for how long to wait for them.
///
/// ```
/// use std::time::Duration;
/// use tenure::LeaseRequest;
///
/// let request = LeaseRequest::new("worker-1", ["mail"]).max(10).wait(Duration::from_secs(30));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LeaseRequest {
    worker: String,
    queues: Vec<String>,
    max: u32,
    wait: Duration,
    lease: Option<Duration>,
}

impl LeaseRequest {
    /// One task of these queues, without waiting for it.
    pub fn new(
        worker: impl Into<String>,
        queues: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let queues = queues.into_iter().map(Into::into).collect();
        Self { worker: worker.into(), queues, max: 1, wait: Duration::ZERO, lease: None }
    }

    /// The number of tasks to lease at most, from 1 to 1,000.
    pub fn max(self, max: u32) -> Self {
        Self { max, ..self }
    }

    /// How long to wait for the first task, at most a minute.
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// The length of the leases, instead of what each task says.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    fn parse(self) -> Result<Lease, Error> {
        let max = NonZeroU32::new(self.max).filter(|max| max.get() <= LEASE_TASKS_MAX);
        let tasks_max = max.ok_or_else(|| {
            let max = self.max;
            Error::invalid(format!("max is {max}; it must be from 1 to {LEASE_TASKS_MAX}"))
        })?;
        let request = LeaseTasks {
            worker: WorkerName::parse(&self.worker)?,
            queues: terms::queues(&self.queues)?,
            tasks_max,
            lease_ms: self.lease.map(terms::lease_ms).transpose()?,
        };
        Ok(Lease { request, wait_ms: terms::ms(self.wait) })
    }
}

/// Which tasks to list; without a condition, all of them.
///
/// ```
/// use tenure::{TaskQuery, TaskState};
///
/// let query = TaskQuery::new().queue("mail").state(TaskState::Failed).tag("customer", "ada");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct TaskQuery {
    queue: Option<String>,
    name: Option<String>,
    worker: Option<String>,
    filter: TaskFilter,
}

impl TaskQuery {
    /// All tasks, 100 on a page.
    pub fn new() -> Self {
        let filter = TaskFilter { limit: PAGE_ITEMS, ..TaskFilter::default() };
        Self { queue: None, name: None, worker: None, filter }
    }

    fn with(mut self, set: impl FnOnce(&mut TaskFilter)) -> Self {
        set(&mut self.filter);
        self
    }

    /// Only tasks of this queue.
    pub fn queue(self, queue: impl Into<String>) -> Self {
        Self { queue: Some(queue.into()), ..self }
    }

    /// Only tasks in this state.
    pub fn state(self, state: TaskState) -> Self {
        self.with(|filter| filter.state = Some(state))
    }

    /// Only tasks of this name.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Only tasks with this tag.
    pub fn tag(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|filter| filter.tag = Some((key.into(), value.into())))
    }

    /// Only tasks that this worker has leased.
    pub fn worker(self, worker: impl Into<String>) -> Self {
        Self { worker: Some(worker.into()), ..self }
    }

    /// Only tasks of this run.
    pub fn run(self, run_id: RunId) -> Self {
        self.with(|filter| filter.run = Some(run_id))
    }

    /// Only tasks whose last failure has this code.
    pub fn code(self, code: impl Into<String>) -> Self {
        self.with(|filter| filter.code = Some(code.into()))
    }

    /// Only tasks that wait for the end of their backoff, or only those that do not.
    pub fn retrying(self, retrying: bool) -> Self {
        self.with(|filter| filter.retrying = Some(retrying))
    }

    /// Only tasks that are older than this one: the `next` of the page before.
    pub fn before(self, task_id: TaskId) -> Self {
        self.with(|filter| filter.before = Some(task_id))
    }

    /// The size of the page, from 1 to 1,000.
    pub fn limit(self, limit: usize) -> Self {
        self.with(|filter| filter.limit = limit)
    }

    fn parse(self) -> Result<TaskFilter, Error> {
        check_limit(self.filter.limit)?;
        Ok(TaskFilter {
            queue: self.queue.as_deref().map(QueueName::parse).transpose()?,
            name: self.name.as_deref().map(TaskName::parse).transpose()?,
            worker: self.worker.as_deref().map(WorkerName::parse).transpose()?,
            ..self.filter
        })
    }
}

impl Default for TaskQuery {
    fn default() -> Self {
        Self::new()
    }
}

/// Refuses a page that is empty or too large.
pub(crate) fn check_limit(limit: usize) -> Result<(), Error> {
    match (1..=LIST_ITEMS_MAX).contains(&limit) {
        true => Ok(()),
        false => {
            Err(Error::invalid(format!("limit is {limit}; it must be from 1 to {LIST_ITEMS_MAX}")))
        }
    }
}
