//! All that the coordinator knows, in memory. Anyone may read it; only `apply` may change it.

mod bytes;
mod check;
mod draft;
mod facts;
mod hash;
mod index;
mod insert;
mod ledger;
mod read;
mod run;
pub mod snapshot;
mod store;

pub use self::bytes::StateBytes;
pub use self::draft::Draft;
pub use self::facts::Facts;
pub use self::facts::task::TaskError;
pub use self::hash::{Hashing, StateHash};
pub use self::index::{StateCounts, TimerRef};
pub use self::read::{
    ArtifactState, ArtifactView, Due, Eligibility, EndingView, Filter, GroupView, Halted,
    LeaseView, Page, ParkedView, Phase, QueuePosition, QueueView, RunFilter, RunPage, RunView,
    TaskView, TokenView, WorkflowView,
};
pub use self::store::{NearBytes, SharedBytes};

pub(crate) use self::facts::run::{
    Branch, BranchResult, CommittedArtifact, EndingRoot, EndingScope, Group, KeptKey, KeptSignal,
    KeptSignals, Outline, Parked, RareRun, Run, Scope, ScopeRef, Spawn, Staged, StoredRun, Token,
    Versions, Work, Workflow,
};
pub(crate) use self::facts::task::{Cold, Key, Task, TaskPhase};
pub(crate) use self::ledger::{Ledger, Runs};
pub(crate) use self::store::{BlobRef, ColdRef, NameRef, QueueRef, WorkerRef};

use std::sync::Arc;

use tenure_record::event::{IdsSkipped, QueueSettings};
use tenure_record::id::{Lsn, TaskId};
use tenure_record::name::Text;
use tenure_record::time::{Clock, Now, Timestamp};

use self::facts::{Queue, TaskName, Worker};
use self::index::{Followed, Indexes, Names};
use self::store::{BlobKind, Chunks};
use crate::command::{Rest, Retention};
use crate::limits::END_ITEMS_MAX;
use crate::shelf::Shelf;

/// The facts, and what is derived from them to find things fast.
#[derive(Clone, Debug)]
pub struct State {
    facts: Facts,
    queue_names: Names<QueueRef>,
    worker_names: Names<WorkerRef>,
    task_names: Names<NameRef>,
    /// Absent while records are replayed, which needs none of it.
    indexes: Option<Indexes>,
    /// Seeds the tables of texts, so that strangers cannot make them collide.
    table_seed: u64,
    /// What was forgotten and still takes memory. To free all that a wide group held takes longer
    /// than anything else about it, so each record that follows frees a part.
    forgotten: Vec<Chunks<Branch>>,
    end_items_max: usize,
}

/// Chunks of what was forgotten that one record frees.
const CHUNKS_FREED: usize = 4;

impl State {
    /// An empty state that is ready for records from the log. Call [`State::serve`] after the last.
    #[must_use]
    pub fn replaying(table_seed: u64) -> Self {
        Self {
            facts: Facts::new(),
            queue_names: Names::new(table_seed),
            worker_names: Names::new(table_seed),
            task_names: Names::new(table_seed),
            indexes: None,
            table_seed,
            forgotten: Vec::new(),
            end_items_max: END_ITEMS_MAX,
        }
    }

    /// An empty state that is ready for commands.
    #[must_use]
    pub fn new(table_seed: u64) -> Self {
        let mut state = Self::replaying(table_seed);
        state.serve(Now::default());
        state
    }

    /// The same, but no more than so many items end in one record because their scope does. Tests
    /// and the simulation set it low, so that small runs end over several records too.
    #[must_use]
    pub fn ending_at_most(mut self, items: usize) -> Self {
        self.end_items_max = items.clamp(2, END_ITEMS_MAX);
        self
    }

    /// Tokens, tasks and child runs that end in one record because their scope does.
    #[must_use]
    pub fn end_items_max(&self) -> usize {
        self.end_items_max
    }

    /// Whether something is ending over several records.
    #[must_use]
    pub fn has_endings(&self) -> bool {
        !self.live().runs.endings.is_empty()
    }

    /// The same, and what is large lies on a shelf from here on, if there is one.
    #[must_use]
    pub fn on_shelf(mut self, shelf: Option<Arc<dyn Shelf>>) -> Self {
        self.facts.blobs.set_shelf(shelf);
        self
    }

    /// Builds the indexes; from here on commands can be decided.
    pub fn serve(&mut self, now: Now) {
        for workflow in self.facts.workflows.values().flatten() {
            workflow.definition();
        }
        self.indexes = Some(Indexes::build(&self.facts, self.table_seed, Followed::to(now)));
    }

    /// Follows the clocks: what was to wait until then becomes ready. Call it before deciding, and
    /// again soon if it says that there is more.
    pub fn advance(&mut self, now: Now) -> Rest {
        match &mut self.indexes {
            Some(indexes) => indexes.advance(&self.facts, now),
            None => Rest::Nothing,
        }
    }

    /// The facts alone. Clone them for a view that stays as it is.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The last record applied.
    #[must_use]
    pub fn last_lsn(&self) -> Lsn {
        self.facts.last_lsn
    }

    /// How many tasks are in each state.
    #[must_use]
    pub fn counts(&self) -> StateCounts {
        self.live().counts()
    }

    /// When something happens next by a clock: a timer fires, a delayed task becomes ready, or a
    /// paused queue opens.
    #[must_use]
    pub fn next_moment(&self, clock: Clock) -> Option<Timestamp> {
        self.live().timers.next(clock)
    }

    /// When the next delayed task becomes ready or the next paused queue opens, by that clock.
    #[must_use]
    pub fn next_wakeup(&self, clock: Clock) -> Option<Timestamp> {
        self.live().timers.next_wakeup(clock)
    }

    /// The timers of a clock whose firing is recorded, in the order in which they fire.
    pub fn timers(&self, clock: Clock) -> impl Iterator<Item = (Timestamp, TimerRef)> {
        self.live().timers.recorded(clock)
    }

    /// The timer that [`crate::command::Command::FireTimers`] fires first; none if none is due.
    #[must_use]
    pub fn first_due(&self, now: Now) -> Option<TimerRef> {
        self.live().timers.due(now).next().map(|due| due.timer)
    }

    /// Whether branches of wide groups wait for a record in which they may begin.
    #[must_use]
    pub fn has_dispatch(&self) -> bool {
        !self.live().runs.dispatch.is_empty()
    }

    /// When the next finished task is to be forgotten, by log time; long ago if there are too many.
    #[must_use]
    pub fn next_purge(&self, retention: &Retention) -> Option<Timestamp> {
        self.live().next_purge(retention)
    }

    /// A queue from which more can be leased than when it was named here last: something became
    /// ready in it, or it was resumed. Whoever keeps lease requests waiting asks until there is none.
    pub fn next_woken(&mut self) -> Option<Arc<str>> {
        let indexes = self.indexes.as_mut()?;
        loop {
            let woken = indexes.next_woken()?;
            // It may be gone by now, with its last task.
            if let Some(queue) = self.facts.queues.get(woken) {
                return Some(Arc::clone(&queue.name));
            }
        }
    }

    pub(crate) fn live(&self) -> &Indexes {
        self.indexes.as_ref().expect("a state that serves has its indexes")
    }

    pub(crate) fn task_slot(&self, id: TaskId) -> Option<&Task> {
        self.facts.tasks.get(id.0)
    }

    pub(crate) fn queue_ref(&self, name: &str) -> Option<QueueRef> {
        self.queue_names.find(name, |at| &**self.facts.queue_name(at) == name)
    }

    fn worker_ref(&self, name: &str) -> Option<WorkerRef> {
        self.worker_names.find(name, |at| &**self.facts.worker_name(at) == name)
    }

    pub(crate) fn name_ref(&self, name: &str) -> Option<NameRef> {
        self.task_names.find(name, |at| &**self.facts.text_of(at) == name)
    }

    /// For tests that break a law on purpose.
    #[cfg(test)]
    pub(crate) fn facts_mut(&mut self) -> &mut Facts {
        &mut self.facts
    }

    /// Ends a record: the next one must have the number after this.
    pub(crate) fn applied(&mut self, lsn: Lsn, at: Timestamp) {
        self.facts.last_lsn = lsn;
        self.facts.last_at = self.facts.last_at.max(at);
        if let Some(chunks) = self.forgotten.last_mut() {
            chunks.shorten(CHUNKS_FREED);
            if chunks.len() == 0 {
                self.forgotten.pop();
            }
        }
    }

    fn hold(&mut self, worker: WorkerRef) {
        self.facts.workers.get_mut(worker).expect("a grant names its worker first").leases += 1;
    }

    fn let_go(&mut self, worker: WorkerRef) {
        let held = self.facts.workers.get_mut(worker).expect("a held lease has a worker");
        held.leases -= 1;
        if held.leases == 0 {
            let gone = self.facts.workers.remove(worker).expect("it was there a line ago");
            self.worker_names.remove(&*gone.name, worker);
        }
    }

    /// A task that had this name is gone.
    fn drop_name(&mut self, at: NameRef) {
        let name = self.facts.task_names.get_mut(at).expect("a task's name exists");
        name.tasks -= 1;
        if name.tasks == 0 {
            let gone = self.facts.task_names.remove(at).expect("it was there a line ago");
            self.task_names.remove(&*gone.text, at);
        }
    }

    fn drop_queue_if_unused(&mut self, at: QueueRef) {
        let queue = self.facts.queues.get(at).expect("a task's queue exists");
        if queue.tasks == 0 && !queue.configured {
            self.forget_queue(at);
        }
    }

    fn forget_queue(&mut self, at: QueueRef) {
        let gone = self.facts.queues.remove(at).expect("a queue that is forgotten exists");
        self.queue_names.remove(&*gone.name, at);
        if let Some(indexes) = &mut self.indexes {
            indexes.queue_gone(at, &gone.settings);
        }
    }

    fn free_blob(&mut self, blob: BlobRef) {
        if let Some(block) = self.facts.blobs.free(blob) {
            self.empty_block(block);
        }
    }

    /// Moves what is alive in a block of holes, so that the block can go.
    fn empty_block(&mut self, block: usize) {
        for (owner, kind, blob) in self.facts.blobs.in_block(block) {
            let Some(task) = self.facts.tasks.get_mut(owner.0) else { continue };
            let place = match kind {
                BlobKind::Payload => &mut task.payload,
                BlobKind::Output => &mut task.output,
            };
            if *place == blob {
                *place = self.facts.blobs.relocate(owner, kind, blob);
            }
        }
    }
}

impl Ledger for State {
    fn task(&self, id: TaskId) -> Option<&Task> {
        self.task_slot(id)
    }

    fn cold(&self, id: TaskId) -> Option<&Cold> {
        self.facts.cold_of(self.task_slot(id)?)
    }

    fn create(&mut self, id: TaskId, mut task: Task, cold: Option<Cold>, payload: &[u8]) {
        task.payload = self.facts.blobs.put(id, BlobKind::Payload, payload);
        self.insert(id, task, cold);
    }

    fn create_copy(&mut self, of: TaskId, id: TaskId, mut task: Task, cold: Cold) {
        let payload = self.task_slot(of).expect("a copy is made of a task that exists").payload;
        task.payload = self.facts.blobs.copy(id, BlobKind::Payload, payload);
        self.insert(id, task, Some(cold));
    }

    fn change(&mut self, id: TaskId, change: impl FnOnce(&mut Task)) {
        let task = self.facts.tasks.get_mut(id.0).expect("an event names tasks that exist");
        let before = *task;
        change(task);
        let after = *task;
        self.facts.next_lease_id = self.facts.next_lease_id.max(after.lease_id.next());
        let holder = |task: &Task| match task.state {
            TaskPhase::Leased { worker, .. } => Some(worker),
            TaskPhase::Waiting { .. }
            | TaskPhase::Completed { .. }
            | TaskPhase::Failed { .. }
            | TaskPhase::Dead { .. }
            | TaskPhase::Canceled { .. } => None,
        };
        match (holder(&before), holder(&after)) {
            (None, Some(worker)) => self.hold(worker),
            (Some(worker), None) => self.let_go(worker),
            (None, None) | (Some(_), Some(_)) => {}
        }
        let Some(indexes) = &mut self.indexes else { return };
        indexes.moved(id, Some(&before), Some(&after));
        if before.is_terminal() != after.is_terminal()
            && let Some(cold) = self.facts.cold_of(&after)
        {
            let deadline = cold.deadline_at;
            let (from, to) = match after.is_terminal() {
                true => (deadline, Timestamp::ZERO),
                false => (Timestamp::ZERO, deadline),
            };
            indexes.deadline_moved(id, from, to);
        }
    }

    fn change_cold(&mut self, id: TaskId, change: impl FnOnce(&mut Cold)) {
        let task = self.facts.tasks.get_mut(id.0).expect("an event names tasks that exist");
        if task.cold == ColdRef::NONE {
            task.cold = self.facts.cold.insert(Cold::default());
        }
        let (is_live, queue) = (!task.is_terminal(), task.queue);
        let cold = self.facts.cold.get_mut(task.cold).expect("a cold part that is named exists");
        let (before, bytes_before) = (cold.deadline_at, cold.text_bytes());
        let held_key = cold.held_key().is_some();
        change(cold);
        let (after, bytes_after) = (cold.deadline_at, cold.text_bytes());
        let Some(indexes) = &mut self.indexes else { return };
        if held_key
            && cold.held_key().is_none()
            && let Some(key) = &cold.key
        {
            indexes.key_removed(queue, &key.text, id);
        }
        indexes.text_bytes = indexes.text_bytes + bytes_after - bytes_before;
        if is_live && before != after {
            indexes.deadline_moved(id, before, after);
        }
    }

    fn set_output(&mut self, id: TaskId, output: &[u8]) {
        let blob = self.facts.blobs.put(id, BlobKind::Output, output);
        let task = self.facts.tasks.get_mut(id.0).expect("an event names tasks that exist");
        task.output = blob;
    }

    fn purge(&mut self, id: TaskId) {
        let task = self.facts.tasks.remove(id.0).expect("a purge names tasks that exist");
        let cold = task.cold.get().and_then(|cold| self.facts.cold.remove(cold));
        if let Some(indexes) = &mut self.indexes {
            indexes.moved(id, Some(&task), None);
            indexes.text_bytes -= cold.as_ref().map_or(0, Cold::text_bytes);
            if let Some(key) = cold.as_ref().and_then(Cold::held_key) {
                indexes.key_removed(task.queue, &key.text, id);
            }
        }
        self.free_blob(task.payload);
        self.free_blob(task.output);
        if let Some(name) = task.name.get() {
            self.drop_name(name);
        }
        let queue = self.facts.queues.get_mut(task.queue).expect("a task's queue exists");
        queue.tasks -= 1;
        self.drop_queue_if_unused(task.queue);
    }

    fn queue_named(&mut self, name: &str) -> QueueRef {
        if let Some(at) = self.queue_ref(name) {
            return at;
        }
        let settings = QueueSettings::default();
        let queue = Queue { name: Arc::from(name), settings, configured: false, tasks: 0 };
        let at = self.facts.queues.insert(queue);
        self.queue_names.insert(name, at);
        at
    }

    fn configure(&mut self, queue: QueueRef, settings: &QueueSettings) {
        let found = self.facts.queues.get_mut(queue).expect("a queue is named before it is set");
        let before = std::mem::replace(&mut found.settings, settings.clone());
        found.configured = true;
        if let Some(indexes) = &mut self.indexes {
            indexes.configured(queue, &before, settings);
            indexes.wake(queue);
        }
    }

    fn keep_queue(&mut self, queue: QueueRef) {
        let found = self.facts.queues.get_mut(queue).expect("a queue is named before it is kept");
        found.configured = true;
    }

    fn delete_queue(&mut self, queue: QueueRef) {
        let tasks = self.facts.queues.get(queue).map_or(0, |queue| queue.tasks);
        assert_eq!(tasks, 0, "only a queue without tasks is deleted");
        self.forget_queue(queue);
    }

    fn skip_ids(&mut self, to: &IdsSkipped) {
        self.facts.next_task_id = to.next_task_id;
        self.facts.next_lease_id = to.next_lease_id;
        self.facts.next_run_id = self.facts.next_run_id.max(to.next_run_id);
    }

    fn task_named(&mut self, name: &Text<'_>) -> NameRef {
        if let Some(at) = self.name_ref(name.as_str()) {
            return at;
        }
        let at = self.facts.task_names.insert(TaskName { text: name.to_shared(), tasks: 0 });
        self.task_names.insert(name.as_str(), at);
        at
    }

    fn worker_named(&mut self, name: &Text<'_>) -> WorkerRef {
        if let Some(at) = self.worker_ref(name.as_str()) {
            return at;
        }
        let at = self.facts.workers.insert(Worker { name: name.to_shared(), leases: 0 });
        self.worker_names.insert(name.as_str(), at);
        at
    }
}
