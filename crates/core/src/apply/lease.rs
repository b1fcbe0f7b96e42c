//! What happens to leases.

use std::sync::Arc;

use tenure_record::event::{Expired, ExpiryCause, Granted, LeaseExtended, LeaseReleased};
use tenure_record::id::TaskId;
use tenure_record::snapshot::LeaseEnd;
use tenure_record::state::TaskState;
use tenure_record::terms::{ATTEMPT_TIMEOUT_CODE, ATTEMPT_TIMEOUT_MESSAGE};
use tenure_record::time::{Clock, Timestamp};

use super::{Stamp, dead_letter, task};
use crate::planted::{self, Bug};
use crate::state::{Cold, Ledger, Task, TaskPhase, WorkerRef};

pub(crate) fn granted(to: &mut impl Ledger, stamp: Stamp, worker: WorkerRef, item: &Granted<'_>) {
    let (mut own_ms, mut has_cold) = (0, false);
    to.change(item.about.task_id, |task| {
        (own_ms, has_cold) = (task.lease_ms, task.cold.get().is_some());
        task.state = TaskPhase::Leased { worker, expires_at: item.expires_at };
        task.lease_id = item.lease_id;
        task.lease_end = LeaseEnd::Open;
        task.attempt = item.about.attempt + u32::from(planted::has(Bug::AttemptCountedLate));
        task.started_at = planted::stored(stamp.wall);
        task.last_lsn = stamp.lsn;
    });
    let granted_ms = if item.lease_ms == own_ms { 0 } else { item.lease_ms };
    if granted_ms > 0 || has_cold {
        keep_span(to, item.about.task_id, granted_ms);
    }
    if item.attempt_deadline_at > Timestamp::ZERO {
        to.change_cold(item.about.task_id, |cold| {
            cold.attempt_deadline_at = item.attempt_deadline_at;
        });
    }
}

/// Keeps how long the latest lease lasts, where that is not the task's own span.
fn keep_span(to: &mut impl Ledger, id: TaskId, granted_ms: u32) {
    if to.cold(id).map_or(0, |cold| cold.granted_ms) != granted_ms {
        to.change_cold(id, |cold| cold.granted_ms = granted_ms);
    }
}

pub(crate) fn extended(to: &mut impl Ledger, item: &LeaseExtended<'_>) {
    to.change(item.task_id, |task| move_end(task, item.expires_at));
    keep_checkpoint(to, item.task_id, item.checkpoint);
}

pub(crate) fn expired(to: &mut impl Ledger, stamp: Stamp, item: &Expired<'_>) {
    let id = item.about.task_id;
    let has_failed = item.cause == ExpiryCause::AttemptTimedOut;
    to.change(id, |task| {
        task.expiries = item.expiries;
        if has_failed {
            task.failures = item.failures;
        }
        end(task, stamp, LeaseEnd::Taken, item.to, item.not_before);
    });
    forget_bounds(to, id);
    if has_failed {
        task::keep_error(to, id, ATTEMPT_TIMEOUT_CODE, ATTEMPT_TIMEOUT_MESSAGE);
    }
    dead_letter::left(to, stamp, id, item.to, item.dead_letter.as_deref());
}

pub(crate) fn released(to: &mut impl Ledger, stamp: Stamp, item: &LeaseReleased<'_>) {
    to.change(item.about.task_id, |task| {
        task.priority = item.priority.unwrap_or(task.priority);
        end(task, stamp, LeaseEnd::Released, item.to, item.not_before);
    });
    forget_bounds(to, item.about.task_id);
    keep_checkpoint(to, item.about.task_id, item.checkpoint);
}

/// A report without a checkpoint leaves the one that the task has.
pub(crate) fn keep_checkpoint(to: &mut impl Ledger, id: TaskId, checkpoint: &[u8]) {
    if !checkpoint.is_empty() {
        to.change_cold(id, |cold| cold.checkpoint = Some(Arc::from(checkpoint)));
    }
}

/// A lease's end moves; everything else about it stays.
pub(crate) fn move_end(task: &mut Task, to: Timestamp) {
    if let TaskPhase::Leased { expires_at, .. } = &mut task.state {
        *expires_at = to;
    }
}

/// A lease is over, and the task goes to its next state.
pub(crate) fn end(
    task: &mut Task,
    stamp: Stamp,
    by: LeaseEnd,
    to: TaskState,
    not_before: Timestamp,
) {
    task.state = match to == TaskState::Waiting {
        true => TaskPhase::Waiting { not_before, clock: Clock::Log },
        false => TaskPhase::ended(to, stamp.at, stamp.offset()),
    };
    task.lease_end = by;
    task.last_lsn = stamp.lsn;
}

/// A revocation and the deadline of an attempt bounded the lease that is over.
pub(crate) fn forget_bounds(to: &mut impl Ledger, id: TaskId) {
    if to.cold(id).is_some_and(is_bound) {
        to.change_cold(id, unbind);
    }
}

/// Whether a revocation or the deadline of an attempt bounds the lease.
pub(super) fn is_bound(cold: &Cold) -> bool {
    cold.revoke_at.max(cold.attempt_deadline_at) > Timestamp::ZERO
}

pub(super) fn unbind(cold: &mut Cold) {
    cold.revoke_at = Timestamp::ZERO;
    cold.attempt_deadline_at = Timestamp::ZERO;
}
