//! A worker's stream closed and did not come back: its leases end before their time.

use tenure_record::event::ExpiryCause;
use tenure_record::time::Now;

use super::Verdict;
use super::end_leases::{expire, verdict};
use super::standing::{self, Standing};
use crate::command::{LeaseRef, Rest};
use crate::limits::DUE_ITEMS_MAX;
use crate::rejection::Rejection;
use crate::state::Draft;

pub(super) fn decide(
    draft: &mut Draft<'_>,
    leases: &[LeaseRef],
    now: Now,
    seed: u64,
) -> Result<Verdict<'static>, Rejection> {
    if leases.len() > DUE_ITEMS_MAX {
        let (items, items_max) = (leases.len(), DUE_ITEMS_MAX);
        return Err(Rejection::BatchTooLarge { items, items_max });
    }
    let mut dropped = Vec::new();
    let mut rest = Rest::Nothing;
    for lease in leases {
        // The end of a task may be the end of its run, so the record can be full before the list is.
        if draft.is_full() {
            rest = Rest::More;
            break;
        }
        // What is over, or gone, needs no end.
        if let Ok(Standing::Holds { task, .. }) = standing::look(draft, *lease, now) {
            let cause = ExpiryCause::Disconnected;
            dropped.push(expire(draft, lease.task_id, &task, cause, now, seed));
        }
    }
    Ok(verdict(dropped, rest))
}
