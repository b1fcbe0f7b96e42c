//! Requests about tasks, queues and workers: what the outward model says, as commands.

use axum::http::HeaderMap;
use tenure_api as api;
use tenure_code::Echo;
use tenure_coordinator::{Registration, TaskFilter};
use tenure_core::command::{
    CancelTask, ConfigureQueue, LeaseTasks, NewTask, PauseQueue, Setting, SettingsChange,
    SubmitTasks,
};
use tenure_core::limits::LEASE_QUEUES_MAX;
use tenure_record::id::{RunId, TaskId};
use tenure_record::name::{QueueName, TagValue, TaskKey, TaskName, WorkerName};
use tenure_record::state::TaskState;
use tenure_record::terms::{Budgets, Count, Priority, SpanMs};
use tenure_record::trace::TraceParent;

use super::{list, terms};
use crate::problem::Problem;

type Parsed<T> = Result<T, Problem>;

/// A task to submit.
pub(crate) fn new_task(task: api::NewTask) -> Parsed<NewTask> {
    Ok(NewTask {
        queue: QueueName::parse(task.queue.as_deref().unwrap_or("default"))?,
        payload: terms::payload("payload", task.payload)?,
        name: task.name.as_deref().map(TaskName::parse).transpose()?,
        priority: Priority::parse(task.priority.unwrap_or(0).into())?,
        start: terms::start(task.delay_ms, terms::maybe_time("run_at", task.run_at)?)?,
        budgets: Budgets::parse(
            task.max_failures.map(i64::from),
            task.max_expiries.map(i64::from),
            task.max_attempts.map(i64::from),
        )?,
        backoff: task.backoff.map(terms::backoff).transpose()?,
        lease_ms: terms::lease_ms(task.lease_ms)?.unwrap_or_default(),
        total_timeout_ms: terms::span("total_timeout_ms", task.total_timeout_ms)?,
        attempt_timeout_ms: terms::some_span("attempt_timeout_ms", task.attempt_timeout_ms)?,
        key_ttl_ms: terms::key_ttl(task.key_ttl_ms, task.key.is_some())?,
        key: task.key.as_deref().map(TaskKey::parse).transpose()?,
        tags: terms::tags(task.tags)?,
        traceparent: task.traceparent.as_deref().map(TraceParent::parse).transpose()?,
        seal: None,
    }
    .sealed())
}

/// Tasks to submit together. A refusal says which task it is about.
pub(crate) fn new_tasks(tasks: impl ExactSizeIterator<Item = api::NewTask>) -> Parsed<SubmitTasks> {
    let mut parsed = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.enumerate() {
        parsed
            .push(new_task(task).map_err(|problem| problem.within(&format!("tasks[{index}]: ")))?);
    }
    Ok(SubmitTasks { tasks: parsed })
}

/// Adds what the headers of a submit say: `Idempotency-Key` means `key`, and `traceparent` counts if
/// the body has none. A malformed `traceparent`, or more than one, counts as none, as the W3C
/// Recommendation says.
pub(crate) fn with_headers(mut task: api::NewTask, headers: &HeaderMap) -> Parsed<api::NewTask> {
    let mut keys = headers.get_all("idempotency-key").iter();
    match (keys.next(), keys.next()) {
        (None, _) => {}
        (Some(_), Some(_)) => {
            let detail = "the header Idempotency-Key comes more than once; keep one";
            return Err(Problem::invalid(detail));
        }
        (Some(key), None) => {
            let key = key.to_str().map_err(|_| {
                Problem::invalid("the header Idempotency-Key is not text; give it as `key`")
            })?;
            if let Some(other) = task.key.as_ref().filter(|other| *other != key) {
                let (other, key) = (Echo(other), Echo(key));
                return Err(Problem::invalid(format!(
                    "key is {other} and the header Idempotency-Key is {key}; keep one"
                )));
            }
            task.key = Some(key.to_owned());
        }
    }
    let mut parents = headers.get_all("traceparent").iter();
    if let (None, Some(parent), None) = (&task.traceparent, parents.next(), parents.next()) {
        let parent = parent.to_str().ok().filter(|text| TraceParent::parse(text).is_ok());
        task.traceparent = parent.map(str::to_owned);
    }
    Ok(task)
}

/// Which tasks to list.
pub(crate) fn filter(filter: api::TaskFilter) -> Parsed<TaskFilter> {
    let state = |given: api::TaskState| {
        let known = TaskState::ALL.into_iter().find(|state| state.as_str() == given.as_str());
        known.ok_or_else(|| {
            let names = TaskState::ALL.map(TaskState::as_str).join(", ");
            let given = Echo(given.as_str());
            Problem::invalid(format!("state is {given}; it must be one of {names}"))
        })
    };
    Ok(TaskFilter {
        queue: filter.queue.as_deref().map(QueueName::parse).transpose()?,
        state: filter.state.map(state).transpose()?,
        name: filter.name.as_deref().map(TaskName::parse).transpose()?,
        tag: list::tag(filter.tag.as_deref())?,
        worker: filter.worker.as_deref().map(WorkerName::parse).transpose()?,
        run: filter.run.map(RunId),
        code: filter.code,
        retrying: filter.retrying,
        before: list::cursor(filter.cursor.as_deref())?.map(TaskId),
        limit: list::limit(filter.limit)?,
    })
}

/// A task to cancel.
pub(crate) fn cancel(task_id: u64, cancel: &api::CancelTask) -> Parsed<CancelTask> {
    let grace_ms = terms::span("grace_ms", cancel.grace_ms)?;
    Ok(CancelTask { task_id: TaskId(task_id), grace_ms })
}

/// A worker's request for leases, and how long it waits.
pub(crate) fn lease(lease: &api::LeaseRequest) -> Parsed<(LeaseTasks, u64)> {
    let request = LeaseTasks {
        worker: WorkerName::parse(&lease.worker)?,
        queues: terms::queues(&lease.queues)?,
        tasks_max: terms::tasks_max(lease.max)?,
        lease_ms: terms::lease_ms(lease.lease_ms)?,
    };
    Ok((request, terms::wait(lease.wait_ms)?))
}

/// What a worker says about itself. The server keeps it in memory, so all of it has a limit.
pub(crate) fn registration(id: &str, registration: api::Registration) -> Parsed<Registration> {
    let api::Registration { name, queues, slots, labels, draining } = registration;
    let count = queues.len();
    if count > LEASE_QUEUES_MAX {
        let detail = format!("queues has {count} names; at most {LEASE_QUEUES_MAX} are allowed");
        return Err(Problem::invalid(detail));
    }
    Ok(Registration {
        worker: WorkerName::parse(id)?,
        display_name: name.as_deref().map(TagValue::parse).transpose()?,
        queues: terms::queues(&queues)?,
        slots: slots.unwrap_or(1),
        labels: terms::tags(labels)?,
        draining,
    })
}

/// Changes of a queue's settings.
pub(crate) fn configure(queue: &str, settings: api::QueueSettings) -> Parsed<ConfigureQueue> {
    let api::QueueSettings { retention_ms, paused_until, dead_letter_queue, max_waiting } =
        settings;
    Ok(ConfigureQueue {
        queue: QueueName::parse(queue)?,
        change: SettingsChange {
            retention_ms: setting(retention_ms, |ms| Ok(SpanMs::parse("retention_ms", ms)?))?,
            paused_until: setting(paused_until, |at| terms::time("paused_until", at))?,
            dead_letter_queue: setting(dead_letter_queue, |name| Ok(QueueName::parse(&name)?))?,
            max_waiting: setting(max_waiting, |count| Ok(Count::parse("max_waiting", count)?))?,
        },
    })
}

fn setting<T, U>(
    setting: api::Setting<T>,
    parse: impl FnOnce(T) -> Parsed<U>,
) -> Parsed<Setting<U>> {
    Ok(match setting {
        api::Setting::Keep => Setting::Keep,
        api::Setting::Clear => Setting::Clear,
        api::Setting::Set(value) => Setting::Set(parse(value)?),
    })
}

/// A queue to pause.
pub(crate) fn pause(queue: &str, pause: &api::PauseQueue) -> Parsed<PauseQueue> {
    let queue = QueueName::parse(queue)?;
    let until = terms::maybe_time("until", pause.until)?;
    Ok(PauseQueue { queue, end: terms::pause_end(until, pause.for_ms)? })
}
