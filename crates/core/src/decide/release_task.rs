//! A worker gives its lease back. It costs no budget.

use super::standing::{self, Standing};
use super::{Ruling, about, stamp};
use crate::apply;
use crate::command::{Accepted, LeaseRef};
use crate::event::{LeaseReleased, Report};
use crate::state::{Draft, LeaseEnd, StateName};
use crate::time::Now;
use crate::workflow::{self, TaskEnd};

pub(super) fn rule(draft: &mut Draft<'_>, lease: LeaseRef, now: Now) -> Ruling<'static> {
    let task_id = lease.task_id;
    let (item, result) = match standing::look(draft, lease, now) {
        Ok(Standing::Holds { task, .. }) => {
            let to = match task.cancel_requested {
                true => StateName::Canceled,
                false => StateName::Waiting,
            };
            let mut item = LeaseReleased {
                about: about(draft, task_id, &task),
                lease_id: lease.lease_id,
                worker: draft.holder(&task),
                to,
                cascade: Vec::new(),
            };
            apply::lease::released(draft, stamp(draft, now), &item);
            if task.in_run && to.is_terminal() {
                item.cascade = workflow::task_ended(draft, now, task_id, TaskEnd::Canceled);
            }
            (Some(Report::LeaseReleased(item)), Ok(Accepted::now(to)))
        }
        Ok(Standing::Ended { task, by: LeaseEnd::Released }) => {
            (None, Ok(Accepted::now(task.name())))
        }
        // Nothing was claimed that another attempt could contradict: no trace is needed.
        Ok(Standing::Ended { .. } | Standing::Stale { .. }) => (None, Err(standing::lost(lease))),
        Err(refusal) => (None, Err(refusal)),
    };
    Ruling { task_id, item, result }
}
