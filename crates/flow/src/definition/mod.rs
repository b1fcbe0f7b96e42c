//! A workflow as it was written, checked and made ready for the engine: names are indexes,
//! expressions and schemas are compiled, defaults are filled in, the outgoing transitions of each
//! node are in the order in which they are tried.

use std::fmt;
use std::sync::Arc;

use crate::expression::Expression;
use crate::fault::Fault;
use crate::mapping::Mapping;
use crate::schema::Schema;
use crate::value::{Path, Value};

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The place in the definition's list.
            #[must_use]
            pub fn get(self) -> usize {
                self.0 as usize
            }

            pub(crate) fn of(place: usize) -> Self {
                Self(u32::try_from(place).expect("the lists of a definition are short"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

index! {
    /// A node, by its place in [`Definition::nodes`].
    NodeIndex
}
index! {
    /// A transition, by its place in [`Definition::transitions`]; this is the definition order.
    TransitionIndex
}
index! {
    /// A sibling group, by its place in [`Definition::groups`].
    GroupIndex
}

/// A workflow, checked and compiled. Nothing in it ever changes; share it.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The workflow's name.
    pub name: Arc<str>,
    /// As it was given, keys in order. Two definitions with equal sources are one version.
    pub source: Value,
    /// BLAKE3 of the source's JSON text.
    pub hash: [u8; 32],
    /// What a run's input must satisfy.
    pub input_schema: Option<Schema>,
    /// What the context must satisfy.
    pub context_schema: Option<Schema>,
    /// What the context is at the start: the defaults of its schema.
    pub context_defaults: Value,
    /// What a run's output must satisfy.
    pub output_schema: Option<Schema>,
    /// Where a run begins.
    pub initial_node: NodeIndex,
    /// How long a run may take.
    pub timeout_ms: Option<u64>,
    /// How a run ends whose time is over.
    pub on_timeout: OnRunTimeout,
    /// What happens if a node has outgoing transitions but none matches.
    pub on_no_match: OnNoMatch,
    /// The bounds of a run.
    pub limits: Limits,
    /// The nodes in definition order.
    pub nodes: Vec<Node>,
    /// The transitions in definition order.
    pub transitions: Vec<Transition>,
    /// The sibling groups, in the order of their first transition.
    pub groups: Vec<Group>,
    /// The run's output; absent values are left out of it. Targets are paths in the output.
    pub output_mapping: Option<Mapping>,
    /// What becomes of artifacts.
    pub artifacts: Artifacts,
}

/// How a run ends whose time is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRunTimeout {
    /// `TIMED_OUT`.
    #[default]
    Fail,
    /// `CANCELED`.
    Cancel,
}

/// What happens if a node has outgoing transitions but none matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnNoMatch {
    /// The token fails with `NO_MATCH`, or `LOOP_LIMIT`.
    #[default]
    Fail,
    /// The token ends.
    End,
}

/// The bounds of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tokens that a run may make.
    pub max_tokens: u64,
    /// Branches of one fan-out.
    pub max_spawn: u32,
    /// Groups inside groups.
    pub max_depth: u32,
    /// Steps of one cascade.
    pub max_cascade: u32,
}

/// What becomes of artifacts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Artifacts {
    /// When they are committed.
    pub commit_on: CommitOn,
    /// What happens if two have one name.
    pub on_conflict: OnArtifactConflict,
}

/// When a run's artifacts are committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitOn {
    /// When the run is `COMPLETED`.
    #[default]
    Success,
    /// However it ends.
    Always,
}

/// What happens if two artifacts of a run have one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnArtifactConflict {
    /// The path of its branch is put before the name.
    #[default]
    Qualify,
    /// The one of the highest branch index counts.
    LastWins,
    /// It is an error.
    Fail,
}

/// A place where a token can stand.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its `ref`.
    pub name: Arc<str>,
    /// What is done there.
    pub kind: NodeKind,
    /// The payload, by name; without it the payload is `{}`. Targets are paths in the payload.
    pub input_mapping: Option<Mapping>,
    /// What the result changes. Targets begin with `context` or are `branch.output`.
    pub output_mapping: Mapping,
    /// What the result must satisfy.
    pub output_schema: Option<Schema>,
    /// From dispatch to the end, retries included.
    pub timeout_ms: Option<u64>,
    /// Transitions to try after a success: by (priority, definition order).
    pub on_success: Vec<TransitionIndex>,
    /// Transitions to try after an error: by (priority, definition order).
    pub on_error: Vec<TransitionIndex>,
    /// Does any expression name `outputs.<node>._branches`? Only then is it kept past the join.
    pub keeps_branches: bool,
}

/// What is done at a node.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// A task for a worker.
    Task(TaskNode),
    /// Nothing; the token goes on at once.
    Pass,
    /// Another workflow.
    Workflow(WorkflowNode),
    /// A wait for news from outside.
    Signal(SignalNode),
    /// A wait for a moment.
    Timer(TimerNode),
}

/// The terms of a node's task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskNode {
    /// Where it waits.
    pub queue: Arc<str>,
    /// How urgent it is, -100 … 100.
    pub priority: i8,
    /// How long a lease lasts, if the definition says.
    pub lease_ms: Option<u32>,
    /// In the order of their keys, each key once.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
    /// When it is tried again.
    pub retry: Retry,
}

/// When a task is tried again. What is not said is the task's own default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Retry {
    /// How many failures end it.
    pub max_attempts: Option<u16>,
    /// How long it waits in between.
    pub backoff: Option<Backoff>,
    /// Which failures are tried again.
    pub retry_on: RetryOn,
}

/// Which failures are tried again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RetryOn {
    /// All of them: `*`.
    #[default]
    Any,
    /// Those with one of these codes; any other is final. May be empty.
    Codes(Vec<Arc<str>>),
}

impl RetryOn {
    /// Is a failure with this code tried again?
    #[must_use]
    pub fn allows(&self, code: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Codes(codes) => codes.iter().any(|known| &**known == code),
        }
    }
}

/// How long a task waits after a failure; what is not said is the task's own default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    /// How the wait grows.
    pub kind: Option<BackoffKind>,
    /// The first wait.
    pub initial_ms: Option<u64>,
    /// The longest wait.
    pub max_ms: Option<u64>,
    /// How far the wait may stray to either side, in thousandths of itself.
    pub jitter_permille: Option<u16>,
}

/// How the wait grows from one failure to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackoffKind {
    /// Always the same.
    Fixed,
    /// By the first wait each time.
    Linear,
    /// Twice as long each time.
    Exponential,
}

/// Another workflow, run as a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowNode {
    /// Its name.
    pub workflow: Arc<str>,
    /// Its version; the newest at dispatch if the definition does not say.
    pub version: Option<u32>,
    /// What its failure means.
    pub on_failure: OnFailure,
}

/// What the failure of a child means to its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The node fails.
    #[default]
    Propagate,
    /// The node's output is `{error}`.
    Catch,
}

/// A wait for news from outside.
#[derive(Clone, Debug)]
pub struct SignalNode {
    /// The signal's name.
    pub signal: Arc<str>,
    /// What tells this wait from others for the same name.
    pub correlation: Option<Expression>,
    /// What the payload must satisfy.
    pub schema: Option<Schema>,
}

/// A wait for a moment.
#[derive(Clone, Debug)]
pub enum TimerNode {
    /// So many milliseconds after the token starts.
    Delay(u64),
    /// Until this moment: see [`crate::expression::moment_ms`].
    Until(Expression),
}

/// A way from one node to another.
#[derive(Clone, Debug)]
pub struct Transition {
    /// Its `ref`, if it has one.
    pub name: Option<Arc<str>>,
    /// Where it begins.
    pub from: NodeIndex,
    /// Where it leads.
    pub to: NodeIndex,
    /// Its tier; low ones are tried first.
    pub priority: i32,
    /// Which ends of a node it fits.
    pub outcome: Outcome,
    /// Whether it matches; without one it does.
    pub condition: Option<Expression>,
    /// How often a token's line may take it.
    pub loop_max: Option<u32>,
    /// The branches it opens, if it is a fan-out.
    pub fan_out: Option<FanOut>,
    /// The group it joins, if it does.
    pub joins: Option<GroupIndex>,
}

/// Which ends of a node a transition fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// A success.
    #[default]
    Success,
    /// A failure.
    Error,
    /// Both.
    Any,
}

/// The branches that a transition opens.
#[derive(Clone, Debug)]
pub struct FanOut {
    /// The group they belong to.
    pub group: GroupIndex,
    /// How many there are, and of what.
    pub spawn: Spawn,
}

/// How many branches, and of what.
#[derive(Clone, Debug)]
pub enum Spawn {
    /// As many as the number says, at least one.
    Count(u32),
    /// As many as the expression says; 0 counts as empty, less is `SPAWN_INVALID`.
    From(Expression),
    /// One for each item of a list.
    Foreach(Foreach),
}

/// One branch for each item of a list.
#[derive(Clone, Debug)]
pub struct Foreach {
    /// The list.
    pub collection: Expression,
    /// What the item is called in the branch.
    pub item_var: Arc<str>,
    /// The item's key; the item is bound to its name.
    pub key: Option<Expression>,
    /// How many branches run at a time.
    pub max_concurrency: Option<u32>,
    /// What happens if the list is empty.
    pub on_empty: OnEmpty,
    /// What happens if there is `null` instead of a list.
    pub on_missing: OnMissing,
}

/// What happens if there is nothing to branch over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEmpty {
    /// The join sees zero branches.
    #[default]
    Join,
    /// The token ends.
    Skip,
    /// `EMPTY_FOREACH`.
    Fail,
}

/// What happens if there is `null` instead of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissing {
    /// `FOREACH_MISSING`.
    #[default]
    Fail,
    /// It counts as an empty list.
    Empty,
}

/// A sibling group: what a routing step opens as one.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name: `sibling_group`, or the `ref` of its only transition.
    pub name: Arc<str>,
    /// The node whose routing opens it.
    pub from: NodeIndex,
    /// The tier of its transitions.
    pub priority: i32,
    /// Its fan-out transitions, in definition order.
    pub transitions: Vec<TransitionIndex>,
    /// Where its branches meet, if they do.
    pub join: Option<Join>,
}

/// Where the branches of a group meet.
#[derive(Clone, Debug)]
pub struct Join {
    /// The node that goes on.
    pub target: NodeIndex,
    /// The transitions that join, in definition order.
    pub transitions: Vec<TransitionIndex>,
    /// What all of them agree on.
    pub synchronization: Synchronization,
}

/// How branches meet.
#[derive(Clone, Debug)]
pub struct Synchronization {
    /// How many must arrive.
    pub wait_for: WaitFor,
    /// How many are enough for `all`, and for a timeout that proceeds.
    pub min_success: Option<u32>,
    /// Is a join that became unreachable over at once, and not only when no branch is open?
    pub fail_fast: bool,
    /// What happens if too few can arrive.
    pub on_unreachable: OnUnreachable,
    /// What becomes of those that are late.
    pub on_late: OnLate,
    /// How long it waits.
    pub timeout: Option<JoinTimeout>,
    /// Where the run goes on after the join failed, with `error` bound.
    pub else_to: Option<NodeIndex>,
    /// What is put together. Empty if nothing is said of it.
    pub merge: Vec<Merge>,
}

/// How many branches must arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitFor {
    /// All that do not end on the way.
    #[default]
    All,
    /// The first.
    Any,
    /// So many.
    Count(u32),
    /// So many percent, 1 … 100, rounded up.
    Percent(u32),
}

/// What happens if too few branches can arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnreachable {
    /// `JOIN_UNREACHABLE`.
    #[default]
    Fail,
    /// It fires with what arrived, even with none.
    Proceed,
}

/// What becomes of branches that are late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLate {
    /// They end in the same record.
    #[default]
    Cancel,
    /// They run on, and nobody waits for them.
    Abandon,
}

/// How long a join waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinTimeout {
    /// So long.
    pub timeout_ms: u64,
    /// Since when.
    pub from: TimeoutFrom,
    /// What happens then.
    pub on_timeout: OnJoinTimeout,
}

/// Since when a join's time runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeoutFrom {
    /// The first branch that settled as arrived.
    #[default]
    FirstArrival,
    /// The fan-out.
    FanOut,
}

/// What happens when a join's time is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnJoinTimeout {
    /// `JOIN_TIMEOUT`.
    #[default]
    Fail,
    /// It fires if `min_success` (default 1) arrived.
    ProceedWithAvailable,
}

/// One value per branch, put together.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The value of a branch, evaluated in its scope.
    pub source: Expression,
    /// Where the result goes; begins with `context`.
    pub target: Path,
    /// How they are put together.
    pub strategy: Strategy,
    /// Whether what is there stays.
    pub mode: MergeMode,
    /// What a branch without a value gives.
    pub missing: Missing,
    /// What counts if two branches differ; for `deep_merge`.
    pub on_conflict: OnMergeConflict,
    /// Does every settled branch give `{ok, index, key, value | error}`?
    pub include_failed: bool,
}

/// How the values of branches are put together, always by branch index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// A list, flattened one level if every value is a list.
    Append,
    /// A list, never flattened.
    Collect,
    /// Objects, one level; the higher index wins.
    Merge,
    /// Objects, all levels.
    DeepMerge,
    /// An object by foreach key, else by index.
    Keyed,
    /// The value of the highest arrived index.
    LastWins,
    /// The value of the first to arrive.
    FirstArrival,
}

/// Whether what is at the target stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeMode {
    /// It goes.
    #[default]
    Replace,
    /// It stays, and the result is added to it.
    Extend,
}

/// What a branch without a value gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// `null`.
    #[default]
    Null,
    /// Nothing.
    Skip,
    /// An error.
    Error,
}

/// What counts if two branches differ in a deep merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMergeConflict {
    /// The higher index.
    #[default]
    Last,
    /// The lower index.
    First,
    /// It is an error.
    Error,
}

impl Definition {
    /// Checks and compiles a definition. All faults are reported at once, in the order of their
    /// pointers' first appearance in the checks.
    pub fn compile(source: &Value) -> Result<Self, Vec<Fault>> {
        compile::compile(source)
    }

    /// The node at that place.
    #[must_use]
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index.get()]
    }

    /// The transition at that place.
    #[must_use]
    pub fn transition(&self, index: TransitionIndex) -> &Transition {
        &self.transitions[index.get()]
    }

    /// The group at that place.
    #[must_use]
    pub fn group(&self, index: GroupIndex) -> &Group {
        &self.groups[index.get()]
    }

    /// The node with that `ref`.
    #[must_use]
    pub fn find_node(&self, name: &str) -> Option<NodeIndex> {
        self.nodes.iter().position(|node| &*node.name == name).map(NodeIndex::of)
    }
}

mod compile;
