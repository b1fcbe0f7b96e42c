//! A tail of the log may be lost: no id of it is given again. And the room that the counters have left.

use tenure_record::event::{Event, IdsSkipped};
use tenure_record::id::{ID_MAX, LeaseId, RunId, TaskId};

use super::Verdict;
use crate::command::{IdJump, Reply};
use crate::limits::IDS_RESERVED;
use crate::rejection::Rejection;
use crate::state::{Draft, Ledger};

pub(super) fn decide(draft: &mut Draft<'_>, jump: IdJump) -> Result<Verdict<'static>, Rejection> {
    let item = IdsSkipped {
        next_task_id: TaskId(ahead("task", draft.next_task_id().0, jump.ids())?),
        next_lease_id: LeaseId(ahead("lease", draft.next_lease_id().0, jump.ids())?),
        next_run_id: RunId(ahead("run", draft.next_run_id().0, jump.ids())?),
    };
    draft.skip_ids(&item);
    let reply = Reply::Skipped(item.clone());
    Ok(Verdict::Append(Event::IdsSkipped(item), reply))
}

/// The id that follows after `wanted` ids more.
fn ahead(what: &'static str, next: u64, wanted: u64) -> Result<u64, Rejection> {
    match next.checked_add(wanted) {
        Some(id) if id <= ID_MAX => Ok(id),
        Some(_) | None => Err(Rejection::IdsExhausted { what, next, wanted }),
    }
}

/// Refuses new work, drafted already, if fewer ids would be left than accepted work may need to end.
pub(super) fn check_room(draft: &Draft<'_>) -> Result<(), Rejection> {
    ahead("task", draft.next_task_id().0, IDS_RESERVED)?;
    ahead("lease", draft.next_lease_id().0, IDS_RESERVED)?;
    ahead("run", draft.next_run_id().0, IDS_RESERVED)?;
    Ok(())
}

/// Refuses grants if there are not so many lease ids.
pub(super) fn check_leases(draft: &Draft<'_>, leases: u64) -> Result<(), Rejection> {
    ahead("lease", draft.next_lease_id().0, leases).map(|_| ())
}
