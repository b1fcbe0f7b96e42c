//! A client brings tasks: all are taken, or none.

use std::borrow::Cow;

use tenure_record::event::{Created, Event, SubmitHash, Tag, TaskCreated};
use tenure_record::id::TaskId;
use tenure_record::limits::RECORD_BYTES_MAX;
use tenure_record::name::{TaskKey, Text};
use tenure_record::terms::Backoff;
use tenure_record::time::{Clock, Now, Timestamp};

use super::request_hash::RequestHasher;
use super::skip_ids::check_room;
use super::{Verdict, stamp};
use crate::apply;
use crate::command::{NewTask, Reply, Start, SubmitOutcome, SubmitTasks, Submitted};
use crate::limits::{BATCH_ITEMS_MAX, QUEUES_MAX};
use crate::rejection::Rejection;
use crate::state::{Draft, Ledger};

/// Numbers and field keys of one task in a record, beside its texts and payload.
const ITEM_BYTES: usize = 160;

pub(super) fn decide<'c>(
    draft: &mut Draft<'_>,
    command: &'c SubmitTasks,
    now: Now,
) -> Result<Verdict<'c>, Rejection> {
    check_size(&command.tasks)?;
    let mut submitted = Vec::with_capacity(command.tasks.len());
    let mut created = Vec::with_capacity(command.tasks.len());
    for (index, task) in command.tasks.iter().enumerate() {
        let place = (command.tasks.len() > 1).then_some(index);
        let submit_hash = task.key.as_ref().map(|_| hash(task));
        if let Some((key, hash)) = task.key.as_ref().zip(submit_hash)
            && let Some(known) = find_known(draft, place, task, key, hash, &submitted)?
        {
            submitted.push(Submitted { task_id: known, outcome: SubmitOutcome::Existed });
            continue;
        }
        if draft.find_queue(task.queue.as_str()).is_none() && draft.queue_count() >= QUEUES_MAX {
            return Err(Rejection::TooManyQueues { index: place });
        }
        let item = create(draft.next_task_id(), task, submit_hash, now);
        apply::task::created(draft, stamp(draft, now), &item);
        submitted.push(Submitted { task_id: item.task_id, outcome: SubmitOutcome::Created });
        created.push(item);
    }
    let reply = Reply::Submitted(submitted);
    if created.is_empty() {
        return Ok(Verdict::Answer(reply));
    }
    check_room(draft)?;
    Ok(Verdict::Append(Event::TaskCreated(TaskCreated { tasks: created }), reply))
}

fn check_size(tasks: &[NewTask]) -> Result<(), Rejection> {
    let items = tasks.len();
    if items > BATCH_ITEMS_MAX {
        return Err(Rejection::BatchTooLarge { items, items_max: BATCH_ITEMS_MAX });
    }
    let bytes = tasks.iter().map(bytes_of).sum();
    if bytes > RECORD_BYTES_MAX {
        return Err(Rejection::RecordTooLarge { bytes });
    }
    Ok(())
}

fn bytes_of(task: &NewTask) -> usize {
    let tags = task.tags.as_slice().iter();
    let tags: usize = tags.map(|(key, value)| key.as_str().len() + value.as_str().len() + 8).sum();
    let key = task.key.as_ref().map_or(0, |key| key.as_str().len());
    task.payload.as_bytes().len() + task.queue.as_str().len() + key + tags + ITEM_BYTES
}

/// The task that holds the key, if the submit is the same as the one that made it.
fn find_known(
    draft: &Draft<'_>,
    index: Option<usize>,
    task: &NewTask,
    key: &TaskKey,
    hash: SubmitHash,
    submitted: &[Submitted],
) -> Result<Option<TaskId>, Rejection> {
    let queue = draft.find_queue(task.queue.as_str());
    let Some(task_id) = queue.and_then(|queue| draft.key_holder(queue, key.as_str())) else {
        return Ok(None);
    };
    let cold = draft.cold(task_id).expect("a task with a key has a cold part");
    if cold.key.as_ref().is_some_and(|held| held.hash == hash) {
        return Ok(Some(task_id));
    }
    let key = key.clone();
    // A number that this batch drafted is given to another task when the batch is refused.
    let drafted = Submitted { task_id, outcome: SubmitOutcome::Created };
    Err(match submitted.iter().position(|earlier| *earlier == drafted) {
        Some(first) => Rejection::KeyTwice { index: submitted.len(), key, first },
        None => Rejection::KeyConflict { index, key, task_id },
    })
}

fn create<'c>(
    task_id: TaskId,
    task: &'c NewTask,
    submit_hash: Option<SubmitHash>,
    now: Now,
) -> Created<'c> {
    let timeout_ms = task.timeout_ms.map(|span| span.get());
    let (not_before, clock) = match task.start {
        Start::AtOnce => (Timestamp::ZERO, Clock::Log),
        Start::After(span) if span.get() == 0 => (Timestamp::ZERO, Clock::Log),
        Start::After(span) => (now.log.plus_ms(span.get()), Clock::Log),
        Start::At(moment) => (moment, Clock::Wall),
    };
    let tags = task.tags.as_slice().iter();
    Created {
        task_id,
        queue: Text::Borrowed(task.queue.as_str()),
        priority: task.priority,
        payload: Cow::Borrowed(task.payload.as_bytes()),
        not_before,
        clock,
        lease_ms: task.lease_ms.get(),
        max_attempts: task.max_attempts.get(),
        max_expiries: task.max_expiries.get(),
        backoff: task.backoff.clone(),
        timeout_ms,
        key: task.key.as_ref().map(|key| Text::Borrowed(key.as_str())),
        submit_hash,
        tags: tags
            .map(|(key, value)| Tag {
                key: Text::Borrowed(key.as_str()),
                value: Text::Borrowed(value.as_str()),
            })
            .collect(),
        deadline_at: timeout_ms.map_or(Timestamp::ZERO, |ms| now.log.plus_ms(ms)),
        run: None,
    }
}

/// A hash of the submit as it was meant, after defaults. A delay counts as a delay: the same
/// request a second later is the same request.
fn hash(task: &NewTask) -> SubmitHash {
    let mut hasher = RequestHasher::default();
    hasher.text(task.payload.as_bytes());
    for (key, value) in task.tags.as_slice() {
        hasher.text(key.as_str().as_bytes());
        hasher.text(value.as_str().as_bytes());
    }
    let backoff = task.backoff.as_ref().unwrap_or(&Backoff::STANDARD);
    let (start_kind, start) = match task.start {
        Start::AtOnce => (0, 0),
        Start::After(span) if span.get() == 0 => (0, 0),
        Start::After(span) => (1, span.get()),
        Start::At(moment) => (2, moment.0),
    };
    let numbers = [
        task.priority.get() as u64,
        start_kind,
        start,
        task.max_attempts.get().into(),
        task.max_expiries.get().into(),
        backoff.kind.unwrap_or_default() as u64,
        backoff.initial_ms,
        backoff.max_ms,
        backoff.jitter_permille.into(),
        task.lease_ms.get().into(),
        task.timeout_ms.map_or(u64::MAX, |span| span.get()),
    ];
    numbers.into_iter().for_each(|number| hasher.number(number));
    hasher.finish()
}
