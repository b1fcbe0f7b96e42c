//! What decisions about runs are written to: the state itself, or a draft of it.

use std::sync::Arc;

use tenure_flow::Value;

use super::ledger::Ledger;
use super::run::{Branch, Group, KeptKey, Run, Scope, ScopeRef, Token, Workflow};
use crate::id::{GroupId, RunId, TokenId};

/// A place that takes changes of runs.
pub(crate) trait Runs: Ledger {
    /// A version of a workflow.
    fn workflow(&self, name: &str, version: u32) -> Option<&Arc<Workflow>>;

    /// Adds a version of a workflow: the one after the last.
    fn register(&mut self, workflow: Arc<Workflow>);

    /// A run's head, as the changes so far have left it.
    fn run(&self, id: RunId) -> Option<&Run>;

    /// Adds a run.
    fn begin(&mut self, id: RunId, run: Run);

    /// Changes a run's head.
    fn change_run(&mut self, id: RunId, change: impl FnOnce(&mut Run));

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

    /// Remembers that a signal with this id came.
    fn note_signal(&mut self, run: RunId, signal_id: &str);

    /// Forgets a run and its tasks.
    fn purge_run(&mut self, id: RunId);

    /// A scope, while it lives.
    fn scope(&self, run: RunId, at: ScopeRef) -> Option<&Arc<Scope>> {
        match at.is_root() {
            true => self.run(run).map(|run| &run.root),
            false => self.branch(run, at)?.scope.as_ref(),
        }
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
