//! What happens to queues.

use tenure_record::event::{QueueConfigured, QueueDeleted};

use crate::state::Ledger;

pub(crate) fn configured(to: &mut impl Ledger, item: &QueueConfigured<'_>) {
    let queue = to.queue_named(item.queue.as_str());
    to.configure(queue, &item.settings);
    if let Some(name) = &item.settings.dead_letter_queue {
        let dead_letters = to.queue_named(name);
        to.keep_queue(dead_letters);
    }
}

pub(crate) fn deleted(to: &mut impl Ledger, item: &QueueDeleted<'_>) {
    let queue = to.queue_named(item.queue.as_str());
    to.delete_queue(queue);
}
