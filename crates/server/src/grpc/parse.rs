//! Messages as they come over gRPC, parsed once into what the rules know.

use tenure_code::Echo;
use tenure_coordinator::{NameRange, Registration, TaskFilter};
use tenure_core::command::{
    CancelTask, CompleteTask, ConfigureQueue, FailTask, Heartbeat, LeaseRef, LeaseTasks, NewTask,
    PauseQueue, ReleaseTask, ReportTasks, Setting, SettingsChange, SubmitTasks,
};
use tenure_core::limits::LEASE_QUEUES_MAX;
use tenure_proto::v1;
use tenure_record::artifact::{ArtifactName, Sha256};
use tenure_record::id::{LeaseId, RunId, TaskId};
use tenure_record::name::{FailureCode, QueueName, Reason, TaskKey, TaskName, WorkerName};
use tenure_record::progress::Progress;
use tenure_record::state::TaskState;
use tenure_record::terms::{Backoff, BackoffKind, Budgets, LeaseMs, Priority, SpanMs};
use tenure_record::trace::TraceParent;

use crate::limits::{DISCONNECT_GRACE_MS_DEFAULT, DISCONNECT_GRACE_MS_MAX};
use crate::moment;
use crate::problem::Problem;
use crate::wire::artifact::{self, Content, Handed};
use crate::wire::pairs::Pairs;
use crate::wire::{list as lists, terms};

type Parsed<T> = Result<T, Problem>;

/// A task to submit.
pub(crate) fn new_task(task: v1::NewTask) -> Parsed<NewTask> {
    let delay_ms = task.delay_ms.map(i128::from);
    let run_at = task.run_at.map(|ms| moment::checked("run_at", ms)).transpose()?;
    let queue = if task.queue.is_empty() { "default" } else { &task.queue };
    Ok(NewTask {
        queue: QueueName::parse(queue)?,
        payload: terms::payload("payload", task.payload)?,
        name: task.name.as_deref().map(TaskName::parse).transpose()?,
        priority: Priority::parse(task.priority.into())?,
        start: terms::start(delay_ms, run_at)?,
        budgets: Budgets::parse(
            task.max_failures.map(i64::from),
            task.max_expiries.map(i64::from),
            task.max_attempts.map(i64::from),
        )?,
        backoff: task.backoff.map(backoff).transpose()?,
        lease_ms: lease_ms(task.lease_ms)?.unwrap_or_default(),
        total_timeout_ms: task
            .total_timeout_ms
            .map(|ms| span("total_timeout_ms", ms))
            .transpose()?,
        attempt_timeout_ms: terms::some_span("attempt_timeout_ms", task.attempt_timeout_ms)?,
        key_ttl_ms: terms::key_ttl(task.key_ttl_ms, task.key.is_some())?,
        key: task.key.as_deref().map(TaskKey::parse).transpose()?,
        tags: terms::tags("tags", task.tags)?,
        traceparent: task.traceparent.as_deref().map(TraceParent::parse).transpose()?,
        seal: None,
    }
    .sealed())
}

/// Tasks to submit together.
pub(crate) fn batch(tasks: Vec<v1::NewTask>) -> Parsed<SubmitTasks> {
    let mut parsed = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.into_iter().enumerate() {
        parsed.push(new_task(task).map_err(|problem| Problem {
            detail: format!("tasks[{index}]: {}", problem.detail),
            ..problem
        })?);
    }
    Ok(SubmitTasks { tasks: parsed })
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
    Ok(SpanMs::parse(field, ms)?)
}

fn lease_ms(ms: Option<u32>) -> Parsed<Option<LeaseMs>> {
    Ok(ms.map(|ms| LeaseMs::parse(ms.into())).transpose()?)
}

/// Which tasks to list.
pub(crate) fn filter(list: &v1::ListTasksRequest) -> Parsed<TaskFilter> {
    Ok(TaskFilter {
        queue: list.queue.as_deref().map(QueueName::parse).transpose()?,
        state: state(list.state)?,
        name: list.name.as_deref().map(TaskName::parse).transpose()?,
        tag: lists::tag(list.tag.as_deref())?,
        worker: list.worker.as_deref().map(WorkerName::parse).transpose()?,
        run: list.run_id.map(RunId),
        code: list.code.clone(),
        retrying: list.retrying,
        before: lists::cursor(given(&list.cursor))?.map(TaskId),
        limit: lists::limit(list.limit.map(|limit| limit as usize))?,
    })
}

/// A text that is empty was not given.
pub(super) fn given(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn state(number: i32) -> Parsed<Option<TaskState>> {
    Ok(match v1::TaskState::try_from(number) {
        Ok(v1::TaskState::Unspecified) => None,
        Ok(v1::TaskState::Waiting) => Some(TaskState::Waiting),
        Ok(v1::TaskState::Leased) => Some(TaskState::Leased),
        Ok(v1::TaskState::Completed) => Some(TaskState::Completed),
        Ok(v1::TaskState::Failed) => Some(TaskState::Failed),
        Ok(v1::TaskState::Dead) => Some(TaskState::Dead),
        Ok(v1::TaskState::Canceled) => Some(TaskState::Canceled),
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
    terms::wait(Some(wait_ms.into()))
}

/// A lease as reports name it.
pub(crate) fn lease_ref(lease: &v1::LeaseRef) -> LeaseRef {
    lease_of(lease.task_id, lease.lease_id)
}

/// The same, from its two numbers.
pub(crate) fn lease_of(task_id: u64, lease_id: u64) -> LeaseRef {
    LeaseRef { task_id: TaskId(task_id), lease_id: LeaseId(lease_id) }
}

/// Done; and the files whose bytes are still to be kept.
pub(crate) fn complete(report: v1::CompleteReport) -> Parsed<(CompleteTask, Vec<Handed>)> {
    let lease = lease_of(report.task_id, report.lease_id);
    let output = terms::payload("output", report.output)?;
    let handed = report.artifacts.into_iter().map(handed).collect::<Result<_, _>>()?;
    let handed = artifact::check(handed)?;
    let worker = report.worker.as_deref().map(WorkerName::parse).transpose()?;
    Ok((CompleteTask { lease, output, artifacts: Vec::new(), worker }, handed))
}

fn handed(artifact: v1::NewArtifact) -> Parsed<Handed> {
    let name = ArtifactName::parse(&artifact.name)?;
    let content = match artifact.content {
        Some(v1::new_artifact::Content::Data(data)) => Content::Data(data),
        Some(v1::new_artifact::Content::Blob(blob)) => Content::Blob(Sha256::parse(&blob)?),
        None => {
            return Err(Problem::invalid(format!(
                "the artifact {} needs its bytes: give `data`, or `blob` with the SHA-256 of an \
                 uploaded file",
                Echo(name.as_str())
            )));
        }
    };
    let media_type = artifact::media_type(artifact.media_type.as_deref())?;
    Ok(Handed { name, media_type, content })
}

/// Still at it.
pub(crate) fn heartbeat(report: &v1::HeartbeatReport) -> Parsed<Heartbeat> {
    let progress = Progress::parse(report.progress, report.message.as_deref())?;
    Ok(Heartbeat {
        lease: lease_of(report.task_id, report.lease_id),
        lease_ms: report.lease_ms.map(|ms| LeaseMs::parse(ms.into())).transpose()?,
        checkpoint: terms::checkpoint(&report.checkpoint)?,
        progress: progress.map(Box::new),
    })
}

/// Given back.
pub(crate) fn release(report: &v1::ReleaseReport) -> Parsed<ReleaseTask> {
    Ok(ReleaseTask {
        lease: lease_of(report.task_id, report.lease_id),
        delay_ms: SpanMs::parse("delay_ms", report.delay_ms.unwrap_or(0))?,
        priority: report.priority.map(|priority| Priority::parse(priority.into())).transpose()?,
        checkpoint: terms::checkpoint(&report.checkpoint)?,
    })
}

/// Failed.
pub(crate) fn fail(report: &v1::FailReport) -> Parsed<FailTask> {
    Ok(FailTask {
        lease: lease_of(report.task_id, report.lease_id),
        reason: Reason::keep_end(&report.reason),
        code: report.code.as_deref().map(FailureCode::parse).transpose()?,
        retry: terms::retry(report.retryable, report.retry_after_ms.map(i128::from))?,
        checkpoint: terms::checkpoint(&report.checkpoint)?,
        worker: report.worker.as_deref().map(WorkerName::parse).transpose()?,
    })
}

/// Many reports at once; and for each completion the files whose bytes are still to be kept. `worker`
/// is the one that a stream belongs to, for reports that do not name theirs.
pub(crate) fn reports(
    reports: v1::Reports,
    worker: Option<&WorkerName>,
) -> Parsed<(ReportTasks, Vec<Vec<Handed>>)> {
    let completes: Vec<_> =
        reports.completes.into_iter().map(complete).collect::<Result<_, _>>()?;
    let (completes, handed) = completes.into_iter().unzip();
    let mut parsed = ReportTasks {
        heartbeats: reports.heartbeats.iter().map(heartbeat).collect::<Result<_, _>>()?,
        completes,
        fails: reports.fails.iter().map(fail).collect::<Result<_, _>>()?,
        releases: reports.releases.iter().map(release).collect::<Result<_, _>>()?,
        ..ReportTasks::default()
    };
    let completes = parsed.completes.iter_mut().map(|report| &mut report.worker);
    let fails = parsed.fails.iter_mut().map(|report| &mut report.worker);
    for named in completes.chain(fails).filter(|named| named.is_none()) {
        *named = worker.cloned();
    }
    Ok((parsed, handed))
}

/// What a worker says about itself.
pub(crate) fn registration(register: v1::RegisterRequest) -> Parsed<Registration> {
    terms::Said {
        worker: register.id,
        display_name: register.name,
        queues: register.queues,
        slots: register.slots,
        labels: Pairs(register.labels.into_iter().collect()),
        draining: register.draining,
    }
    .parse()
}

/// New settings of a queue.
pub(crate) fn configure(configure: &v1::ConfigureQueueRequest) -> Parsed<ConfigureQueue> {
    const SETTINGS: [&str; 3] = ["retention_ms", "paused_until", "dead_letter_queue"];
    if let Some(name) = configure.clear.iter().find(|name| !SETTINGS.contains(&name.as_str())) {
        let detail = format!("clear has {}; there is no such setting", Echo(name));
        return Err(Problem::invalid(detail));
    }
    let retention_ms = configure.retention_ms.map(|ms| span("retention_ms", ms)).transpose()?;
    let dead_letters = configure.dead_letter_queue.as_deref().map(QueueName::parse).transpose()?;
    Ok(ConfigureQueue {
        queue: QueueName::parse(&configure.queue)?,
        change: SettingsChange {
            retention_ms: setting("retention_ms", retention_ms, &configure.clear)?,
            paused_until: setting(
                "paused_until",
                configure.paused_until.map(|ms| moment::checked("paused_until", ms)).transpose()?,
                &configure.clear,
            )?,
            dead_letter_queue: setting("dead_letter_queue", dead_letters, &configure.clear)?,
            ..SettingsChange::default()
        },
    })
}

/// One setting: given, in the list of those to clear, or neither.
fn setting<T>(name: &str, given: Option<T>, clear: &[String]) -> Parsed<Setting<T>> {
    match (given, clear.iter().any(|there| there == name)) {
        (Some(_), true) => {
            Err(Problem::invalid(format!("{name} is given and is in clear too; keep one")))
        }
        (Some(given), false) => Ok(Setting::Set(given)),
        (None, true) => Ok(Setting::Clear),
        (None, false) => Ok(Setting::Keep),
    }
}

/// A queue to pause.
pub(crate) fn pause(pause: &v1::PauseQueueRequest) -> Parsed<PauseQueue> {
    let until = pause.until.map(|ms| moment::checked("until", ms)).transpose()?;
    let end = terms::pause_end(until, pause.for_ms.map(i128::from))?;
    Ok(PauseQueue { queue: QueueName::parse(&pause.queue)?, end })
}

/// A page of a list that goes by name.
pub(crate) fn names(limit: Option<u32>, cursor: &str) -> Parsed<NameRange> {
    let limit = lists::limit(limit.map(|limit| limit as usize))?;
    Ok(NameRange { after: given(cursor).map(Into::into), limit })
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
        id: hello.worker,
        queues: hello.queues,
        slots: Some(hello.slots),
        labels: hello.labels,
        draining: false,
        name: None,
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
