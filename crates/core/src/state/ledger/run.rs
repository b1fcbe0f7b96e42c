//! What decisions about runs are written to: the state itself, or a draft of it.

use std::sync::Arc;

use tenure_record::event::{BranchOutcome, SubmitHash};
use tenure_record::id::{GroupId, RunId, TokenId};
use tenure_value::Value;

use crate::state::facts::run::{
    Branch, Endings, Group, KeptKey, Parked, Run, Scope, ScopeRef, Token, Workflow,
};
use crate::state::ledger::Ledger;

/// A place that takes changes of runs.
pub(crate) trait Runs: Ledger {
    /// A version of a workflow.
    fn workflow(&self, name: &str, version: u32) -> Option<&Arc<Workflow>>;

    /// Adds a version of a workflow: the one after the last.
    fn register(&mut self, workflow: Arc<Workflow>);

    /// Forgets a version of a workflow, or all of them.
    fn delete_workflow(&mut self, name: &str, version: Option<u32>);

    /// A run's head, as the changes so far have left it.
    fn run(&self, id: RunId) -> Option<&Run>;

    /// Adds a run.
    fn begin(&mut self, id: RunId, run: Run);

    /// Changes a run's head.
    fn change_run(&mut self, id: RunId, change: impl FnOnce(&mut Run));

    /// Lets a run stand still, or go on.
    fn park(&mut self, id: RunId, parked: Option<Arc<Parked>>);

    /// A token.
    fn token(&self, run: RunId, id: TokenId) -> Option<&Token>;

    /// Adds a token: the one after the last.
    fn add_token(&mut self, run: RunId, token: Token);

    /// Changes a token.
    fn change_token(&mut self, run: RunId, id: TokenId, change: impl FnOnce(&mut Token));

    /// A group.
    fn group(&self, run: RunId, id: GroupId) -> Option<&Group>;

    /// Adds a group: the one after the last.
    fn add_group(&mut self, run: RunId, group: Group);

    /// Changes a group.
    fn change_group(&mut self, run: RunId, id: GroupId, change: impl FnOnce(&mut Group));

    /// A branch that has begun.
    fn branch(&self, run: RunId, at: ScopeRef) -> Option<&Branch>;

    /// All branches of a group that have begun, by their index.
    fn branches(&self, run: RunId, group: GroupId) -> Vec<&Branch>;

    /// Adds a branch: the one after the last of its group.
    fn add_branch(&mut self, run: RunId, group: GroupId, branch: Branch);

    /// Changes a branch.
    fn change_branch(&mut self, run: RunId, at: ScopeRef, change: impl FnOnce(&mut Branch));

    /// Forgets what the branches of a group hold, and leaves their outcomes.
    fn drop_branches(&mut self, run: RunId, group: GroupId);

    /// Keeps the output of a visit beside those of other branches.
    fn keep_output(&mut self, run: RunId, key: KeptKey, value: Value);

    /// Remembers that a signal with this id came, and what it looked like.
    fn note_signal(&mut self, run: RunId, signal_id: &str, hash: Option<SubmitHash>);

    /// Forgets a run and its tasks.
    fn purge_run(&mut self, id: RunId);

    /// A scope, while it lives.
    fn scope(&self, run: RunId, at: ScopeRef) -> Option<&Arc<Scope>> {
        match at.is_root() {
            true => self.run(run).map(|run| &run.root),
            false => self.branch(run, at)?.scope.as_ref(),
        }
    }

    /// Whether anything is ending. While nothing is, no scope has to be looked at.
    fn has_endings(&self) -> bool;

    /// Whether a scope belongs to something that is ending: its outcome is decided, so nothing in
    /// it is granted, dispatched, fired, signaled, accepted or retried. The scopes around it are
    /// looked at, and those of the runs above.
    fn is_ending(&self, run: RunId, at: ScopeRef) -> bool {
        if !self.has_endings() {
            return false;
        }
        let (mut run_id, mut at) = (run, at);
        while let Some(run) = self.run(run_id) {
            if let Some(endings) = &run.endings
                && (endings.root.is_some() || self.ends_around(run_id, endings, at))
            {
                return true;
            }
            let Some((parent, token)) = run.parent else { return false };
            let Some(token) = self.token(parent, token) else { return false };
            (run_id, at) = (parent, token.scope);
        }
        false
    }

    /// Whether what is in a scope may still move: its run is not over, and nothing around the scope
    /// is ending.
    fn goes_on(&self, run: RunId, at: ScopeRef) -> bool {
        self.run(run).is_some_and(|run| !run.state.is_terminal()) && !self.is_ending(run, at)
    }

    /// Whether a branch of this run around a scope, or the scope itself, is ending.
    fn ends_around(&self, run: RunId, endings: &Endings, mut at: ScopeRef) -> bool {
        while !at.is_root() {
            if endings.has_branch(at) {
                return true;
            }
            // What runs on in a branch that has settled belongs to the run alone.
            let is_open = self.branch(run, at).is_some_and(|it| it.outcome == BranchOutcome::Open);
            let Some(group) = self.group(run, at.group).filter(|_| is_open) else { return false };
            if endings.has_group(at.group) {
                return true;
            }
            at = group.scope;
        }
        false
    }

    /// Changes a scope that lives.
    fn change_scope(&mut self, run: RunId, at: ScopeRef, change: impl FnOnce(&mut Scope)) {
        match at.is_root() {
            true => self.change_run(run, |run| change(Arc::make_mut(&mut run.root))),
            false => self.change_branch(run, at, |branch| {
                let scope = branch.scope.as_mut().expect("only a scope that lives is changed");
                change(Arc::make_mut(scope));
            }),
        }
    }
}
