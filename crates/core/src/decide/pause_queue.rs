//! An operator stops a queue: what is leased goes on, nothing new is leased. With an end, the queue
//! opens by itself at that moment of the wall clock, without a record.

use tenure_record::time::{Now, Timestamp};

use super::Verdict;
use super::configure_queue::set;
use crate::command::{PauseEnd, PauseQueue};
use crate::rejection::Rejection;
use crate::state::Draft;

pub(super) fn decide<'c>(
    draft: &mut Draft<'_>,
    command: &'c PauseQueue,
    now: Now,
) -> Result<Verdict<'c>, Rejection> {
    set(draft, &command.queue, |settings| {
        (settings.paused, settings.paused_until) = match command.end {
            PauseEnd::Resumed => (true, Timestamp::ZERO),
            PauseEnd::At(at) => (false, at),
            PauseEnd::After(span) => (false, now.wall.plus_ms(span.get())),
        };
    })
}
