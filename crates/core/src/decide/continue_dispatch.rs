//! Branches of wide groups begin as there is room for them in a record.

use super::Verdict;
use crate::command::{Reply, Rest, Swept};
use crate::event::{DispatchContinued, Event};
use crate::limits::BRANCHES_BEGUN_MAX;
use crate::state::Draft;
use crate::time::Now;
use crate::workflow::Cascade;

pub(super) fn decide(draft: &mut Draft<'_>, now: Now) -> Verdict<'static> {
    let waiting = draft.base().live().runs.dispatch.iter().take(BRANCHES_BEGUN_MAX as usize);
    let waiting: Vec<_> = waiting.copied().collect();
    let mut cascade = Cascade::new(draft, now);
    for (run, group) in waiting {
        cascade.continue_dispatch(run, group);
    }
    let (items, cascade) = cascade.finish_counted();
    // Whether more can begin is seen when this is applied: the index says so.
    let rest = if cascade.is_empty() { Rest::Nothing } else { Rest::More };
    let reply = Reply::Swept(Swept { items, rest });
    match cascade.is_empty() {
        true => Verdict::Answer(reply),
        false => Verdict::Append(Event::DispatchContinued(DispatchContinued { cascade }), reply),
    }
}
