//! What happens to tasks.

use std::sync::Arc;

use tenure_record::event::{
    CancelRequested, Created, DeadlinePassed, StaleReportRejected, Stopped, TaskCompleted,
    TaskFailed, TaskRetried,
};
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::snapshot::LeaseEnd;
use tenure_record::state::TaskState;
use tenure_record::terms::{TIMEOUT_CODE, TIMEOUT_MESSAGE};
use tenure_record::time::{Clock, Timestamp};

use super::{Stamp, dead_letter, lease};
use crate::limits::FAILURES_KEPT_MAX;
use crate::state::{BlobRef, Cold, ColdRef, Key, Ledger, NameRef, Task, TaskError, TaskPhase};

pub(crate) fn created(to: &mut impl Ledger, stamp: Stamp, item: &Created<'_>) {
    if item.key_from.is_some() {
        to.change_cold(item.key_from, |cold| {
            if let Some(key) = &mut cold.key {
                key.is_held = false;
            }
        });
    }
    let queue = to.queue_named(item.queue.as_str());
    let name = item.name.as_ref().map_or(NameRef::NONE, |name| to.task_named(name));
    let task = Task {
        state: TaskPhase::Waiting { not_before: item.not_before, clock: item.clock },
        created_at: stamp.wall,
        started_at: Timestamp::ZERO,
        lease_id: LeaseId::NONE,
        last_lsn: stamp.lsn,
        payload: BlobRef::NONE,
        output: BlobRef::NONE,
        queue,
        cold: ColdRef::NONE,
        name,
        attempt: 0,
        lease_ms: item.lease_ms,
        failures: 0,
        expiries: 0,
        max_failures: item.max_failures,
        max_expiries: item.max_expiries,
        priority: item.priority,
        lease_end: LeaseEnd::Open,
        cancel_requested: false,
        in_run: item.run.is_some(),
    };
    to.create(item.task_id, task, cold_part(stamp, item), &item.payload);
}

/// Most tasks have nothing of it.
fn cold_part(stamp: Stamp, item: &Created<'_>) -> Option<Cold> {
    let plain = item.key.is_none()
        && item.tags.is_empty()
        && item.backoff.is_none()
        && item.not_before == Timestamp::ZERO
        && item.total_timeout_ms.is_none()
        && item.max_attempts.is_none()
        && item.attempt_timeout_ms.is_none()
        && item.traceparent.is_none()
        && item.run.is_none();
    if plain {
        return None;
    }
    let text = |text: &tenure_record::name::Text<'_>| Arc::<str>::from(text.as_str());
    Some(Cold {
        key: item.key.as_ref().zip(item.submit_hash).map(|(key, hash)| Key {
            text: text(key),
            hash,
            free_at: item.key_free_at,
            is_held: true,
        }),
        tags: match item.tags.is_empty() {
            true => None,
            false => Some(item.tags.iter().map(|tag| (text(&tag.key), text(&tag.value))).collect()),
        },
        backoff: item.backoff.clone(),
        run_at: match item.clock {
            Clock::Log => stamp.offset().shown(item.not_before),
            Clock::Wall => item.not_before,
        },
        total_timeout_ms: item.total_timeout_ms,
        deadline_at: item.deadline_at,
        run: item.run.as_ref().map(|link| (link.run_id, link.token)),
        max_attempts: item.max_attempts,
        attempt_timeout_ms: item.attempt_timeout_ms,
        traceparent: item.traceparent.as_ref().map(text),
        ..Cold::default()
    })
}

pub(crate) fn completed(to: &mut impl Ledger, stamp: Stamp, item: &TaskCompleted<'_>) {
    let id = item.about.task_id;
    to.change(id, |task| {
        lease::end(task, stamp, LeaseEnd::Completed, TaskState::Completed, Timestamp::ZERO);
    });
    let is_left =
        |cold: &Cold| cold.errors.is_some() || cold.checkpoint.is_some() || lease::is_bound(cold);
    if to.cold(id).is_some_and(is_left) {
        to.change_cold(id, |cold| {
            cold.errors = None;
            cold.checkpoint = None;
            lease::unbind(cold);
        });
    }
    to.set_output(id, item.output);
}

pub(crate) fn failed(to: &mut impl Ledger, stamp: Stamp, item: &TaskFailed<'_>) {
    let id = item.about.task_id;
    to.change(id, |task| {
        task.failures = item.failures;
        lease::end(task, stamp, LeaseEnd::Failed, item.to, item.not_before);
    });
    lease::forget_bounds(to, id);
    keep_error(to, id, item.code.as_str(), item.reason.as_str());
    lease::keep_checkpoint(to, id, item.checkpoint);
    dead_letter::left(to, stamp, id, item.to, item.dead_letter.as_deref());
}

/// The task stays as it is; its history and the mark of the lease move on.
pub(crate) fn reported_late(to: &mut impl Ledger, stamp: Stamp, item: &StaleReportRejected<'_>) {
    let id = item.about.task_id;
    to.change(id, |task| task.last_lsn = stamp.lsn);
    to.change_cold(id, |cold| cold.stale_lease = item.lease_id);
}

pub(crate) fn cancel_requested(to: &mut impl Ledger, stamp: Stamp, item: &CancelRequested<'_>) {
    let id = item.about.task_id;
    to.change(id, |task| {
        task.cancel_requested = true;
        task.last_lsn = stamp.lsn;
        if item.to == TaskState::Leased {
            return lease::move_end(task, item.expires_at);
        }
        task.state = TaskPhase::ended(item.to, stamp.at, stamp.offset());
        if item.lease_id.is_some() {
            task.lease_end = LeaseEnd::Taken;
        }
    });
    match item.to == TaskState::Leased {
        true if item.revoke_at == Timestamp::ZERO => {}
        true => to.change_cold(id, |cold| cold.revoke_at = item.revoke_at),
        false => lease::forget_bounds(to, id),
    }
}

/// Its token is canceled, and the task with it.
pub(crate) fn stopped(to: &mut impl Ledger, stamp: Stamp, item: Stopped) {
    let id = item.task_id;
    to.change(id, |task| {
        task.cancel_requested = true;
        task.state = TaskPhase::ended(TaskState::Canceled, stamp.at, stamp.offset());
        task.last_lsn = stamp.lsn;
        if item.lease_id.is_some() {
            task.lease_end = LeaseEnd::Taken;
        }
    });
    lease::forget_bounds(to, id);
}

pub(crate) fn retried(to: &mut impl Ledger, stamp: Stamp, item: &TaskRetried<'_>) {
    let id = item.about.task_id;
    to.change(id, |task| {
        task.state = TaskPhase::Waiting { not_before: item.not_before, clock: Clock::Log };
        task.failures = 0;
        task.expiries = 0;
        task.cancel_requested = false;
        task.last_lsn = stamp.lsn;
    });
    if to.cold(id).is_some() {
        to.change_cold(id, |cold| {
            cold.errors = None;
            cold.deadline_at = item.deadline_at;
        });
    }
}

pub(crate) fn deadline_passed(to: &mut impl Ledger, stamp: Stamp, item: &DeadlinePassed<'_>) {
    let id = item.about.task_id;
    to.change(id, |task| {
        let by = match item.lease_id.is_some() {
            true => LeaseEnd::Taken,
            false => task.lease_end,
        };
        lease::end(task, stamp, by, item.to, Timestamp::ZERO);
    });
    lease::forget_bounds(to, id);
    keep_error(to, id, TIMEOUT_CODE, TIMEOUT_MESSAGE);
    dead_letter::left(to, stamp, id, item.to, item.dead_letter.as_deref());
}

pub(super) fn keep_error(to: &mut impl Ledger, id: TaskId, code: &str, message: &str) {
    to.change_cold(id, |cold| {
        let kept = cold.errors.as_deref().unwrap_or_default();
        let from = (kept.len() + 1).saturating_sub(FAILURES_KEPT_MAX);
        let error = TaskError { code: Arc::from(code), message: Arc::from(message) };
        cold.errors = Some(kept[from..].iter().cloned().chain([error]).collect());
    });
}
