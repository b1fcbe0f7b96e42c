//! Time takes ownership back.

use tenure_record::event::{Event, Expired, ExpiryCause, LeaseExpired};
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::state::TaskState;
use tenure_record::time::{Now, Timestamp};

use super::{Halt, Verdict, about, fire_deadlines, halt, stamp};
use crate::command::{Reply, Rest, Swept};
use crate::limits::DUE_ITEMS_MAX;
use crate::state::{Draft, Ledger, Task};
use crate::workflow::{self, TaskEnd};
use crate::{apply, planted};

pub(super) fn decide(draft: &mut Draft<'_>, now: Now) -> Verdict<'static> {
    // A lease that its task's deadline cut short is no fault of its worker: the deadline goes
    // first, and takes the lease with it.
    if draft.base().next_deadline().is_some_and(|at| at <= now.log) {
        return fire_deadlines::sweep(draft, now, Rest::More);
    }
    let due = draft.base().live().leases.range(..=(planted::over_by(now.log), LeaseId(u64::MAX)));
    let mut due = due.map(|((expires_at, _), task_id)| (*expires_at, *task_id));
    let count = due.clone().take(DUE_ITEMS_MAX).count();
    draft.reserve(count);
    let mut leases = Vec::with_capacity(count);
    let mut held = due.by_ref().take(DUE_ITEMS_MAX);
    while !draft.is_full()
        && let Some((expires_at, task_id)) = held.next()
    {
        let task = *draft.task(task_id).expect("a lease belongs to a task");
        // What happened before in this record may have ended it.
        // What is ending ends by itself.
        let is_ending = halt(draft, task_id, &task) == Some(Halt::Ending);
        if task.name() != TaskState::Leased || is_ending {
            continue;
        }
        let cause = match is_revoked(draft, task_id, expires_at) {
            true => ExpiryCause::Revoked,
            false => ExpiryCause::RanOut,
        };
        leases.push(expire(draft, task_id, &task, cause, now));
    }
    let rest = if due.next().is_some() { Rest::More } else { Rest::Nothing };
    verdict(leases, rest)
}

/// Ends one lease and says what becomes of its task.
pub(super) fn expire(
    draft: &mut Draft<'_>,
    task_id: TaskId,
    task: &Task,
    cause: ExpiryCause,
    now: Now,
) -> Expired<'static> {
    let expiries = match cause {
        ExpiryCause::RanOut | ExpiryCause::Disconnected => task.expiries + 1,
        ExpiryCause::Revoked => task.expiries,
    };
    let to = match task.cancel_requested {
        true => TaskState::Canceled,
        // A task whose workers keep vanishing must not loop for ever.
        false if expiries >= task.max_expiries => TaskState::Dead,
        false => TaskState::Waiting,
    };
    let mut item = Expired {
        about: about(draft, task_id, task),
        lease_id: task.lease_id,
        worker: draft.holder(task),
        to,
        expiries,
        cause,
        cascade: Vec::new(),
    };
    apply::lease::expired(draft, stamp(draft, now), &item);
    if task.in_run && to.is_terminal() {
        let end = match to == TaskState::Dead {
            true => TaskEnd::Dead,
            false => TaskEnd::Canceled,
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

/// Whether the lease ended by its revocation. One that ran out before that did not, however late
/// the tick comes that ends it.
fn is_revoked(draft: &Draft<'_>, task_id: TaskId, expires_at: Timestamp) -> bool {
    draft.cold(task_id).is_some_and(|cold| cold.revoke_at == expires_at)
}
