//! Workflows and runs as they are shown over HTTP: field names of the contract.

use std::collections::BTreeMap;

use serde::Serialize;
use tenure_coordinator::{EndingInfo, ParkedInfo, RunInfo, RunStep, TokenInfo, WorkflowInfo};
use tenure_core::command::{Registered, Signaled};
use tenure_value::Value;
use utoipa::ToSchema;

use super::shown::{moment, tags_of};
use crate::problem::ShownFault;

/// A version that a definition has.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownVersion<'a> {
    name: &'a str,
    version: u32,
}

impl<'a> ShownVersion<'a> {
    /// What is shown after a definition was taken.
    #[must_use]
    pub(crate) fn of(registered: &'a Registered) -> Self {
        Self { name: &registered.name, version: registered.version }
    }
}

/// A workflow as it is listed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownWorkflow<'a> {
    name: &'a str,
    version: u32,
    registered_at: String,
    nodes: usize,
    transitions: u32,
    /// Why it no longer compiles, so that no run of it can begin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<ShownFault<'a>>,
}

impl<'a> ShownWorkflow<'a> {
    /// What is shown in a list.
    #[must_use]
    pub(crate) fn of(workflow: &'a WorkflowInfo) -> Self {
        Self {
            name: &workflow.name,
            version: workflow.version,
            registered_at: moment(workflow.registered_at),
            nodes: workflow.definition.nodes.len(),
            transitions: workflow.transitions,
            faults: workflow.faults.iter().map(ShownFault::of).collect(),
        }
    }
}

/// A workflow with its definition.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownDefinition<'a> {
    #[serde(flatten)]
    workflow: ShownWorkflow<'a>,
    #[schema(value_type = serde_json::Value)]
    definition: &'a Value,
}

impl<'a> ShownDefinition<'a> {
    /// What is shown of one version.
    #[must_use]
    pub(crate) fn of(workflow: &'a WorkflowInfo) -> Self {
        let definition = &workflow.definition.source;
        Self { workflow: ShownWorkflow::of(workflow), definition }
    }
}

/// A run as it is shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownRun<'a> {
    id: u64,
    workflow: &'a str,
    version: u32,
    /// One of RUNNING, WAITING, COMPLETED, FAILED, CANCELED, TIMED_OUT.
    state: &'static str,
    #[schema(value_type = serde_json::Value)]
    input: &'a Value,
    #[schema(value_type = serde_json::Value)]
    context: &'a Value,
    #[schema(value_type = serde_json::Value)]
    output: Option<&'a Value>,
    /// `{code, message, node, attempts, details, causes}`.
    #[schema(value_type = Option<Object>)]
    error: Option<&'a Value>,
    started_at: String,
    finished_at: Option<String>,
    deadline_at: Option<String>,
    parent: Option<ShownParent>,
    /// The run at the top of its tree of child runs; itself if it has no parent.
    root: u64,
    ending: Option<ShownEnding<'a>>,
    parked: Option<ShownParking<'a>>,
    key: Option<&'a str>,
    tags: BTreeMap<&'a str, &'a str>,
    tokens: usize,
    live_tokens: u32,
    kept_signals: usize,
}

/// Who waits for a run.
#[derive(Debug, Serialize, ToSchema)]
struct ShownParent {
    run_id: u64,
    token: u32,
}

/// How a run ends whose end is decided: what is live in it ends over the next records.
#[derive(Debug, Serialize, ToSchema)]
struct ShownEnding<'a> {
    /// The state that it will have: FAILED, CANCELED or TIMED_OUT.
    state: &'static str,
    /// The error that it will have.
    #[schema(value_type = Option<Object>)]
    error: Option<&'a Value>,
    since: String,
}

/// Why a run is parked. It stands still until it is canceled or unparked.
#[derive(Debug, Serialize, ToSchema)]
struct ShownParking<'a> {
    reason: &'a str,
    at: String,
}

impl<'a> ShownEnding<'a> {
    fn of(ending: &'a EndingInfo) -> Self {
        let EndingInfo { state, error, since } = ending;
        Self { state: state.as_str(), error: error.as_ref(), since: moment(*since) }
    }
}

impl<'a> ShownParking<'a> {
    fn of(parked: &'a ParkedInfo) -> Self {
        Self { reason: &parked.reason, at: moment(parked.at) }
    }
}

impl<'a> ShownRun<'a> {
    /// What is shown of a run.
    #[must_use]
    pub(crate) fn of(run: &'a RunInfo) -> Self {
        let (tokens, live_tokens) = run.tokens;
        Self {
            id: run.id.0,
            workflow: &run.workflow,
            version: run.version,
            state: run.state,
            input: &run.input,
            context: &run.context,
            output: run.output.as_ref(),
            error: run.error.as_ref(),
            started_at: moment(run.started_at),
            finished_at: run.finished_at.map(moment),
            deadline_at: run.deadline_at.map(moment),
            parent: run.parent.map(|(run, token)| ShownParent { run_id: run.0, token: token.0 }),
            root: run.root.0,
            ending: run.ending.as_ref().map(ShownEnding::of),
            parked: run.parked.as_ref().map(ShownParking::of),
            key: run.key.as_deref(),
            tags: tags_of(&run.tags),
            tokens,
            live_tokens,
            kept_signals: run.kept_signals,
        }
    }
}

/// A token as it is shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownToken<'a> {
    id: u32,
    node: &'a str,
    path: &'a str,
    parent: Option<u32>,
    state: &'static str,
    via: Option<&'a str>,
    group: Option<u32>,
    branch_index: Option<u32>,
    branch_total: Option<u32>,
    task_id: Option<u64>,
    child_run_id: Option<u64>,
    signal: Option<ShownWait<'a>>,
    wakes_at: Option<String>,
    deadline_at: Option<String>,
    #[schema(value_type = Option<Object>)]
    error: Option<&'a Value>,
}

/// What a token waits for.
#[derive(Debug, Serialize, ToSchema)]
struct ShownWait<'a> {
    name: &'a str,
    correlation: &'a str,
}

impl<'a> ShownToken<'a> {
    /// What is shown of a token.
    #[must_use]
    pub(crate) fn of(token: &'a TokenInfo) -> Self {
        let signal = token.signal.as_ref();
        Self {
            id: token.id.0,
            node: &token.node,
            path: &token.path,
            parent: token.parent.map(|parent| parent.0),
            state: token.state,
            via: token.via.as_deref(),
            group: token.branch.map(|(group, ..)| group.0),
            branch_index: token.branch.map(|(_, index, _)| index),
            branch_total: token.branch.map(|(.., total)| total),
            task_id: token.task_id.map(|task| task.0),
            child_run_id: token.child.map(|run| run.0),
            signal: signal.map(|(name, correlation)| ShownWait { name, correlation }),
            wakes_at: token.wakes_at.map(moment),
            deadline_at: token.deadline_at.map(moment),
            error: token.error.as_ref(),
        }
    }
}

/// What one cause did to a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownRunStep<'a> {
    lsn: u64,
    at: String,
    /// What happened: `{event, …}`.
    #[schema(value_type = Object)]
    cause: &'a Value,
    /// What was decided, in that order: `{decision, run_id, …}`. What a condition read is in `why`.
    #[schema(value_type = Vec<Object>)]
    decisions: &'a [Value],
}

impl<'a> ShownRunStep<'a> {
    /// What is shown of a step.
    #[must_use]
    pub(crate) fn of(step: &'a RunStep) -> Self {
        Self {
            lsn: step.lsn.0,
            at: moment(step.at),
            cause: &step.cause,
            decisions: &step.decisions,
        }
    }
}

/// What became of a signal.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownSignal<'a> {
    run_id: u64,
    signal: &'a str,
    /// given: a token got it; kept: for the next that waits for it; known: it came before.
    outcome: &'static str,
    token: Option<u32>,
}

impl<'a> ShownSignal<'a> {
    /// What is shown after a signal.
    #[must_use]
    pub(crate) fn of(run_id: u64, signal: &'a str, signaled: Signaled) -> Self {
        let (outcome, token) = match signaled {
            Signaled::Given(token) => ("given", Some(token.0)),
            Signaled::Kept => ("kept", None),
            Signaled::Known => ("known", None),
        };
        Self { run_id, signal, outcome, token }
    }
}
