//! An operator lets a queue go on.

use super::Verdict;
use super::configure_queue::set;
use crate::name::QueueName;
use crate::rejection::Rejection;
use crate::state::Draft;

pub(super) fn decide<'c>(
    draft: &mut Draft<'_>,
    queue: &'c QueueName,
) -> Result<Verdict<'c>, Rejection> {
    set(draft, queue, |settings| settings.paused = false)
}
