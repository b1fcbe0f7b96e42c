//! A worker gives its lease back. It costs no budget.

use tenure_record::event::{LeaseReleased, Report};
use tenure_record::snapshot::LeaseEnd;
use tenure_record::state::TaskState;
use tenure_record::time::{Now, Timestamp};

use super::standing::{self, Standing};
use super::{Ruling, about, checkpoint, stamp};
use crate::apply;
use crate::command::{Accepted, ReleaseTask};
use crate::state::Draft;
use crate::workflow::{self, TaskEnd};

pub(super) fn rule<'c>(draft: &mut Draft<'_>, command: &'c ReleaseTask, now: Now) -> Ruling<'c> {
    let lease = command.lease;
    let task_id = lease.task_id;
    let (item, result) = match standing::look_to_report(draft, lease, now) {
        Ok(Standing::Holds { task, .. }) => {
            let to = match task.cancel_requested {
                true => TaskState::Canceled,
                false => TaskState::Waiting,
            };
            let waits = to == TaskState::Waiting;
            let delay_ms = Some(command.delay_ms.get()).filter(|ms| waits && *ms > 0);
            let mut item = LeaseReleased {
                about: about(draft, task_id, &task),
                lease_id: lease.lease_id,
                worker: draft.holder(&task),
                to,
                cascade: Vec::new(),
                not_before: delay_ms.map_or(Timestamp::ZERO, |ms| now.log.plus_ms(ms)),
                priority: command.priority.filter(|new| waits && *new != task.priority),
                checkpoint: checkpoint(draft, command.checkpoint.as_ref()),
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
