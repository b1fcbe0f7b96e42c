//! Who is forgotten next: finished tasks by the moment at which they ended.
//!
//! Each queue has its own line, because each may have its own retention; a queue whose retention
//! changes moves as one entry.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use tenure_record::id::TaskId;
use tenure_record::time::Timestamp;

use crate::state::store::QueueRef;

/// The finished tasks of one queue, oldest end first.
pub(crate) type FinishedLine = BTreeSet<(Timestamp, TaskId)>;

/// The queues by the moment at which their oldest finished task ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heads {
    /// Queues that keep tasks as long as the whole system does.
    usual: BTreeSet<(Timestamp, QueueRef)>,
    /// Queues with a retention of their own, by the moment at which that is over.
    own: BTreeSet<(Timestamp, QueueRef)>,
}

impl Heads {
    /// A queue's oldest end is now another one, or its retention is.
    pub(crate) fn moved(&mut self, queue: QueueRef, before: Option<Head>, after: Option<Head>) {
        if before == after {
            return;
        }
        if let Some(head) = before {
            self.set(head).remove(&(head.moment(), queue));
        }
        if let Some(head) = after {
            self.set(head).insert((head.moment(), queue));
        }
    }

    fn set(&mut self, head: Head) -> &mut BTreeSet<(Timestamp, QueueRef)> {
        match head.own_ms {
            Some(_) => &mut self.own,
            None => &mut self.usual,
        }
    }

    /// When the first of them is to be forgotten.
    pub(crate) fn first(&self, usual_ms: u64) -> Option<Timestamp> {
        let usual = self.usual.first().map(|(oldest, _)| oldest.plus_ms(usual_ms));
        let own = self.own.first().map(|(moment, _)| *moment);
        [usual, own].into_iter().flatten().min()
    }

    /// Finished tasks in the order in which they are to be forgotten, each with that moment; at
    /// most `count`. A queue that is not among the first `count` heads has nothing to add.
    pub(crate) fn in_order<'a>(
        &self,
        usual_ms: u64,
        count: usize,
        line: impl Fn(QueueRef) -> (&'a FinishedLine, Option<u64>),
    ) -> impl Iterator<Item = (Timestamp, TaskId)> {
        let heads = self.usual.iter().take(count).chain(self.own.iter().take(count));
        let mut lines = Vec::new();
        let mut next = BinaryHeap::new();
        for &(_, queue) in heads {
            let (tasks, own_ms) = line(queue);
            let keep_ms = own_ms.unwrap_or(usual_ms);
            let mut tasks = tasks.iter().map(move |(ended, id)| (ended.plus_ms(keep_ms), *id));
            next.extend(tasks.next().map(|first| Reverse((first, lines.len()))));
            lines.push(tasks);
        }
        std::iter::from_fn(move || {
            let Reverse((due, at)) = next.pop()?;
            next.extend(lines[at].next().map(|after| Reverse((after, at))));
            Some(due)
        })
        .take(count)
    }
}

/// The oldest end in a queue and the queue's own retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub oldest: Timestamp,
    pub own_ms: Option<u64>,
}

impl Head {
    fn moment(self) -> Timestamp {
        self.oldest.plus_ms(self.own_ms.unwrap_or(0))
    }
}
