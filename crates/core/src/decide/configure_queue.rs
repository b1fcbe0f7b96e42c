//! An operator changes a queue's settings.

use std::sync::Arc;

use tenure_record::event::{Event, QueueConfigured, QueueSettings};
use tenure_record::name::{QueueName, Text};

use super::Verdict;
use crate::apply;
use crate::command::{ConfigureQueue, Reply, Setting};
use crate::limits::QUEUES_MAX;
use crate::rejection::Rejection;
use crate::state::Draft;

pub(super) fn decide<'c>(
    draft: &mut Draft<'_>,
    command: &'c ConfigureQueue,
) -> Result<Verdict<'c>, Rejection> {
    let change = &command.change;
    if let Setting::Set(name) = &change.dead_letter_queue
        && *name == command.queue
    {
        return Err(Rejection::OwnDeadLetterQueue { name: name.clone() });
    }
    set(draft, &command.queue, |settings| change.apply(settings))
}

/// Changes a queue's settings, which makes the queue, and its dead letter queue, if there is none. What is so already needs
/// no record.
pub(super) fn set<'c>(
    draft: &mut Draft<'_>,
    name: &'c QueueName,
    change: impl FnOnce(&mut QueueSettings),
) -> Result<Verdict<'c>, Rejection> {
    let known = draft.find_queue(name.as_str());
    let before = known.map(|queue| draft.queue_settings(queue)).unwrap_or_default();
    let mut settings = before.clone();
    change(&mut settings);
    let reply = Reply::Queue(settings.clone());
    if settings == before && known.is_some_and(|queue| draft.is_configured(queue)) {
        return Ok(Verdict::Answer(reply));
    }
    let is_new = |name: &Arc<str>| draft.find_queue(name).is_none();
    let new = usize::from(known.is_none())
        + usize::from(settings.dead_letter_queue.as_ref().is_some_and(is_new));
    if new > 0 && draft.queue_count() + new > QUEUES_MAX {
        return Err(Rejection::TooManyQueues { index: None });
    }
    let item = QueueConfigured { queue: Text::Borrowed(name.as_str()), settings };
    apply::queue::configured(draft, &item);
    Ok(Verdict::Append(Event::QueueConfigured(item), reply))
}
