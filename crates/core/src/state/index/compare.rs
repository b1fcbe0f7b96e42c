//! Two sets of indexes compared: the one that was kept up, and one that was built anew.

use super::ready::Ready;
use super::{Indexes, QueueIndex};

impl Indexes {
    /// Everything in an order of its own, for comparing two of them. Says the first difference.
    pub(crate) fn compare(&self, other: &Self) -> Result<(), String> {
        fn same<T: PartialEq>(what: &str, a: &T, b: &T) -> Result<(), String> {
            if a == b { Ok(()) } else { Err(format!("{what} differ")) }
        }
        same("timers", &self.timers, &other.timers)?;
        same("queues by oldest end", &self.finished, &other.finished)?;
        same("counts", &self.counts, &other.counts)?;
        same("the numbers of keys", &self.keys.len(), &other.keys.len())?;
        same("kept tasks", &self.kept, &other.kept)?;
        same("bytes of texts", &self.text_bytes, &other.text_bytes)?;
        same("bytes of definitions", &self.definition_bytes, &other.definition_bytes)?;
        same("calls of workflows", &self.calls, &other.calls)?;
        same("runs", &self.runs, &other.runs)?;
        same("held tasks", &self.held, &other.held)?;
        if self.unheld.is_empty() {
            same("the numbers of links", &self.links.len(), &other.links.len())?;
        }
        let none = QueueIndex::default();
        for at in 0..self.queues.len().max(other.queues.len()) {
            let a = self.queues.get(at).unwrap_or(&none);
            let b = other.queues.get(at).unwrap_or(&none);
            same("lists of a queue", &a.lists, &b.lists)?;
            same("counts of a queue", &a.counts, &b.counts)?;
            same("finished tasks of a queue", &a.finished, &b.finished)?;
            same("retentions of a queue", &a.own_retention_ms, &b.own_retention_ms)?;
            let order = |ready: &Ready, links| ready.iter(links).collect::<Vec<_>>();
            let (a, b) = (order(&a.ready, &self.links), order(&b.ready, &other.links));
            same("ready tasks of a queue", &a, &b)?;
        }
        Ok(())
    }
}
