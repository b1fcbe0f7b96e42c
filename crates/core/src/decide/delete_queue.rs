//! An operator deletes a queue that has no tasks. Its settings go with it.

use tenure_record::event::{Event, QueueDeleted};
use tenure_record::name::{QueueName, Text};

use super::Verdict;
use crate::apply;
use crate::command::Reply;
use crate::rejection::Rejection;
use crate::state::Draft;

pub(super) fn decide<'c>(
    draft: &mut Draft<'_>,
    name: &'c QueueName,
) -> Result<Verdict<'c>, Rejection> {
    let Some(queue) = draft.find_queue(name.as_str()) else {
        return Err(Rejection::QueueNotFound { name: name.clone() });
    };
    let counts = draft.base().live().counts_in(queue);
    if counts.all() > 0 {
        let (tasks, ended) = (counts.all(), counts.terminal());
        return Err(Rejection::QueueInUse { name: name.clone(), tasks, ended });
    }
    if let Some(of) = draft.base().dead_letters_of(name.as_str()) {
        return Err(Rejection::QueueOfDeadLetters { name: name.clone(), of });
    }
    let item = QueueDeleted { queue: Text::Borrowed(name.as_str()) };
    apply::queue::deleted(draft, &item);
    Ok(Verdict::Append(Event::QueueDeleted(item), Reply::Deleted))
}
