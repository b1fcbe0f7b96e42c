//! Finished tasks whose retention is over are forgotten.

use super::Verdict;
use crate::command::{Reply, Rest, Retention, Swept};
use crate::event::{Event, TasksPurged};
use crate::id::RunId;
use crate::limits::{DUE_ITEMS_MAX, FOR_EVER_MS};
use crate::planted::{self, Bug};
use crate::state::{Draft, Ledger, Runs};
use crate::time::Now;

pub(super) fn decide(draft: &mut Draft<'_>, retention: Retention, now: Now) -> Verdict<'static> {
    if planted::has(Bug::KeptForEver) {
        return Verdict::Answer(Reply::Swept(Swept { items: 0, rest: Rest::Nothing }));
    }
    let indexes = draft.base().live();
    // Beyond the number that is kept, age does not matter: the next in line go.
    let ended = indexes.counts().terminal() - indexes.kept;
    let too_many = ended.saturating_sub(retention.tasks_max);
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
    let (runs, rest) = due_runs(draft, retention, now, tasks.len(), rest);
    let reply = Reply::Swept(Swept { items: tasks.len() + runs.len(), rest });
    match tasks.is_empty() && runs.is_empty() {
        true => Verdict::Answer(reply),
        false => Verdict::Append(Event::TasksPurged(TasksPurged { tasks, runs }), reply),
    }
}

/// Runs that are over long enough, or too many, as far as the record has room for their tokens.
fn due_runs(
    draft: &mut Draft<'_>,
    retention: Retention,
    now: Now,
    mut items: usize,
    rest: Rest,
) -> (Vec<RunId>, Rest) {
    let state = draft.base();
    let finished = &state.live().runs.finished;
    let too_many = (finished.len() as u64).saturating_sub(retention.tasks_max);
    let mut runs = Vec::new();
    for ((at, run_id), nth) in finished.iter().zip(0_u64..) {
        let is_young = at.plus_ms(retention.age_ms.min(FOR_EVER_MS)) > now.log;
        if is_young && nth >= too_many && !planted::has(Bug::RunPurgedTooEarly) {
            break;
        }
        if items >= DUE_ITEMS_MAX {
            return (runs, Rest::More);
        }
        items += 1 + Runs::run(draft, *run_id).map_or(0, |run| run.tokens as usize);
        draft.purge_run(*run_id);
        runs.push(*run_id);
    }
    (runs, rest)
}
