//! Lists that go by name, page by page. A page looks at all names and builds only what is on it.

use std::sync::Arc;

use tenure_core::limits::LIST_ITEMS_MAX;
use tenure_core::state::QueueView;
use tenure_log::Log;
use tenure_record::time::Now;

use crate::step::Coordinator;
use crate::workers::WorkerInfo;

/// A page of a list that goes by name.
#[derive(Clone, Debug)]
pub struct NameRange {
    /// After this name.
    pub after: Option<Arc<str>>,
    /// At most so many, and no more than [`LIST_ITEMS_MAX`].
    pub limit: usize,
}

impl Default for NameRange {
    fn default() -> Self {
        Self { after: None, limit: LIST_ITEMS_MAX }
    }
}

/// A page of a list that goes by name.
#[derive(Clone, Debug)]
pub struct NamePage<T> {
    /// By name.
    pub items: Vec<T>,
    /// Where to go on: ask for those after this name.
    pub next: Option<Arc<str>>,
}

impl NameRange {
    /// How many names to look up to know whether a page follows.
    fn wanted(&self) -> usize {
        self.limit.clamp(1, LIST_ITEMS_MAX) + 1
    }

    /// A page of items that were looked up so.
    fn page<T>(&self, mut items: Vec<T>, name: impl Fn(&T) -> &Arc<str>) -> NamePage<T> {
        let limit = self.wanted() - 1;
        let has_more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| has_more).map(|last| Arc::clone(name(last)));
        NamePage { items, next }
    }
}

impl<L: Log> Coordinator<L> {
    pub(crate) fn queues(&self, range: &NameRange) -> NamePage<QueueView> {
        let queues = self.state.queues_after(range.after.as_deref(), range.wanted());
        range.page(queues, |queue| &queue.name)
    }

    pub(crate) fn worker_page(&self, range: &NameRange, now: Now) -> NamePage<WorkerInfo> {
        let mut workers = self.soft.workers.list(range.after.as_deref(), range.wanted(), now.log);
        for worker in &mut workers {
            worker.leases = self.state.leases_of(&worker.name);
            worker.seen_at = self.clock.offset().shown(worker.seen_at);
        }
        range.page(workers, |worker| &worker.name)
    }
}
