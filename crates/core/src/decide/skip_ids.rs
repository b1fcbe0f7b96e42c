//! A tail of the log may be lost: no id of it is given again.

use super::Verdict;
use crate::command::Reply;
use crate::event::{Event, IdsSkipped};
use crate::id::{ID_MAX, LeaseId, RunId, TaskId};
use crate::limits::ID_JUMP;
use crate::rejection::Rejection;
use crate::state::{Draft, Ledger};

pub(super) fn decide(draft: &mut Draft<'_>) -> Result<Verdict<'static>, Rejection> {
    let (next_task_id, next_lease_id) = (draft.next_task_id(), draft.next_lease_id());
    let ahead = |id: u64| id.checked_add(ID_JUMP).filter(|id| *id <= ID_MAX);
    let run = ahead(draft.next_run_id().0);
    let (Some(task), Some(lease), Some(run)) = (ahead(next_task_id.0), ahead(next_lease_id.0), run)
    else {
        return Err(Rejection::IdsExhausted { next_task_id, next_lease_id });
    };
    let item = IdsSkipped {
        next_task_id: TaskId(task),
        next_lease_id: LeaseId(lease),
        next_run_id: RunId(run),
    };
    draft.skip_ids(&item);
    let reply = Reply::Skipped(item.clone());
    Ok(Verdict::Append(Event::IdsSkipped(item), reply))
}
