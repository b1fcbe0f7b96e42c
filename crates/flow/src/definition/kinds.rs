//! Nodes and what is done at each kind of them.

use std::sync::Arc;

use super::TransitionIndex;
use crate::expression::Expression;
use crate::mapping::Mapping;
use crate::schema::Schema;

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
    /// What kind of work it is.
    pub name: Option<Arc<str>>,
    /// How urgent it is, -100 … 100.
    pub priority: i8,
    /// How long a lease lasts, if the definition says.
    pub lease_ms: Option<u32>,
    /// In the order of their keys, each key once.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
    /// When it is tried again.
    pub retry: Retry,
    /// How long one attempt may take.
    pub attempt_timeout_ms: Option<u64>,
}

/// When a task is tried again. What is not said is the task's own default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Retry {
    /// Failures that end it.
    pub max_failures: Option<u16>,
    /// Expired leases that end it.
    pub max_expiries: Option<u16>,
    /// Failures and expired leases that together end it.
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
