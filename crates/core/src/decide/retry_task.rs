//! An operator gives an ended task another round, in its old place.

use tenure_record::event::{Event, TaskRetried};
use tenure_record::id::TaskId;
use tenure_record::state::TaskState;
use tenure_record::time::{Now, Timestamp};

use super::{Verdict, about, stamp};
use crate::apply;
use crate::command::Reply;
use crate::rejection::Rejection;
use crate::state::{Draft, Ledger};

pub(super) fn decide(
    draft: &mut Draft<'_>,
    task_id: TaskId,
    now: Now,
) -> Result<Verdict<'static>, Rejection> {
    let task = *draft.task(task_id).ok_or(Rejection::TaskNotFound { task_id })?;
    match task.name() {
        TaskState::Failed | TaskState::Dead | TaskState::Canceled => {}
        state @ (TaskState::Waiting | TaskState::Leased | TaskState::Completed) => {
            return Err(Rejection::NotRetryable { task_id, state });
        }
    }
    if let Some((run_id, _)) = draft.cold(task_id).and_then(|cold| cold.run) {
        return Err(Rejection::TaskOfRun { task_id, run_id });
    }
    let total_timeout_ms = draft.cold(task_id).and_then(|cold| cold.total_timeout_ms);
    let item = TaskRetried {
        about: about(draft, task_id, &task),
        from: task.name(),
        not_before: now.log.max(Timestamp(1)),
        deadline_at: total_timeout_ms.map_or(Timestamp::ZERO, |ms| now.log.plus_ms(ms)),
    };
    apply::task::retried(draft, stamp(draft, now), &item);
    Ok(Verdict::Append(Event::TaskRetried(item), Reply::Task(task_id, TaskState::Waiting)))
}
