//! Messages as they come over gRPC, parsed once into what the rules know.

use std::num::NonZeroU32;

use tenure_coordinator::{Registration, TaskFilter};
use tenure_core::command::{
    CancelTask, Command, CompleteTask, ConfigureQueue, FailTask, LeaseRef, LeaseTasks, NewTask,
    ReportTasks, Retry, Setting, Start, SubmitTasks,
};
use tenure_core::id::{LeaseId, TaskId};
use tenure_core::limits::{
    LEASE_QUEUES_MAX, LEASE_TASKS_MAX, LIST_ITEMS_MAX, MAX_ATTEMPTS_DEFAULT, MAX_EXPIRIES_DEFAULT,
};
use tenure_core::name::{FailureCode, QueueName, Reason, TagKey, TagValue, TaskKey, WorkerName};
use tenure_core::state::StateName;
use tenure_core::terms::{Backoff, BackoffKind, Budget, LeaseMs, Payload, Priority, SpanMs, Tags};
use tenure_core::time::Timestamp;
use tenure_proto::v1;

use crate::limits::{DISCONNECT_GRACE_MS_DEFAULT, DISCONNECT_GRACE_MS_MAX, LIST_LIMIT_DEFAULT};
use crate::problem::Problem;
use crate::wire::request::parse_wait;

type Parsed<T> = Result<T, Problem>;

/// A task to submit.
pub(super) fn new_task(task: v1::NewTask) -> Parsed<NewTask> {
    let start = match (task.delay_ms, task.run_at) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid("delay_ms and run_at are both given; keep one"));
        }
        (Some(ms), None) => Start::After(span("delay_ms", ms)?),
        (None, Some(at)) => Start::At(Timestamp(at)),
        (None, None) => Start::AtOnce,
    };
    let budget = |field: &str, value: Option<u32>, default: u16| {
        value.map_or(Ok(Budget::of(default)), |value| Budget::parse(field, value.into()))
    };
    let queue = if task.queue.is_empty() { "default" } else { &task.queue };
    Ok(NewTask {
        queue: QueueName::parse(queue)?,
        payload: payload("payload", task.payload)?,
        priority: Priority::parse(task.priority.into())?,
        start,
        max_attempts: budget("max_attempts", task.max_attempts, MAX_ATTEMPTS_DEFAULT)?,
        max_expiries: budget("max_expiries", task.max_expiries, MAX_EXPIRIES_DEFAULT)?,
        backoff: task.backoff.map(backoff).transpose()?,
        lease_ms: lease_ms(task.lease_ms)?.unwrap_or_default(),
        timeout_ms: task.timeout_ms.map(|ms| span("timeout_ms", ms)).transpose()?,
        key: task.key.as_deref().map(TaskKey::parse).transpose()?,
        tags: tags(task.tags)?,
    })
}

/// Tasks to submit together.
pub(super) fn batch(tasks: Vec<v1::NewTask>) -> Parsed<Command> {
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
    let usual = Backoff::STANDARD;
    let kind = match v1::BackoffKind::try_from(backoff.kind) {
        Ok(v1::BackoffKind::Unspecified) => usual.kind,
        Ok(v1::BackoffKind::Fixed) => Some(BackoffKind::Fixed),
        Ok(v1::BackoffKind::Linear) => Some(BackoffKind::Linear),
        Ok(v1::BackoffKind::Exponential) => Some(BackoffKind::Exponential),
        Err(_) => return Err(unknown("backoff.kind", backoff.kind)),
    };
    let jitter = backoff.jitter.unwrap_or(f64::from(usual.jitter_permille) / 1_000.0);
    if !(0.0..=1.0).contains(&jitter) {
        let detail = format!("backoff.jitter is {jitter}; it must be from 0 to 1");
        return Err(Problem::invalid(detail));
    }
    let backoff = Backoff {
        kind,
        initial_ms: backoff.initial_ms.unwrap_or(usual.initial_ms),
        max_ms: backoff.max_ms.unwrap_or(usual.max_ms),
        jitter_permille: (jitter * 1_000.0).round() as u16,
    };
    Ok(backoff.parse()?)
}

fn unknown(field: &str, number: i32) -> Problem {
    Problem::invalid(format!("{field} is {number}, which this server does not know"))
}

fn span(field: &str, ms: u64) -> Parsed<SpanMs> {
    Ok(SpanMs::parse(field, i64::try_from(ms).unwrap_or(i64::MAX))?)
}

fn lease_ms(ms: Option<u32>) -> Parsed<Option<LeaseMs>> {
    Ok(ms.map(|ms| LeaseMs::parse(ms.into())).transpose()?)
}

fn payload(field: &str, bytes: Vec<u8>) -> Parsed<Payload> {
    Payload::parse(field, bytes)
        .map_err(|invalid| Problem::new("payload_too_large", invalid.to_string()))
}

fn tags(tags: std::collections::BTreeMap<String, String>) -> Parsed<Tags> {
    let parse = |(key, value): (String, String)| {
        Ok::<_, Problem>((TagKey::parse(&key)?, TagValue::parse(&value)?))
    };
    Ok(Tags::parse(tags.into_iter().map(parse).collect::<Result<_, _>>()?)?)
}

/// Which tasks to list.
pub(super) fn filter(list: &v1::ListTasksRequest) -> Parsed<TaskFilter> {
    let tag = |tag: &str| match tag.split_once(':') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(Problem::invalid(format!("tag is {tag:?}; it must be like key:value"))),
    };
    let limit = list.limit.map_or(LIST_LIMIT_DEFAULT, |limit| limit as usize);
    if !(1..=LIST_ITEMS_MAX).contains(&limit) {
        let detail = format!("limit is {limit}; it must be from 1 to {LIST_ITEMS_MAX}");
        return Err(Problem::invalid(detail));
    }
    let before = match list.cursor.as_str() {
        "" => None,
        cursor => Some(cursor.parse().map(TaskId).map_err(|_| {
            Problem::invalid(format!("cursor is {cursor:?}; use the next_cursor of a page"))
        })?),
    };
    Ok(TaskFilter {
        queue: list.queue.as_deref().map(QueueName::parse).transpose()?,
        state: state(list.state)?,
        tag: list.tag.as_deref().map(tag).transpose()?,
        worker: list.worker.as_deref().map(WorkerName::parse).transpose()?,
        before,
        limit,
    })
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
pub(super) fn cancel(cancel: v1::CancelTaskRequest) -> Parsed<CancelTask> {
    let grace_ms = cancel.grace_ms.map(|ms| span("grace_ms", ms)).transpose()?;
    Ok(CancelTask { task_id: TaskId(cancel.task_id), grace_ms })
}

/// A worker that asks for work, and how long it waits.
pub(super) fn lease(lease: &v1::LeaseRequest) -> Parsed<(LeaseTasks, u64)> {
    let max = lease.max.unwrap_or(1);
    let tasks_max =
        NonZeroU32::new(max).filter(|max| max.get() <= LEASE_TASKS_MAX).ok_or_else(|| {
            Problem::invalid(format!("max is {max}; it must be from 1 to {LEASE_TASKS_MAX}"))
        })?;
    let request = LeaseTasks {
        worker: WorkerName::parse(&lease.worker)?,
        queues: queues(&lease.queues)?,
        tasks_max,
        lease_ms: lease_ms(lease.lease_ms)?,
    };
    Ok((request, wait(lease.wait_ms)?))
}

/// How long somebody wants to wait.
pub(super) fn wait(wait_ms: u64) -> Parsed<u64> {
    parse_wait(Some(i64::try_from(wait_ms).unwrap_or(i64::MAX)))
}

fn queues(names: &[String]) -> Parsed<Vec<QueueName>> {
    Ok(names.iter().map(|name| QueueName::parse(name)).collect::<Result<_, _>>()?)
}

/// A lease as reports name it.
pub(super) fn lease_ref(lease: &v1::LeaseRef) -> LeaseRef {
    lease_of(lease.task_id, lease.lease_id)
}

/// The same, from its two numbers.
pub(super) fn lease_of(task_id: u64, lease_id: u64) -> LeaseRef {
    LeaseRef { task_id: TaskId(task_id), lease_id: LeaseId(lease_id) }
}

/// Done.
pub(super) fn complete(report: v1::CompleteReport) -> Parsed<CompleteTask> {
    let lease = lease_of(report.task_id, report.lease_id);
    Ok(CompleteTask { lease, output: payload("output", report.output)? })
}

/// Failed.
pub(super) fn fail(report: &v1::FailReport) -> Parsed<FailTask> {
    let retry = match (report.retryable.unwrap_or(true), report.retry_after_ms) {
        (false, Some(_)) => {
            let detail = "retryable is false and retry_after_ms is given; keep one";
            return Err(Problem::invalid(detail));
        }
        (false, None) => Retry::Never,
        (true, Some(ms)) => Retry::After(span("retry_after_ms", ms)?),
        (true, None) => Retry::WithBackoff,
    };
    Ok(FailTask {
        lease: lease_of(report.task_id, report.lease_id),
        reason: Reason::keep_end(&report.reason),
        code: report.code.as_deref().map(FailureCode::parse).transpose()?,
        retry,
    })
}

/// Many reports at once.
pub(super) fn reports(reports: v1::Reports) -> Parsed<ReportTasks> {
    Ok(ReportTasks {
        heartbeats: reports.heartbeats.iter().map(lease_ref).collect(),
        completes: reports.completes.into_iter().map(complete).collect::<Result<_, _>>()?,
        fails: reports.fails.iter().map(fail).collect::<Result<_, _>>()?,
        releases: reports.releases.iter().map(lease_ref).collect(),
    })
}

/// What a worker says about itself.
pub(super) fn registration(register: v1::RegisterRequest) -> Parsed<Registration> {
    Ok(Registration {
        worker: WorkerName::parse(&register.worker)?,
        queues: queues(&register.queues)?,
        slots: register.slots.unwrap_or(1),
        labels: register.labels,
        draining: register.draining,
    })
}

/// New settings of a queue.
pub(super) fn configure(configure: &v1::ConfigureQueueRequest) -> Parsed<ConfigureQueue> {
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
pub(super) struct Greeting {
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
pub(super) fn hello(hello: v1::Hello) -> Parsed<Greeting> {
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
