//! An operator stops a queue: what is leased goes on, nothing new is leased.

use tenure_record::name::QueueName;

use super::Verdict;
use super::configure_queue::set;
use crate::rejection::Rejection;
use crate::state::Draft;

pub(super) fn decide<'c>(
    draft: &mut Draft<'_>,
    queue: &'c QueueName,
) -> Result<Verdict<'c>, Rejection> {
    set(draft, queue, |settings| settings.paused = true)
}
