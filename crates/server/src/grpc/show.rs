//! Things as they are shown over gRPC. Large payloads are shared, small ones copied.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tenure_coordinator::{Grant, Step, TaskInfo, WorkerInfo};
use tenure_core::command::Reported;
use tenure_core::state::{QueueView, SharedBytes};
use tenure_proto::v1;
use tenure_record::id::TaskId;
use tenure_record::name::{QueueName, TagKey, TagValue};
use tenure_record::progress::Fraction;
use tenure_record::state::TaskState;
use tenure_record::terms::Budget;
use tenure_record::time::Timestamp;

use crate::fetch::{bytes_of, end_without};
use crate::observe::explain::{Explanation, Reason};

/// Below this a copy is cheaper than to share.
const SHARED_FROM_BYTES: usize = 1_024;

fn bytes(shared: SharedBytes) -> Bytes {
    match shared.len() {
        0 => Bytes::new(),
        len if len < SHARED_FROM_BYTES => Bytes::copy_from_slice(&bytes_of(&shared)),
        _ => Bytes::from_owner(shared.into_near().unwrap_or_else(|cause| end_without(&cause))),
    }
}

pub(super) fn tags(tags: &[(Arc<str>, Arc<str>)]) -> BTreeMap<String, String> {
    tags.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// A state.
pub(super) fn state(state: TaskState) -> v1::TaskState {
    match state {
        TaskState::Waiting => v1::TaskState::Waiting,
        TaskState::Leased => v1::TaskState::Leased,
        TaskState::Completed => v1::TaskState::Completed,
        TaskState::Failed => v1::TaskState::Failed,
        TaskState::Dead => v1::TaskState::Dead,
        TaskState::Canceled => v1::TaskState::Canceled,
    }
}

/// A state that may not be.
pub(super) fn maybe_state(from: Option<TaskState>) -> i32 {
    from.map_or(v1::TaskState::Unspecified, state).into()
}

pub(super) fn moment(at: Option<Timestamp>) -> Option<u64> {
    at.map(|at| at.0)
}

/// A task.
pub(super) fn task(task: TaskInfo) -> v1::Task {
    let last = task.errors.last().filter(|_| task.state != TaskState::Completed);
    let error = last.map(|error| v1::TaskError {
        code: error.code.to_string(),
        message: error.message.to_string(),
    });
    let lease = task.lease.as_ref().map(|lease| v1::HeldLease {
        lease_id: lease.lease_id.0,
        worker: lease.worker.to_string(),
        expires_at: lease.expires_at.0,
    });
    let number = |budget: Option<Budget>| budget.map(|budget| budget.get().into());
    let progress = task.progress.map(|progress| v1::Progress {
        fraction: progress.fraction.map(Fraction::get),
        message: progress.message.map(|message| message.as_str().to_owned()),
        at: progress.at.0,
    });
    v1::Task {
        id: task.id.0,
        queue: task.queue.to_string(),
        state: state(task.state).into(),
        priority: task.priority.get().into(),
        payload: bytes(task.payload),
        output: bytes(task.output),
        lease_ms: task.lease_ms,
        max_failures: number(task.budgets.max_failures),
        max_expiries: number(task.budgets.max_expiries),
        max_attempts: number(task.budgets.max_attempts),
        total_timeout_ms: task.total_timeout_ms,
        attempt_timeout_ms: task.attempt_timeout_ms,
        error,
        attempt: task.attempt,
        failures: task.failures.into(),
        expiries: task.expiries.into(),
        cancel_requested: task.cancel_requested,
        lease,
        created_at: task.created_at.0,
        run_at: moment(task.run_at),
        started_at: moment(task.started_at),
        finished_at: moment(task.finished_at),
        key: task.key.map(|key| key.to_string()),
        tags: tags(&task.tags),
        run: task.run.map(|run| v1::TaskOfRun {
            run_id: run.run_id.0,
            node: run.node.to_string(),
            token: run.token.0,
        }),
        phase: task.phase.map(|phase| phase.as_str().to_owned()),
        next_attempt_at: moment(task.next_attempt_at),
        progress,
        checkpoint: checkpoint(task.checkpoint),
        name: task.name.map(|name| name.to_string()),
        dead_letter: task.dead_letter.map(link),
        dead_letter_of: task.dead_letter_of.map(link),
    }
}

fn link(task_id: TaskId) -> v1::TaskLink {
    v1::TaskLink { task_id: task_id.0 }
}

fn checkpoint(bytes: Option<Arc<[u8]>>) -> Vec<u8> {
    bytes.map(|bytes| bytes.to_vec()).unwrap_or_default()
}

/// A lease as its worker sees it.
pub(super) fn grant(grant: Grant) -> v1::Lease {
    v1::Lease {
        task_id: grant.task_id.0,
        lease_id: grant.lease_id.0,
        attempt: grant.attempt,
        queue: grant.queue.to_string(),
        payload: bytes(grant.payload),
        tags: tags(&grant.tags),
        expires_at: grant.wall_expires_at.0,
        log_expires_at: grant.expires_at.0,
        run: grant.run.map(|run| v1::TaskOfRun {
            run_id: run.run_id.0,
            node: run.node.to_string(),
            token: run.token.0,
        }),
        name: grant.name.map(|name| name.to_string()),
        traceparent: grant.traceparent.map(|text| text.to_string()),
        checkpoint: checkpoint(grant.checkpoint),
    }
}

/// What became of a report.
pub(super) fn reported(reported: &Reported) -> v1::ReportResult {
    let task_id = reported.task_id.0;
    match &reported.result {
        Ok(accepted) => v1::ReportResult {
            task_id,
            state: state(accepted.state).into(),
            expires_at: accepted.extended.map_or(0, |extended| extended.wall_expires_at.0),
            log_expires_at: accepted.extended.map_or(0, |extended| extended.expires_at.0),
            cancel_requested: accepted.extended.is_some_and(|extended| extended.cancel_requested),
            ..v1::ReportResult::default()
        },
        Err(rejection) => v1::ReportResult {
            task_id,
            code: rejection.code().to_string(),
            message: rejection.to_string(),
            ..v1::ReportResult::default()
        },
    }
}

/// Why a task is not done yet.
pub(super) fn explanation(explanation: Explanation) -> v1::TaskExplanation {
    let reason = |reason: Reason| v1::Reason {
        code: reason.code.to_owned(),
        message: reason.message,
        until: moment(reason.until),
        worker: reason.worker,
    };
    v1::TaskExplanation {
        state: state(explanation.state).into(),
        position: explanation.position,
        reasons: explanation.reasons.into_iter().map(reason).collect(),
        earliest_start_at: moment(explanation.earliest_start_at),
    }
}

/// A step of a task's history.
pub(super) fn step(step: Step) -> v1::Step {
    v1::Step {
        lsn: step.lsn.0,
        at: step.at.0,
        event: step.event.to_owned(),
        from: maybe_state(step.from),
        to: state(step.to).into(),
        attempt: step.attempt,
        worker: step.worker,
        lease_id: step.lease_id.map(|lease| lease.0),
        code: step.code,
        reason: step.reason,
    }
}

/// A queue.
pub(super) fn queue(queue: &QueueView) -> v1::Queue {
    v1::Queue {
        name: queue.name.to_string(),
        depth: queue.counts.of(TaskState::Waiting),
        leased: queue.counts.of(TaskState::Leased),
        completed: queue.counts.of(TaskState::Completed),
        failed: queue.counts.of(TaskState::Failed),
        dead: queue.counts.of(TaskState::Dead),
        canceled: queue.counts.of(TaskState::Canceled),
        paused: !queue.eligibility.is_open(),
        paused_until: moment(queue.eligibility.opens_at()),
        retention_ms: queue.settings.retention_ms,
        dead_letter_queue: queue.settings.dead_letter_queue.as_deref().map(str::to_owned),
        oldest_waiting_at: moment(queue.oldest_waiting_at),
    }
}

/// A worker.
pub(super) fn worker(worker: WorkerInfo) -> v1::Worker {
    let (connected, said) = (!worker.is_dead, worker.registration);
    let name = |queue: &QueueName| queue.as_str().to_owned();
    let label =
        |(key, value): &(TagKey, TagValue)| (key.as_str().to_owned(), value.as_str().to_owned());
    v1::Worker {
        id: worker.name.to_string(),
        connected,
        dead: !connected,
        last_seen_at: worker.seen_at.0,
        active_leases: worker.leases,
        slots: said.as_ref().map(|said| said.slots),
        draining: said.as_ref().is_some_and(|said| said.draining),
        queues: said.iter().flat_map(|said| said.queues.iter().map(name)).collect(),
        labels: said.iter().flat_map(|said| said.labels.as_slice()).map(label).collect(),
        name: said
            .and_then(|said| said.display_name)
            .map_or_else(|| worker.name.to_string(), |name| name.as_str().to_owned()),
    }
}
