//! Finding runs: by their moments, by what they wait for, by key and by workflow.
//!
//! Each entry is a function of one head, token or group alone; a change takes out what the part
//! before gave and puts in what the part after gives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::event::{GroupState, RunState, TokenState};
use crate::id::{GroupId, RunId, TokenId};
use crate::state::facts::Facts;
use crate::state::run::{Group, Run, StoredRun, Token, Work};
use crate::time::Timestamp;

/// A signal's name and its correlation.
type SignalName = Arc<(Arc<str>, Arc<str>)>;

/// Everything derived from runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunIndexes {
    /// Deadlines of live runs.
    pub deadlines: BTreeSet<(Timestamp, RunId)>,
    /// Timeouts of open groups.
    pub joins: BTreeSet<(Timestamp, RunId, GroupId)>,
    /// Deadlines of live tokens.
    pub nodes: BTreeSet<(Timestamp, RunId, TokenId)>,
    /// Moments that tokens wait for, by the wall clock.
    pub timers: BTreeSet<(Timestamp, RunId, TokenId)>,
    /// Tokens that wait for a signal, by name and correlation.
    pub waits: BTreeSet<(RunId, SignalName, TokenId)>,
    /// Groups of which more branches may begin.
    pub dispatch: BTreeSet<(RunId, GroupId)>,
    /// Runs by workflow and key. A tree, because strangers choose the keys.
    pub keys: BTreeMap<(Arc<str>, Arc<str>), RunId>,
    pub by_workflow: BTreeSet<(Arc<str>, RunId)>,
    /// Runs that are over, by their end.
    pub finished: BTreeSet<(Timestamp, RunId)>,
    /// How many runs there are in each state.
    pub counts: [u64; RunState::ALL.len()],
    /// How many of those that are live only wait for something outside.
    pub waiting: u64,
}

/// What an index needs of a head, to see whether it changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadPlace {
    state: RunState,
    deadline_at: Timestamp,
    finished_at: Timestamp,
    is_waiting: bool,
}

impl HeadPlace {
    pub(crate) fn of(run: &Run) -> Self {
        let Run { state, deadline_at, finished_at, .. } = *run;
        Self { state, deadline_at, finished_at, is_waiting: run.is_waiting() }
    }
}

/// What an index needs of a token.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct TokenPlace {
    deadline: Option<Timestamp>,
    timer: Option<Timestamp>,
    wait: Option<SignalName>,
}

impl TokenPlace {
    pub(crate) fn of(token: &Token) -> Self {
        if token.state.is_terminal() {
            return Self::default();
        }
        let deadline = Some(token.deadline_at).filter(|at| *at > Timestamp::ZERO);
        match (&token.work, token.state) {
            (Work::Timer(at), TokenState::WaitingForTimer) => {
                Self { deadline, timer: Some(*at), wait: None }
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
    pub(crate) fn of(group: &Group) -> Self {
        let is_open = group.state == GroupState::Open;
        let timeout = Some(group.timeout_at).filter(|at| is_open && *at > Timestamp::ZERO);
        Self { timeout, has_room: group.room() > 0 }
    }
}

impl RunIndexes {
    pub(crate) fn build(facts: &Facts) -> Self {
        let mut indexes = Self::default();
        for (id, stored) in facts.runs.iter() {
            indexes.add(RunId(id), stored);
        }
        indexes
    }

    fn add(&mut self, id: RunId, stored: &StoredRun) {
        self.begun(id, &stored.head);
        for (token_id, token) in stored.tokens() {
            self.token_moved(id, token_id, TokenPlace::default(), TokenPlace::of(token));
        }
        for (group_id, group) in (1..).map(GroupId).zip(&stored.groups) {
            let place = GroupPlace::of(&group.head);
            self.group_moved(id, group_id, GroupPlace::default(), place);
        }
    }

    pub(crate) fn begun(&mut self, id: RunId, run: &Run) {
        self.by_workflow.insert((Arc::clone(&run.workflow.name), id));
        if let Some(key) = key_of(run) {
            self.keys.insert(key, id);
        }
        self.enter(id, HeadPlace::of(run));
    }

    pub(crate) fn gone(&mut self, id: RunId, stored: &StoredRun) {
        self.by_workflow.remove(&(Arc::clone(&stored.head.workflow.name), id));
        if let Some(key) = key_of(&stored.head) {
            self.keys.remove(&key);
        }
        self.leave(id, HeadPlace::of(&stored.head));
    }

    pub(crate) fn moved(&mut self, id: RunId, before: HeadPlace, after: HeadPlace) {
        if before != after {
            self.leave(id, before);
            self.enter(id, after);
        }
    }

    fn enter(&mut self, id: RunId, place: HeadPlace) {
        self.counts[place.state as usize] += 1;
        self.waiting += u64::from(place.is_waiting);
        if place.state.is_terminal() {
            self.finished.insert((place.finished_at, id));
        } else if place.deadline_at > Timestamp::ZERO {
            self.deadlines.insert((place.deadline_at, id));
        }
    }

    fn leave(&mut self, id: RunId, place: HeadPlace) {
        self.counts[place.state as usize] -= 1;
        self.waiting -= u64::from(place.is_waiting);
        if place.state.is_terminal() {
            self.finished.remove(&(place.finished_at, id));
        } else if place.deadline_at > Timestamp::ZERO {
            self.deadlines.remove(&(place.deadline_at, id));
        }
    }

    pub(crate) fn token_moved(
        &mut self,
        run: RunId,
        id: TokenId,
        before: TokenPlace,
        after: TokenPlace,
    ) {
        if before == after {
            return;
        }
        if let Some(at) = before.deadline {
            self.nodes.remove(&(at, run, id));
        }
        if let Some(at) = before.timer {
            self.timers.remove(&(at, run, id));
        }
        if let Some(wait) = before.wait {
            self.waits.remove(&(run, wait, id));
        }
        if let Some(at) = after.deadline {
            self.nodes.insert((at, run, id));
        }
        if let Some(at) = after.timer {
            self.timers.insert((at, run, id));
        }
        if let Some(wait) = after.wait {
            self.waits.insert((run, wait, id));
        }
    }

    pub(crate) fn group_moved(
        &mut self,
        run: RunId,
        id: GroupId,
        before: GroupPlace,
        after: GroupPlace,
    ) {
        if before.timeout != after.timeout {
            if let Some(at) = before.timeout {
                self.joins.remove(&(at, run, id));
            }
            if let Some(at) = after.timeout {
                self.joins.insert((at, run, id));
            }
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

    /// When the next run, join or node is out of time, by log time.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let runs = self.deadlines.first().map(|(at, _)| *at);
        let joins = self.joins.first().map(|(at, ..)| *at);
        let nodes = self.nodes.first().map(|(at, ..)| *at);
        [runs, joins, nodes].into_iter().flatten().min()
    }

    /// The oldest token of a run that waits for a signal.
    pub(crate) fn waiting(&self, run: RunId, name: &str, correlation: &str) -> Option<TokenId> {
        let wait = Arc::new((Arc::from(name), Arc::from(correlation)));
        let from = (run, Arc::clone(&wait), TokenId::NONE);
        let (there, found, token) = self.waits.range(from..).next()?;
        (*there == run && *found == wait).then_some(*token)
    }
}

fn key_of(run: &Run) -> Option<(Arc<str>, Arc<str>)> {
    let key = run.rare.as_ref()?.key.as_ref()?;
    Some((Arc::clone(&run.workflow.name), Arc::clone(key)))
}
