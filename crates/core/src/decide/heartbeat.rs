//! A worker says that it is still at it.

use tenure_record::event::{LeaseExtended, Report};
use tenure_record::state::TaskState;
use tenure_record::terms::LeaseMs;
use tenure_record::time::Now;

use super::standing::{self, Standing};
use super::{Ruling, checkpoint};
use crate::apply;
use crate::command::{Accepted, Extended, Heartbeat, LeaseRef};
use crate::planted::{self, Bug};
use crate::state::{Draft, Ledger};

pub(super) fn rule<'c>(draft: &mut Draft<'_>, command: &'c Heartbeat, now: Now) -> Ruling<'c> {
    let lease = command.lease;
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
            let asked_ms = command.lease_ms.map_or(0, LeaseMs::get);
            let span = match asked_ms {
                0 => standing::span(&task, cold),
                asked_ms => asked_ms,
            };
            let expires_at = standing::lease_end(cold, span, now);
            let extended = Extended {
                expires_at,
                wall_expires_at: now.offset().shown(expires_at),
                cancel_requested: task.cancel_requested,
            };
            let result = Ok(Accepted { state: TaskState::Leased, extended: Some(extended) });
            let kept = draft.cold(task_id).and_then(|cold| cold.checkpoint.as_deref());
            // A worker may repeat its checkpoint with every heartbeat. The record has it once.
            let handed = command.checkpoint.as_ref();
            let handed = handed.filter(|handed| kept != Some(handed.as_bytes()));
            let checkpoint = checkpoint(draft, handed);
            // Two heartbeats in one millisecond, or one at the last possible end: nothing moves.
            let says_something = expires_at != before || !checkpoint.is_empty();
            let item = says_something.then(|| {
                let item =
                    LeaseExtended { task_id, lease_id, expires_at, lease_ms: asked_ms, checkpoint };
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
