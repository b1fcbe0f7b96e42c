//! Things as programs see them: the same JSON as over HTTP, field by field.

mod link;
mod progress;

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tenure_sdk::{Event, Explanation, History, Queue, ServerStatus, TaskInfo, WorkerInfo, wire};

use self::link::ShownLink;
use self::progress::ShownProgress;
use crate::ui::base64::base64;
use crate::ui::moment::rfc_3339;
use crate::ui::style::{run_state_name, state_name};
use crate::ui::{output::Lines, plain};

/// Prints something as one line of JSON.
pub(crate) fn print(out: &mut Lines, shown: &impl Serialize) {
    out.print(text(shown));
}

/// Something as JSON text.
pub(crate) fn text(shown: &impl Serialize) -> String {
    // What is shown has names for keys and finite numbers, which always can be written.
    plain::json(&serde_json::to_string(shown).unwrap_or_default())
}

/// Bytes that are JSON text as a rule: shown as they are, or as base64 if they are not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verbatim<'a>(pub(crate) &'a [u8]);

impl Verbatim<'_> {
    fn is_binary(self) -> bool {
        !self.0.is_empty() && serde_json::from_slice::<&RawValue>(self.0).is_err()
    }
}

impl Serialize for Verbatim<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_slice::<&RawValue>(self.0) {
            Ok(json) => json.serialize(serializer),
            Err(_) if self.0.is_empty() => serializer.serialize_unit(),
            Err(_) => serializer.serialize_str(&base64(self.0)),
        }
    }
}

/// A list as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    pub(crate) next_cursor: Option<String>,
}

/// A task.
#[derive(Debug, Serialize)]
pub(crate) struct ShownTask<'a> {
    id: u64,
    queue: &'a str,
    name: Option<&'a str>,
    state: Option<&'static str>,
    phase: Option<&'a str>,
    priority: i32,
    payload: Verbatim<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_encoding: Option<&'static str>,
    output: Verbatim<'a>,
    lease_ms: u32,
    max_failures: Option<u32>,
    max_expiries: Option<u32>,
    max_attempts: Option<u32>,
    total_timeout_ms: Option<u64>,
    attempt_timeout_ms: Option<u64>,
    error: Option<ShownError<'a>>,
    attempt: u32,
    failures: u32,
    expiries: u32,
    cancel_requested: bool,
    lease: Option<ShownLease<'a>>,
    created_at: String,
    run_at: Option<String>,
    next_attempt_at: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
    key: Option<&'a str>,
    tags: &'a BTreeMap<String, String>,
    run: Option<ShownTaskOfRun<'a>>,
    dead_letter: Option<ShownLink>,
    dead_letter_of: Option<ShownLink>,
    progress: Option<ShownProgress<'a>>,
    checkpoint: Verbatim<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint_encoding: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct ShownTaskOfRun<'a> {
    run_id: u64,
    node: &'a str,
    token: u32,
}

#[derive(Debug, Serialize)]
struct ShownError<'a> {
    code: &'a str,
    message: &'a str,
}

#[derive(Debug, Serialize)]
struct ShownLease<'a> {
    lease_id: u64,
    worker: &'a str,
    expires_at: String,
}

impl<'a> ShownTask<'a> {
    pub(crate) fn of(task: &'a TaskInfo) -> Self {
        let payload = Verbatim(&task.payload);
        let checkpoint = Verbatim(&task.checkpoint);
        let error =
            |error: &'a wire::TaskError| ShownError { code: &error.code, message: &error.message };
        Self {
            id: task.id,
            queue: &task.queue,
            name: task.name.as_deref(),
            state: state_name(task.state),
            phase: task.phase.as_deref(),
            priority: task.priority,
            payload_encoding: payload.is_binary().then_some("base64"),
            payload,
            output: Verbatim(&task.output),
            lease_ms: task.lease_ms,
            max_failures: task.max_failures,
            max_expiries: task.max_expiries,
            max_attempts: task.max_attempts,
            total_timeout_ms: task.total_timeout_ms,
            attempt_timeout_ms: task.attempt_timeout_ms,
            error: task.error.as_ref().map(error),
            attempt: task.attempt,
            failures: task.failures,
            expiries: task.expiries,
            cancel_requested: task.cancel_requested,
            lease: task.lease.as_ref().map(|lease| ShownLease {
                lease_id: lease.lease_id,
                worker: &lease.worker,
                expires_at: rfc_3339(lease.expires_at),
            }),
            created_at: rfc_3339(task.created_at),
            run_at: task.run_at.map(rfc_3339),
            next_attempt_at: task.next_attempt_at.map(rfc_3339),
            started_at: task.started_at.map(rfc_3339),
            finished_at: task.finished_at.map(rfc_3339),
            key: task.key.as_deref(),
            tags: &task.tags,
            run: task.run.as_ref().map(|run| ShownTaskOfRun {
                run_id: run.run_id,
                node: &run.node,
                token: run.token,
            }),
            dead_letter: task.dead_letter.as_ref().map(ShownLink::of),
            dead_letter_of: task.dead_letter_of.as_ref().map(ShownLink::of),
            progress: task.progress.as_ref().map(ShownProgress::of),
            checkpoint_encoding: checkpoint.is_binary().then_some("base64"),
            checkpoint,
        }
    }
}

/// Why a task is not done yet.
#[derive(Debug, Serialize)]
pub(crate) struct ShownExplanation<'a> {
    state: Option<&'static str>,
    position: Option<u64>,
    reasons: Vec<ShownReason<'a>>,
    earliest_start_at: Option<String>,
}

#[derive(Debug, Serialize)]
struct ShownReason<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<&'a str>,
}

impl<'a> ShownExplanation<'a> {
    pub(crate) fn of(explanation: &'a Explanation) -> Self {
        let reason = |reason: &'a wire::Reason| ShownReason {
            code: &reason.code,
            message: &reason.message,
            until: reason.until.map(rfc_3339),
            worker: reason.worker.as_deref(),
        };
        Self {
            state: state_name(explanation.state),
            position: explanation.position,
            reasons: explanation.reasons.iter().map(reason).collect(),
            earliest_start_at: explanation.earliest_start_at.map(rfc_3339),
        }
    }
}

/// What happened to a task.
#[derive(Debug, Serialize)]
pub(crate) struct ShownHistory<'a> {
    items: Vec<ShownStep<'a>>,
    /// The pages are put together, so there is none to go on with.
    next_cursor: Option<&'static str>,
    truncated_before: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ShownStep<'a> {
    lsn: u64,
    at: String,
    event: &'a str,
    from: Option<&'static str>,
    to: Option<&'static str>,
    attempt: u32,
    worker: Option<&'a str>,
    lease_id: Option<u64>,
    code: Option<&'a str>,
    reason: Option<&'a str>,
}

impl<'a> ShownHistory<'a> {
    pub(crate) fn of(history: &'a History) -> Self {
        let step = |step: &'a wire::Step| ShownStep {
            lsn: step.lsn,
            at: rfc_3339(step.at),
            event: &step.event,
            from: state_name(step.from),
            to: state_name(step.to),
            attempt: step.attempt,
            worker: step.worker.as_deref(),
            lease_id: step.lease_id,
            code: step.code.as_deref(),
            reason: step.reason.as_deref(),
        };
        let items = history.steps.iter().map(step).collect();
        Self { items, next_cursor: None, truncated_before: history.truncated_before }
    }
}

/// A transition.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ShownEvent<'a> {
    Task(ShownTaskEvent<'a>),
    Run(ShownRunEvent<'a>),
}

#[derive(Debug, Serialize)]
pub(crate) struct ShownTaskEvent<'a> {
    lsn: u64,
    at: String,
    event: &'a str,
    task_id: u64,
    queue: &'a str,
    from: Option<&'static str>,
    to: Option<&'static str>,
    worker: Option<&'a str>,
    lease_id: Option<u64>,
    attempt: u32,
    priority: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_of: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ShownRunEvent<'a> {
    lsn: u64,
    at: String,
    event: &'a str,
    run_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_run_id: Option<u64>,
    to: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
}

impl<'a> ShownEvent<'a> {
    pub(crate) fn of(event: &'a Event) -> Self {
        match event.task_id {
            0 => Self::Run(ShownRunEvent::of(event)),
            _ => Self::Task(ShownTaskEvent::of(event)),
        }
    }
}

impl<'a> ShownTaskEvent<'a> {
    fn of(event: &'a Event) -> Self {
        Self {
            lsn: event.lsn,
            at: rfc_3339(event.at),
            event: &event.event,
            task_id: event.task_id,
            queue: &event.queue,
            from: state_name(event.from),
            to: state_name(event.to),
            worker: event.worker.as_deref(),
            lease_id: event.lease_id,
            attempt: event.attempt,
            priority: event.priority,
            code: event.code.as_deref(),
            reason: event.reason.as_deref(),
            run_id: event.run_id,
            dead_letter_of: event.dead_letter_of,
        }
    }
}

impl<'a> ShownRunEvent<'a> {
    fn of(event: &'a Event) -> Self {
        Self {
            lsn: event.lsn,
            at: rfc_3339(event.at),
            event: &event.event,
            run_id: event.run_id,
            workflow: event.workflow.as_deref(),
            parent_run_id: event.parent_run_id,
            to: run_state_name(event.run_state),
            signal: event.signal.as_deref(),
            code: event.code.as_deref(),
        }
    }
}

/// A queue.
#[derive(Debug, Serialize)]
pub(crate) struct ShownQueue<'a> {
    name: &'a str,
    depth: u64,
    leased: u64,
    completed: u64,
    failed: u64,
    dead: u64,
    canceled: u64,
    paused: bool,
    paused_until: Option<String>,
    retention_ms: Option<u64>,
    dead_letter_queue: Option<&'a str>,
    oldest_waiting_at: Option<String>,
}

impl<'a> ShownQueue<'a> {
    pub(crate) fn of(queue: &'a Queue) -> Self {
        Self {
            name: &queue.name,
            depth: queue.depth,
            leased: queue.leased,
            completed: queue.completed,
            failed: queue.failed,
            dead: queue.dead,
            canceled: queue.canceled,
            paused: queue.paused,
            paused_until: queue.paused_until.map(rfc_3339),
            retention_ms: queue.retention_ms,
            dead_letter_queue: queue.dead_letter_queue.as_deref(),
            oldest_waiting_at: queue.oldest_waiting_at.map(rfc_3339),
        }
    }
}

/// A worker.
#[derive(Debug, Serialize)]
pub(crate) struct ShownWorker<'a> {
    id: &'a str,
    name: &'a str,
    connected: bool,
    dead: bool,
    last_seen_at: String,
    active_leases: u32,
    queues: &'a [String],
    slots: Option<u32>,
    labels: &'a BTreeMap<String, String>,
    draining: bool,
}

impl<'a> ShownWorker<'a> {
    pub(crate) fn of(worker: &'a WorkerInfo) -> Self {
        Self {
            id: &worker.name,
            name: worker.display_name.as_ref().unwrap_or(&worker.name),
            connected: worker.connected,
            dead: !worker.connected,
            last_seen_at: rfc_3339(worker.last_seen_at),
            active_leases: worker.active_leases,
            queues: &worker.queues,
            slots: worker.slots,
            labels: &worker.labels,
            draining: worker.draining,
        }
    }
}

/// How the server stands.
#[derive(Debug, Serialize)]
pub(crate) struct ShownStatus<'a> {
    version: &'a str,
    role: &'a str,
    lsn: u64,
    durable_lsn: u64,
    epoch: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_hash: Option<&'a str>,
    tasks: &'a BTreeMap<String, u64>,
    runs: &'a BTreeMap<String, u64>,
    ending_runs: u64,
    parked_runs: u64,
    workflows: u64,
    parked_leases: u64,
    parked_readers: u64,
    snapshot_lsn: Option<u64>,
    log_oldest_lsn: u64,
    log_bytes: u64,
    archive: Option<ShownArchive<'a>>,
    log_time_ahead_ms: u64,
    memory: Option<ShownMemory<'a>>,
    uptime_ms: u64,
}

/// The memory budget.
#[derive(Debug, Serialize)]
struct ShownMemory<'a> {
    used_bytes: u64,
    max_bytes: u64,
    full: bool,
    pools: &'a BTreeMap<String, u64>,
}

/// How the archive stands.
#[derive(Debug, Serialize)]
struct ShownArchive<'a> {
    folder: &'a str,
    archived: u64,
    bytes: u64,
    failing: Option<&'a str>,
    failing_ms: u64,
}

impl<'a> ShownStatus<'a> {
    pub(crate) fn of(status: &'a ServerStatus) -> Self {
        Self {
            version: &status.version,
            role: &status.role,
            lsn: status.lsn,
            durable_lsn: status.durable_lsn,
            epoch: status.epoch,
            state_hash: status.state_hash.as_deref(),
            tasks: &status.tasks,
            runs: &status.runs,
            ending_runs: status.ending_runs,
            parked_runs: status.parked_runs,
            workflows: status.workflows,
            parked_leases: status.parked_leases,
            parked_readers: status.parked_readers,
            snapshot_lsn: status.snapshot_lsn,
            log_oldest_lsn: status.log_oldest_lsn,
            log_bytes: status.log_bytes,
            archive: status.archive.as_ref().map(|archive| ShownArchive {
                folder: &archive.folder,
                archived: archive.archived,
                bytes: archive.bytes,
                failing: archive.failing.as_deref(),
                failing_ms: archive.failing_ms,
            }),
            log_time_ahead_ms: status.log_time_ahead_ms,
            memory: status.memory.as_ref().map(|memory| ShownMemory {
                used_bytes: memory.used_bytes,
                max_bytes: memory.max_bytes,
                full: memory.full,
                pools: &memory.pools,
            }),
            uptime_ms: status.uptime_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_over_http() {
        assert_eq!(text(&Verbatim(b"{\"a\": 1.50}")), "{\"a\": 1.50}", "as it came");
        assert_eq!(text(&Verbatim(b"")), "null");
        assert_eq!(text(&Verbatim(b"\xff")), "\"/w==\"");
        let task = TaskInfo { payload: b"\xff"[..].into(), ..TaskInfo::default() };
        let shown: serde_json::Value = serde_json::from_str(&text(&ShownTask::of(&task))).unwrap();
        assert_eq!(
            (&shown["payload"], &shown["payload_encoding"]),
            (&"/w==".into(), &"base64".into())
        );
    }
}
