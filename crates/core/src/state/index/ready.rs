//! Who is next: for each queue and priority, a list of the tasks that were never leased and a set
//! of those that came back. Both are ordered by id; the smaller head goes first.

use std::collections::{BTreeSet, btree_set};
use std::iter::Peekable;
use std::num::NonZeroU64;

use smallvec::SmallVec;
use tenure_record::id::TaskId;
use tenure_record::terms::Priority;

use crate::state::store::Paged;

/// As many as fit 16 KiB with a header.
const PAGE_SLOTS: usize = 1020;

/// The neighbors of each listed task. The list runs through the ids themselves.
pub(crate) type Links = Paged<Link, PAGE_SLOTS>;

/// The neighbors of one task, each plus one: a link of zeros would look like no link at all, and
/// without zeros no link at all takes no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    before: NonZeroU64,
    after: NonZeroU64,
}

impl Link {
    fn new(before: TaskId, after: TaskId) -> Self {
        Self {
            before: NonZeroU64::MIN.saturating_add(before.0),
            after: NonZeroU64::MIN.saturating_add(after.0),
        }
    }

    fn before(self) -> TaskId {
        TaskId(self.before.get() - 1)
    }

    fn after(self) -> TaskId {
        TaskId(self.after.get() - 1)
    }
}

/// The ready tasks of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ready {
    /// Most urgent first; none is empty.
    lines: Vec<(Priority, Line)>,
}

/// The ready tasks of one queue and priority.
#[derive(Clone, Debug, Default)]
struct Line {
    /// Ends of the list of tasks that were never leased.
    head: TaskId,
    tail: TaskId,
    /// Tasks that came back, or whose delay is over.
    returned: BTreeSet<TaskId>,
}

impl Ready {
    /// Appends a task that is younger than all others in the list.
    pub(crate) fn push_fresh(&mut self, links: &mut Links, priority: Priority, id: TaskId) {
        let line = self.line(priority);
        let before = line.tail;
        assert!(before < id, "only a new task is pushed, and ids grow");
        links.insert(id.0, Link::new(before, TaskId::NONE));
        match links.get_mut(before.0) {
            Some(link) => *link = Link::new(link.before(), id),
            None => line.head = id,
        }
        line.tail = id;
    }

    pub(crate) fn remove_fresh(&mut self, links: &mut Links, priority: Priority, id: TaskId) {
        let link = links.remove(id.0).expect("a fresh task is linked");
        let (before, after) = (link.before(), link.after());
        let line = self.line(priority);
        match links.get_mut(before.0) {
            Some(link) => *link = Link::new(link.before(), after),
            None => line.head = after,
        }
        match links.get_mut(after.0) {
            Some(link) => *link = Link::new(before, link.after()),
            None => line.tail = before,
        }
        self.drop_if_empty(priority);
    }

    pub(crate) fn insert_returned(&mut self, priority: Priority, id: TaskId) {
        self.line(priority).returned.insert(id);
    }

    pub(crate) fn remove_returned(&mut self, priority: Priority, id: TaskId) {
        let was_there = self.line(priority).returned.remove(&id);
        assert!(was_there, "a returned task is in its set");
        self.drop_if_empty(priority);
    }

    /// Whether a task of this queue is ready.
    pub(crate) fn has(&self, links: &Links, priority: Priority, id: TaskId) -> bool {
        let Ok(at) = self.find(priority) else { return false };
        links.get(id.0).is_some() || self.lines[at].1.returned.contains(&id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// All of them, in the order in which they are to be leased.
    pub(crate) fn iter<'a>(&'a self, links: &'a Links) -> impl Iterator<Item = Next> + 'a {
        self.lines.iter().flat_map(move |(priority, line)| {
            let returned = line.returned.iter().peekable();
            let ids = LineIter { links, fresh: line.head, returned };
            ids.map(|task_id| Next { priority: *priority, task_id })
        })
    }

    /// Those that came back, or whose delay is over.
    pub(crate) fn returned(&self) -> impl Iterator<Item = Next> {
        self.lines.iter().flat_map(|(priority, line)| {
            line.returned.iter().map(|id| Next { priority: *priority, task_id: *id })
        })
    }

    fn line(&mut self, priority: Priority) -> &mut Line {
        let at = self.find(priority).unwrap_or_else(|at| {
            self.lines.insert(at, (priority, Line::default()));
            at
        });
        &mut self.lines[at].1
    }

    fn drop_if_empty(&mut self, priority: Priority) {
        if let Ok(at) = self.find(priority) {
            let line = &self.lines[at].1;
            if !line.head.is_some() && line.returned.is_empty() {
                self.lines.remove(at);
            }
        }
    }

    fn find(&self, priority: Priority) -> Result<usize, usize> {
        self.lines.binary_search_by(|(there, _)| priority.cmp(there))
    }
}

/// A ready task and how urgent it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    pub priority: Priority,
    pub task_id: TaskId,
}

impl Next {
    /// Whether this one goes before the other: by priority, then by age.
    fn goes_before(self, other: Self) -> bool {
        (other.priority, self.task_id) < (self.priority, other.task_id)
    }
}

struct LineIter<'a> {
    links: &'a Links,
    fresh: TaskId,
    returned: Peekable<btree_set::Iter<'a, TaskId>>,
}

impl Iterator for LineIter<'_> {
    type Item = TaskId;

    fn next(&mut self) -> Option<TaskId> {
        let fresh = self.fresh;
        if let Some(id) = self.returned.next_if(|id| !fresh.is_some() || **id < fresh) {
            return Some(*id);
        }
        self.fresh = self.links.get(fresh.0)?.after();
        Some(fresh)
    }
}

/// The ready tasks of several queues in one order.
pub(crate) fn merge<'a, I: Iterator<Item = Next> + 'a>(
    queues: impl Iterator<Item = I>,
) -> impl Iterator<Item = Next> + 'a {
    let mut heads: SmallVec<[(Next, I); 1]> =
        queues.filter_map(|mut queue| queue.next().map(|next| (next, queue))).collect();
    std::iter::from_fn(move || {
        let mut first = 0;
        for at in 1..heads.len() {
            if heads[at].0.goes_before(heads[first].0) {
                first = at;
            }
        }
        let (next, queue) = heads.get_mut(first)?;
        let found = *next;
        match queue.next() {
            Some(after) => *next = after,
            None => drop(heads.swap_remove(first)),
        }
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priority(value: i64) -> Priority {
        Priority::parse(value).unwrap()
    }

    fn ids(ready: &Ready, links: &Links) -> Vec<u64> {
        ready.iter(links).map(|next| next.task_id.0).collect()
    }

    #[test]
    fn urgent_ones_go_first_and_then_the_oldest() {
        let (mut ready, mut links) = (Ready::default(), Links::default());
        for (id, p) in [(1, 0), (2, 5), (3, 0), (4, -5), (6, 5)] {
            ready.push_fresh(&mut links, priority(p), TaskId(id));
        }
        ready.insert_returned(priority(0), TaskId(5));
        assert_eq!(ids(&ready, &links), [2, 6, 1, 3, 5, 4]);
    }

    #[test]
    fn one_that_comes_back_takes_its_old_place() {
        let (mut ready, mut links) = (Ready::default(), Links::default());
        (1..=4).for_each(|id| ready.push_fresh(&mut links, priority(0), TaskId(id)));
        ready.remove_fresh(&mut links, priority(0), TaskId(2));
        assert_eq!(ids(&ready, &links), [1, 3, 4]);
        assert!(!ready.has(&links, priority(0), TaskId(2)));
        ready.insert_returned(priority(0), TaskId(2));
        assert!((1..=4).all(|id| ready.has(&links, priority(0), TaskId(id))));
        assert_eq!(ids(&ready, &links), [1, 2, 3, 4]);
        ready.remove_returned(priority(0), TaskId(2));
        for id in [4, 1, 3] {
            ready.remove_fresh(&mut links, priority(0), TaskId(id));
        }
        assert!(ready.is_empty());
        assert_eq!(links.len(), 0);
    }

    #[test]
    fn several_queues_make_one_order() {
        let mut links = Links::default();
        let mut queues = [Ready::default(), Ready::default(), Ready::default()];
        for (queue, id, p) in [(0, 1, 0), (1, 2, 0), (0, 3, 9), (2, 4, 0), (1, 5, 9)] {
            queues[queue].push_fresh(&mut links, priority(p), TaskId(id));
        }
        let order: Vec<_> = merge(queues.iter().map(|queue| queue.iter(&links)))
            .map(|next| next.task_id.0)
            .collect();
        assert_eq!(order, [3, 5, 1, 2, 4]);
    }
}
