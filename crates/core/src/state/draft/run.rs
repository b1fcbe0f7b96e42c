//! Runs as a command has left them so far: only the heads, tokens, groups and branches that it
//! touched.

use std::sync::Arc;

use tenure_record::event::{RunState, SubmitHash};
use tenure_record::id::{GroupId, RunId, TokenId};
use tenure_value::Value;

use super::Draft;
use super::few::Few;
use crate::state::facts::run::{
    Branch, Group, KeptKey, Parked, Run, ScopeRef, StoredRun, Token, Workflow,
};
use crate::state::{Runs, State};

/// What is touched of runs.
#[derive(Default)]
pub(super) struct DraftRuns {
    runs: Few<RunId, DraftRun>,
    workflows: Vec<Arc<Workflow>>,
}

struct DraftRun {
    head: Run,
    tokens: Few<TokenId, Token>,
    groups: Few<GroupId, Group>,
    branches: Few<ScopeRef, Branch>,
    kept: Vec<(KeptKey, Value)>,
    is_purged: bool,
}

impl DraftRun {
    fn new(head: Run) -> Self {
        Self {
            head,
            tokens: Few::default(),
            groups: Few::default(),
            branches: Few::default(),
            kept: Vec::new(),
            is_purged: false,
        }
    }
}

impl Draft<'_> {
    fn stored(&self, id: RunId) -> Option<&StoredRun> {
        self.state.facts.runs.get(id.0).map(|run| &**run)
    }

    fn drafted(&self, id: RunId) -> Option<&DraftRun> {
        self.runs.as_ref()?.runs.get(&id)
    }

    fn touch_run(&mut self, id: RunId) -> &mut DraftRun {
        let state: &State = self.state;
        self.runs.get_or_insert_default().runs.touch(id, || {
            let stored = state.facts.runs.get(id.0).expect("a decision names runs that exist");
            DraftRun::new(stored.head.clone())
        })
    }

    pub(crate) fn next_run_id(&self) -> RunId {
        self.next_run_id
    }

    /// The newest version of a workflow.
    pub(crate) fn newest_workflow(&self, name: &str) -> Option<&Arc<Workflow>> {
        let drafted = self
            .runs
            .as_ref()
            .and_then(|runs| runs.workflows.iter().rev().find(|workflow| &*workflow.name == name));
        drafted.or_else(|| self.state.facts.workflows.get(name)?.newest())
    }

    /// The runs that were touched.
    pub(crate) fn touched_runs(&self) -> impl Iterator<Item = (RunId, &Run)> {
        let runs = self.runs.iter().flat_map(|runs| runs.runs.iter());
        runs.filter(|(_, run)| !run.is_purged).map(|(id, run)| (*id, &run.head))
    }

    /// The tokens that were touched, each before and after.
    pub(crate) fn touched_tokens(
        &self,
    ) -> impl Iterator<Item = (RunId, TokenId, Option<&Token>, &Token)> {
        let runs = self.runs.iter().flat_map(|runs| runs.runs.iter());
        runs.flat_map(move |(id, run)| {
            let stored = self.stored(*id);
            run.tokens.iter().map(move |(token_id, token)| {
                let before = stored.and_then(|stored| stored.token(*token_id));
                (*id, *token_id, before, token)
            })
        })
    }

    /// The groups that were touched.
    pub(crate) fn touched_groups(&self) -> impl Iterator<Item = (RunId, GroupId, &Group)> {
        let runs = self.runs.iter().flat_map(|runs| runs.runs.iter());
        runs.flat_map(|(id, run)| run.groups.iter().map(|(at, group)| (*id, *at, group)))
    }

    /// Outputs of a node's visits in branches, in the order of their places. `around` is the
    /// outermost group and the indices of the scope that asks; empty for the root, which sees all.
    pub(crate) fn kept_outputs(&self, run: RunId, node: u32, around: &[u32]) -> Vec<Value> {
        let (outermost, indices) = match around.split_first() {
            Some((group, indices)) => (GroupId(*group), indices),
            None => (GroupId::NONE, around),
        };
        let is_inside = |(there, group, path, _): &KeptKey| {
            let is_deeper = path.len() > indices.len() && path.starts_with(indices);
            *there == node && (outermost == GroupId::NONE || (*group == outermost && is_deeper))
        };
        let from: KeptKey = (node, outermost, indices.into(), TokenId(u32::MAX));
        let stored = self.stored(run).map(|stored| stored.kept.range(from..));
        let stored = stored.into_iter().flatten().take_while(|(key, _)| is_inside(key));
        let drafted = self.drafted(run).map(|run| run.kept.as_slice()).unwrap_or_default();
        let drafted = drafted.iter().map(|(key, value)| (key, value));
        let mut kept: Vec<_> = stored.chain(drafted.filter(|(key, _)| is_inside(key))).collect();
        kept.sort_by(|a, b| a.0.cmp(b.0));
        kept.into_iter().map(|(_, value)| value.clone()).collect()
    }

    /// Compares what is drafted of runs with a state to which the record was applied.
    pub(super) fn check_runs(&self, applied: &State) -> Result<(), String> {
        let Some(runs) = &self.runs else { return Ok(()) };
        for (id, drafted) in runs.runs.iter() {
            let Some(stored) = applied.facts.runs.get(id.0) else {
                match drafted.is_purged {
                    true => continue,
                    false => return Err(format!("run {id} is in the draft only")),
                }
            };
            let (a, b) =
                (format!("{:?}", Bare(&drafted.head)), format!("{:?}", Bare(&stored.head)));
            if a != b {
                return Err(format!("the head of run {id} differs:\n{a}\n{b}"));
            }
            for (token_id, token) in drafted.tokens.iter() {
                if stored.token(*token_id) != Some(token) {
                    let there = stored.token(*token_id);
                    return Err(format!("token {token_id} of {id} differs:\n{token:?}\n{there:?}"));
                }
            }
            for (group_id, group) in drafted.groups.iter() {
                if stored.group(*group_id) != Some(group) {
                    let there = stored.group(*group_id);
                    return Err(format!("group {group_id} of {id} differs:\n{group:?}\n{there:?}"));
                }
            }
            for (at, branch) in drafted.branches.iter() {
                // Those of a group that is over are gone, or bare.
                if let Some(there) = stored.branch(*at)
                    && (there.outcome, there.arrived_as) != (branch.outcome, branch.arrived_as)
                {
                    return Err(format!("branch {at:?} of {id} differs:\n{branch:?}\n{there:?}"));
                }
            }
        }
        Ok(())
    }
}

/// A head without the definition, which is long.
struct Bare<'a>(&'a Run);

impl std::fmt::Debug for Bare<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let run = self.0;
        f.debug_tuple("Run")
            .field(&(&run.workflow.name, run.workflow.version, &run.input, run.state))
            .field(&(run.started_at, run.finished_at, run.finished_offset))
            .field(&(run.deadline_at, &run.output, &run.error))
            .field(&(&run.root, run.parent, run.depth, run.groups, run.tokens, run.live))
            .field(&(run.busy, run.unstarted, &run.rare, run.last_lsn))
            .field(&(run.top, run.descendants, &run.endings, &run.parked))
            .finish()
    }
}

impl Runs for Draft<'_> {
    fn workflow(&self, name: &str, version: u32) -> Option<&Arc<Workflow>> {
        let drafted = self.runs.as_ref().and_then(|runs| {
            runs.workflows.iter().find(|known| &*known.name == name && known.version == version)
        });
        drafted.or_else(|| Runs::workflow(self.state, name, version))
    }

    fn register(&mut self, workflow: Arc<Workflow>) {
        self.runs.get_or_insert_default().workflows.push(workflow);
    }

    /// Nothing else is decided in the record of a delete.
    fn delete_workflow(&mut self, _name: &str, _version: Option<u32>) {}

    fn run(&self, id: RunId) -> Option<&Run> {
        match self.drafted(id) {
            Some(DraftRun { is_purged: true, .. }) => None,
            Some(run) => Some(&run.head),
            None => self.stored(id).map(|stored| &stored.head),
        }
    }

    fn begin(&mut self, id: RunId, run: Run) {
        assert_eq!(id, self.next_run_id, "a draft gives out ids one after the other");
        self.next_run_id = id.next();
        self.runs.get_or_insert_default().runs.insert(id, DraftRun::new(run));
    }

    fn change_run(&mut self, id: RunId, change: impl FnOnce(&mut Run)) {
        let head = &mut self.touch_run(id).head;
        change(head);
        let is_ending = head.endings.is_some();
        self.begins_endings |= is_ending;
    }

    fn park(&mut self, id: RunId, parked: Option<Arc<Parked>>) {
        self.touch_run(id).head.parked = parked;
    }

    fn token(&self, run: RunId, id: TokenId) -> Option<&Token> {
        let drafted = self.drafted(run).and_then(|run| run.tokens.get(&id));
        drafted.or_else(|| self.stored(run)?.token(id))
    }

    fn add_token(&mut self, run: RunId, token: Token) {
        let run = self.touch_run(run);
        // The head counts it already.
        run.tokens.insert(TokenId(run.head.tokens), token);
    }

    fn change_token(&mut self, run: RunId, id: TokenId, change: impl FnOnce(&mut Token)) {
        let state: &State = self.state;
        let drafted = self.touch_run(run);
        change(drafted.tokens.touch(id, || {
            let stored = state.facts.runs.get(run.0).and_then(|stored| stored.token(id));
            stored.expect("a decision names tokens that exist").clone()
        }));
    }

    fn group(&self, run: RunId, id: GroupId) -> Option<&Group> {
        let drafted = self.drafted(run).and_then(|run| run.groups.get(&id));
        drafted.or_else(|| self.stored(run)?.group(id))
    }

    fn add_group(&mut self, run: RunId, group: Group) {
        let run = self.touch_run(run);
        run.groups.insert(GroupId(run.head.groups + 1), group);
    }

    fn change_group(&mut self, run: RunId, id: GroupId, change: impl FnOnce(&mut Group)) {
        let state: &State = self.state;
        let drafted = self.touch_run(run);
        change(drafted.groups.touch(id, || {
            let stored = state.facts.runs.get(run.0).and_then(|stored| stored.group(id));
            stored.expect("a decision names groups that exist").clone()
        }));
    }

    fn branch(&self, run: RunId, at: ScopeRef) -> Option<&Branch> {
        let drafted = self.drafted(run).and_then(|run| run.branches.get(&at));
        drafted.or_else(|| self.stored(run)?.branch(at))
    }

    fn branches(&self, run: RunId, group: GroupId) -> Vec<&Branch> {
        let mut all = Runs::branches(self.state, run, group);
        let drafted = self.drafted(run).into_iter().flat_map(|run| run.branches.iter());
        let mut drafted: Vec<_> = drafted.filter(|(at, _)| at.group == group).collect();
        // New ones come after those that are stored, in order.
        drafted.sort_unstable_by_key(|(at, _)| at.index);
        for (at, branch) in drafted {
            match all.get_mut(at.index as usize) {
                Some(there) => *there = branch,
                None => all.push(branch),
            }
        }
        all
    }

    fn add_branch(&mut self, run: RunId, group: GroupId, branch: Branch) {
        let index = Runs::group(self, run, group).expect("a branch belongs to a group").started;
        self.touch_run(run).branches.insert(ScopeRef { group, index }, branch);
    }

    fn change_branch(&mut self, run: RunId, at: ScopeRef, change: impl FnOnce(&mut Branch)) {
        let state: &State = self.state;
        let drafted = self.touch_run(run);
        change(drafted.branches.touch(at, || {
            let stored = state.facts.runs.get(run.0).and_then(|stored| stored.branch(at));
            stored.expect("a decision names branches that have begun").clone()
        }));
    }

    /// Nothing is decided by what a branch held once its group is closed.
    fn drop_branches(&mut self, _run: RunId, _group: GroupId) {}

    fn has_endings(&self) -> bool {
        self.begins_endings || Runs::has_endings(self.state)
    }

    fn keep_output(&mut self, run: RunId, key: KeptKey, value: Value) {
        self.touch_run(run).kept.push((key, value));
    }

    /// A command brings one signal at most, and it was looked for before.
    fn note_signal(&mut self, _run: RunId, _signal_id: &str, _hash: Option<SubmitHash>) {}

    fn purge_run(&mut self, id: RunId) {
        let run = self.touch_run(id);
        assert_ne!(run.head.state, RunState::Running, "only a run that is over is forgotten");
        run.is_purged = true;
    }
}
