//! A record ends no more tokens and tasks with their scopes than the bound allows. A batch stops at
//! the bound once it is reached, so the last item of it may end as much again.

use tenure_record::event::{Record, Step};

use super::{LawResult, hold};
use crate::item::Item;

const BOUNDED: &str = "a record ends a bounded number of tokens and tasks";

/// A token and its task, which end together.
const ITEM: usize = 2;

pub(super) fn record(record: &Record<'_>, items: &[Item<'_>], items_max: usize) -> LawResult {
    let ended = items.iter().map(|item| {
        let Item::Decided(_, Some(Step::CancelTokens(step))) = item else { return 0 };
        // Without tokens it stops the work of a token that lives on.
        if step.tokens.is_empty() {
            return 0;
        }
        let tasks = step.tasks.iter().map(|tasks| tasks.tasks.iter().count());
        step.tokens.iter().count() + tasks.sum::<usize>()
    });
    let (ended, most) = (ended.sum::<usize>(), 2 * items_max + ITEM);
    hold(BOUNDED, ended <= most, || {
        format!("record {}: {ended} tokens and tasks end, and {items_max} may", record.lsn)
    })
}
