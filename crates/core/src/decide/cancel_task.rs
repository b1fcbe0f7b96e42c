//! A client wants a task to stop.

use tenure_record::event::{CancelRequested, Event};
use tenure_record::id::LeaseId;
use tenure_record::state::TaskState;
use tenure_record::terms::SpanMs;
use tenure_record::time::{Now, Timestamp};

use super::{Halt, Verdict, about, halt, stamp};
use crate::apply;
use crate::command::{CancelTask, Reply};
use crate::rejection::Rejection;
use crate::state::{Draft, Ledger, TaskPhase};
use crate::workflow::{self, TaskEnd};

pub(super) fn decide(
    draft: &mut Draft<'_>,
    command: CancelTask,
    now: Now,
) -> Result<Verdict<'static>, Rejection> {
    let CancelTask { task_id, grace_ms } = command;
    let task = *draft.task(task_id).ok_or(Rejection::TaskNotFound { task_id })?;
    match halt(draft, task_id, &task) {
        Some(Halt::Parked(run_id)) if !task.is_terminal() => {
            return Err(Rejection::RunParked { run_id });
        }
        // It is canceled already, with what it belongs to; a record that says so is on its way.
        Some(Halt::Ending) if !task.is_terminal() => {
            return Ok(Verdict::Answer(Reply::Task(task_id, task.name())));
        }
        Some(_) | None => {}
    }
    let mut item = CancelRequested {
        about: about(draft, task_id, &task),
        from: task.name(),
        to: TaskState::Canceled,
        worker: draft.holder(&task),
        lease_id: LeaseId::NONE,
        expires_at: Timestamp::ZERO,
        revoke_at: Timestamp::ZERO,
        cascade: Vec::new(),
    };
    match task.state {
        TaskPhase::Waiting { .. } => {}
        TaskPhase::Leased { expires_at, .. } => {
            item.lease_id = task.lease_id;
            let revoke_at = grace_ms.map(|grace| now.log.plus_ms(grace.get()));
            let sooner = revoke_at
                .filter(|at| known_revocation(draft, command).is_none_or(|known| *at < known));
            // Without any grace the lease ends here and now. With one, the worker may go on.
            if grace_ms != Some(SpanMs::ZERO) {
                // It was asked before, and nothing gets more urgent.
                if task.cancel_requested && sooner.is_none() {
                    return Ok(Verdict::Answer(Reply::Task(task_id, TaskState::Leased)));
                }
                item.to = TaskState::Leased;
                item.expires_at = sooner.map_or(expires_at, |at| at.min(expires_at));
                item.revoke_at = sooner.unwrap_or(Timestamp::ZERO);
            }
        }
        TaskPhase::Canceled { .. } => {
            return Ok(Verdict::Answer(Reply::Task(task_id, TaskState::Canceled)));
        }
        TaskPhase::Completed { .. } | TaskPhase::Failed { .. } | TaskPhase::Dead { .. } => {
            return Err(Rejection::TaskTerminal { task_id, state: task.name() });
        }
    }
    apply::task::cancel_requested(draft, stamp(draft, now), &item);
    if task.in_run && item.to.is_terminal() {
        item.cascade = workflow::task_ended(draft, now, task_id, TaskEnd::Canceled);
    }
    let reply = Reply::Task(task_id, item.to);
    Ok(Verdict::Append(Event::CancelRequested(item), reply))
}

fn known_revocation(draft: &Draft<'_>, command: CancelTask) -> Option<Timestamp> {
    draft.cold(command.task_id).map(|cold| cold.revoke_at).filter(|at| *at > Timestamp::ZERO)
}
