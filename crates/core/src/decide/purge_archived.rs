//! Finished tasks and runs that are in the archive are forgotten: exactly these, and only if all
//! that ever happened to them is there.

use std::collections::BTreeSet;

use tenure_record::event::{Event, RunState, TasksPurged};
use tenure_record::id::{Lsn, RunId, TaskId};

use super::Verdict;
use crate::command::{Archived, Reply, Rest, Swept};
use crate::limits::DUE_ITEMS_MAX;
use crate::state::{Draft, Ledger, Runs, State, Work};

pub(super) fn decide(draft: &mut Draft<'_>, archived: &Archived) -> Verdict<'static> {
    let state = draft.base();
    let as_of = archived.as_of;
    // One that is named twice goes once.
    let named: BTreeSet<_> = archived.tasks.iter().copied().collect();
    let mut tasks: Vec<_> = named.into_iter().filter(|id| is_archived(state, *id, as_of)).collect();
    let mut rest = if tasks.len() > DUE_ITEMS_MAX { Rest::More } else { Rest::Nothing };
    tasks.truncate(DUE_ITEMS_MAX);
    let mut items = tasks.len();
    let mut runs = Vec::new();
    for run_id in archived.runs.iter().copied().collect::<BTreeSet<_>>() {
        let Some(tokens) = archived_run(state, run_id, as_of) else { continue };
        // As with every purge, a run larger than a record's share goes in a record with few others.
        if items >= DUE_ITEMS_MAX {
            rest = Rest::More;
            break;
        }
        items += 1 + tokens;
        runs.push(run_id);
    }
    draft.reserve(tasks.len());
    tasks.iter().for_each(|task_id| draft.purge(*task_id));
    runs.iter().for_each(|run_id| draft.purge_run(*run_id));
    let reply = Reply::Swept(Swept { items: tasks.len() + runs.len(), rest });
    match tasks.is_empty() && runs.is_empty() {
        true => Verdict::Answer(reply),
        false => Verdict::Append(Event::TasksPurged(TasksPurged { tasks, runs }), reply),
    }
}

/// Whether a task has ended, belongs to no run, and was left alone since it was archived. An operator
/// may have retried it, or a late report may have come: then it is archived again first.
fn is_archived(state: &State, id: TaskId, as_of: Lsn) -> bool {
    let task = Ledger::task(state, id);
    task.is_some_and(|task| task.name().is_terminal() && !task.in_run && task.last_lsn <= as_of)
}

/// How many tokens a run has that is over and was left alone, with its tasks, since it was archived.
/// None for a child whose parent exists: it is kept as long as that.
fn archived_run(state: &State, id: RunId, as_of: Lsn) -> Option<usize> {
    let run = state.stored_run(id)?;
    if run.head.parent.is_some_and(|(parent, _)| state.stored_run(parent).is_some()) {
        return None;
    }
    let is_left_alone = |id| Ledger::task(state, id).is_none_or(|task| task.last_lsn <= as_of);
    let is_over = run.head.state != RunState::Running && run.head.last_lsn <= as_of;
    let mut tasks = run.tokens().filter_map(|(_, token)| {
        let Work::Task(task_id) = token.work else { return None };
        Some(task_id)
    });
    (is_over && tasks.all(is_left_alone)).then_some(run.head.tokens as usize)
}
