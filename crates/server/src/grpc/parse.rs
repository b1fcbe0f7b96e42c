//! Messages as they come over gRPC, parsed once into what the rules know.

use tenure_coordinator::{Registration, TaskFilter};
use tenure_core::command::{
    CancelTask, Command, CompleteTask, ConfigureQueue, FailTask, LeaseRef, LeaseTasks, NewTask,
    ReportTasks, Setting, SubmitTasks,
};
use tenure_core::id::{LeaseId, RunId, TaskId};
use tenure_core::limits::{LEASE_QUEUES_MAX, MAX_ATTEMPTS_DEFAULT, MAX_EXPIRIES_DEFAULT};
use tenure_core::name::{FailureCode, QueueName, Reason, TaskKey, WorkerName};
use tenure_core::state::StateName;
use tenure_core::terms::{Backoff, BackoffKind, Budget, LeaseMs, Priority, SpanMs};
use tenure_core::time::Timestamp;
use tenure_proto::v1;

use crate::limits::{DISCONNECT_GRACE_MS_DEFAULT, DISCONNECT_GRACE_MS_MAX};
use crate::problem::Problem;
use crate::wire::{list as lists, terms};

type Parsed<T> = Result<T, Problem>;

/// A task to submit.
pub(crate) fn new_task(task: v1::NewTask) -> Parsed<NewTask> {
    let delay_ms = task.delay_ms.map(signed);
    let budget = |field: &str, value: Option<u32>, default: u16| {
        value.map_or(Ok(Budget::of(default)), |value| Budget::parse(field, value.into()))
    };
    let queue = if task.queue.is_empty() { "default" } else { &task.queue };
    Ok(NewTask {
        queue: QueueName::parse(queue)?,
        payload: terms::payload("payload", task.payload)?,
        priority: Priority::parse(task.priority.into())?,
        start: terms::start(delay_ms, task.run_at.map(Timestamp))?,
        max_attempts: budget("max_attempts", task.max_attempts, MAX_ATTEMPTS_DEFAULT)?,
        max_expiries: budget("max_expiries", task.max_expiries, MAX_EXPIRIES_DEFAULT)?,
        backoff: task.backoff.map(backoff).transpose()?,
        lease_ms: lease_ms(task.lease_ms)?.unwrap_or_default(),
        timeout_ms: task.timeout_ms.map(|ms| span("timeout_ms", ms)).transpose()?,
        key: task.key.as_deref().map(TaskKey::parse).transpose()?,
        tags: terms::tags(task.tags)?,
    })
}

/// Tasks to submit together.
pub(crate) fn batch(tasks: Vec<v1::NewTask>) -> Parsed<Command> {
    let mut parsed = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.into_iter().enumerate() {
        parsed.push(new_task(task).map_err(|problem| Problem {
            detail: format!("tasks[{index}]: {}", problem.detail),
            ..problem
        })?);
    }
    Ok(Command::SubmitTasks(SubmitTasks { tasks: parsed }))
}

fn backoff(backoff: v1::Backoff) -> Parsed<Backoff> {
    let kind = match v1::BackoffKind::try_from(backoff.kind) {
        Ok(v1::BackoffKind::Unspecified) => None,
        Ok(v1::BackoffKind::Fixed) => Some(BackoffKind::Fixed),
        Ok(v1::BackoffKind::Linear) => Some(BackoffKind::Linear),
        Ok(v1::BackoffKind::Exponential) => Some(BackoffKind::Exponential),
        Err(_) => return Err(unknown("backoff.kind", backoff.kind)),
    };
    terms::backoff(kind, backoff.initial_ms, backoff.max_ms, backoff.jitter)
}

pub(super) fn unknown(field: &str, number: i32) -> Problem {
    Problem::invalid(format!("{field} is {number}, which this server does not know"))
}

fn span(field: &str, ms: u64) -> Parsed<SpanMs> {
    Ok(SpanMs::parse(field, signed(ms))?)
}

/// Far beyond every limit either way.
fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

fn lease_ms(ms: Option<u32>) -> Parsed<Option<LeaseMs>> {
    Ok(ms.map(|ms| LeaseMs::parse(ms.into())).transpose()?)
}

/// Which tasks to list.
pub(crate) fn filter(list: &v1::ListTasksRequest) -> Parsed<TaskFilter> {
    Ok(TaskFilter {
        queue: list.queue.as_deref().map(QueueName::parse).transpose()?,
        state: state(list.state)?,
        tag: lists::tag(list.tag.as_deref())?,
        worker: list.worker.as_deref().map(WorkerName::parse).transpose()?,
        run: list.run_id.map(RunId),
        before: lists::cursor(given(&list.cursor))?.map(TaskId),
        limit: lists::limit(list.limit.map(|limit| limit as usize))?,
    })
}

/// A text that is empty was not given.
pub(super) fn given(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn state(number: i32) -> Parsed<Option<StateName>> {
    Ok(match v1::TaskState::try_from(number) {
        Ok(v1::TaskState::Unspecified) => None,
        Ok(v1::TaskState::Waiting) => Some(StateName::Waiting),
        Ok(v1::TaskState::Leased) => Some(StateName::Leased),
        Ok(v1::TaskState::Completed) => Some(StateName::Completed),
        Ok(v1::TaskState::Failed) => Some(StateName::Failed),
        Ok(v1::TaskState::Dead) => Some(StateName::Dead),
        Ok(v1::TaskState::Canceled) => Some(StateName::Canceled),
        Err(_) => return Err(unknown("state", number)),
    })
}

/// A wish that a task stop.
pub(crate) fn cancel(cancel: v1::CancelTaskRequest) -> Parsed<CancelTask> {
    let grace_ms = cancel.grace_ms.map(|ms| span("grace_ms", ms)).transpose()?;
    Ok(CancelTask { task_id: TaskId(cancel.task_id), grace_ms })
}

/// A worker that asks for work, and how long it waits.
pub(crate) fn lease(lease: &v1::LeaseRequest) -> Parsed<(LeaseTasks, u64)> {
    let request = LeaseTasks {
        worker: WorkerName::parse(&lease.worker)?,
        queues: terms::queues(&lease.queues)?,
        tasks_max: terms::tasks_max(lease.max.map(i64::from))?,
        lease_ms: lease_ms(lease.lease_ms)?,
    };
    Ok((request, wait(lease.wait_ms)?))
}

/// How long somebody wants to wait.
pub(crate) fn wait(wait_ms: u64) -> Parsed<u64> {
    terms::wait(Some(signed(wait_ms)))
}

/// A lease as reports name it.
pub(crate) fn lease_ref(lease: &v1::LeaseRef) -> LeaseRef {
    lease_of(lease.task_id, lease.lease_id)
}

/// The same, from its two numbers.
pub(crate) fn lease_of(task_id: u64, lease_id: u64) -> LeaseRef {
    LeaseRef { task_id: TaskId(task_id), lease_id: LeaseId(lease_id) }
}

/// Done.
pub(crate) fn complete(report: v1::CompleteReport) -> Parsed<CompleteTask> {
    let lease = lease_of(report.task_id, report.lease_id);
    Ok(CompleteTask { lease, output: terms::payload("output", report.output)? })
}

/// Failed.
pub(crate) fn fail(report: &v1::FailReport) -> Parsed<FailTask> {
    Ok(FailTask {
        lease: lease_of(report.task_id, report.lease_id),
        reason: Reason::keep_end(&report.reason),
        code: report.code.as_deref().map(FailureCode::parse).transpose()?,
        retry: terms::retry(report.retryable, report.retry_after_ms.map(signed))?,
    })
}

/// Many reports at once.
pub(crate) fn reports(reports: v1::Reports) -> Parsed<ReportTasks> {
    Ok(ReportTasks {
        heartbeats: reports.heartbeats.iter().map(lease_ref).collect(),
        completes: reports.completes.into_iter().map(complete).collect::<Result<_, _>>()?,
        fails: reports.fails.iter().map(fail).collect::<Result<_, _>>()?,
        releases: reports.releases.iter().map(lease_ref).collect(),
    })
}

/// What a worker says about itself.
pub(crate) fn registration(register: v1::RegisterRequest) -> Parsed<Registration> {
    terms::Said {
        worker: register.worker,
        display_name: register.display_name,
        queues: register.queues,
        slots: register.slots,
        labels: register.labels,
        draining: register.draining,
    }
    .parse()
}

/// New settings of a queue.
pub(crate) fn configure(configure: &v1::ConfigureQueueRequest) -> Parsed<ConfigureQueue> {
    if let Some(name) = configure.clear.iter().find(|name| *name != "retention_ms") {
        let detail = format!("clear has {name:?}; there is no such setting");
        return Err(Problem::invalid(detail));
    }
    let retention_ms = match (configure.retention_ms, configure.clear.is_empty()) {
        (Some(_), false) => {
            let detail = "retention_ms is given and is in clear too; keep one";
            return Err(Problem::invalid(detail));
        }
        (Some(ms), true) => Setting::Set(span("retention_ms", ms)?),
        (None, false) => Setting::Clear,
        (None, true) => Setting::Keep,
    };
    Ok(ConfigureQueue { queue: QueueName::parse(&configure.queue)?, retention_ms })
}

/// A hello, parsed.
#[derive(Clone, Debug)]
pub(crate) struct Greeting {
    /// Who it is.
    pub(super) registration: Registration,
    /// How long its leases last, if not as each task says.
    pub(super) lease_ms: Option<LeaseMs>,
    /// How long its leases outlive a stream that is cut.
    pub(super) disconnect_grace_ms: u64,
    /// What it still has.
    pub(super) held: Vec<LeaseRef>,
}

/// A worker that begins.
pub(crate) fn hello(hello: v1::Hello) -> Parsed<Greeting> {
    let grace_ms = hello.disconnect_grace_ms.unwrap_or(DISCONNECT_GRACE_MS_DEFAULT);
    if grace_ms > DISCONNECT_GRACE_MS_MAX {
        let detail = format!(
            "disconnect_grace_ms is {grace_ms}; it must be from 0 to {DISCONNECT_GRACE_MS_MAX}"
        );
        return Err(Problem::invalid(detail));
    }
    let count = hello.queues.len();
    if !(1..=LEASE_QUEUES_MAX).contains(&count) {
        let detail = format!("queues has {count} names; it must have 1 to {LEASE_QUEUES_MAX}");
        return Err(Problem::invalid(detail));
    }
    let register = v1::RegisterRequest {
        worker: hello.worker,
        queues: hello.queues,
        slots: Some(hello.slots),
        labels: hello.labels,
        draining: false,
        display_name: None,
    };
    Ok(Greeting {
        registration: registration(register)?,
        lease_ms: lease_ms(hello.lease_ms)?,
        disconnect_grace_ms: grace_ms,
        held: hello.held.iter().map(lease_ref).collect(),
    })
}

#[cfg(test)]
mod tests;
