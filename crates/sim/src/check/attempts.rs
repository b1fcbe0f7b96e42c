//! The attempt on a grant is the number of grants so far.

use tenure_record::event::Record;

use super::{LawResult, hold};
use crate::item::Item;
use crate::ledger::TaskLedger;

const LAW: &str = "an attempt is the number of grants so far";

pub(super) fn item(ledger: &TaskLedger, record: &Record<'_>, item: Item<'_>) -> LawResult {
    let (task_id, attempt, more) = match item {
        Item::Granted { item, .. } => (item.about.task_id, item.about.attempt, 1),
        Item::Ended { about, .. }
        | Item::Stale { about, .. }
        | Item::AskedToStop { about, .. }
        | Item::EndedWaiting { about, .. }
        | Item::Retried { about } => (about.task_id, about.attempt, 0),
        Item::Stopped(stopped) => (stopped.task_id, stopped.attempt, 0),
        Item::Created(_)
        | Item::Copied { .. }
        | Item::Extended(_)
        | Item::Checkpoint(..)
        | Item::Purged(_)
        | Item::Registered { .. }
        | Item::Began(_)
        | Item::Decided(..)
        | Item::Finished(..)
        | Item::PurgedRun(_)
        | Item::Configured => return Ok(()),
    };
    let grants = ledger.task(task_id).map(|task| task.grants + more);
    hold(LAW, grants == Some(attempt), || {
        format!("record {}: task {task_id} says {attempt}, and had {grants:?} grants", record.lsn)
    })
}
