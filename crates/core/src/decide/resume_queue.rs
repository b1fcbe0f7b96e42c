//! An operator lets a queue go on.

use tenure_record::name::QueueName;
use tenure_record::time::Timestamp;

use super::Verdict;
use super::configure_queue::set;
use crate::command::Reply;
use crate::rejection::Rejection;
use crate::state::Draft;

pub(super) fn decide<'c>(
    draft: &mut Draft<'_>,
    queue: &'c QueueName,
) -> Result<Verdict<'c>, Rejection> {
    // What is not paused needs no record; and a typing error must not make a queue.
    let known = draft.find_queue(queue.as_str());
    let settings = known.map(|queue| draft.queue_settings(queue)).unwrap_or_default();
    if !settings.paused && settings.paused_until == Timestamp::ZERO {
        return Ok(Verdict::Answer(Reply::Queue(settings)));
    }
    set(draft, queue, |settings| {
        (settings.paused, settings.paused_until) = (false, Timestamp::ZERO);
    })
}
