//! Where a lease stands. This is the fence: nothing is reported past it.

use super::{Ruling, about, stamp};
use crate::apply;
use crate::command::LeaseRef;
use crate::event::{Report, TaskCancelled};
use crate::id::LeaseId;
use crate::planted::{self, Bug};
use crate::rejection::Rejection;
use crate::state::{Draft, LeaseEnd, Ledger, Task, TaskState};
use crate::time::{Now, Timestamp};

/// Where a lease stands.
pub(super) enum Standing {
    /// The task is its worker's, until then.
    Holds { task: Task, expires_at: Timestamp },
    /// It is the task's latest lease and ended so. No newer one was given.
    Ended { task: Task, by: LeaseEnd },
    /// It was given once; time or a newer lease has overtaken it.
    Stale { task: Task },
}

/// Looks at a lease. One that was never given is refused here: there is nothing to put on record.
pub(super) fn look(draft: &Draft<'_>, lease: LeaseRef, now: Now) -> Result<Standing, Rejection> {
    let LeaseRef { task_id, lease_id } = lease;
    let task = *draft.task(task_id).ok_or(Rejection::TaskNotFound { task_id })?;
    if lease_id > task.lease_id || lease_id == LeaseId::NONE {
        return Err(lost(lease));
    }
    if lease_id < task.lease_id && !planted::has(Bug::OldLeaseHolds) {
        return Ok(Standing::Stale { task });
    }
    Ok(match task.state {
        TaskState::Leased { expires_at, .. }
            if now.log < expires_at || planted::has(Bug::LateIsNotLost) =>
        {
            Standing::Holds { task, expires_at }
        }
        // Late is lost even if no tick has noticed: the answer must not hang on tick timing.
        TaskState::Leased { .. } => Standing::Stale { task },
        TaskState::Waiting { .. }
        | TaskState::Completed { .. }
        | TaskState::Failed { .. }
        | TaskState::Dead { .. }
        | TaskState::Canceled { .. } => Standing::Ended { task, by: task.lease_end },
    })
}

pub(super) fn lost(lease: LeaseRef) -> Rejection {
    Rejection::LeaseLost { task_id: lease.task_id, lease_id: lease.lease_id }
}

/// A result that came too late: refused, and put on record once per lease so that a zombie
/// cannot grow the log.
pub(super) fn too_late(
    draft: &mut Draft<'_>,
    lease: LeaseRef,
    task: &Task,
    now: Now,
) -> Ruling<'static> {
    let LeaseRef { task_id, lease_id } = lease;
    let recorded = draft.cold(task_id).map_or(LeaseId::NONE, |cold| cold.stale_lease);
    let item = (lease_id > recorded).then(|| {
        let item =
            TaskCancelled { about: about(draft, task_id, task), lease_id, state: task.name() };
        apply::task::reported_late(draft, stamp(draft, now), &item);
        Report::TaskCancelled(item)
    });
    Ruling { task_id, item, result: Err(lost(lease)) }
}

/// When a lease that starts or is extended now ends: after its span, but never past the task's
/// deadline or a revocation.
pub(super) fn lease_end(draft: &Draft<'_>, lease: LeaseRef, lease_ms: u32, now: Now) -> Timestamp {
    let full = now.log.plus_ms(lease_ms.into());
    let Some(cold) = draft.cold(lease.task_id) else { return full };
    let bounds = [cold.deadline_at, cold.revoke_at].into_iter().filter(|at| *at > Timestamp::ZERO);
    bounds.fold(full, Timestamp::min)
}
