//! What decisions do to runs. What each one says is stored; the one thing computed is a merge over
//! data that is in the state, by rules that are frozen.

use std::sync::Arc;

use smallvec::SmallVec;
use tenure_flow::Definition;
use tenure_record::event::{
    ApplyNodeOutput, ArtifactItem, CancelTokens, Decision, Dispatched, FinishRun, NewToken,
    RunBegun, RunParked, RunState, RunUnparked, SetContext, SetTimer, SignalReceived,
    StageArtifact, StartChild, Step, TakeSignal, TimerKind, TokenState, WorkflowDeleted,
    WorkflowRegistered,
};
use tenure_record::id::{GroupId, RunId, TokenId};
use tenure_record::time::{Timestamp, WallOffset};
use tenure_value::{Path, Value};

use super::precomputed::{Recall, ValueOf};
use super::{Stamp, ending, group, task};
use crate::planted::{self, Bug};
use crate::state::{
    CommittedArtifact, KeptKey, KeptSignal, KeptSignals, Outline, Parked, RareRun, Run, Runs,
    Scope, ScopeRef, Staged, Token, Work, Workflow,
};

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

pub(crate) fn registered(
    to: &mut impl Runs,
    stamp: Stamp,
    item: &WorkflowRegistered<'_>,
    known: Option<&Arc<Definition>>,
) {
    let outline = Outline {
        name: item.name.to_shared(),
        version: item.version,
        registered_at: stamp.wall,
        source: item.definition.0.clone(),
        nodes: item.nodes.iter().map(|name| name.to_shared()).collect(),
        transitions: item.transitions,
        groups: item.groups,
    };
    to.register(Arc::new(Workflow::new(outline, known)));
}

pub(crate) fn deleted(to: &mut impl Runs, item: &WorkflowDeleted<'_>) {
    to.delete_workflow(item.name.as_str(), (item.version > 0).then_some(item.version));
}

pub(crate) fn signal_received(
    to: &mut impl Runs,
    stamp: Stamp,
    item: &SignalReceived<'_>,
    recall: &mut Recall<'_>,
) {
    let run = item.run_id;
    if let Some(signal_id) = &item.signal_id {
        to.note_signal(run, signal_id.as_str(), item.signal_hash);
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
    cascade(to, stamp, &item.cascade, Cause::Payload(&item.payload.0), recall);
}

pub(crate) fn parked(to: &mut impl Runs, stamp: Stamp, item: &RunParked<'_>) {
    let parked = Parked { reason: item.reason.to_shared(), at: stamp.wall };
    to.park(item.run_id, Some(Arc::new(parked)));
    to.change_run(item.run_id, |run| run.last_lsn = stamp.lsn);
}

pub(crate) fn unparked(to: &mut impl Runs, stamp: Stamp, item: &RunUnparked) {
    to.park(item.run_id, None);
    to.change_run(item.run_id, |run| run.last_lsn = stamp.lsn);
}

pub(crate) fn begun(to: &mut impl Runs, stamp: Stamp, item: &RunBegun<'_>) {
    let workflow = to.workflow(item.workflow.as_str(), item.version);
    let workflow = Arc::clone(workflow.expect("a run's workflow was registered before"));
    let tags = item.tags.iter();
    let rare = RareRun {
        key: item.key.as_ref().map(|key| key.to_shared()),
        start_hash: item.start_hash,
        tags: tags.map(|tag| (tag.key.to_shared(), tag.value.to_shared())).collect(),
        ..RareRun::default()
    };
    let root =
        Scope { context: item.context.0.clone(), outputs: Value::empty_map(), ..Scope::default() };
    // A record without the root is older than that field.
    let parent = to.run(item.parent).map(|parent| parent.top);
    let top = match item.root.is_some() {
        true => item.root,
        false => parent.unwrap_or(item.run_id),
    };
    to.begin(
        item.run_id,
        Run {
            workflow,
            input: item.input.0.clone(),
            state: RunState::Running,
            started_at: stamp.wall,
            finished_at: Timestamp::ZERO,
            finished_offset: WallOffset::ZERO,
            deadline_at: item.deadline_at,
            output: None,
            error: None,
            root: Arc::new(root),
            parent: item.parent.is_some().then_some((item.parent, item.parent_token)),
            top,
            descendants: 0,
            depth: item.depth,
            groups: 0,
            tokens: 0,
            live: 0,
            busy: 0,
            unstarted: 0,
            rare: (rare != RareRun::default()).then(|| Arc::new(rare)),
            endings: None,
            parked: None,
            staged: 0,
            artifacts: None,
            last_lsn: stamp.lsn,
        },
    );
    // A run that outlives the top of its tree is counted nowhere: it only ends.
    if top != item.run_id && to.run(top).is_some() {
        to.change_run(top, |top| top.descendants += 1);
    }
}

/// Applies decisions in their order.
pub(crate) fn cascade(
    to: &mut impl Runs,
    stamp: Stamp,
    decisions: &[Decision<'_>],
    cause: Cause<'_>,
    recall: &mut Recall<'_>,
) {
    decisions.iter().for_each(|decision| apply_decision(to, stamp, decision, cause, recall));
}

/// Applies one decision.
pub(crate) fn apply_decision(
    to: &mut impl Runs,
    stamp: Stamp,
    decision: &Decision<'_>,
    cause: Cause<'_>,
    recall: &mut Recall<'_>,
) {
    let run = decision.run_id;
    match &decision.step {
        Step::CreateTokens(step) => step.tokens.iter().for_each(|new| create_token(to, run, new)),
        Step::OpenGroup(step) => group::open_group(to, run, step),
        Step::CreateFanInToken(step) => group::create_fan_in(to, run, step),
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
        Step::SettleBranch(step) => group::settle(to, run, step),
        Step::MarkForDispatch(step) => {
            step.tokens.iter().for_each(|item| dispatch(to, stamp, run, item));
        }
        Step::ApplyNodeOutput(step) => apply_output(to, run, step, cause, recall),
        Step::SetContext(step) => set_context(to, run, step, recall),
        Step::MergeBranches(step) => group::merge(to, run, step, recall),
        Step::DropBranches(step) => group::close_group(to, run, step),
        Step::CancelTokens(step) => cancel(to, stamp, run, step),
        Step::SetTimer(step) => set_timer(to, run, step),
        Step::StartChild(step) => start_child(to, stamp, run, step),
        Step::FinishRun(step) => finish(to, stamp, run, step),
        Step::StageArtifact(step) => stage(to, run, step),
        Step::PromoteArtifacts(step) => group::promote_artifacts(to, run, step),
        Step::EndScope(step) => ending::begun(to, stamp, run, step),
        Step::CloseScope(step) => ending::closed(to, run, step),
        Step::TakeSignal(_) if planted::has(Bug::SignalGivenTwice) => {}
        Step::TakeSignal(TakeSignal { signal, .. }) => to.change_run(run, |run| {
            let rare = Arc::make_mut(run.rare.get_or_insert_default());
            rare.signals.remove(*signal);
        }),
    }
    if to.run(run).is_some_and(|run| run.last_lsn != stamp.lsn) {
        to.change_run(run, |run| run.last_lsn = stamp.lsn);
    }
}

/// The nearest branch around a token that belongs to that group.
fn branch_around(to: &impl Runs, run: RunId, token: TokenId, group: GroupId) -> ScopeRef {
    let mut at = to.token(run, token).expect("a decision names tokens that exist").scope;
    while at.group != group {
        at = to.group(run, at.group).expect("a token arrives at a group it is in").scope;
    }
    at
}

pub(super) fn is_busy(state: TokenState) -> bool {
    matches!(state, TokenState::Pending | TokenState::Dispatched)
}

fn create_token(to: &mut impl Runs, run: RunId, new: &NewToken<'_>) {
    let scope = ScopeRef { group: new.group, index: new.index };
    if !scope.is_root() && to.branch(run, scope).is_none() {
        group::begin_branch(to, run, scope);
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

pub(super) fn add_token(to: &mut impl Runs, run: RunId, id: TokenId, token: Token) {
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
    if state.is_terminal() || is_busy(state) != is_busy(before) {
        to.change_run(run, |run| {
            run.live -= u32::from(state.is_terminal());
            run.busy += u32::from(is_busy(state));
            run.busy -= u32::from(is_busy(before));
        });
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

fn apply_output(
    to: &mut impl Runs,
    run: RunId,
    step: &ApplyNodeOutput,
    cause: Cause<'_>,
    recall: &mut Recall<'_>,
) {
    let mut known = || recall.value(run, ValueOf::Item(step.token));
    let output = match &step.output {
        Some(given) => given.0.clone(),
        None => known().unwrap_or_else(|| value_of(cause)),
    };
    let token = to.token(run, step.token).expect("a decision names tokens that exist");
    let (node, at) = (token.node, token.scope);
    let workflow = &to.run(run).expect("a decision names runs that exist").workflow;
    let name = Arc::clone(&workflow.nodes[node as usize]);
    if step.keep && !at.is_root() {
        let key = kept_key(to, run, node, at, step.token);
        to.keep_output(run, key, output.clone());
    }
    to.change_scope(run, at, |scope| {
        scope.outputs = match scope.outputs.as_map() {
            Some(outputs) => Value::Map(outputs.with_shared(&name, output.clone())),
            None => Value::map(vec![(Arc::clone(&name), output.clone())]),
        };
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

fn set_context(to: &mut impl Runs, run: RunId, step: &SetContext<'_>, recall: &mut Recall<'_>) {
    let at = ScopeRef { group: step.group, index: step.index };
    to.change_scope(run, at, |scope| {
        for write in &step.writes {
            let text = write.path.as_str();
            let parse = || Path::parse(text).expect("a decision writes to paths");
            let path = recall.path(text).unwrap_or_else(parse);
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

pub(super) fn note_path(scope: &mut Scope, at: ScopeRef, path: Path) {
    if !at.is_root() && !scope.written.contains(&path) {
        scope.written.push(path);
    }
}

fn cancel(to: &mut impl Runs, stamp: Stamp, run: RunId, step: &CancelTokens<'_>) {
    ending::cancel_tokens(to, run, &step.tokens);
    for stopped in step.tasks.iter().flat_map(|tasks| tasks.tasks.iter()) {
        task::stopped(to, stamp, stopped);
    }
}

fn set_timer(to: &mut impl Runs, run: RunId, step: &SetTimer) {
    match step.kind {
        TimerKind::Node => to.change_token(run, step.token, |token| token.deadline_at = step.at),
        TimerKind::Wake => to.change_token(run, step.token, |token| {
            token.work = Work::Timer(step.at, step.clock);
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

fn stage(to: &mut impl Runs, run: RunId, step: &StageArtifact<'_>) {
    let at = to.token(run, step.token).expect("a decision names tokens that exist").scope;
    let staged = Arc::new(staged(&step.artifact, step.token));
    to.change_scope(run, at, |scope| scope.artifacts.push(staged));
    to.change_run(run, |run| run.staged += 1);
}

fn staged(item: &ArtifactItem<'_>, token: TokenId) -> Staged {
    Staged {
        name: item.name.to_shared(),
        media_type: item.media_type.to_shared(),
        bytes: item.bytes,
        sha256: item.sha256,
        token,
    }
}

fn finish(to: &mut impl Runs, stamp: Stamp, run: RunId, step: &FinishRun<'_>) {
    let artifacts = step.artifacts.iter().map(|it| CommittedArtifact {
        name: it.name.to_shared(),
        staged: Arc::new(staged(&it.artifact, it.token)),
    });
    let artifacts = (!step.artifacts.is_empty()).then(|| artifacts.collect());
    if to.run(run).is_some_and(|run| run.parked.is_some()) {
        to.park(run, None);
    }
    ending::finished(to, run);
    to.change_run(run, |run| {
        run.artifacts = artifacts;
        run.endings = None;
        run.state = step.state;
        run.finished_at = stamp.at;
        run.finished_offset = stamp.offset();
        run.output = step.output.as_ref().map(|output| output.0.clone());
        run.error = step.error.as_ref().map(|error| error.0.clone());
        // What only a live run needs goes; the context stays to be seen.
        let root = Arc::make_mut(&mut run.root);
        *root = Scope { context: root.context.clone(), ..Scope::default() };
        if let Some(rare) = &mut run.rare {
            Arc::make_mut(rare).signals = KeptSignals::default();
        }
    });
}
