//! A worker says that it is still at it.

use tenure_record::event::{LeaseExtended, Report};
use tenure_record::state::TaskState;
use tenure_record::time::Now;

use super::Ruling;
use super::standing::{self, Standing};
use crate::apply;
use crate::command::{Accepted, Extended, LeaseRef};
use crate::planted::{self, Bug};
use crate::state::{Draft, Ledger};

pub(super) fn rule(draft: &mut Draft<'_>, lease: LeaseRef, now: Now) -> Ruling<'static> {
    let LeaseRef { task_id, lease_id } = lease;
    let refused = |refusal| Ruling { task_id, item: None, result: Err(refusal) };
    let held = match draft.task(task_id) {
        Some(task) if planted::has(Bug::HeartbeatOfAnyone) => {
            LeaseRef { task_id, lease_id: task.lease_id }
        }
        _ => lease,
    };
    match standing::look(draft, held, now) {
        Ok(Standing::Holds { task, expires_at: before }) => {
            let cold = draft.cold(task_id);
            let expires_at = standing::lease_end(cold, standing::span(&task, cold), now);
            let extended = Extended {
                expires_at,
                wall_expires_at: now.offset().shown(expires_at),
                cancel_requested: task.cancel_requested,
            };
            let result = Ok(Accepted { state: TaskState::Leased, extended: Some(extended) });
            // Two heartbeats in one millisecond, or one at the last possible end: nothing moves.
            let item = (expires_at != before).then(|| {
                let item = LeaseExtended { task_id, lease_id, expires_at };
                apply::lease::extended(draft, &item);
                Report::LeaseExtended(item)
            });
            Ruling { task_id, item, result }
        }
        // A lease that is over is never brought back.
        Ok(Standing::Ended { .. } | Standing::Stale { .. }) => refused(standing::lost(lease)),
        Err(refusal) => refused(refusal),
    }
}
