//! A worker says that it is done.

use tenure_record::event::{Report, TaskCompleted};
use tenure_record::snapshot::LeaseEnd;
use tenure_record::state::TaskState;
use tenure_record::time::Now;

use super::standing::{self, Standing};
use super::{Ruling, about, stamp};
use crate::apply;
use crate::command::{Accepted, CompleteTask};
use crate::rejection::Rejection;
use crate::state::Draft;
use crate::workflow::{self, TaskEnd};

pub(super) fn rule<'c>(draft: &mut Draft<'_>, command: &'c CompleteTask, now: Now) -> Ruling<'c> {
    let lease = command.lease;
    let task_id = lease.task_id;
    match standing::look_to_report(draft, lease, now) {
        Ok(Standing::Holds { task, .. }) if !task.in_run && !command.artifacts.is_empty() => {
            Ruling { task_id, item: None, result: Err(Rejection::NoRunForArtifacts { task_id }) }
        }
        Ok(Standing::Holds { task, .. }) => {
            let mut item = TaskCompleted {
                about: about(draft, task_id, &task),
                lease_id: lease.lease_id,
                worker: draft.holder(&task),
                output: command.output.as_bytes(),
                cascade: Vec::new(),
            };
            apply::task::completed(draft, stamp(draft, now), &item);
            if task.in_run {
                let end = TaskEnd::Completed(item.output, &command.artifacts);
                item.cascade = workflow::task_ended(draft, now, task_id, end);
            }
            let result = Ok(Accepted::now(TaskState::Completed));
            Ruling { task_id, item: Some(Report::TaskCompleted(item)), result }
        }
        // The worker asks again because our answer got lost; it gets the same answer.
        Ok(Standing::Ended { task, by: LeaseEnd::Completed }) => {
            Ruling { task_id, item: None, result: Ok(Accepted::now(task.name())) }
        }
        Ok(Standing::Ended { task, .. } | Standing::Stale { task }) => {
            standing::too_late(draft, lease, command.worker.as_ref(), &task, now)
        }
        Err(refusal) => Ruling { task_id, item: None, result: Err(refusal) },
    }
}
