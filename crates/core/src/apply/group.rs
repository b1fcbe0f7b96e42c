//! What decisions do to groups and their branches: how they open, settle, merge and close.

use std::sync::Arc;

use tenure_record::event::{
    BranchOutcome, CreateFanInToken, DropBranches, GroupState, MergeBranches, OpenGroup,
    PromoteArtifacts, SettleBranch, TokenState,
};
use tenure_record::id::{GroupId, RunId, TokenId};
use tenure_record::time::Timestamp;
use tenure_value::{Path, Value};

use super::precomputed::{Recall, ValueOf};
use super::{ending, run};
use crate::planted::{self, Bug};
use crate::state::{Branch, BranchResult, Group, Runs, Scope, ScopeRef, Spawn, Token, Work};
use crate::workflow::merging::v1;

pub(super) fn begin_branch(to: &mut impl Runs, run: RunId, at: ScopeRef) {
    let group = to.group(run, at.group).expect("a branch belongs to a group");
    let scope = Scope {
        context: group.context.clone(),
        outputs: group.outputs.clone(),
        ..Scope::default()
    };
    to.add_branch(run, at.group, Branch { scope: Some(Arc::new(scope)), ..Branch::default() });
    to.change_group(run, at.group, |group| {
        group.started += 1;
        group.running += 1;
    });
    to.change_run(run, |run| run.unstarted -= 1);
}

pub(super) fn open_group(to: &mut impl Runs, run: RunId, step: &OpenGroup<'_>) {
    let scope_at = to.token(run, step.origin).expect("a group has an origin").scope;
    let depth = match scope_at.is_root() {
        true => 1,
        false => to.group(run, scope_at.group).expect("a branch belongs to a group").depth + 1,
    };
    let scope = to.scope(run, scope_at).expect("a group is opened in a scope that lives");
    let (context, outputs) = (scope.context.clone(), scope.outputs.clone());
    let mut first = 0;
    let spawns = step.spawns.iter().map(|spawned| {
        let spawn = Spawn {
            transition: spawned.transition,
            node: spawned.node,
            first,
            count: spawned.count,
            items: spawned.items.as_ref().map(|items| items.0.clone()),
            item_var: spawned.item_var.to_shared(),
            keys: spawned.keys.as_ref().map(|keys| keys.0.clone()),
        };
        first += spawned.count;
        spawn
    });
    let group = Group {
        definition: step.definition,
        name: step.name.to_shared(),
        origin: step.origin,
        scope: scope_at,
        depth,
        total: step.total,
        need: step.need,
        concurrency: step.concurrency,
        promotes: step.promotes,
        started: 0,
        running: 0,
        arrived: 0,
        failed: 0,
        canceled: 0,
        timed_out: 0,
        ended: 0,
        rest: BranchOutcome::Open,
        ending: 0,
        state: GroupState::Open,
        fan_in: TokenId::NONE,
        timeout_at: Timestamp::ZERO,
        first_error: None,
        spawns: spawns.collect(),
        context,
        outputs,
    };
    to.add_group(run, group);
    to.change_scope(run, scope_at, |scope| {
        scope.groups.push(step.group);
        scope.open_groups += 1;
    });
    to.change_run(run, |run| {
        assert_eq!(step.group.0, run.groups + 1, "groups are numbered one after the other");
        run.groups = step.group.0;
        run.unstarted += u64::from(step.total);
    });
}

pub(super) fn create_fan_in(to: &mut impl Runs, run: RunId, step: &CreateFanInToken) {
    let group = to.group(run, step.group).expect("branches meet in a group");
    let (origin, scope) = (group.origin, group.scope);
    let loops = to.token(run, origin).expect("a group has an origin").loops.clone();
    let token = Token {
        node: step.node,
        scope,
        parent: origin,
        via: step.via,
        state: TokenState::WaitingForSiblings,
        work: Work::Nothing,
        deadline_at: Timestamp::ZERO,
        loops,
        error: None,
    };
    run::add_token(to, run, step.token, token);
    to.change_group(run, step.group, |group| group.fan_in = step.token);
}

pub(super) fn settle(to: &mut impl Runs, run: RunId, step: &SettleBranch) {
    let group = to.group(run, step.group).expect("a branch belongs to a group");
    let (began, promotes, state) = (group.started, group.promotes, group.state);
    let (arrived_before, is_open) = (group.arrived, state == GroupState::Open);
    if step.rest {
        return settle_rest(to, run, step);
    }
    let in_slots = step.index..step.index.saturating_add(step.count).min(began);
    for index in in_slots.clone() {
        let at = ScopeRef { group: step.group, index };
        let endings = to.run(run).and_then(|run| run.endings.as_ref());
        let is_ending = endings.is_some_and(|endings| endings.has_branch(at));
        let scope = to.branch(run, at).and_then(|branch| branch.scope.clone());
        // What a branch has staged goes on only if it came to the join, or to its end without one.
        let counts = matches!(step.outcome, BranchOutcome::Arrived | BranchOutcome::Ended)
            || planted::has(Bug::ArtifactOfALoserKept);
        let artifacts = scope.as_ref().filter(|_| counts && is_open);
        let artifacts = artifacts.map(|scope| scope.artifacts.clone()).unwrap_or_default();
        let has_any = !step.values.is_empty() || step.error.is_some() || !artifacts.is_empty();
        let result = (is_open && has_any).then(|| {
            let values = step.values.iter().map(|given| match given.is_output {
                true => scope.as_ref().and_then(|scope| scope.branch_output().cloned()),
                false => given.value.as_ref().map(|value| value.0.clone()),
            });
            let error = step.error.as_ref().map(|error| error.0.clone());
            Arc::new(BranchResult { values: values.collect(), error, artifacts })
        });
        to.change_branch(run, at, |branch| {
            branch.outcome = step.outcome;
            branch.result = result;
            if step.outcome == BranchOutcome::Arrived {
                branch.arrived_as = arrived_before + 1;
            }
            let is_promoted = promotes && is_open && step.outcome == BranchOutcome::Arrived;
            // What is ending in it still needs its scope.
            if !is_promoted && !is_ending {
                branch.scope = None;
            }
        });
    }
    to.change_group(run, step.group, |group| {
        group.running -= in_slots.len() as u32;
        *counted(group, step.outcome) += step.count;
        if let (Some(error), None) = (&step.error, &group.first_error) {
            group.first_error = Some(error.0.clone());
        }
    });
    let unstarted = u64::from(step.count) - in_slots.len() as u64;
    to.change_run(run, |run| run.unstarted -= unstarted);
    forget_if_over(to, run, step.group);
}

/// All branches that have not settled do, in one step however many there are. Their group closes
/// with the same record, so none of them is looked at by itself.
fn settle_rest(to: &mut impl Runs, run: RunId, step: &SettleBranch) {
    let mut unstarted = 0;
    to.change_group(run, step.group, |group| {
        unstarted = u64::from(step.count - group.running);
        group.running = 0;
        group.rest = step.outcome;
        *counted(group, step.outcome) += step.count;
    });
    to.change_run(run, |run| run.unstarted -= unstarted);
    ending::group_closed(to, run, step.group);
    forget_if_over(to, run, step.group);
}

/// What branches have staged goes to the scope around them.
pub(super) fn promote_artifacts(to: &mut impl Runs, run: RunId, step: &PromoteArtifacts) {
    let at = to.group(run, step.group).expect("branches belong to a group").scope;
    for index in &step.branches {
        let branch = to.branch(run, ScopeRef { group: step.group, index: *index });
        let result = branch.and_then(|branch| branch.result.clone());
        let result = result.expect("a branch that is promoted has left something");
        to.change_scope(run, at, |scope| scope.artifacts.extend(result.artifacts.iter().cloned()));
    }
}

fn counted(group: &mut Group, outcome: BranchOutcome) -> &mut u32 {
    match outcome {
        BranchOutcome::Arrived => &mut group.arrived,
        BranchOutcome::Failed => &mut group.failed,
        BranchOutcome::Canceled => &mut group.canceled,
        BranchOutcome::TimedOut => &mut group.timed_out,
        BranchOutcome::Ended => &mut group.ended,
        BranchOutcome::Open => unreachable!("a branch settles as something"),
    }
}

pub(super) fn merge(
    to: &mut impl Runs,
    run: RunId,
    step: &MergeBranches<'_>,
    recall: &mut Recall<'_>,
) {
    assert_eq!(step.version, v1::VERSION, "these rules of merging are known");
    let at = to.group(run, step.group).expect("branches belong to a group").scope;
    if let Some(index) = step.promote {
        promote(to, run, ScopeRef { group: step.group, index }, at);
    }
    if step.merges.is_empty() {
        return;
    }
    let known = recall.value(run, ValueOf::Merge(step.group));
    let context = known
        .unwrap_or_else(|| merged(to, run, step).expect("a merge that was decided can be done"));
    to.change_scope(run, at, |scope| {
        scope.context = context;
        for into in &step.merges {
            let path = Path::parse(into.target.as_str()).expect("a merge writes to a path");
            run::note_path(scope, at, path);
        }
    });
}

/// The context of the scope around a group with its merges done.
pub(crate) fn merged(
    to: &impl Runs,
    run: RunId,
    step: &MergeBranches<'_>,
) -> Result<Value, v1::MergeFault> {
    let group = to.group(run, step.group).expect("branches belong to a group");
    let scope = to.scope(run, group.scope).expect("a group holds its scope open");
    let mut context = scope.context.clone();
    let branches = to.branches(run, step.group);
    for (nth, into) in step.merges.iter().enumerate() {
        let outcome = |branch: &Branch| match branch.outcome == BranchOutcome::Open {
            true => group.rest,
            false => branch.outcome,
        };
        let settled = branches.iter().zip(0..).filter(|(it, _)| outcome(it) != BranchOutcome::Open);
        let settled = settled.map(|(branch, index)| {
            let result = branch.result.as_deref();
            v1::Settled {
                index,
                key: group.key(index),
                outcome: outcome(branch),
                arrived_as: branch.arrived_as,
                value: result.and_then(|result| result.values.get(nth)?.as_ref()),
                error: result.and_then(|result| result.error.as_ref()),
            }
        });
        context = v1::merge(&context, into, settled)?;
    }
    Ok(context)
}

/// What a branch has written is now written in the scope around it.
fn promote(to: &mut impl Runs, run: RunId, from: ScopeRef, at: ScopeRef) {
    let won = to.branch(run, from).and_then(|branch| branch.scope.clone());
    let won = won.expect("the winner's scope is kept until its group has fired");
    let definition = &to.run(run).expect("a decision names runs that exist").workflow.definition;
    let names: Vec<_> =
        won.nodes.iter().map(|node| Arc::clone(&definition.nodes[*node as usize].name)).collect();
    to.change_scope(run, at, |scope| {
        for path in &won.written {
            let Some(value) = path.get_below(&won.context) else { continue };
            scope.context = path
                .set_below(&scope.context, value.clone())
                .unwrap_or_else(|_| scope.context.clone());
            run::note_path(scope, at, path.clone());
        }
        let mut outputs = scope.outputs.as_map().cloned().unwrap_or_default();
        for (node, name) in won.nodes.iter().zip(&names) {
            let Some(value) = won.outputs.as_map().and_then(|outputs| outputs.get(name)) else {
                continue;
            };
            outputs = outputs.with(name, value.clone());
            if !at.is_root() && !scope.nodes.contains(node) {
                scope.nodes.push(*node);
            }
        }
        scope.outputs = Value::Map(outputs);
    });
}

pub(super) fn close_group(to: &mut impl Runs, run: RunId, step: &DropBranches) {
    let group = to.group(run, step.group).expect("a group that is closed exists");
    assert_eq!(group.state, GroupState::Open, "a group fires, fails or drains once");
    let scope = group.scope;
    to.change_group(run, step.group, |group| {
        group.state = step.state;
        group.timeout_at = Timestamp::ZERO;
        group.first_error = None;
    });
    to.drop_branches(run, step.group);
    to.change_scope(run, scope, |scope| scope.open_groups -= 1);
    ending::group_closed(to, run, step.group);
    forget_if_over(to, run, step.group);
}

/// A group that is closed and in which nothing runs needs nothing any more.
pub(super) fn forget_if_over(to: &mut impl Runs, run: RunId, id: GroupId) {
    let group = to.group(run, id).expect("a group that is named exists");
    if group.state == GroupState::Open || group.open() > 0 || group.ending > 0 {
        return;
    }
    let scope = group.scope;
    to.change_group(run, id, |group| {
        (group.context, group.outputs) = (Value::Null, Value::Null);
        let bare = |spawn: &Spawn| Spawn { items: None, keys: None, ..spawn.clone() };
        group.spawns = group.spawns.iter().map(bare).collect();
    });
    to.drop_branches(run, id);
    if to.scope(run, scope).is_some() {
        to.change_scope(run, scope, |scope| scope.groups.retain(|there| *there != id));
    }
}
