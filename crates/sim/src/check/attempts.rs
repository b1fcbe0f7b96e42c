//! The attempt on a grant is the number of grants so far.

use tenure_core::event::Record;

use super::{Held, hold};
use crate::book::Book;
use crate::item::Item;

const LAW: &str = "an attempt is the number of grants so far";

pub(super) fn item(book: &Book, record: &Record<'_>, item: Item<'_>) -> Held {
    let (about, more) = match item {
        Item::Granted { item, .. } => (&item.about, 1),
        Item::Ended { about, .. }
        | Item::Stale { about, .. }
        | Item::AskedToStop { about, .. }
        | Item::Canceled { about }
        | Item::Retried { about } => (about, 0),
        Item::Created(_) | Item::Extended(_) | Item::Purged(_) | Item::Configured => return Ok(()),
    };
    let grants = book.task(about.task_id).map(|task| task.grants + more);
    hold(LAW, grants == Some(about.attempt), || {
        format!(
            "record {}: task {} says {}, and had {grants:?} grants",
            record.lsn, about.task_id, about.attempt
        )
    })
}
