//! Where a lease stands. This is the fence: nothing is reported past it.

use tenure_record::event::{Report, StaleReportRejected};
use tenure_record::id::LeaseId;
use tenure_record::name::{Text, WorkerName};
use tenure_record::snapshot::LeaseEnd;
use tenure_record::time::{Now, Timestamp};

use super::{Halt, Ruling, about, halt, stamp};
use crate::apply;
use crate::command::LeaseRef;
use crate::planted::{self, Bug};
use crate::rejection::Rejection;
use crate::state::{Cold, Draft, Ledger, Task, TaskPhase};

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
    // What is ending is decided: a result that comes now is as late as one that comes after it.
    if halt(draft, task_id, &task) == Some(Halt::Ending) && !task.is_terminal() {
        return Ok(Standing::Stale { task });
    }
    Ok(match task.state {
        TaskPhase::Leased { expires_at, .. }
            if now.log < expires_at || planted::has(Bug::LateIsNotLost) =>
        {
            Standing::Holds { task, expires_at }
        }
        // Late is lost even if no tick has noticed: the answer must not hang on tick timing.
        TaskPhase::Leased { .. } => Standing::Stale { task },
        TaskPhase::Waiting { .. }
        | TaskPhase::Completed { .. }
        | TaskPhase::Failed { .. }
        | TaskPhase::Dead { .. }
        | TaskPhase::Canceled { .. } => Standing::Ended { task, by: task.lease_end },
    })
}

/// Looks at a lease for a report that would move the task's run.
pub(super) fn look_to_report(
    draft: &Draft<'_>,
    lease: LeaseRef,
    now: Now,
) -> Result<Standing, Rejection> {
    let standing = look(draft, lease, now);
    if let Ok(Standing::Holds { task, .. }) = &standing
        && let Some(Halt::Parked(run_id)) = halt(draft, lease.task_id, task)
    {
        return Err(Rejection::RunParked { run_id });
    }
    standing
}

pub(super) fn lost(lease: LeaseRef) -> Rejection {
    Rejection::LeaseLost { task_id: lease.task_id, lease_id: lease.lease_id }
}

/// A result that came too late: refused, and put on record once per lease so that a zombie
/// cannot grow the log.
pub(super) fn too_late<'c>(
    draft: &mut Draft<'_>,
    lease: LeaseRef,
    worker: Option<&'c WorkerName>,
    task: &Task,
    now: Now,
) -> Ruling<'c> {
    let LeaseRef { task_id, lease_id } = lease;
    let recorded = draft.cold(task_id).map_or(LeaseId::NONE, |cold| cold.stale_lease);
    let item = (lease_id > recorded).then(|| {
        let item = StaleReportRejected {
            about: about(draft, task_id, task),
            lease_id,
            state: task.name(),
            worker: worker.map(|name| Text::Borrowed(name.as_str())).unwrap_or_default(),
        };
        apply::task::reported_late(draft, stamp(draft, now), &item);
        Report::StaleReportRejected(item)
    });
    Ruling { task_id, item, result: Err(lost(lease)) }
}

/// How long a task's latest lease lasts, and how far each heartbeat moves its end.
pub(super) fn span(task: &Task, cold: Option<&Cold>) -> u32 {
    let granted_ms = cold.map_or(0, |cold| cold.granted_ms);
    if granted_ms == 0 { task.lease_ms } else { granted_ms }
}

/// When a lease that starts or is extended now ends: after its span, but never past the task's
/// deadline, its attempt's deadline or a revocation.
pub(super) fn lease_end(cold: Option<&Cold>, lease_ms: u32, now: Now) -> Timestamp {
    let full = now.log.plus_ms(lease_ms.into());
    let Some(cold) = cold else { return full };
    let bounds = [cold.deadline_at, cold.revoke_at, cold.attempt_deadline_at].into_iter();
    bounds.filter(|at| *at > Timestamp::ZERO).fold(full, Timestamp::min)
}

/// When an attempt that starts now must have ended; zero for never.
pub(super) fn attempt_deadline(cold: Option<&Cold>, now: Now) -> Timestamp {
    let timeout_ms = cold.and_then(|cold| cold.attempt_timeout_ms);
    timeout_ms.map_or(Timestamp::ZERO, |ms| now.log.plus_ms(ms))
}
