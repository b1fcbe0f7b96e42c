//! Finding runs: by what they wait for, by key and by workflow. Their moments are in the timer index,
//! which is handed in.
//!
//! Each entry is a function of one head, token or group, and of the definition, which never changes;
//! a change removes what the part before gave and inserts what the part after gives. The one
//! exception is `finished`: a child run is not in it while its parent exists.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenure_record::event::{GroupState, RunState, TokenState};
use tenure_record::id::{GroupId, RunId, TokenId};
use tenure_record::time::{Clock, Timestamp};

use super::timers::{TimerIndex, TimerRef};
use crate::planted::{self, Bug};
use crate::state::facts::Facts;
use crate::state::facts::run::{Group, Run, StoredRun, Token, Work, head_bytes};

/// A signal's name and its correlation.
type SignalName = Arc<(Arc<str>, Arc<str>)>;

/// Everything derived from runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunIndexes {
    /// Tokens that wait for a signal, by name and correlation.
    pub waits: BTreeSet<(RunId, SignalName, TokenId)>,
    /// Runs of which something is ending.
    pub endings: BTreeSet<RunId>,
    /// How many runs stand still.
    pub parked: u64,
    /// Groups of which more branches may begin.
    pub dispatch: BTreeSet<(RunId, GroupId)>,
    /// Runs by workflow and key. A tree, because strangers choose the keys.
    pub keys: BTreeMap<(Arc<str>, Arc<str>), RunId>,
    pub by_workflow: BTreeSet<(Arc<str>, RunId)>,
    /// How many runs there are of each version of a workflow.
    versions: BTreeMap<(Arc<str>, u32), u64>,
    /// Runs that are over and that retention may let go, by their end. A child run is kept as long as
    /// its parent exists; after that it goes at once, and stands here under [`Timestamp::ZERO`].
    pub finished: BTreeSet<(Timestamp, RunId)>,
    /// How many runs there are in each state.
    pub counts: [u64; RunState::ALL.len()],
    /// How many of those that are live only wait for something outside.
    pub waiting: u64,
    /// Bytes of memory that all runs take, about.
    pub bytes: u64,
    /// Those of them that the branches of a group take, for groups that have some.
    pub branch_bytes: BTreeMap<(RunId, GroupId), u64>,
}

/// What an index needs of a head, to see whether it changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadPlace {
    state: RunState,
    /// When its deadline fires; none while it does not count.
    deadline: Option<Timestamp>,
    /// Since when retention counts; none while the run is live or its parent keeps it.
    finished_at: Option<Timestamp>,
    is_waiting: bool,
    is_ending: bool,
    is_parked: bool,
}

impl HeadPlace {
    pub(crate) fn of(run: &Run, parent: Parent) -> Self {
        let Run { state, finished_at, .. } = *run;
        // The deadline of a run that is over, ends anyway, or stands still, does not fire.
        let is_idle = state.is_terminal() || run.ending_root().is_some() || run.stands_still();
        let deadline = Some(run.deadline_at).filter(|at| *at > Timestamp::ZERO && !is_idle);
        Self {
            state,
            deadline,
            finished_at: state.is_terminal().then_some(finished_at),
            is_waiting: run.is_waiting(),
            is_ending: run.endings.is_some(),
            is_parked: run.stands_still(),
        }
        .under(parent)
    }

    /// The place of a run without a parent, as it is under this one.
    pub(crate) fn under(mut self, parent: Parent) -> Self {
        match parent {
            Parent::None => {}
            Parent::Kept if planted::has(Bug::ChildPurgedAlone) => {}
            Parent::Kept => self.finished_at = None,
            Parent::Gone => self.finished_at = self.finished_at.map(|_| Timestamp::ZERO),
        }
        self
    }
}

/// What a run's parent means for how long the run is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parent {
    /// The run is no child.
    None,
    /// The parent exists, live or over.
    Kept,
    /// The parent was forgotten.
    Gone,
}

impl Parent {
    pub(crate) fn of(run: &Run, facts: &Facts) -> Self {
        match run.parent {
            None => Parent::None,
            Some((parent, _)) if facts.runs.get(parent.0).is_some() => Parent::Kept,
            Some(_) => Parent::Gone,
        }
    }
}

/// What an index needs of a token.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct TokenPlace {
    deadline: Option<Timestamp>,
    timer: Option<(Clock, Timestamp)>,
    wait: Option<SignalName>,
}

impl TokenPlace {
    /// A token of a run that stands still waits for nothing.
    pub(crate) fn of(run: &Run, token: &Token) -> Self {
        if token.state.is_terminal() || run.stands_still() {
            return Self::default();
        }
        let deadline = Some(token.deadline_at).filter(|at| *at > Timestamp::ZERO);
        match (&token.work, token.state) {
            (Work::Timer(at, clock), TokenState::WaitingForTimer) => {
                Self { deadline, timer: Some((*clock, *at)), wait: None }
            }
            (Work::Signal(signal), TokenState::WaitingForSignal) => {
                Self { deadline, timer: None, wait: Some(Arc::clone(signal)) }
            }
            _ => Self { deadline, ..Self::default() },
        }
    }
}

/// What an index needs of a group.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GroupPlace {
    timeout: Option<Timestamp>,
    has_room: bool,
}

impl GroupPlace {
    /// A group of a run that stands still waits for nothing.
    pub(crate) fn of(run: &Run, group: &Group) -> Self {
        if run.stands_still() {
            return Self::default();
        }
        let is_open = group.state == GroupState::Open;
        let timeout = Some(group.timeout_at).filter(|at| is_open && *at > Timestamp::ZERO);
        Self { timeout, has_room: group.room() > 0 }
    }
}

impl RunIndexes {
    pub(crate) fn build(timers: &mut TimerIndex, facts: &Facts) -> Self {
        let mut indexes = Self::default();
        for (id, stored) in facts.runs.iter() {
            indexes.add(timers, RunId(id), stored, Parent::of(&stored.head, facts));
        }
        indexes
    }

    fn add(&mut self, timers: &mut TimerIndex, id: RunId, stored: &StoredRun, parent: Parent) {
        self.begun(timers, id, &stored.head, parent);
        self.unparked(timers, id, stored);
        for (group_id, group) in (1..).map(GroupId).zip(&stored.groups) {
            self.branches_resized(id, group_id, 0, stored.branches_bytes(group));
        }
        self.resized(head_bytes(&stored.head), stored.bytes());
    }

    /// The parts of a run that stood still wait again.
    pub(crate) fn unparked(&mut self, timers: &mut TimerIndex, id: RunId, stored: &StoredRun) {
        for (token_id, token) in stored.tokens() {
            let place = TokenPlace::of(&stored.head, token);
            self.token_moved(timers, id, token_id, TokenPlace::default(), place);
        }
        for (group_id, group) in (1..).map(GroupId).zip(&stored.groups) {
            let place = GroupPlace::of(&stored.head, &group.head);
            self.group_moved(timers, id, group_id, GroupPlace::default(), place);
        }
    }

    /// A part of a run takes more or less memory than before.
    pub(crate) fn resized(&mut self, before: u64, after: u64) {
        self.bytes = self.bytes + after - before;
    }

    /// The branches of a group take more or less memory than before.
    pub(crate) fn branches_resized(&mut self, run: RunId, id: GroupId, before: u64, after: u64) {
        self.resized(before, after);
        if before == after {
            return;
        }
        let bytes = self.branch_bytes.entry((run, id)).or_default();
        *bytes = *bytes + after - before;
        if *bytes == 0 {
            self.branch_bytes.remove(&(run, id));
        }
    }

    /// The branches of a group are gone.
    pub(crate) fn branches_dropped(&mut self, run: RunId, id: GroupId) {
        if let Some(bytes) = self.branch_bytes.remove(&(run, id)) {
            self.resized(bytes, 0);
        }
    }

    /// The parts of a run wait for nothing any more; `before` is the run as it was.
    pub(crate) fn parked(
        &mut self,
        timers: &mut TimerIndex,
        id: RunId,
        before: &Run,
        stored: &StoredRun,
    ) {
        for (token_id, token) in stored.tokens() {
            let place = TokenPlace::of(before, token);
            self.token_moved(timers, id, token_id, place, TokenPlace::default());
        }
        for (group_id, group) in (1..).map(GroupId).zip(&stored.groups) {
            let place = GroupPlace::of(before, &group.head);
            self.group_moved(timers, id, group_id, place, GroupPlace::default());
        }
    }

    pub(crate) fn begun(&mut self, timers: &mut TimerIndex, id: RunId, run: &Run, parent: Parent) {
        self.resized(0, head_bytes(run));
        self.by_workflow.insert((Arc::clone(&run.workflow.name), id));
        *self.versions.entry(version_of(run)).or_default() += 1;
        if let Some(key) = key_of(run) {
            self.keys.insert(key, id);
        }
        let place = HeadPlace::of(run, parent);
        timers.moved(Clock::Log, TimerRef::Run(id), None, place.deadline);
        self.enter(id, place);
    }

    pub(crate) fn gone(
        &mut self,
        timers: &mut TimerIndex,
        id: RunId,
        stored: &StoredRun,
        parent: Parent,
    ) {
        self.by_workflow.remove(&(Arc::clone(&stored.head.workflow.name), id));
        if let Entry::Occupied(mut runs) = self.versions.entry(version_of(&stored.head)) {
            *runs.get_mut() -= 1;
            if *runs.get() == 0 {
                runs.remove();
            }
        }
        if let Some(key) = key_of(&stored.head) {
            self.keys.remove(&key);
        }
        let place = HeadPlace::of(&stored.head, parent);
        timers.moved(Clock::Log, TimerRef::Run(id), place.deadline, None);
        self.leave(id, place);
        for group in (1..=stored.groups.len() as u32).map(GroupId) {
            self.branches_dropped(id, group);
        }
        self.resized(stored.bytes(), 0);
    }

    pub(crate) fn moved(
        &mut self,
        timers: &mut TimerIndex,
        id: RunId,
        before: HeadPlace,
        after: HeadPlace,
    ) {
        if before != after {
            self.leave(id, before);
            self.enter(id, after);
            timers.moved(Clock::Log, TimerRef::Run(id), before.deadline, after.deadline);
        }
    }

    fn enter(&mut self, id: RunId, place: HeadPlace) {
        self.counts[place.state as usize] += 1;
        self.waiting += u64::from(place.is_waiting);
        self.parked += u64::from(place.is_parked);
        if place.is_ending {
            self.endings.insert(id);
        }
        if let Some(at) = place.finished_at {
            self.finished.insert((at, id));
        }
    }

    fn leave(&mut self, id: RunId, place: HeadPlace) {
        self.counts[place.state as usize] -= 1;
        self.waiting -= u64::from(place.is_waiting);
        self.parked -= u64::from(place.is_parked);
        if place.is_ending {
            self.endings.remove(&id);
        }
        if let Some(at) = place.finished_at {
            self.finished.remove(&(at, id));
        }
    }

    pub(crate) fn token_moved(
        &mut self,
        timers: &mut TimerIndex,
        run: RunId,
        id: TokenId,
        before: TokenPlace,
        after: TokenPlace,
    ) {
        if before == after {
            return;
        }
        timers.moved(Clock::Log, TimerRef::Node(run, id), before.deadline, after.deadline);
        if let Some((clock, at)) = before.timer {
            timers.moved(clock, TimerRef::Timer(run, id), Some(at), None);
        }
        if let Some((clock, at)) = after.timer {
            timers.moved(clock, TimerRef::Timer(run, id), None, Some(at));
        }
        if let Some(wait) = before.wait {
            self.waits.remove(&(run, wait, id));
        }
        if let Some(wait) = after.wait {
            self.waits.insert((run, wait, id));
        }
    }

    pub(crate) fn group_moved(
        &mut self,
        timers: &mut TimerIndex,
        run: RunId,
        id: GroupId,
        before: GroupPlace,
        after: GroupPlace,
    ) {
        if before.timeout != after.timeout {
            timers.moved(Clock::Log, TimerRef::Join(run, id), before.timeout, after.timeout);
        }
        match (before.has_room, after.has_room) {
            (false, true) => {
                self.dispatch.insert((run, id));
            }
            (true, false) => {
                self.dispatch.remove(&(run, id));
            }
            (false, false) | (true, true) => {}
        }
    }

    /// When the next finished run is to be forgotten by its age; at once if its parent is.
    pub(crate) fn next_purge(&self, age_ms: u64) -> Option<Timestamp> {
        let (at, _) = self.finished.first()?;
        Some(if *at == Timestamp::ZERO { Timestamp::ZERO } else { at.plus_ms(age_ms) })
    }

    /// How many runs there are of a version of a workflow, or of all of them.
    pub(crate) fn of_version(&self, name: &Arc<str>, version: Option<u32>) -> u64 {
        let (first, last) = version.map_or((0, u32::MAX), |version| (version, version));
        let versions = self.versions.range((Arc::clone(name), first)..=(Arc::clone(name), last));
        versions.map(|(_, runs)| *runs).sum()
    }

    /// The tokens of a run that wait for a signal, oldest first.
    pub(crate) fn waiting(
        &self,
        run: RunId,
        name: &str,
        correlation: &str,
    ) -> impl Iterator<Item = TokenId> {
        let wait = Arc::new((Arc::from(name), Arc::from(correlation)));
        let from = (run, Arc::clone(&wait), TokenId::NONE);
        let waits = self.waits.range(from..);
        waits.take_while(move |(there, found, _)| *there == run && *found == wait).map(|it| it.2)
    }
}

fn version_of(run: &Run) -> (Arc<str>, u32) {
    (Arc::clone(&run.workflow.name), run.workflow.version)
}

fn key_of(run: &Run) -> Option<(Arc<str>, Arc<str>)> {
    let key = run.rare.as_ref()?.key.as_ref()?;
    Some((Arc::clone(&run.workflow.name), Arc::clone(key)))
}
