//! The end of a lease that its worker did not end: what becomes of the task, and the record of it.

use tenure_record::event::{Event, Expired, ExpiryCause, LeaseExpired};
use tenure_record::id::TaskId;
use tenure_record::state::TaskState;
use tenure_record::terms::{ATTEMPT_TIMEOUT_CODE, ATTEMPT_TIMEOUT_MESSAGE};
use tenure_record::time::{Now, Timestamp};

use super::{Verdict, about, dead_letter, fail_task, stamp};
use crate::apply;
use crate::command::{Reply, Rest, Retry, Swept};
use crate::state::{Draft, Ledger, Task};
use crate::workflow::{self, TaskEnd};

/// Ends one lease and says what becomes of its task.
pub(super) fn expire(
    draft: &mut Draft<'_>,
    task_id: TaskId,
    task: &Task,
    cause: ExpiryCause,
    now: Now,
    seed: u64,
) -> Expired<'static> {
    let (failures, expiries) = match cause {
        ExpiryCause::RanOut | ExpiryCause::Disconnected => (task.failures, task.expiries + 1),
        ExpiryCause::Revoked => (task.failures, task.expiries),
        ExpiryCause::AttemptTimedOut => (task.failures + 1, task.expiries),
    };
    let has_failed = cause == ExpiryCause::AttemptTimedOut;
    let is_final = has_failed && !fail_task::is_retried(draft, task_id, ATTEMPT_TIMEOUT_CODE);
    let goes_on = task.budgets(draft.cold(task_id)).allow(failures, expiries) && !is_final;
    let to = match task.cancel_requested {
        true => TaskState::Canceled,
        false if goes_on => TaskState::Waiting,
        false if has_failed => TaskState::Failed,
        // A task whose workers keep vanishing must not be retried without end.
        false => TaskState::Dead,
    };
    let not_before = match has_failed && to == TaskState::Waiting {
        true => fail_task::next_start(draft, task_id, failures, Retry::WithBackoff, now, seed),
        false => Timestamp::ZERO,
    };
    let mut item = Expired {
        about: about(draft, task_id, task),
        lease_id: task.lease_id,
        worker: draft.holder(task),
        to,
        expiries,
        cause,
        cascade: Vec::new(),
        failures: if has_failed { failures } else { 0 },
        not_before,
        dead_letter: dead_letter::of(draft, task_id, task, to),
    };
    apply::lease::expired(draft, stamp(draft, now), &item);
    if task.in_run && to.is_terminal() {
        let end = match to == TaskState::Canceled {
            true => TaskEnd::Canceled,
            false if has_failed => {
                let (code, reason) = (ATTEMPT_TIMEOUT_CODE, ATTEMPT_TIMEOUT_MESSAGE);
                TaskEnd::Failed { code, reason }
            }
            false => TaskEnd::Dead,
        };
        item.cascade = workflow::task_ended(draft, now, task_id, end);
    }
    item
}

pub(super) fn verdict(leases: Vec<Expired<'static>>, rest: Rest) -> Verdict<'static> {
    let reply = Reply::Swept(Swept { items: leases.len(), rest });
    match leases.is_empty() {
        true => Verdict::Answer(reply),
        false => Verdict::Append(Event::LeaseExpired(LeaseExpired { leases }), reply),
    }
}

/// What ended a lease: of the moments that bound it, the one that it ended at. A lease that ran out
/// before its revocation ran out, however late the tick comes that ends it.
pub(super) fn cause(draft: &Draft<'_>, task_id: TaskId, expires_at: Timestamp) -> ExpiryCause {
    match draft.cold(task_id) {
        Some(cold) if cold.revoke_at == expires_at => ExpiryCause::Revoked,
        Some(cold) if cold.attempt_deadline_at == expires_at => ExpiryCause::AttemptTimedOut,
        Some(_) | None => ExpiryCause::RanOut,
    }
}
