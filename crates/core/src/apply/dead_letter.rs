//! What a task leaves behind that ends FAILED or DEAD: a copy, if its queue has a dead letter queue.

use tenure_record::event::DeadLetter;
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::snapshot::LeaseEnd;
use tenure_record::state::TaskState;
use tenure_record::time::{Clock, Timestamp};

use super::Stamp;
use crate::state::{BlobRef, Cold, ColdRef, Ledger, Task, TaskPhase};

/// A task has gone to a state, with this copy. The link to an earlier copy is gone when the task fails
/// anew.
pub(super) fn left(
    to: &mut impl Ledger,
    stamp: Stamp,
    id: TaskId,
    state: TaskState,
    item: Option<&DeadLetter<'_>>,
) {
    let Some(item) = item else {
        let has_failed = matches!(state, TaskState::Failed | TaskState::Dead);
        if has_failed && to.cold(id).is_some_and(|cold| cold.dead_letter.is_some()) {
            to.change_cold(id, |cold| cold.dead_letter = TaskId::NONE);
        }
        return;
    };
    copied(to, stamp, id, item);
    to.change_cold(id, |cold| cold.dead_letter = item.task_id);
}

fn copied(to: &mut impl Ledger, stamp: Stamp, of: TaskId, item: &DeadLetter<'_>) {
    let queue = to.queue_named(item.queue.as_str());
    let ended = *to.task(of).expect("a copy is made of a task that exists");
    let task = Task {
        state: TaskPhase::Waiting { not_before: Timestamp::ZERO, clock: Clock::Log },
        created_at: stamp.wall,
        started_at: Timestamp::ZERO,
        lease_id: LeaseId::NONE,
        last_lsn: stamp.lsn,
        payload: BlobRef::NONE,
        output: BlobRef::NONE,
        queue,
        cold: ColdRef::NONE,
        attempt: 0,
        lease_ms: item.lease_ms,
        failures: 0,
        expiries: 0,
        max_failures: item.max_failures,
        max_expiries: item.max_expiries,
        lease_end: LeaseEnd::Open,
        cancel_requested: false,
        in_run: false,
        // Its priority and its name.
        ..ended
    };
    let known = to.cold(of);
    let cold = Cold {
        tags: known.and_then(|cold| cold.tags.clone()),
        errors: known.and_then(|cold| cold.errors.clone()),
        traceparent: known.and_then(|cold| cold.traceparent.clone()),
        dead_letter_of: of,
        ..Cold::default()
    };
    to.create_copy(of, item.task_id, task, cold);
}
