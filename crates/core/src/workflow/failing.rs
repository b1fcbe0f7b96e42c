//! What a failure takes with it: the branch around it, or the run.

use tenure_record::event::{BranchOutcome, GroupState, RunState, TokenState};
use tenure_record::id::RunId;
use tenure_value::Value;

use super::cascade::{At, Cascade, Task};
use crate::state::{Runs, ScopeRef};

impl Cascade<'_, '_> {
    /// A token fails and nothing deals with it: what is around it fails.
    pub(super) fn break_token(&mut self, at: At, state: TokenState, error: Value) {
        let scope = self.token(at).scope;
        self.update(at, state, Some(error.clone()), Vec::new());
        self.break_scope(at.run, scope, error);
    }

    /// A scope fails: what else is live in it ends. The root takes the run with it, a branch only
    /// itself, and its group sees to the rest.
    pub(super) fn break_scope(&mut self, run: RunId, at: ScopeRef, error: Value) {
        if !self.draft.goes_on(run, at) {
            return;
        }
        if at.is_root() {
            return self.cancel_run(run, RunState::Failed, Some(error));
        }
        self.cancel_scope(run, at);
        self.settle_one(run, at, BranchOutcome::Failed, Vec::new(), Some(error.clone()));
        let group = self.group(run, at.group);
        let has_join = {
            let place = group.definition as usize;
            self.run(run).workflow.definition().groups[place].join.is_some()
        };
        // Nobody waits for these branches, so nobody but their surroundings can deal with it.
        if !has_join && group.state == GroupState::Open {
            let around = group.scope;
            self.cancel_branches(run, at.group, BranchOutcome::Canceled);
            self.close_failed(run, at.group);
            self.break_scope(run, around, error);
        }
    }

    /// A child, or a run, that does not end well: what its parent hears.
    pub(super) fn tell_parent(&mut self, run: RunId) {
        let head = self.run(run);
        let Some((parent, token)) = head.parent else { return };
        let at = At { run: parent, token };
        let waits = Runs::token(self.draft, parent, token)
            .is_some_and(|token| token.work == crate::state::Work::Child(run));
        if waits && self.live_token(at).is_some() {
            self.hear_child(at, run);
        }
    }

    pub(super) fn push_fail(&mut self, at: At, error: Value) {
        self.push(Task::Fail(at, error, TokenState::Failed));
    }
}
