//! What decisions do to runs. What each one says is stored; the one thing computed is a merge over
//! data that is in the state, by rules that are frozen.

use std::sync::Arc;

use smallvec::SmallVec;
use tenure_flow::value::Path;
use tenure_flow::{Definition, Value};

use super::{Stamp, task};
use crate::event::{
    ApplyNodeOutput, BranchOutcome, CancelTokens, CreateFanInToken, Decision, Dispatched,
    DropBranches, FinishRun, GroupState, MergeBranches, NewToken, OpenGroup, RunBegun, RunState,
    SetContext, SetTimer, SettleBranch, SignalReceived, StartChild, Step, TakeSignal, TimerKind,
    TokenState, WorkflowRegistered,
};
use crate::id::{GroupId, RunId, TokenId};
use crate::state::{
    Branch, BranchResult, Group, KeptKey, KeptSignal, RareRun, Run, Runs, Scope, ScopeRef, Spawn,
    Token, Work, Workflow,
};
use crate::time::Timestamp;
use crate::workflow::merging::v1;

/// What the item gave to which a cascade belongs.
#[derive(Clone, Copy)]
pub(crate) enum Cause<'a> {
    /// Nothing that a node could have as its result.
    Nothing,
    /// A worker's output.
    Output(&'a [u8]),
    /// A signal's payload.
    Payload(&'a Value),
}

pub(crate) fn registered(to: &mut impl Runs, stamp: Stamp, item: &WorkflowRegistered<'_>) {
    let definition = Definition::compile(&item.definition.0);
    let definition = definition.expect("a definition that was registered can be compiled");
    to.register(Arc::new(Workflow {
        name: item.name.to_shared(),
        version: item.version,
        registered_at: stamp.at,
        definition: Arc::new(definition),
    }));
}

pub(crate) fn signal_received(to: &mut impl Runs, stamp: Stamp, item: &SignalReceived<'_>) {
    let run = item.run_id;
    if let Some(signal_id) = &item.signal_id {
        to.note_signal(run, signal_id.as_str());
    }
    to.change_run(run, |run| {
        run.last_lsn = stamp.lsn;
        let rare = Arc::make_mut(run.rare.get_or_insert_default());
        rare.signal_count += 1;
        if item.token == TokenId::NONE {
            rare.signals.push(KeptSignal {
                number: rare.signal_count,
                name: item.name.to_shared(),
                correlation: item.correlation.to_shared(),
                payload: item.payload.0.clone(),
            });
        }
    });
    cascade(to, stamp, &item.cascade, Cause::Payload(&item.payload.0));
}

pub(crate) fn begun(to: &mut impl Runs, stamp: Stamp, item: &RunBegun<'_>) {
    let workflow = to.workflow(item.workflow.as_str(), item.version);
    let workflow = Arc::clone(workflow.expect("a run's workflow was registered before"));
    let tags = item.tags.iter();
    let rare = RareRun {
        key: item.key.as_ref().map(|key| key.to_shared()),
        tags: tags.map(|tag| (tag.key.to_shared(), tag.value.to_shared())).collect(),
        ..RareRun::default()
    };
    let root =
        Scope { context: item.context.0.clone(), outputs: Value::empty_map(), ..Scope::default() };
    to.begin(
        item.run_id,
        Run {
            workflow,
            input: item.input.0.clone(),
            state: RunState::Running,
            started_at: stamp.at,
            finished_at: Timestamp::ZERO,
            deadline_at: item.deadline_at,
            output: None,
            error: None,
            root: Arc::new(root),
            parent: item.parent.is_some().then_some((item.parent, item.parent_token)),
            depth: item.depth,
            groups: 0,
            tokens: 0,
            live: 0,
            busy: 0,
            unstarted: 0,
            rare: (rare != RareRun::default()).then(|| Arc::new(rare)),
            last_lsn: stamp.lsn,
        },
    );
}

/// Applies decisions in their order.
pub(crate) fn cascade(
    to: &mut impl Runs,
    stamp: Stamp,
    decisions: &[Decision<'_>],
    cause: Cause<'_>,
) {
    decisions.iter().for_each(|decision| decide(to, stamp, decision, cause));
}

/// Applies one decision.
pub(crate) fn decide(to: &mut impl Runs, stamp: Stamp, decision: &Decision<'_>, cause: Cause<'_>) {
    let run = decision.run_id;
    match &decision.step {
        Step::CreateTokens(step) => step.tokens.iter().for_each(|new| create_token(to, run, new)),
        Step::OpenGroup(step) => open_group(to, run, step),
        Step::CreateFanInToken(step) => create_fan_in(to, run, step),
        Step::ActivateFanInToken(step) => {
            move_token(to, run, step.token, TokenState::Pending, |_| {});
        }
        Step::UpdateTokenStates(step) => {
            for update in &step.tokens {
                for group in &update.arrives {
                    let at = branch_around(to, run, update.token, *group);
                    to.change_scope(run, at, |scope| scope.is_arriving = true);
                }
                move_token(to, run, update.token, update.state, |token| {
                    if let Some(error) = &update.error {
                        token.error = Some(Arc::new(error.0.clone()));
                    }
                });
            }
        }
        Step::SettleBranch(step) => settle(to, run, step),
        Step::MarkForDispatch(step) => {
            step.tokens.iter().for_each(|item| dispatch(to, stamp, run, item));
        }
        Step::ApplyNodeOutput(step) => apply_output(to, run, step, cause),
        Step::SetContext(step) => set_context(to, run, step),
        Step::MergeBranches(step) => merge(to, run, step),
        Step::DropBranches(step) => close_group(to, run, step),
        Step::CancelTokens(step) => cancel(to, stamp, run, step),
        Step::SetTimer(step) => set_timer(to, run, step),
        Step::StartChild(step) => start_child(to, stamp, run, step),
        Step::FinishRun(step) => finish(to, stamp, run, step),
        Step::TakeSignal(TakeSignal { signal, .. }) => to.change_run(run, |run| {
            let rare = Arc::make_mut(run.rare.get_or_insert_default());
            rare.signals.retain(|kept| kept.number != *signal);
        }),
    }
    to.change_run(run, |run| run.last_lsn = stamp.lsn);
}

/// The nearest branch around a token that belongs to that group.
fn branch_around(to: &impl Runs, run: RunId, token: TokenId, group: GroupId) -> ScopeRef {
    let mut at = to.token(run, token).expect("a decision names tokens that exist").scope;
    while at.group != group {
        at = to.group(run, at.group).expect("a token arrives at a group it is in").scope;
    }
    at
}

fn is_busy(state: TokenState) -> bool {
    matches!(state, TokenState::Pending | TokenState::Dispatched)
}

fn create_token(to: &mut impl Runs, run: RunId, new: &NewToken<'_>) {
    let scope = ScopeRef { group: new.group, index: new.index };
    if !scope.is_root() && to.branch(run, scope).is_none() {
        begin_branch(to, run, scope);
    }
    let loops = new.loops.iter().map(|count| (count.transition, count.count));
    let token = Token {
        node: new.node,
        scope,
        parent: new.parent,
        via: new.via,
        state: TokenState::Pending,
        work: Work::Nothing,
        deadline_at: Timestamp::ZERO,
        loops: (!new.loops.is_empty()).then(|| loops.collect()),
        error: new.error.as_ref().map(|error| Arc::new(error.0.clone())),
    };
    add_token(to, run, new.token, token);
}

fn begin_branch(to: &mut impl Runs, run: RunId, at: ScopeRef) {
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

fn add_token(to: &mut impl Runs, run: RunId, id: TokenId, token: Token) {
    to.change_scope(run, token.scope, |scope| scope.tokens.push(id));
    to.change_run(run, |run| {
        assert_eq!(id.0, run.tokens + 1, "tokens are numbered one after the other");
        run.tokens = id.0;
        run.live += 1;
        run.busy += u32::from(is_busy(token.state));
    });
    to.add_token(run, token);
}

/// Moves a token to another state, and keeps what counts it right.
fn move_token(
    to: &mut impl Runs,
    run: RunId,
    id: TokenId,
    state: TokenState,
    change: impl FnOnce(&mut Token),
) {
    let token = to.token(run, id).expect("a decision names tokens that exist");
    let (before, scope) = (token.state, token.scope);
    assert!(!before.is_terminal(), "a token that has ended never changes");
    to.change_token(run, id, |token| {
        token.state = state;
        change(token);
    });
    if state.is_terminal() {
        to.change_scope(run, scope, |scope| scope.tokens.retain(|live| *live != id));
    }
    to.change_run(run, |run| {
        run.live -= u32::from(state.is_terminal());
        run.busy += u32::from(is_busy(state));
        run.busy -= u32::from(is_busy(before));
    });
}

fn open_group(to: &mut impl Runs, run: RunId, step: &OpenGroup<'_>) {
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

fn create_fan_in(to: &mut impl Runs, run: RunId, step: &CreateFanInToken) {
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
    add_token(to, run, step.token, token);
    to.change_group(run, step.group, |group| group.fan_in = step.token);
}

fn settle(to: &mut impl Runs, run: RunId, step: &SettleBranch) {
    let group = to.group(run, step.group).expect("a branch belongs to a group");
    let (began, promotes, state) = (group.started, group.promotes, group.state);
    let (arrived_before, is_open) = (group.arrived, state == GroupState::Open);
    let in_slots = step.count.min(began.saturating_sub(step.index));
    for index in step.index..step.index + in_slots {
        let at = ScopeRef { group: step.group, index };
        let scope = to.branch(run, at).and_then(|branch| branch.scope.clone());
        let result = (is_open && (!step.values.is_empty() || step.error.is_some())).then(|| {
            let values = step.values.iter().map(|given| match given.is_output {
                true => scope.as_ref().and_then(|scope| scope.branch_output().cloned()),
                false => given.value.as_ref().map(|value| value.0.clone()),
            });
            let error = step.error.as_ref().map(|error| error.0.clone());
            Arc::new(BranchResult { values: values.collect(), error })
        });
        to.change_branch(run, at, |branch| {
            branch.outcome = step.outcome;
            branch.result = result;
            if step.outcome == BranchOutcome::Arrived {
                branch.arrived_as = arrived_before + 1;
            }
            if !(promotes && is_open && step.outcome == BranchOutcome::Arrived) {
                branch.scope = None;
            }
        });
    }
    to.change_group(run, step.group, |group| {
        group.running -= in_slots;
        *counted(group, step.outcome) += step.count;
        if let (Some(error), None) = (&step.error, &group.first_error) {
            group.first_error = Some(error.0.clone());
        }
    });
    to.change_run(run, |run| run.unstarted -= u64::from(step.count - in_slots));
    forget_if_over(to, run, step.group);
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

fn dispatch(to: &mut impl Runs, stamp: Stamp, run: RunId, item: &Dispatched<'_>) {
    let work = match (&item.task, &item.signal) {
        (Some(created), _) => {
            task::created(to, stamp, created);
            Work::Task(created.task_id)
        }
        (None, Some(signal)) => {
            let correlation = item.correlation.as_ref().map(|text| text.to_shared());
            Work::Signal(Arc::new((signal.to_shared(), correlation.unwrap_or_default())))
        }
        (None, None) => Work::Nothing,
    };
    move_token(to, run, item.token, item.state, |token| token.work = work);
}

/// The value of an item that a decision leaves to it.
fn value_of(cause: Cause<'_>) -> Value {
    match cause {
        Cause::Output([]) | Cause::Nothing => Value::Null,
        Cause::Output(text) => Value::from_json(text).expect("an output that was taken is JSON"),
        Cause::Payload(value) => value.clone(),
    }
}

fn apply_output(to: &mut impl Runs, run: RunId, step: &ApplyNodeOutput, cause: Cause<'_>) {
    let output = match (&step.output, &step.item.0) {
        (Some(given), _) => given.0.clone(),
        (None, Some(known)) => known.clone(),
        (None, None) => value_of(cause),
    };
    let token = to.token(run, step.token).expect("a decision names tokens that exist");
    let (node, at) = (token.node, token.scope);
    let definition = &to.run(run).expect("a decision names runs that exist").workflow.definition;
    let name = Arc::clone(&definition.nodes[node as usize].name);
    if step.keep && !at.is_root() {
        let key = kept_key(to, run, node, at, step.token);
        to.keep_output(run, key, output.clone());
    }
    to.change_scope(run, at, |scope| {
        let outputs = scope.outputs.as_map().cloned().unwrap_or_default();
        scope.outputs = Value::Map(outputs.with(&name, output.clone()));
        scope.last = Some(output);
        if !at.is_root() && !scope.nodes.contains(&node) {
            scope.nodes.push(node);
        }
    });
}

fn kept_key(to: &impl Runs, run: RunId, node: u32, scope: ScopeRef, token: TokenId) -> KeptKey {
    let mut indices: SmallVec<[u32; 2]> = SmallVec::new();
    let (mut at, mut outermost) = (scope, scope.group);
    while !at.is_root() {
        indices.push(at.index);
        outermost = at.group;
        at = to.group(run, at.group).expect("a branch belongs to a group").scope;
    }
    indices.reverse();
    (node, outermost, indices, token)
}

fn set_context(to: &mut impl Runs, run: RunId, step: &SetContext<'_>) {
    let at = ScopeRef { group: step.group, index: step.index };
    to.change_scope(run, at, |scope| {
        for write in &step.writes {
            let path = Path::parse(write.path.as_str()).expect("a decision writes to paths");
            if &*path.segments()[0] != "context" {
                scope.output = Some(write.value.0.clone());
                continue;
            }
            scope.context = path
                .set_below(&scope.context, write.value.0.clone())
                .expect("a write that was decided can be done");
            note_path(scope, at, path);
        }
    });
}

fn note_path(scope: &mut Scope, at: ScopeRef, path: Path) {
    if !at.is_root() && !scope.written.contains(&path) {
        scope.written.push(path);
    }
}

fn merge(to: &mut impl Runs, run: RunId, step: &MergeBranches<'_>) {
    assert_eq!(step.version, v1::VERSION, "these rules of merging are known");
    let at = to.group(run, step.group).expect("branches belong to a group").scope;
    if let Some(index) = step.promote {
        promote(to, run, ScopeRef { group: step.group, index }, at);
    }
    if step.merges.is_empty() {
        return;
    }
    let context =
        step.context.0.clone().unwrap_or_else(|| {
            merged(to, run, step).expect("a merge that was decided can be done")
        });
    to.change_scope(run, at, |scope| {
        scope.context = context;
        for into in &step.merges {
            let path = Path::parse(into.target.as_str()).expect("a merge writes to a path");
            note_path(scope, at, path);
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
    let branches: Vec<_> = (0..group.started)
        .filter_map(|index| {
            let branch = to.branch(run, ScopeRef { group: step.group, index })?;
            (branch.outcome != BranchOutcome::Open).then_some((index, branch))
        })
        .collect();
    for (nth, into) in step.merges.iter().enumerate() {
        let settled: Vec<_> = branches
            .iter()
            .map(|(index, branch)| {
                let result = branch.result.as_deref();
                v1::Settled {
                    index: *index,
                    key: group.key(*index),
                    outcome: branch.outcome,
                    arrived_as: branch.arrived_as,
                    value: result.and_then(|result| result.values.get(nth)?.as_ref()),
                    error: result.and_then(|result| result.error.as_ref()),
                }
            })
            .collect();
        context = v1::merge(&context, into, &settled)?;
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
            note_path(scope, at, path.clone());
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

fn close_group(to: &mut impl Runs, run: RunId, step: &DropBranches) {
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
    forget_if_over(to, run, step.group);
}

/// A group that is closed and in which nothing runs needs nothing any more.
fn forget_if_over(to: &mut impl Runs, run: RunId, id: GroupId) {
    let group = to.group(run, id).expect("a group that is named exists");
    if group.state == GroupState::Open || group.open() > 0 {
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

fn cancel(to: &mut impl Runs, stamp: Stamp, run: RunId, step: &CancelTokens<'_>) {
    for id in &step.tokens {
        move_token(to, run, *id, TokenState::Canceled, |_| {});
    }
    for stopped in step.tasks.iter().flat_map(|tasks| &tasks.tasks) {
        task::stopped(to, stamp, stopped);
    }
}

fn set_timer(to: &mut impl Runs, run: RunId, step: &SetTimer) {
    match step.kind {
        TimerKind::Node => to.change_token(run, step.token, |token| token.deadline_at = step.at),
        TimerKind::Wake => to.change_token(run, step.token, |token| {
            token.work = Work::Timer(step.at);
        }),
        TimerKind::Join => to.change_group(run, step.group, |group| group.timeout_at = step.at),
    }
}

fn start_child(to: &mut impl Runs, stamp: Stamp, run: RunId, step: &StartChild<'_>) {
    begun(to, stamp, &step.run);
    move_token(to, run, step.token, TokenState::WaitingForWorkflow, |token| {
        token.work = Work::Child(step.run.run_id);
    });
}

fn finish(to: &mut impl Runs, stamp: Stamp, run: RunId, step: &FinishRun) {
    to.change_run(run, |run| {
        run.state = step.state;
        run.finished_at = stamp.at;
        run.output = step.output.as_ref().map(|output| output.0.clone());
        run.error = step.error.as_ref().map(|error| error.0.clone());
        // What only a live run needs goes; the context stays to be seen.
        let root = Arc::make_mut(&mut run.root);
        *root = Scope { context: root.context.clone(), ..Scope::default() };
        if let Some(rare) = &mut run.rare {
            Arc::make_mut(rare).signals = Vec::new();
        }
    });
}
