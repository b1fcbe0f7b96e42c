//! What can be worked out from the facts and is kept only to find things fast. It is safe to lose:
//! replay does without it, and it is built again from the tasks in one pass.
//!
//! Each task has one *place*, a function of its slot and of how far the clocks were followed. A
//! change of a task moves it from the place before to the place after, and nothing else touches
//! an index; so what is kept and what would be built anew cannot drift apart.

mod callers;
mod compare;
mod counts;
mod finished;
mod held;
mod names;
mod queues;
mod ready;
mod run;
mod timers;
mod woken;

use std::collections::BTreeSet;

use tenure_record::event::QueueSettings;
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::state::TaskState;
use tenure_record::terms::Priority;
use tenure_record::time::{Clock, Now, Timestamp};

use self::counts::list_of;
use self::finished::{FinishedLine, Head, Heads};
use self::ready::{Links, Next, Ready};
use self::timers::{TimerIndex, Wakeup, WakeupKey};
use crate::command::{Rest, Retention};
use crate::limits::{ADVANCE_TASKS_MAX, FOR_EVER_MS};
use crate::state::facts::Facts;
use crate::state::facts::task::{Task, TaskPhase};
use crate::state::store::{IdSet, QueueRef};

pub use self::counts::StateCounts;
pub(crate) use self::names::Names;
pub(crate) use self::run::{GroupPlace, HeadPlace, Parent, RunIndexes, TokenPlace};
pub use self::timers::TimerRef;

/// Everything derived.
#[derive(Clone, Debug)]
pub(crate) struct Indexes {
    /// By `QueueRef`.
    queues: Vec<QueueIndex>,
    links: Links,
    pub timers: TimerIndex,
    /// Tasks by queue and idempotency key.
    keys: Names<TaskId>,
    finished: Heads,
    counts: StateCounts,
    followed: Followed,
    /// Queues in which something became ready, or may be leased again; each once.
    woken: Vec<QueueRef>,
    pub runs: RunIndexes,
    /// Tasks of parked runs, which are in no other index.
    held: BTreeSet<TaskId>,
    /// Tasks that were held and never leased: they go between the others, not behind them.
    unheld: BTreeSet<TaskId>,
    /// Ended tasks that are kept as long as their runs.
    pub kept: u64,
    /// Bytes of keys, tags and failures that all tasks hold, about.
    pub text_bytes: u64,
    /// Bytes that all definitions take, about.
    pub definition_bytes: u64,
    /// Which definitions call which workflow.
    calls: BTreeSet<callers::Call>,
}

/// How far the clocks were followed: wakeups up to there are done, and what they stand for is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Followed {
    log: (Timestamp, WakeupKey),
    wall: (Timestamp, WakeupKey),
}

impl Followed {
    /// Everything that is due at that time.
    pub(crate) fn to(now: Now) -> Self {
        Self { log: (now.log, WakeupKey::LAST), wall: (now.wall, WakeupKey::LAST) }
    }

    /// The time up to which the clocks were followed.
    pub(crate) fn reached(&self) -> Now {
        Now { log: self.log.0, wall: self.wall.0 }
    }

    fn on(&self, clock: Clock) -> (Timestamp, WakeupKey) {
        match clock {
            Clock::Log => self.log,
            Clock::Wall => self.wall,
        }
    }

    fn on_mut(&mut self, clock: Clock) -> &mut (Timestamp, WakeupKey) {
        match clock {
            Clock::Log => &mut self.log,
            Clock::Wall => &mut self.wall,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct QueueIndex {
    ready: Ready,
    /// Its tasks by state.
    lists: [IdSet; 6],
    counts: StateCounts,
    finished: FinishedLine,
    own_retention_ms: Option<u64>,
    /// It is among those that were woken.
    is_woken: bool,
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskPlace {
    /// Ready and never leased: ids only grow, so it belongs at the end of the list.
    Fresh,
    /// Ready again, or after a delay: it goes between the others.
    Returned,
    Delayed(Clock, Timestamp),
    Leased(Timestamp, LeaseId),
    Finished(Timestamp),
    /// Ended, and kept as long as its run.
    Kept,
    /// Its run is parked.
    Held,
}

impl Indexes {
    /// Builds everything from the facts, with the clocks followed so far.
    pub(crate) fn build(facts: &Facts, seed: u64, followed: Followed) -> Self {
        let mut timers = TimerIndex::default();
        let runs = RunIndexes::build(&mut timers, facts);
        let mut indexes = Self {
            queues: Vec::new(),
            links: Links::default(),
            timers,
            keys: Names::new(seed),
            finished: Heads::default(),
            counts: StateCounts::default(),
            followed,
            woken: Vec::new(),
            runs,
            held: BTreeSet::new(),
            unheld: BTreeSet::new(),
            kept: 0,
            text_bytes: 0,
            definition_bytes: 0,
            calls: BTreeSet::new(),
        };
        for workflow in facts.workflows.values().flatten() {
            indexes.registered(workflow);
        }
        for (_, stored) in facts.runs.iter().filter(|(_, run)| run.head.stands_still()) {
            let is_live = |id: &TaskId| facts.tasks.get(id.0).is_some_and(|it| !it.is_terminal());
            let tasks = stored.tokens().filter_map(|(_, token)| token.task());
            indexes.held.extend(tasks.filter(is_live));
        }
        for (queue, known) in facts.queues.iter() {
            indexes.configured(queue, &QueueSettings::default(), &known.settings);
        }
        for (id, task) in facts.tasks.iter() {
            let id = TaskId(id);
            indexes.moved(id, None, Some(task));
            let Some(cold) = facts.cold_of(task) else { continue };
            indexes.text_bytes += cold.text_bytes();
            if !task.is_terminal() {
                indexes.deadline_moved(id, Timestamp::ZERO, cold.deadline_at);
            }
            if let Some(key) = cold.held_key() {
                indexes.key_added(task.queue, &key.text, id);
            }
        }
        indexes
    }

    /// A task changed, came or went.
    pub(crate) fn moved(&mut self, id: TaskId, before: Option<&Task>, after: Option<&Task>) {
        let place_before = before.map(|task| self.place(id, task));
        let place_after = after.map(|task| self.place(id, task));
        if place_before != place_after {
            if let (Some(task), Some(place)) = (before, place_before) {
                self.leave(id, task, place);
            }
            if let (Some(task), Some(place)) = (after, place_after) {
                self.enter(id, task, place);
            }
        }
        let (from, to) = (before.map(Task::name), after.map(Task::name));
        if from != to
            && let Some(task) = before.or(after)
        {
            self.counts.moved(from, to);
            let queue = self.queue(task.queue);
            queue.counts.moved(from, to);
            if let Some(state) = from {
                queue.lists[list_of(state)].remove(id.0);
            }
            if let Some(state) = to {
                queue.lists[list_of(state)].insert(id.0);
            }
        }
    }

    /// A live task's deadline changed; zero means none.
    pub(crate) fn deadline_moved(&mut self, id: TaskId, before: Timestamp, after: Timestamp) {
        let moment = |at: Timestamp| Some(at).filter(|at| *at > Timestamp::ZERO);
        self.timers.moved(Clock::Log, TimerRef::Task(id), moment(before), moment(after));
    }

    pub(crate) fn key_added(&mut self, queue: QueueRef, key: &str, id: TaskId) {
        self.keys.insert((queue, key), id);
    }

    pub(crate) fn key_removed(&mut self, queue: QueueRef, key: &str, id: TaskId) {
        self.keys.remove((queue, key), id);
    }

    /// Whether a task's moment on that clock has not come yet.
    pub(crate) fn is_ahead(&self, clock: Clock, at: Timestamp, id: TaskId) -> bool {
        at > Timestamp::ZERO && (at, WakeupKey::start(id)) > self.followed.on(clock)
    }

    /// Follows the clocks: what waited until now is ready. At most [`ADVANCE_TASKS_MAX`] wakeups at
    /// a time; the rest waits for the next call.
    pub(crate) fn advance(&mut self, facts: &Facts, now: Now) -> Rest {
        if now.wall < self.followed.wall.0 {
            self.go_back(facts, now.wall);
        }
        let mut done = 0;
        for clock in [Clock::Log, Clock::Wall] {
            let reached = now.on(clock);
            while let Some(first) = self.timers.pop_wakeup(clock, reached) {
                *self.followed.on_mut(clock) = first;
                match first.1.wakeup() {
                    Wakeup::Start(id) => {
                        let task = facts.tasks.get(id.0).expect("a delayed task exists");
                        self.queue(task.queue).ready.insert_returned(task.priority, id);
                        self.wake(task.queue);
                    }
                    Wakeup::Opening(queue) => self.wake(queue),
                }
                done += 1;
                if done == ADVANCE_TASKS_MAX && self.has_wakeup(now) {
                    return Rest::More;
                }
            }
            let followed = self.followed.on_mut(clock);
            *followed = (*followed).max((reached, WakeupKey::LAST));
        }
        Rest::Nothing
    }

    /// Whether the moment of a wakeup has come.
    fn has_wakeup(&self, now: Now) -> bool {
        let is_due = |clock| self.timers.next_wakeup(clock).is_some_and(|at| at <= now.on(clock));
        is_due(Clock::Log) || is_due(Clock::Wall)
    }

    /// The wall clock was set back: appointments that seemed due are not, and queues that had opened
    /// are paused again. It happens so rarely that a look at all queues and all returned tasks is
    /// cheap enough.
    fn go_back(&mut self, facts: &Facts, wall: Timestamp) {
        for queue in &mut self.queues {
            let returned: Vec<_> = queue.ready.returned().collect();
            for Next { priority, task_id } in returned {
                let task = facts.tasks.get(task_id.0).expect("a ready task exists");
                if let TaskPhase::Waiting { not_before, clock: Clock::Wall } = task.state
                    && not_before > wall
                {
                    queue.ready.remove_returned(priority, task_id);
                    self.timers.wake_at(Clock::Wall, not_before, Wakeup::Start(task_id));
                }
            }
        }
        self.followed.wall = (wall, WakeupKey::LAST);
        for (queue, known) in facts.queues.iter() {
            self.opens_at(queue, known.settings.paused_until);
        }
    }

    pub(crate) fn followed(&self) -> Followed {
        self.followed
    }

    /// Whether a queue has a task that could be leased now.
    pub(crate) fn has_ready(&self, queue: QueueRef) -> bool {
        self.queues.get(queue.0 as usize).is_some_and(|queue| !queue.ready.is_empty())
    }

    /// Whether a task of this queue could be leased now.
    pub(crate) fn is_ready(&self, queue: QueueRef, priority: Priority, id: TaskId) -> bool {
        let queue = self.queues.get(queue.0 as usize);
        queue.is_some_and(|queue| queue.ready.has(&self.links, priority, id))
    }

    /// The ready tasks of these queues, most urgent and oldest first. No queue may come twice.
    pub(crate) fn ready<'a>(
        &'a self,
        queues: impl Iterator<Item = QueueRef> + 'a,
    ) -> impl Iterator<Item = Next> + 'a {
        let queues = queues.filter_map(|queue| self.queues.get(queue.0 as usize));
        ready::merge(queues.map(|queue| queue.ready.iter(&self.links)))
    }

    /// When the next finished task or run is to be forgotten; long ago if there are too many.
    pub(crate) fn next_purge(&self, retention: &Retention) -> Option<Timestamp> {
        let age_ms = retention.age_ms.min(FOR_EVER_MS);
        // Tasks of runs are kept as long as their runs, and go with them.
        let tasks = self.counts.terminal() - self.kept;
        if tasks.max(self.runs.finished.len() as u64) > retention.tasks_max {
            return Some(Timestamp::ZERO);
        }
        let run = self.runs.next_purge(age_ms);
        self.finished.first(age_ms).into_iter().chain(run).min()
    }

    /// Finished tasks in the order in which they are to be forgotten, each with that moment.
    pub(crate) fn finished(
        &self,
        usual_ms: u64,
        count: usize,
    ) -> impl Iterator<Item = (Timestamp, TaskId)> {
        self.finished.in_order(usual_ms, count, |queue| {
            let queue = &self.queues[queue.0 as usize];
            (&queue.finished, queue.own_retention_ms)
        })
    }

    /// The task that holds a key.
    pub(crate) fn key_holder(&self, facts: &Facts, queue: QueueRef, key: &str) -> Option<TaskId> {
        self.keys.find((queue, key), |id| {
            let task = facts.tasks.get(id.0).expect("a task with a key exists");
            let cold = facts.cold.get(task.cold).expect("a task with a key has a cold part");
            task.queue == queue && cold.key.as_ref().is_some_and(|held| &*held.text == key)
        })
    }

    /// How many tasks are in each state.
    pub(crate) fn counts(&self) -> StateCounts {
        self.counts
    }

    /// The same for one queue.
    pub(crate) fn counts_in(&self, queue: QueueRef) -> StateCounts {
        self.queues.get(queue.0 as usize).map(|queue| queue.counts).unwrap_or_default()
    }

    /// The ids of a queue's tasks in one state.
    pub(crate) fn list(&self, queue: QueueRef, state: TaskState) -> Option<&IdSet> {
        self.queues.get(queue.0 as usize).map(|queue| &queue.lists[list_of(state)])
    }

    fn place(&self, id: TaskId, task: &Task) -> TaskPlace {
        if !self.held.is_empty() && !task.is_terminal() && self.held.contains(&id) {
            return TaskPlace::Held;
        }
        match task.state {
            TaskPhase::Waiting { not_before, clock }
                if (not_before, WakeupKey::start(id)) > self.followed.on(clock) =>
            {
                TaskPlace::Delayed(clock, not_before)
            }
            TaskPhase::Waiting { not_before: Timestamp::ZERO, .. }
                if task.attempt == 0 && !self.unheld.contains(&id) =>
            {
                TaskPlace::Fresh
            }
            TaskPhase::Waiting { .. } => TaskPlace::Returned,
            TaskPhase::Leased { expires_at, .. } => TaskPlace::Leased(expires_at, task.lease_id),
            TaskPhase::Completed { .. }
            | TaskPhase::Failed { .. }
            | TaskPhase::Dead { .. }
            | TaskPhase::Canceled { .. }
                if task.in_run =>
            {
                TaskPlace::Kept
            }
            TaskPhase::Completed { at, .. }
            | TaskPhase::Failed { at, .. }
            | TaskPhase::Dead { at, .. }
            | TaskPhase::Canceled { at, .. } => TaskPlace::Finished(at),
        }
    }

    fn enter(&mut self, id: TaskId, task: &Task, place: TaskPlace) {
        match place {
            TaskPlace::Fresh => {
                let at = self.grow_to(task.queue);
                self.queues[at].ready.push_fresh(&mut self.links, task.priority, id);
                self.wake(task.queue);
            }
            TaskPlace::Returned => {
                self.queue(task.queue).ready.insert_returned(task.priority, id);
                self.wake(task.queue);
            }
            TaskPlace::Delayed(clock, until) => {
                self.timers.wake_at(clock, until, Wakeup::Start(id));
            }
            TaskPlace::Leased(until, lease) => {
                self.timers.lease_begun(until, lease, id);
            }
            TaskPlace::Finished(at) => self.change_finished(task.queue, |line| {
                line.insert((at, id));
            }),
            TaskPlace::Kept => self.kept += 1,
            TaskPlace::Held => {}
        }
    }

    fn leave(&mut self, id: TaskId, task: &Task, place: TaskPlace) {
        match place {
            TaskPlace::Fresh => {
                let at = self.grow_to(task.queue);
                self.queues[at].ready.remove_fresh(&mut self.links, task.priority, id);
            }
            TaskPlace::Returned => {
                self.queue(task.queue).ready.remove_returned(task.priority, id);
                self.unheld.remove(&id);
            }
            TaskPlace::Delayed(clock, until) => {
                self.timers.let_sleep(clock, until, Wakeup::Start(id));
            }
            TaskPlace::Leased(until, lease) => {
                self.timers.lease_over(until, lease);
            }
            TaskPlace::Finished(at) => self.change_finished(task.queue, |line| {
                line.remove(&(at, id));
            }),
            TaskPlace::Kept => self.kept -= 1,
            TaskPlace::Held => {
                self.held.remove(&id);
            }
        }
    }

    fn change_finished(&mut self, queue: QueueRef, change: impl FnOnce(&mut FinishedLine)) {
        let line = self.queue(queue);
        let before = line.head();
        change(&mut line.finished);
        let after = line.head();
        self.finished.moved(queue, before, after);
    }

    fn queue(&mut self, queue: QueueRef) -> &mut QueueIndex {
        let at = self.grow_to(queue);
        &mut self.queues[at]
    }

    fn grow_to(&mut self, queue: QueueRef) -> usize {
        let at = queue.0 as usize;
        if self.queues.len() <= at {
            self.queues.resize_with(at + 1, QueueIndex::default);
        }
        at
    }
}

impl QueueIndex {
    fn head(&self) -> Option<Head> {
        let (oldest, _) = self.finished.first()?;
        Some(Head { oldest: *oldest, own_ms: self.own_retention_ms })
    }
}
