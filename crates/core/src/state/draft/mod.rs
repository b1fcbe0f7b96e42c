//! The state as it would be: what a command has touched so far, laid over the state.
//!
//! Each item of a batch is decided on the draft that the items before it have left, so it is
//! decided as if they were applied. The state itself is only read.

mod compare;
mod few;
mod run;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;
use tenure_flow::Schema;
use tenure_flow::schema::Complaint;
use tenure_record::event::{IdsSkipped, QueueSettings};
use tenure_record::id::{LeaseId, Lsn, RunId, TaskId};
use tenure_record::name::Text;
use tenure_record::state::TaskState;
use tenure_value::Value;

use self::run::DraftRuns;
use crate::apply::precomputed::Precomputed;
use crate::limits::{RECORD_WORK, STEPS_PER_UNIT, SWEEP_BYTES_MAX};
use crate::state::State;
use crate::state::facts::task::{Cold, Task, TaskPhase};
use crate::state::ledger::Ledger;
use crate::state::store::{BlobRef, ColdRef, NameRef, QueueRef, WorkerRef};

type FixedState = foldhash::fast::FixedState;

/// Past this many touched tasks a table finds them; below, a look at each is faster.
const SCAN_MAX: usize = 8;
/// References from here on name things that are new in this draft.
const DRAFT_REF: u32 = 1 << 31;

/// An overlay over a state.
pub struct Draft<'s> {
    state: &'s State,
    /// Tasks that are new, in the order of their ids, which have no gaps.
    created: Vec<Touched>,
    /// Tasks that the state knows.
    touched: SmallVec<[Touched; 1]>,
    /// Where a task is in `touched`, once there are many.
    places: HashMap<TaskId, usize, FixedState>,
    /// Absent until a key, a queue or a name is new: in most drafts none is.
    new_names: Option<Box<NewNames>>,
    new_workers: SmallVec<[Arc<str>; 1]>,
    settings: Vec<(QueueRef, QueueSettings)>,
    next_task_id: TaskId,
    next_lease_id: LeaseId,
    next_run_id: RunId,
    /// Absent until a run is touched: most commands touch none.
    runs: Option<Box<DraftRuns>>,
    /// What its decisions have computed, for the record that it becomes.
    pub(crate) precomputed: Precomputed,
    /// Something began to end in it.
    begins_endings: bool,
    /// What its record has cost so far.
    pub(crate) spent: Spent,
    /// Units of work beside the tasks that it touched.
    work: Cell<u64>,
    /// Steps of expressions and schemas.
    steps: Cell<u64>,
}

/// What the record of a draft has cost so far. The bounds are per record, so they are counted here
/// and not per cascade: a record may hold many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Branches that began.
    pub begun: u32,
    /// Tokens, tasks and child runs that ended with a scope around them.
    pub ended: usize,
    /// Bytes of decisions, about.
    pub bytes: usize,
}

/// What the state does not know by name. Trees, because strangers choose these texts: no choice makes a
/// tree slow.
#[derive(Default)]
struct NewNames {
    keys: BTreeMap<(QueueRef, Arc<str>), TaskId>,
    queues: NewTexts,
    tasks: NewTexts,
}

/// Texts that are new in a draft, and their places.
#[derive(Default)]
struct NewTexts {
    texts: Vec<Arc<str>>,
    places: BTreeMap<Arc<str>, u32>,
}

impl NewTexts {
    fn find(&self, text: &str) -> Option<u32> {
        self.places.get(text).map(|at| DRAFT_REF + at)
    }

    fn add(&mut self, text: Arc<str>) -> u32 {
        let at = self.texts.len() as u32;
        self.texts.push(Arc::clone(&text));
        self.places.insert(text, at);
        DRAFT_REF + at
    }
}

struct Touched {
    id: TaskId,
    /// Absent once it is purged.
    task: Option<Task>,
    /// Absent until the cold part itself is touched.
    cold: Option<Box<Cold>>,
}

impl<'s> Draft<'s> {
    /// A draft in which nothing is touched.
    #[must_use]
    pub fn new(state: &'s State) -> Self {
        Self {
            state,
            created: Vec::new(),
            touched: SmallVec::new(),
            places: HashMap::with_hasher(FixedState::default()),
            new_names: None,
            new_workers: SmallVec::new(),
            settings: Vec::new(),
            next_task_id: state.facts.next_task_id,
            next_lease_id: state.facts.next_lease_id,
            next_run_id: state.facts.next_run_id,
            runs: None,
            precomputed: Precomputed::default(),
            begins_endings: false,
            spent: Spent::default(),
            work: Cell::new(0),
            steps: Cell::new(0),
        }
    }

    /// What its decisions have computed so far.
    #[must_use]
    pub fn precomputed(&self) -> &Precomputed {
        &self.precomputed
    }

    /// Gives what its decisions have computed, for the record. The draft stays where it is: it is large
    /// to move.
    #[must_use]
    pub fn take_precomputed(&mut self) -> Precomputed {
        std::mem::take(&mut self.precomputed)
    }

    /// What its record costs so far, in the units of [`crate::limits::RECORD_WORK_MAX`].
    #[must_use]
    pub fn work(&self) -> u64 {
        let tasks = self.created.len() + self.touched.len();
        self.work.get() + tasks as u64 + self.steps.get() / STEPS_PER_UNIT
    }

    pub(crate) fn count_work(&self, units: usize) {
        self.work.set(self.work.get() + units as u64);
    }

    pub(crate) fn count_steps(&self, steps: u64) {
        self.steps.set(self.steps.get() + steps);
    }

    /// Checks a value against its schema, and counts what that costs.
    pub(crate) fn check(&self, schema: &Schema, value: &Value) -> Result<(), Vec<Complaint>> {
        let mut steps = 0;
        let checked = schema.check_counted(value, &mut steps);
        self.count_steps(steps);
        checked
    }

    /// Whether what is left of a batch waits for the next record.
    pub(crate) fn is_full(&self) -> bool {
        self.spent.ended >= self.state.end_items_max()
            || self.spent.bytes >= SWEEP_BYTES_MAX
            || self.work() >= RECORD_WORK
    }

    /// Makes room for so many tasks, where it is known that many will be touched.
    pub(crate) fn reserve(&mut self, tasks: usize) {
        self.touched.reserve(tasks);
        if tasks > SCAN_MAX {
            self.places.reserve(tasks);
        }
    }

    /// The state underneath, as it was before the command.
    pub(crate) fn base(&self) -> &'s State {
        self.state
    }

    /// The number of the record that this draft would become.
    pub(crate) fn lsn(&self) -> Lsn {
        self.state.last_lsn().next()
    }

    pub(crate) fn next_task_id(&self) -> TaskId {
        self.next_task_id
    }

    pub(crate) fn next_lease_id(&self) -> LeaseId {
        self.next_lease_id
    }

    /// How many queues there would be.
    pub(crate) fn queue_count(&self) -> usize {
        let new = self.new_names.as_ref().map_or(0, |new| new.queues.texts.len());
        self.state.facts.queues.len() + new
    }

    pub(crate) fn find_queue(&self, name: &str) -> Option<QueueRef> {
        let new = || self.new_names.as_ref()?.queues.find(name).map(QueueRef);
        self.state.queue_ref(name).or_else(new)
    }

    /// How many names of tasks there would be.
    pub(crate) fn name_count(&self) -> usize {
        let new = self.new_names.as_ref().map_or(0, |new| new.tasks.texts.len());
        self.state.facts.task_names.len() + new
    }

    pub(crate) fn find_name(&self, name: &str) -> Option<NameRef> {
        let new = || self.new_names.as_ref()?.tasks.find(name).map(NameRef);
        self.state.name_ref(name).or_else(new)
    }

    fn text_of(&self, name: NameRef) -> &Arc<str> {
        match (name.0.checked_sub(DRAFT_REF), &self.new_names) {
            (Some(new), Some(names)) => &names.tasks.texts[new as usize],
            _ => self.state.facts.text_of(name),
        }
    }

    pub(crate) fn queue_name(&self, queue: QueueRef) -> Text<'static> {
        let name = match queue.0.checked_sub(DRAFT_REF) {
            Some(new) => {
                let names = self.new_names.as_ref().expect("a queue that is new has a name");
                &names.queues.texts[new as usize]
            }
            None => self.state.facts.queue_name(queue),
        };
        Text::Shared(Arc::clone(name))
    }

    pub(crate) fn queue_settings(&self, queue: QueueRef) -> QueueSettings {
        let drafted = self.settings.iter().rev().find(|(there, _)| *there == queue);
        let known = || self.state.facts.queues.get(queue).map(|queue| queue.settings.clone());
        drafted.map(|(_, settings)| settings.clone()).or_else(known).unwrap_or_default()
    }

    /// The limit of waiting tasks of a queue, if it has one. A submit changes no settings, so the
    /// facts have it.
    pub(crate) fn max_waiting(&self, queue: QueueRef) -> Option<u64> {
        self.state.facts.queues.get(queue)?.settings.max_waiting
    }

    /// The waiting tasks of a queue before this command.
    pub(crate) fn waiting_in(&self, queue: QueueRef) -> u64 {
        self.state.live().counts_in(queue).of(TaskState::Waiting)
    }

    /// The queue that gets copies of a queue's tasks that end FAILED or DEAD.
    pub(crate) fn dead_letter_queue(&self, queue: QueueRef) -> Option<Arc<str>> {
        self.state.facts.queues.get(queue)?.settings.dead_letter_queue.clone()
    }

    /// Whether somebody set something for a queue, even if only to the default.
    pub(crate) fn is_configured(&self, queue: QueueRef) -> bool {
        self.state.facts.queues.get(queue).is_some_and(|queue| queue.configured)
    }

    pub(crate) fn worker_name(&self, worker: WorkerRef) -> Text<'static> {
        let name = match worker.0.checked_sub(DRAFT_REF) {
            Some(new) => &self.new_workers[new as usize],
            None => self.state.facts.worker_name(worker),
        };
        Text::Shared(Arc::clone(name))
    }

    /// Who holds a task's lease; no name if nobody does.
    pub(crate) fn holder(&self, task: &Task) -> Text<'static> {
        match task.state {
            TaskPhase::Leased { worker, .. } => self.worker_name(worker),
            TaskPhase::Waiting { .. }
            | TaskPhase::Completed { .. }
            | TaskPhase::Failed { .. }
            | TaskPhase::Dead { .. }
            | TaskPhase::Canceled { .. } => Text::default(),
        }
    }

    /// The task that holds a key.
    pub(crate) fn key_holder(&self, queue: QueueRef, key: &str) -> Option<TaskId> {
        let known = self.state.live().key_holder(&self.state.facts, queue, key);
        // A task of this draft may have taken it.
        let holds = |id: &TaskId| Ledger::cold(self, *id).is_some_and(|it| it.held_key().is_some());
        let known = known.filter(holds);
        let new = || self.new_names.as_ref()?.keys.get(&(queue, Arc::from(key))).copied();
        known.or_else(new)
    }

    /// Every touched task before and after, for the laws that are checked before a record is
    /// written.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (TaskId, Option<&Task>, Option<&Task>)> {
        let known = self
            .touched
            .iter()
            .map(|touched| (touched.id, self.state.task_slot(touched.id), touched.task.as_ref()));
        known.chain(self.created.iter().map(|new| (new.id, None, new.task.as_ref())))
    }

    /// Adds a new task.
    fn insert(&mut self, id: TaskId, task: Task, cold: Option<Cold>) {
        if let Some(key) = cold.as_ref().and_then(|cold| cold.key.as_ref()) {
            let new = self.new_names.get_or_insert_default();
            new.keys.insert((task.queue, Arc::clone(&key.text)), id);
        }
        assert_eq!(id, self.next_task_id, "a draft gives out ids one after the other");
        self.next_task_id = id.next();
        self.created.push(Touched { id, task: Some(task), cold: cold.map(Box::new) });
    }

    fn find(&self, id: TaskId) -> Option<&Touched> {
        match id.0.checked_sub(self.state.facts.next_task_id.0) {
            Some(nth) => self.created.get(nth as usize),
            None => self.place(id).map(|at| &self.touched[at]),
        }
    }

    fn touch(&mut self, id: TaskId) -> &mut Touched {
        if let Some(nth) = id.0.checked_sub(self.state.facts.next_task_id.0) {
            return &mut self.created[nth as usize];
        }
        let at = self.place(id).unwrap_or_else(|| {
            let task = self.state.task_slot(id).copied();
            self.add(Touched { id, task, cold: None })
        });
        &mut self.touched[at]
    }

    fn place(&self, id: TaskId) -> Option<usize> {
        if self.touched.len() <= SCAN_MAX {
            return self.touched.iter().position(|touched| touched.id == id);
        }
        self.places.get(&id).copied()
    }

    fn add(&mut self, touched: Touched) -> usize {
        let at = self.touched.len();
        self.touched.push(touched);
        if at == SCAN_MAX {
            let ids = self.touched.iter().map(|touched| touched.id);
            self.places.extend(ids.zip(0..));
        } else if at > SCAN_MAX {
            self.places.insert(self.touched[at].id, at);
        }
        at
    }
}

impl Ledger for Draft<'_> {
    fn task(&self, id: TaskId) -> Option<&Task> {
        match self.find(id) {
            Some(touched) => touched.task.as_ref(),
            None => self.state.task_slot(id),
        }
    }

    fn cold(&self, id: TaskId) -> Option<&Cold> {
        match self.find(id) {
            Some(Touched { cold: Some(cold), .. }) => Some(cold),
            Some(Touched { task, .. }) => self.state.facts.cold_of(task.as_ref()?),
            None => self.state.facts.cold_of(self.state.task_slot(id)?),
        }
    }

    fn create(&mut self, id: TaskId, task: Task, cold: Option<Cold>, payload: &[u8]) {
        self.count_work(payload.len() / 1_024);
        self.insert(id, task, cold);
    }

    fn create_copy(&mut self, of: TaskId, id: TaskId, task: Task, cold: Cold) {
        let payload = self.state.task_slot(of).map_or(BlobRef::NONE, |task| task.payload);
        self.count_work(self.state.facts.blobs.near_len(payload) / 1_024);
        self.insert(id, task, Some(cold));
    }

    fn change(&mut self, id: TaskId, change: impl FnOnce(&mut Task)) {
        let task = self.touch(id).task.as_mut().expect("decide changes tasks that exist");
        change(task);
        let lease_id = task.lease_id;
        self.next_lease_id = self.next_lease_id.max(lease_id.next());
    }

    fn change_cold(&mut self, id: TaskId, change: impl FnOnce(&mut Cold)) {
        let state = self.state;
        let touched = self.touch(id);
        change(touched.cold.get_or_insert_with(|| {
            let at = touched.task.map_or(ColdRef::NONE, |task| task.cold);
            Box::new(at.get().and_then(|at| state.facts.cold.get(at)).cloned().unwrap_or_default())
        }));
    }

    /// Nothing is decided by an output, so a draft does not copy it.
    fn set_output(&mut self, _id: TaskId, output: &[u8]) {
        self.count_work(output.len() / 1_024);
    }

    fn purge(&mut self, id: TaskId) {
        self.touch(id).task = None;
    }

    fn queue_named(&mut self, name: &str) -> QueueRef {
        self.find_queue(name).unwrap_or_else(|| {
            QueueRef(self.new_names.get_or_insert_default().queues.add(Arc::from(name)))
        })
    }

    fn configure(&mut self, queue: QueueRef, settings: &QueueSettings) {
        self.settings.push((queue, settings.clone()));
    }

    /// A setting keeps it, and nothing else is decided in the record of a setting.
    fn keep_queue(&mut self, _queue: QueueRef) {}

    /// Nothing else is decided in the record of a delete.
    fn delete_queue(&mut self, _queue: QueueRef) {}

    fn skip_ids(&mut self, to: &IdsSkipped) {
        assert!(self.created.is_empty(), "a draft gives out ids one after the other");
        (self.next_task_id, self.next_lease_id) = (to.next_task_id, to.next_lease_id);
        self.next_run_id = self.next_run_id.max(to.next_run_id);
    }

    fn task_named(&mut self, name: &Text<'_>) -> NameRef {
        self.find_name(name.as_str()).unwrap_or_else(|| {
            NameRef(self.new_names.get_or_insert_default().tasks.add(name.to_shared()))
        })
    }

    fn worker_named(&mut self, name: &Text<'_>) -> WorkerRef {
        self.state.worker_ref(name.as_str()).unwrap_or_else(|| {
            let known = self.new_workers.iter().position(|there| &**there == name.as_str());
            let at = known.unwrap_or_else(|| {
                self.new_workers.push(name.to_shared());
                self.new_workers.len() - 1
            });
            WorkerRef(DRAFT_REF + at as u32)
        })
    }
}
