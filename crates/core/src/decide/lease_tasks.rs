//! A worker asks for work.

use smallvec::SmallVec;
use tenure_record::event::{Event, Granted, LeaseGranted};
use tenure_record::id::TaskId;
use tenure_record::time::{Now, Timestamp};

use super::skip_ids::check_leases;
use super::standing::{attempt_deadline, lease_end};
use super::{Verdict, about, halt, stamp};
use crate::apply;
use crate::command::{LeaseTasks, Leased, Reply};
use crate::limits::{LEASE_BYTES, LEASE_QUEUES_MAX, LEASE_SCAN_MAX, LEASE_TASKS_MAX};
use crate::planted::{self, Bug};
use crate::rejection::Rejection;
use crate::state::{Draft, Ledger, QueueRef};

pub(super) fn decide<'c>(
    draft: &mut Draft<'_>,
    command: &'c LeaseTasks,
    now: Now,
) -> Result<Verdict<'c>, Rejection> {
    if command.queues.len() > LEASE_QUEUES_MAX {
        let (items, items_max) = (command.queues.len(), LEASE_QUEUES_MAX);
        return Err(Rejection::BatchTooLarge { items, items_max });
    }
    let queues = open_queues(draft, command, now);
    let mut next = draft.base().live().ready(queues.into_iter()).take(LEASE_SCAN_MAX);
    let tasks_max = command.tasks_max.get().min(LEASE_TASKS_MAX) as usize;
    check_leases(draft, tasks_max as u64)?;
    let mut grants: Vec<Granted<'_>> = Vec::new();
    let mut leased = Vec::new();
    let name = command.worker.share();
    let worker = draft.worker_named(&name);
    let mut bytes = 0;
    while grants.len() < tasks_max
        && bytes < LEASE_BYTES
        && let Some(next) = next.next()
    {
        let task_id = next.task_id;
        let task = *draft.task(task_id).expect("a ready task exists");
        if halt(draft, task_id, &task).is_some() && !planted::has(Bug::EndingIsGranted) {
            continue;
        }
        let lease_id = planted::lease_id(draft.next_lease_id(), now);
        let lease_ms = command.lease_ms.map_or(task.lease_ms, |lease_ms| lease_ms.get());
        let cold = draft.cold(task_id);
        let attempt_deadline_at = attempt_deadline(cold, now);
        let mut expires_at = lease_end(cold, lease_ms, now);
        if attempt_deadline_at > Timestamp::ZERO {
            expires_at = expires_at.min(attempt_deadline_at);
        }
        // Its deadline has passed and the tick that says so is on its way.
        if expires_at <= now.log {
            continue;
        }
        let mut about = about(draft, task_id, &task);
        about.attempt += u32::from(!planted::has(Bug::AttemptCountedLate));
        let item = Granted { about, lease_id, lease_ms, expires_at, attempt_deadline_at };
        apply::lease::granted(draft, stamp(draft, now), worker, &item);
        bytes += bytes_of(draft, task_id);
        leased.push(Leased { task_id, lease_id, expires_at });
        grants.push(item);
    }
    let reply = Reply::Leased(leased);
    if grants.is_empty() {
        return Ok(Verdict::Answer(reply));
    }
    Ok(Verdict::Append(Event::LeaseGranted(LeaseGranted { worker: name, grants }), reply))
}

/// What a grant of this task adds to an answer, beside its fixed part.
fn bytes_of(draft: &Draft<'_>, task_id: TaskId) -> usize {
    let Some(task) = draft.base().task(task_id) else { return 0 };
    let tags = task.tags().iter().map(|(key, value)| key.len() + value.len());
    let checkpoint = task.checkpoint().map_or(0, |bytes| bytes.len());
    task.payload_bytes() + checkpoint + tags.sum::<usize>()
}

/// The queues that exist and from which leases may be given, each once.
fn open_queues(draft: &Draft<'_>, command: &LeaseTasks, now: Now) -> SmallVec<[QueueRef; 4]> {
    let named = command.queues.iter().filter_map(|name| draft.find_queue(name.as_str()));
    let mut queues: SmallVec<[QueueRef; 4]> =
        named.filter(|queue| draft.base().may_grant(*queue, now).is_open()).collect();
    queues.sort_unstable();
    queues.dedup();
    queues
}
