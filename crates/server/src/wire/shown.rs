//! Things as they are shown over HTTP: field names of the contract.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use tenure_coordinator::{Grant, ProgressInfo, Step, TaskInfo, TaskOfRun, WorkerInfo};
use tenure_core::state::{Phase, QueueView};
use tenure_record::name::QueueName;
use tenure_record::progress::{Fraction, ProgressMessage};
use tenure_record::state::TaskState;
use tenure_record::terms::Budget;
use tenure_record::time::Timestamp;
use utoipa::ToSchema;

use crate::fetch::bytes_of;
use crate::json::Verbatim;
use crate::observe::explain::{Explanation, Reason};

/// A moment as people and programs read it.
#[must_use]
pub(crate) fn moment(at: Timestamp) -> String {
    crate::moment::show(at.0)
}

/// A task as it is shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownTask<'a> {
    id: u64,
    queue: &'a str,
    /// What kind of work it is.
    name: Option<&'a str>,
    state: &'static str,
    /// What a WAITING task waits for: `ready` (a worker), `delayed` (its time), `retrying` (its
    /// backoff), `paused` (its queue or its run). Null in other states.
    phase: Option<&'static str>,
    priority: i8,
    #[schema(value_type = serde_json::Value)]
    payload: Verbatim<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_encoding: Option<&'static str>,
    #[schema(value_type = serde_json::Value)]
    output: Verbatim<'a>,
    lease_ms: u32,
    max_failures: Option<u16>,
    max_expiries: Option<u16>,
    max_attempts: Option<u16>,
    total_timeout_ms: Option<u64>,
    attempt_timeout_ms: Option<u64>,
    error: Option<ShownError<'a>>,
    attempt: u32,
    failures: u16,
    expiries: u16,
    cancel_requested: bool,
    lease: Option<ShownLease<'a>>,
    created_at: String,
    run_at: Option<String>,
    /// When it may run next, while it waits for that moment.
    next_attempt_at: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
    key: Option<&'a str>,
    tags: BTreeMap<&'a str, &'a str>,
    run: Option<ShownTaskOfRun<'a>>,
    /// Its copy in a dead letter queue, if it ended FAILED or DEAD and its queue has one.
    dead_letter: Option<ShownLink>,
    /// The task that it is the copy of, in a dead letter queue.
    dead_letter_of: Option<ShownLink>,
    /// How far its worker says that it is, while an attempt is under way. Kept in memory only.
    progress: Option<ShownProgress<'a>>,
    /// Where its next attempt goes on, as a worker handed it in.
    #[schema(value_type = serde_json::Value)]
    checkpoint: Verbatim<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint_encoding: Option<&'static str>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ShownProgress<'a> {
    fraction: Option<f64>,
    message: Option<&'a str>,
    at: String,
}

impl<'a> ShownProgress<'a> {
    fn of(progress: &'a ProgressInfo) -> Self {
        Self {
            fraction: progress.fraction.map(Fraction::get),
            message: progress.message.as_ref().map(ProgressMessage::as_str),
            at: moment(progress.at),
        }
    }
}

fn checkpoint_of(bytes: Option<&std::sync::Arc<[u8]>>) -> Verbatim<'_> {
    Verbatim(Cow::Borrowed(bytes.map(|bytes| &**bytes).unwrap_or_default()))
}

/// What a task of a run is for.
#[derive(Debug, Serialize, ToSchema)]
struct ShownTaskOfRun<'a> {
    run_id: u64,
    node: &'a str,
    token: u32,
}

impl<'a> ShownTaskOfRun<'a> {
    fn of(run: &'a TaskOfRun) -> Self {
        Self { run_id: run.run_id.0, node: &run.node, token: run.token.0 }
    }
}

/// Another task, which may be purged.
#[derive(Debug, Serialize, ToSchema)]
struct ShownLink {
    task_id: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct ShownError<'a> {
    code: &'a str,
    message: &'a str,
}

#[derive(Debug, Serialize, ToSchema)]
struct ShownLease<'a> {
    lease_id: u64,
    worker: &'a str,
    expires_at: String,
}

pub(crate) fn tags_of(tags: &[(std::sync::Arc<str>, std::sync::Arc<str>)]) -> BTreeMap<&str, &str> {
    tags.iter().map(|(key, value)| (&**key, &**value)).collect()
}

impl<'a> ShownTask<'a> {
    /// What is shown of a task.
    #[must_use]
    pub(crate) fn of(task: &'a TaskInfo) -> Self {
        let payload = Verbatim(bytes_of(&task.payload));
        let number = |budget: Option<Budget>| budget.map(Budget::get);
        let checkpoint = checkpoint_of(task.checkpoint.as_ref());
        let error = |error: &'a tenure_core::state::TaskError| ShownError {
            code: &error.code,
            message: &error.message,
        };
        Self {
            id: task.id.0,
            queue: &task.queue,
            name: task.name.as_deref(),
            state: task.state.as_str(),
            phase: task.phase.map(Phase::as_str),
            priority: task.priority.get(),
            payload_encoding: payload.is_binary().then_some("base64"),
            payload,
            output: Verbatim(bytes_of(&task.output)),
            lease_ms: task.lease_ms,
            max_failures: number(task.budgets.max_failures),
            max_expiries: number(task.budgets.max_expiries),
            max_attempts: number(task.budgets.max_attempts),
            total_timeout_ms: task.total_timeout_ms,
            attempt_timeout_ms: task.attempt_timeout_ms,
            error: task.errors.last().filter(|_| task.state != TaskState::Completed).map(error),
            attempt: task.attempt,
            failures: task.failures,
            expiries: task.expiries,
            cancel_requested: task.cancel_requested,
            lease: task.lease.as_ref().map(|lease| ShownLease {
                lease_id: lease.lease_id.0,
                worker: &lease.worker,
                expires_at: moment(lease.expires_at),
            }),
            created_at: moment(task.created_at),
            run_at: task.run_at.map(moment),
            next_attempt_at: task.next_attempt_at.map(moment),
            started_at: task.started_at.map(moment),
            finished_at: task.finished_at.map(moment),
            key: task.key.as_deref(),
            tags: tags_of(&task.tags),
            run: task.run.as_ref().map(ShownTaskOfRun::of),
            dead_letter: task.dead_letter.map(|id| ShownLink { task_id: id.0 }),
            dead_letter_of: task.dead_letter_of.map(|id| ShownLink { task_id: id.0 }),
            progress: task.progress.as_ref().map(ShownProgress::of),
            checkpoint_encoding: checkpoint.is_binary().then_some("base64"),
            checkpoint,
        }
    }
}

/// A lease as its worker sees it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownGrant<'a> {
    task_id: u64,
    lease_id: u64,
    attempt: u32,
    queue: &'a str,
    /// What kind of work it is.
    name: Option<&'a str>,
    #[schema(value_type = serde_json::Value)]
    payload: Verbatim<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_encoding: Option<&'static str>,
    tags: BTreeMap<&'a str, &'a str>,
    /// Where the last attempt left off, if it said so.
    #[schema(value_type = serde_json::Value)]
    checkpoint: Verbatim<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint_encoding: Option<&'static str>,
    expires_at: String,
    /// What it is for, if a run made it.
    run: Option<ShownTaskOfRun<'a>>,
    /// The W3C trace context of the task's submit.
    traceparent: Option<&'a str>,
}

impl<'a> ShownGrant<'a> {
    /// What a worker is shown.
    #[must_use]
    pub(crate) fn of(grant: &'a Grant) -> Self {
        let payload = Verbatim(bytes_of(&grant.payload));
        let checkpoint = checkpoint_of(grant.checkpoint.as_ref());
        Self {
            task_id: grant.task_id.0,
            lease_id: grant.lease_id.0,
            attempt: grant.attempt,
            queue: &grant.queue,
            name: grant.name.as_deref(),
            payload_encoding: payload.is_binary().then_some("base64"),
            payload,
            tags: tags_of(&grant.tags),
            checkpoint_encoding: checkpoint.is_binary().then_some("base64"),
            checkpoint,
            expires_at: moment(grant.wall_expires_at),
            run: grant.run.as_ref().map(ShownTaskOfRun::of),
            traceparent: grant.traceparent.as_deref(),
        }
    }
}

/// A step of a task's history.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownStep<'a> {
    lsn: u64,
    at: String,
    event: &'a str,
    from: Option<&'static str>,
    to: &'static str,
    attempt: u32,
    worker: Option<&'a str>,
    lease_id: Option<u64>,
    code: Option<&'a str>,
    reason: Option<&'a str>,
}

impl<'a> ShownStep<'a> {
    /// What is shown of a step.
    #[must_use]
    pub(crate) fn of(step: &'a Step) -> Self {
        Self {
            lsn: step.lsn.0,
            at: moment(step.at),
            event: step.event,
            from: step.from.map(TaskState::as_str),
            to: step.to.as_str(),
            attempt: step.attempt,
            worker: step.worker.as_deref(),
            lease_id: step.lease_id.map(|lease| lease.0),
            code: step.code.as_deref(),
            reason: step.reason.as_deref(),
        }
    }
}

/// Why a task is not done yet.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownExplanation<'a> {
    state: &'static str,
    /// 1 for the next in line.
    position: Option<u64>,
    reasons: Vec<ShownReason<'a>>,
    earliest_start_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ShownReason<'a> {
    code: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<&'a str>,
}

impl<'a> ShownExplanation<'a> {
    /// What is shown of an explanation.
    #[must_use]
    pub(crate) fn of(explanation: &'a Explanation) -> Self {
        let reason = |reason: &'a Reason| ShownReason {
            code: reason.code,
            message: &reason.message,
            until: reason.until.map(moment),
            worker: reason.worker.as_deref(),
        };
        Self {
            state: explanation.state.as_str(),
            position: explanation.position,
            reasons: explanation.reasons.iter().map(reason).collect(),
            earliest_start_at: explanation.earliest_start_at.map(moment),
        }
    }
}

/// A queue as it is shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownQueue<'a> {
    name: &'a str,
    depth: u64,
    leased: u64,
    completed: u64,
    failed: u64,
    dead: u64,
    canceled: u64,
    /// No leases are given now.
    paused: bool,
    /// While it is paused: when it opens by itself, if it does.
    paused_until: Option<String>,
    retention_ms: Option<u64>,
    /// The queue that gets a copy of each task that ends FAILED or DEAD.
    dead_letter_queue: Option<&'a str>,
    oldest_waiting_at: Option<String>,
}

impl<'a> ShownQueue<'a> {
    /// What is shown of a queue.
    #[must_use]
    pub(crate) fn of(queue: &'a QueueView) -> Self {
        Self {
            name: &queue.name,
            depth: queue.counts.of(TaskState::Waiting),
            leased: queue.counts.of(TaskState::Leased),
            completed: queue.counts.of(TaskState::Completed),
            failed: queue.counts.of(TaskState::Failed),
            dead: queue.counts.of(TaskState::Dead),
            canceled: queue.counts.of(TaskState::Canceled),
            paused: !queue.eligibility.is_open(),
            paused_until: queue.eligibility.opens_at().map(moment),
            retention_ms: queue.settings.retention_ms,
            dead_letter_queue: queue.settings.dead_letter_queue.as_deref(),
            oldest_waiting_at: queue.oldest_waiting_at.map(moment),
        }
    }
}

/// A worker as it is shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownWorker<'a> {
    id: &'a str,
    name: &'a str,
    connected: bool,
    dead: bool,
    last_seen_at: String,
    active_leases: u32,
    queues: Vec<&'a str>,
    slots: Option<u32>,
    labels: BTreeMap<&'a str, &'a str>,
    draining: bool,
}

impl<'a> ShownWorker<'a> {
    /// What is shown of a worker.
    #[must_use]
    pub(crate) fn of(worker: &'a WorkerInfo) -> Self {
        let said = worker.registration.as_ref();
        let queues = said.map(|said| said.queues.iter().map(QueueName::as_str).collect());
        let labels = said.map(|said| said.labels.as_slice());
        Self {
            id: &worker.name,
            name: said
                .and_then(|said| said.display_name.as_ref())
                .map_or(&worker.name, |n| n.as_str()),
            connected: !worker.is_dead,
            dead: worker.is_dead,
            last_seen_at: moment(worker.seen_at),
            active_leases: worker.leases,
            queues: queues.unwrap_or_default(),
            slots: said.map(|said| said.slots),
            labels: labels.into_iter().flatten().map(|(k, v)| (k.as_str(), v.as_str())).collect(),
            draining: said.is_some_and(|said| said.draining),
        }
    }
}
