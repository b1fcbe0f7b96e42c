//! The laws of runs.

use std::collections::BTreeMap;

use tenure_record::event::{BranchOutcome, GroupState, RunState, TokenState};
use tenure_record::id::{GroupId, RunId, TaskId, TokenId};
use tenure_record::time::Timestamp;

use super::{Law, Violation, hold};
use crate::state::{Draft, Facts, Group, Runs, Scope, ScopeRef, StoredRun, Token, Work};

/// Checks every run.
pub(super) fn check_runs(facts: &Facts) -> Result<(), Violation> {
    for (id, stored) in facts.runs.iter() {
        let id = RunId(id);
        let checked = hold(Law::IdsComeFromCounters, id < facts.next_run_id, || {
            "it was never given".to_owned()
        });
        checked.and_then(|()| check_run(facts, id, stored)).map_err(|broken| Violation {
            found: format!("run {id}: {}", broken.found),
            ..broken
        })?;
    }
    for task in facts.tasks() {
        let cold = facts.tasks.get(task.id.0).and_then(|slot| facts.cold_of(slot));
        let Some((run, token)) = cold.and_then(|cold| cold.run) else { continue };
        let found = facts.runs.get(run.0).and_then(|stored| stored.token(token));
        let is_its = found.is_some_and(|token| token.work == Work::Task(task.id));
        hold(Law::TasksBelongToTokens, is_its, || {
            format!("task {} belongs to token {token} of run {run}, which has another", task.id)
        })?;
    }
    Ok(())
}

pub(super) fn check_run(facts: &Facts, id: RunId, stored: &StoredRun) -> Result<(), Violation> {
    let mut live_by_scope: BTreeMap<ScopeRef, Vec<TokenId>> = BTreeMap::new();
    let mut busy = 0;
    for (token_id, token) in stored.tokens() {
        check_token(facts, id, stored, token_id, token)?;
        if !token.state.is_terminal() {
            live_by_scope.entry(token.scope).or_default().push(token_id);
            busy += u32::from(matches!(token.state, TokenState::Pending | TokenState::Dispatched));
        }
    }
    let head = &stored.head;
    let live: usize = live_by_scope.values().map(Vec::len).sum();
    let counts = (head.live as usize, head.busy, head.tokens as usize, head.groups as usize);
    let right = (live, busy, stored.tokens.len(), stored.groups.len());
    hold(Law::RunsCountRight, counts == right, || format!("it counts {counts:?}, not {right:?}"))?;
    let mut unstarted = 0;
    for (group_id, group) in (1..).map(GroupId).zip(&stored.groups) {
        check_group(stored, group_id, &group.head)?;
        unstarted += u64::from(group.head.unstarted());
    }
    hold(Law::RunsCountRight, head.unstarted == unstarted, || {
        format!("{} branches have not begun, not {unstarted}", head.unstarted)
    })?;
    check_scope((facts, id, stored), ScopeRef::ROOT, &head.root, &live_by_scope)?;
    for (at, tokens) in &live_by_scope {
        let scope = stored.scope(*at);
        hold(Law::RunsCountRight, scope.is_some_and(|s| s.tokens.as_slice() == tokens), || {
            format!("the live tokens of {at:?} are {tokens:?}")
        })?;
    }
    match head.state {
        RunState::Running if head.endings.is_some() => Ok(()),
        RunState::Running => hold(Law::LiveRunsGoOn, live > 0 || unstarted > 0, || {
            "it is live and has no live token".to_owned()
        }),
        RunState::Completed | RunState::Failed | RunState::Canceled | RunState::TimedOut => {
            hold(Law::TheEndedStaysEnded, live == 0 && unstarted == 0, || {
                format!("it is {} with {live} live tokens", head.state)
            })
        }
    }
}

fn check_token(
    facts: &Facts,
    run: RunId,
    stored: &StoredRun,
    id: TokenId,
    token: &Token,
) -> Result<(), Violation> {
    let has_parent = token.parent.is_some() && token.parent < id;
    hold(Law::TokensHaveParents, has_parent || id == TokenId(1), || {
        format!("token {id} has no parent")
    })?;
    if token.state.is_terminal() {
        return Ok(());
    }
    if is_ending(facts, run, token.scope) {
        return Ok(());
    }
    let is_live_task =
        |task: TaskId| facts.task(task).is_some_and(|task| !task.state().is_terminal());
    let wakes = match (token.state, &token.work) {
        (TokenState::Dispatched, Work::Task(task)) => is_live_task(*task),
        (TokenState::WaitingForWorkflow, Work::Child(child)) => {
            let child = facts.runs.get(child.0).map(|stored| &stored.head);
            child.is_some_and(|child| {
                child.state == RunState::Running && child.parent == Some((run, id))
            })
        }
        (TokenState::WaitingForSignal, Work::Signal(_)) => true,
        (TokenState::WaitingForTimer, Work::Timer(at, _)) => *at > Timestamp::ZERO,
        (TokenState::WaitingForSiblings, Work::Nothing) => {
            let mut groups = stored.groups.iter().map(|group| &group.head);
            groups.any(|group| {
                group.fan_in == id && group.state == GroupState::Open && group.open() > 0
            })
        }
        _ => false,
    };
    hold(Law::LiveTokensWake, wakes, || {
        format!("token {id} is {} and nothing moves it on: {:?}", token.state, token.work)
    })
}

fn check_group(stored: &StoredRun, id: GroupId, group: &Group) -> Result<(), Violation> {
    let is_live = stored.head.state == RunState::Running;
    hold(Law::GroupsAddUp, group.settled() + group.open() == group.total, || {
        format!("the branches of group {id} are not {}", group.total)
    })?;
    hold(Law::TheEndedStaysEnded, is_live || group.state != GroupState::Open, || {
        format!("group {id} is open and its run is over")
    })?;
    if group.state != GroupState::Open && group.open() == 0 {
        return Ok(());
    }
    let branches = stored.stored_group(id).map(|stored| &stored.branches);
    let open = branches.into_iter().flat_map(|branches| branches.iter());
    let open = open.filter(|branch| branch.outcome == BranchOutcome::Open).count();
    let open = if group.rest == BranchOutcome::Open { open } else { 0 };
    hold(Law::GroupsAddUp, open == group.running as usize, || {
        format!("{open} branches of group {id} run, not {}", group.running)
    })
}

/// Whether something around a scope is ending.
fn is_ending(facts: &Facts, run: RunId, at: ScopeRef) -> bool {
    let (mut run_id, mut at) = (run, at);
    while let Some(stored) = facts.runs.get(run_id.0) {
        if stored.head.ending_root().is_some() {
            return true;
        }
        while let (Some(endings), false) = (&stored.head.endings, at.is_root()) {
            let is_open =
                stored.branch(at).is_some_and(|branch| branch.outcome == BranchOutcome::Open);
            if endings.has_branch(at) || (is_open && endings.has_group(at.group)) {
                return true;
            }
            let Some(group) = stored.group(at.group).filter(|_| is_open) else { break };
            at = group.scope;
        }
        let Some((parent, token)) = stored.head.parent else { return false };
        let found = facts.runs.get(parent.0).and_then(|stored| stored.token(token));
        let Some(token) = found else { return false };
        (run_id, at) = (parent, token.scope);
    }
    false
}

fn check_scope(
    within: (&Facts, RunId, &StoredRun),
    at: ScopeRef,
    scope: &Scope,
    live: &BTreeMap<ScopeRef, Vec<TokenId>>,
) -> Result<(), Violation> {
    let (facts, run, stored) = within;
    let tokens = live.get(&at).map(Vec::as_slice).unwrap_or_default();
    let groups = scope.groups.iter().filter_map(|group| stored.group(*group));
    let open = groups.filter(|group| group.state == GroupState::Open).count();
    let right = scope.tokens.as_slice() == tokens && scope.open_groups as usize == open;
    hold(Law::RunsCountRight, right, || format!("the scope {at:?} counts wrong: {scope:?}"))?;
    for group in &scope.groups {
        let Some(group_of) = stored.stored_group(*group) else { continue };
        for (branch, index) in group_of.branches.iter().zip(0..) {
            let at = ScopeRef { group: *group, index };
            let unsettled = branch.outcome == BranchOutcome::Open;
            let is_ending = is_ending(facts, run, at);
            let Some(scope) = branch.scope.as_ref().filter(|_| unsettled || is_ending) else {
                continue;
            };
            // Branches that were settled as the rest of their group are not marked one by one. Once
            // the rest has ended, they stay in the table as long as another branch is ending.
            if group_of.head.rest != BranchOutcome::Open && !is_ending {
                hold(Law::TheEndedStaysEnded, scope.is_quiet(), || {
                    format!("the branch {at:?} has settled and something in it is live")
                })?;
                continue;
            }
            hold(Law::LiveRunsGoOn, is_ending || !scope.is_quiet(), || {
                format!("the branch {at:?} is open and nothing in it is live")
            })?;
            check_scope(within, at, scope, live)?;
        }
    }
    Ok(())
}

/// Checks what a draft touched of runs: O(1) for each part.
pub(super) fn check_draft(draft: &Draft<'_>) -> Result<(), Violation> {
    for (run, id, before, after) in draft.touched_tokens() {
        let changed = before.is_some_and(|token| token.state.is_terminal() && token != after);
        hold(Law::TheEndedStaysEnded, !changed, || {
            format!("token {id} of run {run} had ended and changed")
        })?;
        let is_over = Runs::run(draft, run).is_none_or(|run| run.state.is_terminal());
        hold(Law::TheEndedStaysEnded, !is_over || after.state.is_terminal(), || {
            format!("run {run} is over and token {id} is {}", after.state)
        })?;
        let waits = after.state != TokenState::Pending || draft.is_ending(run, after.scope);
        hold(Law::LiveTokensWake, waits, || {
            format!("token {id} of run {run} was left as it began")
        })?;
    }
    for (run, id, group) in draft.touched_groups() {
        hold(Law::GroupsAddUp, group.settled() + group.running <= group.total, || {
            format!("the branches of group {id} of run {run} are not {}", group.total)
        })?;
    }
    for (id, run) in draft.touched_runs() {
        let ends = run.endings.as_ref().is_some_and(|endings| !endings.scopes.is_empty());
        let is_ending = ends || run.ending_root().is_some();
        let goes_on = run.live > 0 || run.unstarted > 0 || is_ending;
        hold(Law::LiveRunsGoOn, goes_on != run.state.is_terminal(), || {
            format!("run {id} is {} with {} live tokens", run.state, run.live)
        })?;
    }
    Ok(())
}
