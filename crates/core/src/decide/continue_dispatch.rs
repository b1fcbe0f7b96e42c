//! Branches of wide groups begin as there is room for them in a record.

use tenure_record::event::{DispatchContinued, Event};
use tenure_record::id::{GroupId, RunId};
use tenure_record::time::Now;

use super::Verdict;
use crate::command::{Reply, Rest, Swept};
use crate::limits::{BRANCHES_BEGUN_MAX, DUE_ITEMS_MAX};
use crate::state::{Draft, Runs};
use crate::workflow::Cascade;

pub(super) fn decide(draft: &mut Draft<'_>, now: Now) -> Verdict<'static> {
    let state = draft.base();
    // What is ending leaves this index as it ends.
    let goes_on = |&&(run, group): &&(RunId, GroupId)| {
        Runs::group(state, run, group).is_some_and(|group| !state.is_ending(run, group.scope))
    };
    let waiting = state.live().runs.dispatch.iter().take(DUE_ITEMS_MAX).filter(goes_on);
    let waiting: Vec<_> = waiting.take(BRANCHES_BEGUN_MAX as usize).copied().collect();
    let mut cascade = Cascade::new(draft, now);
    for (run, group) in waiting {
        cascade.continue_dispatch(run, group);
    }
    let cascade = cascade.finish();
    let items = draft.spent.begun as usize;
    // Whether more can begin is seen when this is applied: the index says so.
    let rest = if cascade.is_empty() { Rest::Nothing } else { Rest::More };
    let reply = Reply::Swept(Swept { items, rest });
    match cascade.is_empty() {
        true => Verdict::Answer(reply),
        false => Verdict::Append(Event::DispatchContinued(DispatchContinued { cascade }), reply),
    }
}
