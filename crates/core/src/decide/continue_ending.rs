//! Scopes whose end is decided: the next of their tokens, tasks and child runs end.

use tenure_record::event::{EndContinued, Event};
use tenure_record::time::Now;

use super::Verdict;
use crate::command::{Reply, Rest, Swept};
use crate::state::Draft;
use crate::workflow::Cascade;

pub(super) fn decide(draft: &mut Draft<'_>, items_max: usize, now: Now) -> Verdict<'static> {
    // A token and its task are two.
    let items_max = items_max.clamp(2, draft.base().end_items_max());
    // The newest first: a run waits for its child runs, which are newer.
    let ending = draft.base().live().runs.endings.iter().rev().take(items_max);
    let ending: Vec<_> = ending.copied().collect();
    let mut cascade = Cascade::with_items_max(draft, now, items_max);
    for run in ending {
        if cascade.is_spent() {
            break;
        }
        cascade.continue_ending(run);
    }
    let cascade = cascade.finish();
    // Whether more is ending is seen when this is applied: the index says so.
    let rest = if cascade.is_empty() { Rest::Nothing } else { Rest::More };
    let reply = Reply::Swept(Swept { items: draft.spent.ended, rest });
    match cascade.is_empty() {
        true => Verdict::Answer(reply),
        false => Verdict::Append(
            Event::EndContinued(EndContinued { cascade, items_max: items_max as u32 }),
            reply,
        ),
    }
}
