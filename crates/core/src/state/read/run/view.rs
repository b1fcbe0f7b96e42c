//! Reading: runs, tokens, groups and workflows as people and programs want to see them.

use std::ops::Bound;
use std::sync::Arc;

use tenure_flow::{Definition, Fault};
use tenure_record::event::{GroupState, RunState, TokenState};
use tenure_record::id::{GroupId, Lsn, RunId, TaskId, TokenId};
use tenure_record::state::TaskState;
use tenure_record::time::{Clock, Timestamp};
use tenure_value::Value;

use super::RunFilter;
use crate::limits::{LIST_ITEMS_MAX, LIST_SCAN_MAX};
use crate::state::State;
use crate::state::facts::Facts;
use crate::state::facts::run::{Group, Run, ScopeRef, StoredRun, Token, Work, Workflow};

/// A version of a workflow.
#[derive(Clone, Debug)]
pub struct WorkflowView<'a>(&'a Arc<Workflow>);

/// A run.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    facts: &'a Facts,
    stored: &'a StoredRun,
    /// Its number.
    pub id: RunId,
}

/// A token of a run.
#[derive(Clone, Copy, Debug)]
pub struct TokenView<'a> {
    run: RunView<'a>,
    token: &'a Token,
    /// Its number in the run.
    pub id: TokenId,
}

/// A group of a run.
#[derive(Clone, Copy, Debug)]
pub struct GroupView<'a> {
    run: RunView<'a>,
    group: &'a Group,
    /// Its number in the run.
    pub id: GroupId,
}

/// A page of a list of runs.
#[derive(Clone, Debug)]
pub struct RunPage<'a> {
    /// Newest first. May be fewer than asked for, even none, while `next` is set.
    pub runs: Vec<RunView<'a>>,
    /// Where to go on: ask for runs older than this one.
    pub next: Option<RunId>,
}

impl State {
    /// A run by its number.
    #[must_use]
    pub fn run(&self, id: RunId) -> Option<RunView<'_>> {
        self.facts().run(id)
    }

    /// The run of a workflow that holds a key.
    #[must_use]
    pub fn run_with_key(&self, workflow: &str, key: &str) -> Option<RunId> {
        self.live().runs.keys.get(&(Arc::from(workflow), Arc::from(key))).copied()
    }

    /// How many runs are live, and how many ended in each way.
    #[must_use]
    pub fn run_counts(&self) -> Vec<(RunState, u64)> {
        RunState::ALL.iter().copied().zip(self.live().runs.counts).collect()
    }

    /// How many of those that are live only wait for something outside.
    #[must_use]
    pub fn waiting_runs(&self) -> u64 {
        self.live().runs.waiting
    }

    /// The runs that pass the filter and are older than `before`, newest first.
    #[must_use]
    pub fn list_runs(
        &self,
        filter: &RunFilter<'_>,
        before: Option<RunId>,
        limit: usize,
    ) -> RunPage<'_> {
        let limit = limit.clamp(1, LIST_ITEMS_MAX);
        let newest = before.map_or(u64::MAX, |id| id.0.saturating_sub(1));
        let facts = self.facts();
        let ids: Box<dyn Iterator<Item = RunId> + '_> = match (filter.workflow, filter.key) {
            (Some(name), Some(key)) => {
                Box::new(self.run_with_key(name, key).filter(|id| id.0 <= newest).into_iter())
            }
            (Some(name), None) => {
                let name: Arc<str> = Arc::from(name);
                let range = (Arc::clone(&name), RunId(0))..=(name, RunId(newest));
                Box::new(self.live().runs.by_workflow.range(range).rev().map(|(_, id)| *id))
            }
            (None, _) => Box::new(facts.runs.down_from(newest).map(|(id, _)| RunId(id))),
        };
        let mut page = RunPage { runs: Vec::new(), next: None };
        for (looked, id) in ids.enumerate() {
            if page.runs.len() == limit || looked == LIST_SCAN_MAX {
                page.next = Some(RunId(id.0 + 1));
                break;
            }
            let run = facts.run(id).expect("a run that is listed exists");
            if filter.takes(&run) {
                page.runs.push(run);
            }
        }
        page
    }

    /// The newest version of every workflow, by name.
    pub fn workflows(&self) -> impl Iterator<Item = WorkflowView<'_>> {
        let workflows = self.facts().workflows.values();
        workflows.filter_map(|versions| versions.newest().map(WorkflowView))
    }

    /// Those whose names come after this one.
    pub fn workflows_after(&self, name: Option<&str>) -> impl Iterator<Item = WorkflowView<'_>> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        let workflows = self.facts().workflows.range::<str, _>((from, Bound::Unbounded));
        workflows.filter_map(|(_, versions)| versions.newest().map(WorkflowView))
    }

    /// A version of a workflow; the newest if none is given.
    #[must_use]
    pub fn workflow(&self, name: &str, version: Option<u32>) -> Option<WorkflowView<'_>> {
        let versions = self.facts().workflows.get(name)?;
        let found = match version {
            Some(version) => versions.get(version),
            None => versions.newest(),
        };
        found.map(WorkflowView)
    }
}

impl Facts {
    /// A run by its number.
    #[must_use]
    pub fn run(&self, id: RunId) -> Option<RunView<'_>> {
        self.runs.get(id.0).map(|stored| RunView { facts: self, stored, id })
    }

    /// All runs, oldest first.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = RunView<'_>> {
        self.runs.iter().map(|(id, stored)| RunView { facts: self, stored, id: RunId(id) })
    }
}

impl<'a> WorkflowView<'a> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'a Arc<str> {
        &self.0.name
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.0.version
    }

    /// When it was registered.
    #[must_use]
    pub fn registered_at(&self) -> Timestamp {
        self.0.registered_at
    }

    /// How many transitions it has.
    #[must_use]
    pub fn transitions(&self) -> u32 {
        self.0.transitions
    }

    /// Why it no longer compiles; empty if it does.
    #[must_use]
    pub fn faults(&self) -> &'a Arc<[Fault]> {
        self.0.faults()
    }

    /// The definition, compiled; its source is in it. One that does nothing if there are faults.
    #[must_use]
    pub fn definition(&self) -> &'a Arc<Definition> {
        self.0.definition()
    }
}

impl<'a> RunView<'a> {
    pub(in crate::state) fn stored(&self) -> &'a StoredRun {
        self.stored
    }

    pub(in crate::state) fn head(&self) -> &'a Run {
        &self.stored.head
    }

    /// Its workflow's name.
    #[must_use]
    pub fn workflow(&self) -> &'a Arc<str> {
        &self.head().workflow.name
    }

    /// Its workflow's version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.head().workflow.version
    }

    /// Its definition.
    #[must_use]
    pub fn definition(&self) -> &'a Arc<Definition> {
        self.head().workflow.definition()
    }

    /// Its state as it is written outside: RUNNING, WAITING, COMPLETED, FAILED, CANCELED or
    /// TIMED_OUT.
    #[must_use]
    pub fn state(&self) -> &'static str {
        let head = self.head();
        match head.is_waiting() {
            true => "WAITING",
            false => head.state.as_str(),
        }
    }

    /// Its state as the log says it.
    #[must_use]
    pub fn logged_state(&self) -> RunState {
        self.head().state
    }

    /// What it was given.
    #[must_use]
    pub fn input(&self) -> &'a Value {
        &self.head().input
    }

    /// Its context, as its root sees it.
    #[must_use]
    pub fn context(&self) -> &'a Value {
        &self.head().root.context
    }

    /// What came out, once it is COMPLETED.
    #[must_use]
    pub fn output(&self) -> Option<&'a Value> {
        self.head().output.as_ref()
    }

    /// Why it could not go on.
    #[must_use]
    pub fn error(&self) -> Option<&'a Value> {
        self.head().error.as_ref()
    }

    /// When it began.
    #[must_use]
    pub fn started_at(&self) -> Timestamp {
        self.head().started_at
    }

    /// When it was over.
    #[must_use]
    pub fn finished_at(&self) -> Option<Timestamp> {
        let Run { finished_at, finished_offset, .. } = *self.head();
        (finished_at > Timestamp::ZERO).then(|| finished_offset.shown(finished_at))
    }

    /// When it must be over.
    #[must_use]
    pub fn deadline_at(&self) -> Option<Timestamp> {
        Some(self.head().deadline_at).filter(|at| *at > Timestamp::ZERO)
    }

    /// The run and token that wait for it.
    #[must_use]
    pub fn parent(&self) -> Option<(RunId, TokenId)> {
        self.head().parent
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> Option<&'a str> {
        self.head().rare.as_ref()?.key.as_deref()
    }

    /// Its tags, by key.
    #[must_use]
    pub fn tags(&self) -> &'a [(Arc<str>, Arc<str>)] {
        self.head().rare.as_ref().map(|rare| rare.tags.as_slice()).unwrap_or_default()
    }

    /// How many tokens it has had.
    #[must_use]
    pub fn token_count(&self) -> usize {
        self.stored.tokens.len()
    }

    /// How many tokens are live.
    #[must_use]
    pub fn live_tokens(&self) -> u32 {
        self.head().live
    }

    /// How many signals wait for somebody who wants them.
    #[must_use]
    pub fn kept_signals(&self) -> usize {
        self.head().rare.as_ref().map_or(0, |rare| rare.signals.len())
    }

    /// The last record of its history.
    #[must_use]
    pub fn last_lsn(&self) -> Lsn {
        self.head().last_lsn
    }

    /// A token of it.
    #[must_use]
    pub fn token(&self, id: TokenId) -> Option<TokenView<'a>> {
        self.stored.token(id).map(|token| TokenView { run: *self, token, id })
    }

    /// Its tokens from that one on, by number.
    pub fn tokens(&self, from: TokenId) -> impl Iterator<Item = TokenView<'a>> + use<'a> {
        let run = *self;
        (from.0.max(1)..=run.stored.tokens.len() as u32)
            .filter_map(move |id| run.token(TokenId(id)))
    }

    /// Its groups, by number.
    pub fn groups(&self) -> impl Iterator<Item = GroupView<'a>> + use<'a> {
        let run = *self;
        let groups = (1..).map(GroupId).zip(&run.stored.groups);
        groups.map(move |(id, group)| GroupView { run, group: &group.head, id })
    }

    fn path(&self, at: ScopeRef) -> String {
        let mut frames = Vec::new();
        let mut at = at;
        while let Some(group) = self.stored.group(at.group) {
            frames.push(format!("/{}#{}[{}]", group.name, at.group, at.index));
            at = group.scope;
        }
        frames.push("root".to_owned());
        frames.reverse();
        frames.concat()
    }
}

impl<'a> TokenView<'a> {
    /// Its node's name.
    #[must_use]
    pub fn node(&self) -> &'a Arc<str> {
        &self.run.head().workflow.nodes[self.token.node as usize]
    }

    /// Its scope, printed: `root/bids#1[4]`.
    #[must_use]
    pub fn path(&self) -> String {
        self.run.path(self.token.scope)
    }

    /// The token that it comes from.
    #[must_use]
    pub fn parent(&self) -> Option<TokenId> {
        Some(self.token.parent).filter(|parent| parent.is_some())
    }

    /// Its state as it is written outside; `executing` while a worker has its task.
    #[must_use]
    pub fn state(&self) -> &'static str {
        let task = self.task_id().filter(|_| self.token.state == TokenState::Dispatched);
        let leased = task.and_then(|id| self.run.facts.task(id));
        match leased.is_some_and(|task| task.state() == TaskState::Leased) {
            true => "executing",
            false => self.token.state.as_str(),
        }
    }

    /// Its state as the log says it.
    #[must_use]
    pub fn logged_state(&self) -> TokenState {
        self.token.state
    }

    /// The transition that it took, by its place in the definition.
    #[must_use]
    pub fn via(&self) -> Option<u32> {
        self.token.via
    }

    /// The group it is in, its branch there, and how many there are.
    #[must_use]
    pub fn branch(&self) -> Option<(GroupId, u32, u32)> {
        let ScopeRef { group, index } = self.token.scope;
        self.run.stored.group(group).map(|found| (group, index, found.total))
    }

    /// Its task.
    #[must_use]
    pub fn task_id(&self) -> Option<TaskId> {
        if let Work::Task(id) = self.token.work { Some(id) } else { None }
    }

    /// The run that it waits for, or waited for.
    #[must_use]
    pub fn child(&self) -> Option<RunId> {
        if let Work::Child(id) = self.token.work { Some(id) } else { None }
    }

    /// The signal that it waits for, or waited for, and its correlation.
    #[must_use]
    pub fn signal(&self) -> Option<(&'a str, &'a str)> {
        if let Work::Signal(signal) = &self.token.work {
            Some((&*signal.0, &*signal.1))
        } else {
            None
        }
    }

    /// The moment that it waits for and its clock: log time after a delay, the wall clock for `until`.
    #[must_use]
    pub fn wakes_at(&self) -> Option<(Timestamp, Clock)> {
        if let Work::Timer(at, clock) = self.token.work { Some((at, clock)) } else { None }
    }

    /// When it must be done, by log time.
    #[must_use]
    pub fn deadline_at(&self) -> Option<Timestamp> {
        Some(self.token.deadline_at).filter(|at| *at > Timestamp::ZERO)
    }

    /// Why it failed, or the error that it deals with.
    #[must_use]
    pub fn error(&self) -> Option<&'a Value> {
        self.token.error.as_deref()
    }
}

impl<'a> GroupView<'a> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'a Arc<str> {
        &self.group.name
    }

    /// Where it was opened, printed.
    #[must_use]
    pub fn path(&self) -> String {
        self.run.path(self.group.scope)
    }

    /// The token that was routed.
    #[must_use]
    pub fn origin(&self) -> TokenId {
        self.group.origin
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> GroupState {
        self.group.state
    }

    /// How many branches there are, how many have begun, and how many must arrive.
    #[must_use]
    pub fn sizes(&self) -> (u32, u32, u32) {
        (self.group.total, self.group.started, self.group.need)
    }

    /// How many branches are open, arrived, failed, canceled, timed out and ended.
    #[must_use]
    pub fn counts(&self) -> [u32; 6] {
        let Group { arrived, failed, canceled, timed_out, ended, .. } = *self.group;
        [self.group.open(), arrived, failed, canceled, timed_out, ended]
    }

    /// The token on which its branches meet.
    #[must_use]
    pub fn fan_in(&self) -> Option<TokenId> {
        Some(self.group.fan_in).filter(|token| token.is_some())
    }
}
