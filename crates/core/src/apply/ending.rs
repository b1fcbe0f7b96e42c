//! What decisions do to scopes that end over several records.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_record::event::{BranchOutcome, CloseScope, EndScope, TokenRows, TokenState};
use tenure_record::id::{GroupId, RunId, TokenId};

use super::run::is_busy;
use super::{Stamp, group};
use crate::state::{EndingRoot, EndingScope, Runs, ScopeRef};

/// A scope begins to end.
pub(super) fn begun(to: &mut impl Runs, stamp: Stamp, run: RunId, step: &EndScope) {
    let scope = EndingScope { group: step.group, index: step.index };
    let parent = to.run(run).and_then(|run| run.parent).map(|(parent, _)| parent);
    let parent = parent.filter(|id| {
        let is_ending = to.run(*id).is_some_and(|parent| parent.ending_root().is_some());
        scope.group == GroupId::NONE && is_ending
    });
    if let Some(parent) = parent {
        to.change_run(parent, |run| with_root(run, |root| root.children += 1));
    }
    to.change_run(run, |run| {
        let groups_left = run.groups;
        let endings = Arc::make_mut(run.endings.get_or_insert_default());
        if scope.group != GroupId::NONE {
            endings.scopes.insert(scope);
            return;
        }
        endings.root = Some(EndingRoot {
            state: step.state,
            error: step.error.as_ref().map(|error| error.0.clone()),
            since: stamp.wall,
            tokens_ended: 0,
            groups_left,
            children: 0,
            holds_parent: parent.is_some(),
        });
    });
    if scope.group != GroupId::NONE {
        to.change_group(run, scope.group, |group| group.ending += 1);
    }
}

/// Nothing is left of a scope that was ending.
pub(super) fn closed(to: &mut impl Runs, run: RunId, step: &CloseScope) {
    let scope = EndingScope { group: step.group, index: step.index };
    to.change_run(run, |run| {
        let Some(endings) = &mut run.endings else { return };
        let endings = Arc::make_mut(endings);
        endings.scopes.remove(&scope);
        if endings.is_empty() {
            run.endings = None;
        }
    });
    to.change_group(run, step.group, |group| group.ending -= 1);
    let branch = step.index.map(|index| ScopeRef { group: step.group, index });
    let settled = branch.filter(|at| {
        to.branch(run, *at).is_some_and(|branch| branch.outcome != BranchOutcome::Open)
    });
    if let Some(at) = settled {
        to.change_branch(run, at, |branch| branch.scope = None);
    }
    group::forget_if_over(to, run, step.group);
}

/// Tokens end together. What counts them is changed once for each scope, however many tokens are
/// live in it.
pub(super) fn cancel_tokens(to: &mut impl Runs, run: RunId, tokens: &TokenRows) {
    let mut by_scope: BTreeMap<ScopeRef, Vec<TokenId>> = BTreeMap::new();
    let (mut ended, mut busy, mut last) = (0, 0, TokenId::NONE);
    for id in tokens.iter() {
        let token = to.token(run, id).expect("a decision names tokens that exist");
        let (before, scope) = (token.state, token.scope);
        assert!(!before.is_terminal(), "a token that has ended never changes");
        to.change_token(run, id, |token| token.state = TokenState::Canceled);
        by_scope.entry(scope).or_default().push(id);
        (ended, busy, last) = (ended + 1, busy + u32::from(is_busy(before)), id);
    }
    for (at, ids) in by_scope {
        to.change_scope(run, at, |scope| {
            scope.tokens.retain(|live| ids.binary_search(live).is_err());
        });
    }
    to.change_run(run, |run| {
        run.live -= ended;
        run.busy -= busy;
        with_root(run, |root| root.tokens_ended = root.tokens_ended.max(last.0));
    });
}

/// A run is over. A parent that is ending waited for it.
pub(super) fn finished(to: &mut impl Runs, run: RunId) {
    let head = to.run(run).filter(|run| run.ending_root().is_some_and(|root| root.holds_parent));
    if let Some((parent, _)) = head.and_then(|run| run.parent)
        && to.run(parent).is_some()
    {
        to.change_run(parent, |run| with_root(run, |root| root.children -= 1));
    }
}

/// A group of a run that ends as a whole has closed; those above it have too.
pub(super) fn group_closed(to: &mut impl Runs, run: RunId, group: GroupId) {
    if to.run(run).is_some_and(|run| run.ending_root().is_some()) {
        to.change_run(run, |run| with_root(run, |root| root.groups_left = group.0 - 1));
    }
}

fn with_root(run: &mut crate::state::Run, change: impl FnOnce(&mut EndingRoot)) {
    if run.ending_root().is_some()
        && let Some(endings) = &mut run.endings
        && let Some(root) = &mut Arc::make_mut(endings).root
    {
        change(root);
    }
}
