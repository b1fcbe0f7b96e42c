//! A run whose parts are all there: what follows from them is worked out, and it is added.

use std::sync::Arc;

use tenure_record::codec::Malformed;
use tenure_record::event::{GroupState, TokenState};
use tenure_record::id::{GroupId, RunId, TaskId, TokenId};

use super::read_run::{Awaited, OpenRun, is_over};
use crate::state::facts::Facts;
use crate::state::facts::run::{RareRun, Scope, ScopeRef, Work};
use crate::state::facts::task::Cold;
use crate::state::store::ColdRef;

impl OpenRun {
    /// All parts are there: works out what follows from them, and adds the run.
    pub(super) fn close(mut self, facts: &mut Facts) -> Result<(), Malformed> {
        if self.awaited != Awaited::default() {
            return Err(Malformed::new("some of its parts are missing"));
        }
        self.count_tokens(facts)?;
        self.count_groups()?;
        if self.rare != RareRun::default() {
            self.stored.head.rare = Some(Arc::new(self.rare));
        }
        facts.runs.insert(self.id.0, Arc::new(self.stored));
        Ok(())
    }

    fn count_tokens(&mut self, facts: &mut Facts) -> Result<(), Malformed> {
        for id in (1..=self.stored.tokens.len() as u32).map(TokenId) {
            let Some(token) = self.stored.token(id) else { continue };
            let (at, state) = (token.scope, token.state);
            if let Work::Task(task) = token.work {
                belong(facts, task, self.id, id)?;
            }
            if !at.is_root() {
                self.started_branch(at)?;
            }
            if state.is_terminal() {
                continue;
            }
            let head = &mut self.stored.head;
            head.live += 1;
            head.busy += u32::from(matches!(state, TokenState::Pending | TokenState::Dispatched));
            let scope = self.scope_mut(at);
            let scope = scope.ok_or_else(|| Malformed::new(format!("token {id} lives nowhere")))?;
            scope.tokens.push(id);
        }
        Ok(())
    }

    fn count_groups(&mut self) -> Result<(), Malformed> {
        for id in (1..=self.stored.groups.len() as u32).map(GroupId) {
            let Some(group) = self.stored.group(id) else { continue };
            let settled = u64::from(group.settled()) + u64::from(group.running);
            if settled > group.total.into() {
                return Err(Malformed::new(format!("group {id} has too many branches")));
            }
            let (at, state, over) = (group.scope, group.state, is_over(group));
            self.stored.head.unstarted += u64::from(group.unstarted());
            if over {
                continue;
            }
            match self.scope_mut(at) {
                Some(scope) => {
                    scope.groups.push(id);
                    scope.open_groups += u32::from(state == GroupState::Open);
                }
                None if state == GroupState::Open => {
                    return Err(Malformed::new(format!("group {id} is open nowhere")));
                }
                // What a fired group left behind runs on when the branch around it is over.
                None => {}
            }
        }
        Ok(())
    }

    fn scope_mut(&mut self, at: ScopeRef) -> Option<&mut Scope> {
        match at.is_root() {
            true => Some(Arc::make_mut(&mut self.stored.head.root)),
            false => {
                let group = self.stored.group_mut(at.group)?;
                let branch = group.branches.get_mut(at.index as usize)?;
                branch.scope.as_mut().map(Arc::make_mut)
            }
        }
    }
}

/// A task is a token's.
fn belong(facts: &mut Facts, id: TaskId, run: RunId, token: TokenId) -> Result<(), Malformed> {
    let task = facts.tasks.get_mut(id.0).filter(|task| !task.in_run);
    let Some(task) = task else {
        return Err(Malformed::new(format!("task {id} of token {token} is not there for it")));
    };
    task.in_run = true;
    if task.cold.get().is_none() {
        task.cold = facts.cold.insert(Cold::default());
    }
    let cold = task.cold.get().and_then(|at: ColdRef| facts.cold.get_mut(at));
    cold.ok_or_else(|| Malformed::new("a task's rare part is not there"))?.run = Some((run, token));
    Ok(())
}
