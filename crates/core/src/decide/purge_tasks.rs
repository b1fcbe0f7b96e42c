//! Finished tasks whose retention is over are forgotten.

use super::Verdict;
use crate::command::{Reply, Rest, Retention, Swept};
use crate::event::{Event, TasksPurged};
use crate::limits::{DUE_ITEMS_MAX, FOR_EVER_MS};
use crate::planted::{self, Bug};
use crate::state::{Draft, Ledger};
use crate::time::Now;

pub(super) fn decide(draft: &mut Draft<'_>, retention: Retention, now: Now) -> Verdict<'static> {
    let indexes = draft.base().live();
    // Beyond the number that is kept, age does not matter: the next in line go.
    let too_many = indexes.counts().terminal().saturating_sub(retention.tasks_max);
    let items_max = retention.items_max.min(DUE_ITEMS_MAX);
    let mut due = indexes
        .finished(retention.age_ms.min(FOR_EVER_MS), items_max + 1)
        .zip(0_u64..)
        .take_while(|((over_at, _), nth)| {
            *over_at <= now.log || *nth < too_many || planted::has(Bug::PurgedTooEarly)
        })
        .map(|((_, task_id), _)| task_id);
    let tasks: Vec<_> = due.by_ref().take(items_max).collect();
    let rest = if due.next().is_some() { Rest::More } else { Rest::Nothing };
    draft.reserve(tasks.len());
    tasks.iter().for_each(|task_id| draft.purge(*task_id));
    let reply = Reply::Swept(Swept { items: tasks.len(), rest });
    match tasks.is_empty() {
        true => Verdict::Answer(reply),
        false => Verdict::Append(Event::TasksPurged(TasksPurged { tasks }), reply),
    }
}
