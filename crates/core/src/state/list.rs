//! Lists: newest first, a page at a time, each page after a bounded number of looks.

use super::State;
use super::task::StateName;
use super::view::TaskView;
use crate::id::TaskId;
use crate::limits::{LIST_ITEMS_MAX, LIST_SCAN_MAX};

/// Which tasks to list. What is not given does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// Of this queue.
    pub queue: Option<&'a str>,
    /// In this state.
    pub state: Option<StateName>,
    /// With this tag.
    pub tag: Option<(&'a str, &'a str)>,
    /// Leased by this worker.
    pub worker: Option<&'a str>,
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// Newest first. May be fewer than asked for, even none, while `next` is set.
    pub tasks: Vec<TaskView<'a>>,
    /// Where to go on: ask for tasks older than this one.
    pub next: Option<TaskId>,
}

impl State {
    /// The tasks that pass the filter and are older than `before`, newest first.
    #[must_use]
    pub fn list(&self, filter: &Filter<'_>, before: Option<TaskId>, limit: usize) -> Page<'_> {
        let limit = limit.clamp(1, LIST_ITEMS_MAX);
        let mut page = Page { tasks: Vec::new(), next: None };
        let mut last = None;
        for (looked_at, id) in self.newest_first(filter, before).enumerate() {
            if page.tasks.len() == limit || looked_at == LIST_SCAN_MAX {
                page.next = last;
                break;
            }
            last = Some(id);
            let task = self.task(id).expect("a listed task exists");
            if filter.takes(&task) {
                page.tasks.push(task);
            }
        }
        page
    }

    /// Ids by state, merged from the youngest down.
    fn newest_first(
        &self,
        filter: &Filter<'_>,
        before: Option<TaskId>,
    ) -> impl Iterator<Item = TaskId> {
        let lists = match filter.queue {
            Some(name) => self.queue_ref(name).and_then(|queue| self.live().lists_of(queue)),
            None => Some(self.live().lists()),
        };
        let states: &[StateName] = match (&filter.state, filter.worker) {
            (Some(state), _) => std::slice::from_ref(state),
            // Only a lease has a worker.
            (None, Some(_)) => &[StateName::Leased],
            (None, None) => &StateName::ALL,
        };
        let newest = before.map_or(u64::MAX, |id| id.0.saturating_sub(1));
        let lists = lists.into_iter().flat_map(|lists| states.iter().map(|state| lists.of(*state)));
        let mut heads: Vec<_> = lists
            .map(|list| {
                let mut ids = list.iter();
                ids.advance_back_to(newest);
                (ids.next_back(), ids)
            })
            .collect();
        std::iter::from_fn(move || {
            let (youngest, ids) = heads.iter_mut().max_by_key(|(youngest, _)| *youngest)?;
            std::mem::replace(youngest, ids.next_back()).map(TaskId)
        })
    }
}

impl Filter<'_> {
    /// Queue and state were chosen by the lists already.
    fn takes(&self, task: &TaskView<'_>) -> bool {
        let tag = self.tag.is_none_or(|(key, value)| {
            task.tags().iter().any(|(k, v)| &**k == key && &**v == value)
        });
        tag && self.worker.is_none_or(|worker| task.lease().is_some_and(|l| &*l.worker == worker))
    }
}
