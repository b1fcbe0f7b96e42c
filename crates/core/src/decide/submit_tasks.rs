//! A client brings tasks: all are taken, or none.

use std::borrow::Cow;

use tenure_record::event::{Created, Event, SubmitHash, Tag, TaskCreated};
use tenure_record::id::TaskId;
use tenure_record::limits::RECORD_BYTES_MAX;
use tenure_record::name::{TaskKey, Text};
use tenure_record::time::{Clock, Now, Timestamp};

use super::skip_ids::check_room;
use super::{Verdict, stamp};
use crate::apply;
use crate::command::{NewTask, Reply, Start, SubmitOutcome, SubmitTasks, Submitted};
use crate::limits::{BATCH_ITEMS_MAX, QUEUES_MAX, TASK_NAMES_MAX};
use crate::rejection::Rejection;
use crate::state::{Draft, Ledger, QueueRef};

/// Numbers and field keys of one task in a record, beside its texts and payload.
const ITEM_BYTES: usize = 208;

pub(super) fn decide<'c>(
    draft: &mut Draft<'_>,
    command: &'c SubmitTasks,
    now: Now,
) -> Result<Verdict<'c>, Rejection> {
    check_size(&command.tasks)?;
    let mut submitted = Vec::with_capacity(command.tasks.len());
    let mut created = Vec::with_capacity(command.tasks.len());
    let mut waiting = WaitingCounts::default();
    for (index, task) in command.tasks.iter().enumerate() {
        let place = (command.tasks.len() > 1).then_some(index);
        let submit_hash = task.submit_hash();
        let mut key_from = TaskId::NONE;
        if let Some((key, hash)) = task.key.as_ref().zip(submit_hash) {
            match holder(draft, place, task, key, hash, &submitted, now)? {
                Holder::Nobody => {}
                Holder::Expired(task_id) => key_from = task_id,
                Holder::Same(task_id) => {
                    submitted.push(Submitted { task_id, outcome: SubmitOutcome::Existed });
                    continue;
                }
            }
        }
        match draft.find_queue(task.queue.as_str()) {
            Some(queue) => waiting.admit(draft, queue, task, place)?,
            None if draft.queue_count() >= QUEUES_MAX => {
                return Err(Rejection::TooManyQueues { index: place });
            }
            None => {}
        }
        if let Some(name) = &task.name
            && draft.find_name(name.as_str()).is_none()
            && draft.name_count() >= TASK_NAMES_MAX
        {
            return Err(Rejection::TooManyNames { index: place });
        }
        let id = draft.next_task_id();
        let item = create(id, task, submit_hash, key_from, now);
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

/// The waiting tasks of the queues in a batch that have a `max_waiting`, those of the batch included.
#[derive(Default)]
struct WaitingCounts(Vec<(QueueRef, u64)>);

impl WaitingCounts {
    /// Counts a task of the batch; rejected if its queue has as many waiting tasks as it may.
    fn admit(
        &mut self,
        draft: &Draft<'_>,
        queue: QueueRef,
        task: &NewTask,
        index: Option<usize>,
    ) -> Result<(), Rejection> {
        let Some(max_waiting) = draft.max_waiting(queue) else { return Ok(()) };
        let at = self.0.iter().position(|(known, _)| *known == queue).unwrap_or_else(|| {
            self.0.push((queue, draft.waiting_in(queue)));
            self.0.len() - 1
        });
        let (_, waiting) = &mut self.0[at];
        if *waiting >= max_waiting {
            return Err(Rejection::QueueFull { index, name: task.queue.clone(), max_waiting });
        }
        *waiting += 1;
        Ok(())
    }
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
    let traceparent = task.traceparent.as_ref().map_or(0, |text| text.as_str().len());
    let name = task.name.as_ref().map_or(0, |name| name.as_str().len());
    let texts = task.queue.as_str().len() + name + key + tags + traceparent;
    task.payload.as_bytes().len() + texts + ITEM_BYTES
}

/// Who has the key of a submit.
enum Holder {
    Nobody,
    /// A task whose time with the key is over.
    Expired(TaskId),
    /// A task that was made by the same submit.
    Same(TaskId),
}

/// The task that holds the key; refused if another submit made it.
fn holder(
    draft: &Draft<'_>,
    index: Option<usize>,
    task: &NewTask,
    key: &TaskKey,
    hash: SubmitHash,
    submitted: &[Submitted],
    now: Now,
) -> Result<Holder, Rejection> {
    let queue = draft.find_queue(task.queue.as_str());
    let Some(task_id) = queue.and_then(|queue| draft.key_holder(queue, key.as_str())) else {
        return Ok(Holder::Nobody);
    };
    let cold = draft.cold(task_id).expect("a task with a key has a cold part");
    let held = cold.held_key().expect("the holder of a key holds it");
    if held.is_free(now.log) {
        return Ok(Holder::Expired(task_id));
    }
    if held.hash == hash {
        return Ok(Holder::Same(task_id));
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
    key_from: TaskId,
    now: Now,
) -> Created<'c> {
    let total_timeout_ms = task.total_timeout_ms.map(|span| span.get());
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
        max_failures: task.budgets.max_failures,
        max_expiries: task.budgets.max_expiries,
        backoff: task.backoff.clone(),
        total_timeout_ms,
        key: task.key.as_ref().map(|key| Text::Borrowed(key.as_str())),
        submit_hash,
        tags: tags
            .map(|(key, value)| Tag {
                key: Text::Borrowed(key.as_str()),
                value: Text::Borrowed(value.as_str()),
            })
            .collect(),
        deadline_at: total_timeout_ms.map_or(Timestamp::ZERO, |ms| now.log.plus_ms(ms)),
        run: None,
        max_attempts: task.budgets.max_attempts,
        attempt_timeout_ms: task.attempt_timeout_ms.map(|span| span.get()),
        traceparent: task.traceparent.as_ref().map(|text| Text::Borrowed(text.as_str())),
        name: task.name.as_ref().map(|name| Text::Borrowed(name.as_str())),
        key_free_at: match (&task.key, task.key_ttl_ms) {
            (Some(_), Some(span)) => now.log.plus_ms(span.get()),
            (Some(_), None) | (None, _) => Timestamp::ZERO,
        },
        key_from,
    }
}
