//! Lists: newest first, a page at a time, each page after a bounded number of looks.

use std::collections::BinaryHeap;

use tenure_record::id::{RunId, TaskId, TokenId};
use tenure_record::state::TaskState;

use crate::limits::{LIST_ITEMS_MAX, LIST_SCAN_MAX};
use crate::state::read::TaskView;
use crate::state::{QueueRef, State};

/// Which tasks to list. What is not given does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// Of this queue.
    pub queue: Option<&'a str>,
    /// In this state.
    pub state: Option<TaskState>,
    /// With this name.
    pub name: Option<&'a str>,
    /// With this tag.
    pub tag: Option<(&'a str, &'a str)>,
    /// Leased by this worker.
    pub worker: Option<&'a str>,
    /// Of this run.
    pub run: Option<RunId>,
    /// Whose last failure has this code.
    pub code: Option<&'a str>,
    /// Whether it waits for the end of its backoff.
    pub retrying: Option<bool>,
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
            let retrying = filter.retrying.is_none_or(|is| is == self.is_retrying(id));
            if retrying && filter.takes(&task) {
                page.tasks.push(task);
            }
        }
        page
    }

    /// The ids that queue and state let through, from the youngest down.
    fn newest_first<'a>(
        &'a self,
        filter: &Filter<'_>,
        before: Option<TaskId>,
    ) -> Box<dyn Iterator<Item = TaskId> + 'a> {
        let newest = before.map_or(u64::MAX, |id| id.0.saturating_sub(1));
        if let Some(run) = filter.run {
            return self.tasks_of(run, newest);
        }
        let is_any = filter.retrying != Some(true) && filter.state.is_none();
        if filter.queue.is_none() && is_any && filter.worker.is_none() {
            return Box::new(self.facts.tasks.down_from(newest).map(|(id, _)| TaskId(id)));
        }
        let queues: Vec<QueueRef> = match filter.queue {
            Some(name) => self.queue_ref(name).into_iter().collect(),
            None => self.facts.queues.iter().map(|(queue, _)| queue).collect(),
        };
        let states: &[TaskState] = match (&filter.state, filter.worker) {
            (Some(state), _) => std::slice::from_ref(state),
            // Only a lease has a worker.
            (None, Some(_)) => &[TaskState::Leased],
            (None, None) if filter.retrying == Some(true) => &[TaskState::Waiting],
            (None, None) => &TaskState::ALL,
        };
        let lists = queues
            .iter()
            .flat_map(|queue| states.iter().filter_map(|state| self.live().list(*queue, *state)));
        let mut lists: Vec<_> = lists.map(|list| list.down_from(newest)).collect();
        // Each list's youngest, and which list it is.
        let mut heads: BinaryHeap<(u64, usize)> =
            lists.iter_mut().enumerate().filter_map(|(at, ids)| Some((ids.next()?, at))).collect();
        Box::new(std::iter::from_fn(move || {
            let (id, at) = heads.pop()?;
            heads.extend(lists[at].next().map(|older| (older, at)));
            Some(TaskId(id))
        }))
    }

    /// The tasks of a run, from the youngest down. A token that had to wait got its task late, so
    /// they are put in order; where a run has too many for that, all tasks are looked at.
    fn tasks_of(&self, run: RunId, newest: u64) -> Box<dyn Iterator<Item = TaskId> + '_> {
        let Some(run) = self.run(run) else { return Box::new(std::iter::empty()) };
        if run.token_count() > LIST_SCAN_MAX {
            return Box::new(self.facts.tasks.down_from(newest).map(|(id, _)| TaskId(id)));
        }
        let tasks = run.tokens(TokenId(1)).filter_map(|token| token.task_id());
        let mut ids: Vec<TaskId> =
            tasks.filter(|id| id.0 <= newest && self.task(*id).is_some()).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Box::new(ids.into_iter())
    }
}

impl Filter<'_> {
    /// Queue and state were chosen by the lists already, unless the run was.
    fn takes(&self, task: &TaskView<'_>) -> bool {
        let chosen = self.run.is_none_or(|run| {
            task.run().is_some_and(|(id, _)| id == run)
                && self.queue.is_none_or(|queue| &**task.queue() == queue)
                && self.state.is_none_or(|state| task.state() == state)
        });
        let tag = self.tag.is_none_or(|(key, value)| {
            task.tags().iter().any(|(k, v)| &**k == key && &**v == value)
        });
        let name = self.name.is_none_or(|name| task.name().is_some_and(|its| &**its == name));
        let code = self.code.is_none_or(|code| {
            let last = task.errors().last().filter(|_| task.state() != TaskState::Completed);
            last.is_some_and(|error| &*error.code == code)
        });
        chosen
            && name
            && tag
            && code
            && self.worker.is_none_or(|worker| task.lease().is_some_and(|l| &*l.worker == worker))
    }
}
