//! A task that ends FAILED or DEAD leaves a copy where its queue has a dead letter queue. The copy is part
//! of the record that ends the task, so there is never one without the other.

use tenure_record::event::DeadLetter;
use tenure_record::id::TaskId;
use tenure_record::name::Text;
use tenure_record::state::TaskState;
use tenure_record::terms::{Budgets, LeaseMs};

use crate::state::{Draft, Ledger, Task};

/// Numbers and field keys of a copy in a record, beside the name of its queue, at the most.
const LETTER_BYTES: usize = 32;

/// The copy that a task leaves when it goes to that state, if it leaves one.
pub(super) fn of(
    draft: &mut Draft<'_>,
    task_id: TaskId,
    task: &Task,
    to: TaskState,
) -> Option<Box<DeadLetter<'static>>> {
    match to {
        TaskState::Failed | TaskState::Dead => {}
        TaskState::Waiting | TaskState::Leased | TaskState::Completed | TaskState::Canceled => {
            return None;
        }
    }
    let queue = draft.dead_letter_queue(task.queue)?;
    // A copy is not copied again, so queues that are each other's dead letter queues come to an end.
    if draft.cold(task_id).is_some_and(|cold| cold.dead_letter_of.is_some()) {
        return None;
    }
    draft.spent.bytes += LETTER_BYTES + queue.len();
    let budgets = Budgets::default();
    Some(Box::new(DeadLetter {
        task_id: draft.next_task_id(),
        queue: Text::Shared(queue),
        lease_ms: LeaseMs::default().get(),
        max_failures: budgets.max_failures,
        max_expiries: budgets.max_expiries,
    }))
}
