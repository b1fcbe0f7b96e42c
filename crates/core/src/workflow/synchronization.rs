//! Fan-in: when a branch has settled, whether a group has met, and what happens when it has, or
//! cannot.

use std::sync::Arc;

use tenure_flow::definition::{
    Definition, Join, Merge, MergeMode as ModeRule, Missing, OnJoinTimeout, OnLate,
    OnMergeConflict, OnUnreachable, Strategy, Synchronization, TimeoutFrom, WaitFor,
};
use tenure_flow::expression::EvaluationError;
use tenure_record::event::{
    ActivateFanInToken, BranchOutcome, BranchValue, CreateFanInToken, DropBranches, GroupState,
    Json, MergeBranches, MergeConflict, MergeInto, MergeMissing, MergeMode, MergeStrategy,
    NewToken, SettleBranch, Step, TokenState,
};
use tenure_record::id::{GroupId, RunId};
use tenure_record::name::Text;
use tenure_value::Value;

use super::artifacts::Promoted;
use super::cascade::{At, Cascade, Task};
use super::conditions::{self, ExpressionRoots};
use super::context::{fits, sentence};
use super::error::RunFault;
use super::merging::v1;
use crate::apply;
use crate::apply::precomputed::ValueOf;
use crate::planted::{self, Bug};
use crate::state::{Group, Runs, ScopeRef};

/// What a join looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meeting {
    /// It goes on.
    Fires,
    /// Too few can come.
    Unreachable,
    /// Others may still come.
    Waits,
}

/// How many branches must arrive, of so many, of which so many have ended on the way.
pub(super) fn need(join: &Synchronization, total: u32, ended: u32) -> u32 {
    match join.wait_for {
        WaitFor::Any => 1,
        WaitFor::Count(count) => count,
        WaitFor::Percent(percent) => {
            let need = (u64::from(total) * u64::from(percent)).div_ceil(100);
            u32::try_from(need).unwrap_or(u32::MAX).max(1)
        }
        WaitFor::All if total == 0 => 0,
        WaitFor::All => join.min_success.unwrap_or((total - ended).max(1)),
    }
}

fn meeting(join: &Synchronization, group: &Group) -> Meeting {
    let (arrived, open) = (group.arrived, group.open());
    let need = need(join, group.total, group.ended);
    let fires = match join.wait_for {
        WaitFor::All => open == 0 && arrived >= need,
        WaitFor::Any | WaitFor::Count(_) | WaitFor::Percent(_) => arrived >= need,
    };
    if fires {
        return Meeting::Fires;
    }
    match arrived + open < need && (join.fail_fast || open == 0) {
        true => Meeting::Unreachable,
        false => Meeting::Waits,
    }
}

impl Cascade<'_, '_> {
    pub(super) fn group(&self, run: RunId, id: GroupId) -> &Group {
        Runs::group(self.draft, run, id).expect("a cascade is about groups that exist")
    }

    fn join<'a>(&self, definition: &'a Definition, run: RunId, id: GroupId) -> Option<&'a Join> {
        let place = self.group(run, id).definition as usize;
        definition.groups[place].join.as_ref()
    }

    /// Settles a branch if nothing in it, or deeper, is live.
    pub(super) fn settle(&mut self, run: RunId, at: ScopeRef) {
        if at.is_root() || !self.draft.goes_on(run, at) {
            return;
        }
        let branch = Runs::branch(self.draft, run, at);
        let open = branch.filter(|branch| branch.outcome == BranchOutcome::Open);
        let Some(scope) = open.and_then(|branch| branch.scope.as_ref()) else { return };
        if !scope.is_quiet() {
            return;
        }
        let outcome = match scope.is_arriving {
            true => BranchOutcome::Arrived,
            false => BranchOutcome::Ended,
        };
        let values = match outcome == BranchOutcome::Arrived {
            true => self.branch_values(run, at),
            false => Ok(Vec::new()),
        };
        match values {
            Ok(values) => self.settle_one(run, at, outcome, values, None),
            Err(fault) => self.break_scope(run, at, fault.at(None, 0, None)),
        }
    }

    /// Says how one branch ended, and has its group looked at.
    pub(super) fn settle_one(
        &mut self,
        run: RunId,
        at: ScopeRef,
        outcome: BranchOutcome,
        values: Vec<BranchValue>,
        error: Option<Value>,
    ) {
        let error = error.map(Json);
        let (group, index, count, rest) = (at.group, at.index, 1, false);
        let step = SettleBranch { group, index, count, outcome, values, error, rest };
        self.emit(run, Step::SettleBranch(step));
        self.push(Task::CheckSynchronization(run, at.group));
        self.push(Task::Fill(run, at.group));
    }

    /// What a branch gives to each merge of its join.
    fn branch_values(&self, run: RunId, at: ScopeRef) -> Result<Vec<BranchValue>, RunFault> {
        let definition = self.definition(run);
        let join = self.join(&definition, run, at.group);
        let merges = join.map(|join| join.synchronization.merge.as_slice()).unwrap_or_default();
        if self.group(run, at.group).state != GroupState::Open {
            return Ok(Vec::new());
        }
        let place = ExpressionRoots::new(self.draft, run, at);
        let mut bytes = 0;
        let mut values = Vec::with_capacity(merges.len());
        for merge in merges {
            // The usual source is in the state already.
            if merge.source.text() == "branch.output" {
                values.push(BranchValue { value: None, is_output: true });
                continue;
            }
            let value = match conditions::value(&merge.source, &place) {
                Ok(value) => Some(value),
                Err(error) if error.is_missing() => None,
                Err(error) => return Err(source_fault(merge, &error)),
            };
            if let Some(value) = &value {
                conditions::check_depth(value, "what a branch gives")?;
                bytes += value.bytes();
            }
            values.push(BranchValue { value: value.map(Json), is_output: false });
        }
        self.check_record(bytes)?;
        Ok(values)
    }

    /// Looks whether a group has met, or cannot.
    pub(super) fn check_synchronization(&mut self, run: RunId, id: GroupId) {
        let is_open = match planted::has(Bug::JoinFiresTwice) {
            true => self.group(run, id).state != GroupState::Failed,
            false => self.group(run, id).state == GroupState::Open,
        };
        if !is_open || !self.draft.goes_on(run, self.group(run, id).scope) {
            return;
        }
        let definition = self.definition(run);
        let Some(join) = self.join(&definition, run, id) else { return self.drain(run, id) };
        let rule = &join.synchronization;
        match meeting(rule, self.group(run, id)) {
            Meeting::Fires => self.fire(run, id, &definition, join),
            Meeting::Unreachable => match rule.on_unreachable {
                OnUnreachable::Proceed => self.fire(run, id, &definition, join),
                OnUnreachable::Fail => {
                    let fault = unreachable_fault(rule, self.group(run, id));
                    self.fail_join(run, id, join, &fault, TokenState::Failed);
                }
            },
            Meeting::Waits => self.note_first_arrival(run, id, join),
        }
    }

    /// A group without a join is over when its last branch is.
    fn drain(&mut self, run: RunId, id: GroupId) {
        let group = self.group(run, id);
        if group.open() == 0 {
            let scope = group.scope;
            self.promote_artifacts(run, id, Promoted::Ended);
            self.close(run, id, GroupState::Drained);
            self.push(Task::Settle(run, scope));
        }
    }

    fn close(&mut self, run: RunId, group: GroupId, state: GroupState) {
        self.emit(run, Step::DropBranches(DropBranches { group, state }));
    }

    fn note_first_arrival(&mut self, run: RunId, id: GroupId, join: &Join) {
        let group = self.group(run, id);
        if group.arrived == 0 || group.fan_in.is_some() {
            return;
        }
        self.create_fan_in(run, id, join);
        if let Some(timeout) = join.synchronization.timeout
            && timeout.from == TimeoutFrom::FirstArrival
        {
            let moment = self.now.log.plus_ms(timeout.timeout_ms);
            self.set_join_timer(run, id, moment);
        }
    }

    fn create_fan_in(&mut self, run: RunId, group: GroupId, join: &Join) {
        let via = join.transitions.first().map(|transition| transition.0);
        let token = self.next_token(run);
        let step = CreateFanInToken { group, token, node: join.target.0, via };
        self.emit(run, Step::CreateFanInToken(step));
    }

    /// The branches have met: their values are put together, those that are late are dealt with,
    /// and the fan-in token goes on.
    fn fire(&mut self, run: RunId, id: GroupId, definition: &Arc<Definition>, join: &Join) {
        if !self.group(run, id).fan_in.is_some() {
            self.create_fan_in(run, id, join);
        }
        let step = self.merge_step(run, id, join);
        match self.try_merge(run, definition, step) {
            Ok(Some((step, context))) => {
                if let Some(context) = context {
                    self.precomputed.value(run, ValueOf::Merge(id), context);
                }
                self.emit(run, Step::MergeBranches(step));
            }
            Ok(None) => {}
            Err(fault) => return self.fail_join(run, id, join, &fault, TokenState::Failed),
        }
        let promoted = match join.synchronization.wait_for {
            WaitFor::Any => Promoted::First,
            WaitFor::All | WaitFor::Count(_) | WaitFor::Percent(_) => Promoted::Arrived,
        };
        self.promote_artifacts(run, id, promoted);
        if self.group(run, id).open() > 0 && join.synchronization.on_late == OnLate::Cancel {
            self.cancel_branches(run, id, BranchOutcome::Canceled);
        }
        let token = self.group(run, id).fan_in;
        self.close(run, id, GroupState::Fired);
        self.emit(run, Step::ActivateFanInToken(ActivateFanInToken { group: id, token }));
        self.push(Task::Start(At { run, token }));
    }

    fn merge_step(&self, run: RunId, id: GroupId, join: &Join) -> MergeBranches<'static> {
        let group = self.group(run, id);
        let is_winner = |index: &u32| {
            let branch = Runs::branch(self.draft, run, ScopeRef { group: id, index: *index });
            branch.is_some_and(|branch| match planted::has(Bug::LoserPromoted) {
                true => branch.arrived_as != 1 && branch.scope.is_some(),
                false => branch.arrived_as == 1,
            })
        };
        let winner = match group.promotes {
            true => (0..group.started).find(is_winner),
            false => None,
        };
        MergeBranches {
            group: id,
            version: v1::VERSION,
            merges: join.synchronization.merge.iter().map(into).collect(),
            promote: winner,
            arrived: group.arrived,
        }
    }

    /// The merge with what comes of it, if there is anything to do and it can be done.
    fn try_merge(
        &self,
        run: RunId,
        definition: &Definition,
        step: MergeBranches<'static>,
    ) -> Result<Option<(MergeBranches<'static>, Option<Value>)>, RunFault> {
        if step.merges.is_empty() {
            return Ok(step.promote.is_some().then_some((step, None)));
        }
        // Every branch is looked at for every merge.
        let branches = self.group(run, step.group).started as usize * step.merges.len();
        self.draft.count_work(branches / 8);
        let context = apply::group::merged(self.draft, run, &step)
            .map_err(|broken| RunFault::new(broken.code, broken.message))?;
        if context.is_too_deep() {
            return Err(RunFault::new("MERGE_INVALID", "the context would be nested too deep"));
        }
        if let Some(schema) = &definition.context_schema {
            self.draft.check(schema, &context).map_err(|complaints| {
                RunFault::new("MERGE_INVALID", sentence("the merged context", &complaints))
            })?;
        }
        let at = self.group(run, step.group).scope;
        let outputs = self.draft.scope(run, at).map_or(0, |scope| scope.outputs.bytes());
        fits(context.bytes().saturating_add(outputs))?;
        Ok(Some((step, Some(context))))
    }

    /// A join's time is over.
    pub(crate) fn time_out_join(&mut self, run: RunId, id: GroupId) {
        let definition = self.definition(run);
        let Some(join) = self.join(&definition, run, id) else { return };
        let Some(timeout) = join.synchronization.timeout else { return };
        let most = join.synchronization.min_success.unwrap_or(1);
        let proceeds = timeout.on_timeout == OnJoinTimeout::ProceedWithAvailable;
        if proceeds && self.group(run, id).arrived >= most {
            self.cancel_branches(run, id, BranchOutcome::TimedOut);
            return self.fire(run, id, &definition, join);
        }
        let (arrived, open) = (self.group(run, id).arrived, self.group(run, id).open());
        let message = format!(
            "{arrived} branches had arrived and {open} were open after {} ms",
            timeout.timeout_ms
        );
        let fault = RunFault::new("JOIN_TIMEOUT", message);
        self.fail_join(run, id, join, &fault, TokenState::TimedOut);
    }

    /// A join fails: what is live in its group ends, and the run goes on elsewhere or what is
    /// around the group fails.
    fn fail_join(
        &mut self,
        run: RunId,
        id: GroupId,
        join: &Join,
        fault: &RunFault,
        state: TokenState,
    ) {
        let node = Arc::clone(&self.definition(run).node(join.target).name);
        let group = self.group(run, id);
        let error = fault.at(Some(&node), 0, group.first_error.as_ref());
        let (scope, origin, fan_in) = (group.scope, group.origin, group.fan_in);
        let outcome = match state == TokenState::TimedOut {
            true => BranchOutcome::TimedOut,
            false => BranchOutcome::Canceled,
        };
        self.cancel_branches(run, id, outcome);
        if fan_in.is_some() {
            self.update(At { run, token: fan_in }, state, Some(error.clone()), Vec::new());
        }
        self.close(run, id, GroupState::Failed);
        let Some(node) = join.synchronization.else_to else {
            return self.break_scope(run, scope, error);
        };
        let loops = self.token(At { run, token: origin }).loops.clone();
        let loops = loops.as_deref().unwrap_or_default().iter().map(|(transition, count)| {
            tenure_record::event::LoopCount { transition: *transition, count: *count }
        });
        let new = NewToken {
            token: self.next_token(run),
            node: node.0,
            group: scope.group,
            index: scope.index,
            parent: origin,
            via: None,
            loops: loops.collect(),
            error: Some(Json(error)),
            why: Text::default(),
        };
        self.create(run, new);
    }
}

fn source_fault(merge: &Merge, error: &EvaluationError) -> RunFault {
    RunFault::new("MAPPING_ERROR", format!("merge source `{}`: {error}", merge.source.text()))
}

fn unreachable_fault(join: &Synchronization, group: &Group) -> RunFault {
    let need = need(join, group.total, group.ended);
    let failed = group.failed + group.canceled + group.timed_out;
    let (arrived, ended) = (group.arrived, group.ended);
    let message =
        format!("{need} branches must arrive; {arrived} did, {failed} failed, {ended} ended");
    let number = |count: u32| Value::Int(count.into());
    let details = Value::map(vec![
        ("need".into(), number(need)),
        ("arrived".into(), number(arrived)),
        ("failed".into(), number(failed)),
        ("ended".into(), number(ended)),
    ]);
    RunFault { details, ..RunFault::new("JOIN_UNREACHABLE", message) }
}

fn into(merge: &Merge) -> MergeInto<'static> {
    MergeInto {
        target: Text::Shared(Arc::clone(merge.target.text())),
        strategy: match merge.strategy {
            Strategy::Append => MergeStrategy::Append,
            Strategy::Collect => MergeStrategy::Collect,
            Strategy::Merge => MergeStrategy::Merge,
            Strategy::DeepMerge => MergeStrategy::DeepMerge,
            Strategy::Keyed => MergeStrategy::Keyed,
            Strategy::LastWins => MergeStrategy::LastWins,
            Strategy::FirstArrival => MergeStrategy::FirstArrival,
        },
        mode: match merge.mode {
            ModeRule::Replace => MergeMode::Replace,
            ModeRule::Extend => MergeMode::Extend,
        },
        missing: match merge.missing {
            Missing::Null => MergeMissing::Null,
            Missing::Skip => MergeMissing::Skip,
            Missing::Error => MergeMissing::Error,
        },
        on_conflict: match merge.on_conflict {
            OnMergeConflict::Last => MergeConflict::Last,
            OnMergeConflict::First => MergeConflict::First,
            OnMergeConflict::Error => MergeConflict::Error,
        },
        include_failed: merge.include_failed,
    }
}
