//! The same key never makes two tasks, as long as the first may hold it.

use tenure_core::Rejection;
use tenure_record::event::Record;
use tenure_record::id::TaskId;

use super::{LawResult, hold};
use crate::item::Item;
use crate::ledger::TaskLedger;

const GROW: &str = "task ids only grow";
const LAW: &str = "the same key never makes two tasks";

pub(super) fn item(ledger: &TaskLedger, record: &Record<'_>, item: Item<'_>) -> LawResult {
    let (lsn, last) = (record.lsn, ledger.last_task);
    let grows = |id: TaskId| hold(GROW, id > last, || format!("record {lsn}: {id} after {last}"));
    if let Item::Copied { item, .. } = item {
        return grows(item.task_id);
    }
    let Item::Created(item) = item else { return Ok(()) };
    grows(item.task_id)?;
    let Some(key) = &item.key else { return Ok(()) };
    let place = (item.queue.as_str().to_owned(), key.as_str().to_owned());
    let holder = ledger.keys.get(&place);
    // A key that its task may hold no longer goes to the next one.
    let free_at = holder.and_then(|id| ledger.tasks.get(id)?.key_free_at);
    let is_free = holder.is_none() || free_at.is_some_and(|at| at <= record.at);
    hold(LAW, is_free && item.key_from == holder.copied().unwrap_or_default(), || {
        format!("record {lsn}: {place:?} makes {}, held by {holder:?}", item.task_id)
    })
}

pub(super) fn rejected(ledger: &TaskLedger, rejection: &Rejection) -> LawResult {
    let Rejection::KeyConflict { key, task_id, .. } = rejection else { return Ok(()) };
    let task = ledger.tasks.get(task_id);
    let is_so = task.is_some_and(|task| task.key.as_deref() == Some(key.as_str()));
    hold(LAW, is_so, || format!("{rejection}; the log says {task:?}"))
}
