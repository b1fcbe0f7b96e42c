//! Finished tasks whose retention is over are forgotten.

use tenure_record::event::{Event, TasksPurged};
use tenure_record::time::Now;

use super::Verdict;
use crate::command::{Reply, Retention, Swept};
use crate::state::{Draft, Due, Ledger, Runs};

pub(super) fn decide(draft: &mut Draft<'_>, retention: Retention, now: Now) -> Verdict<'static> {
    let Due { tasks, runs, rest } = draft.base().due(&retention, now);
    draft.reserve(tasks.len());
    tasks.iter().for_each(|task_id| draft.purge(*task_id));
    runs.iter().for_each(|run_id| draft.purge_run(*run_id));
    let reply = Reply::Swept(Swept { items: tasks.len() + runs.len(), rest });
    match tasks.is_empty() && runs.is_empty() {
        true => Verdict::Answer(reply),
        false => Verdict::Append(Event::TasksPurged(TasksPurged { tasks, runs }), reply),
    }
}
