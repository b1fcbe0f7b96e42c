//! Runs as programs see them: the same JSON as over HTTP, field by field; and their states and
//! errors in words.

use std::collections::BTreeMap;

use serde::Serialize;
use tenure_sdk::{Run, RunHistory, RunStep, SignalOutcome, Signaled, Token};

use crate::moment::rfc_3339;
use crate::plain;
use crate::shown::Verbatim;
use crate::style::{run_state, run_state_name};
use crate::table::Cell;

pub(super) fn state_cell(state: i32) -> Cell {
    Cell::styled(run_state_name(state).unwrap_or("-"), run_state(state))
}

/// An error of a run or a token in a sentence: `CODE at node: message`.
pub(super) fn error_words(error: &[u8]) -> Option<String> {
    let error: serde_json::Value = serde_json::from_slice(error).ok()?;
    let text = |field: &str| error.get(field).and_then(serde_json::Value::as_str);
    let mut words = plain::line(text("code")?);
    if let Some(node) = text("node") {
        words.push_str(&format!(" at {}", plain::line(node)));
    }
    if let Some(message) = text("message") {
        words.push_str(&format!(": {}", plain::line(message)));
    }
    Some(words)
}

/// A run.
#[derive(Debug, Serialize)]
pub(super) struct ShownRun<'a> {
    id: u64,
    workflow: &'a str,
    version: u32,
    state: Option<&'static str>,
    input: Verbatim<'a>,
    context: Verbatim<'a>,
    output: Verbatim<'a>,
    error: Verbatim<'a>,
    started_at: String,
    finished_at: Option<String>,
    deadline_at: Option<String>,
    parent: Option<ShownParent>,
    key: Option<&'a str>,
    tags: &'a BTreeMap<String, String>,
    tokens: u64,
    live_tokens: u32,
    kept_signals: u64,
}

/// Who waits for a run.
#[derive(Debug, Serialize)]
struct ShownParent {
    run_id: u64,
    token: u32,
}

impl<'a> ShownRun<'a> {
    pub(super) fn of(run: &'a Run) -> Self {
        let parent = run.parent.as_ref();
        Self {
            id: run.id,
            workflow: &run.workflow,
            version: run.version,
            state: run_state_name(run.state),
            input: Verbatim(&run.input),
            context: Verbatim(&run.context),
            output: Verbatim(&run.output),
            error: Verbatim(&run.error),
            started_at: rfc_3339(run.started_at),
            finished_at: run.finished_at.map(rfc_3339),
            deadline_at: run.deadline_at.map(rfc_3339),
            parent: parent.map(|it| ShownParent { run_id: it.run_id, token: it.token }),
            key: run.key.as_deref(),
            tags: &run.tags,
            tokens: run.tokens,
            live_tokens: run.live_tokens,
            kept_signals: run.kept_signals,
        }
    }
}

/// A token.
#[derive(Debug, Serialize)]
pub(super) struct ShownToken<'a> {
    id: u32,
    node: &'a str,
    path: &'a str,
    parent: Option<u32>,
    state: &'a str,
    via: Option<&'a str>,
    group: Option<u32>,
    branch_index: Option<u32>,
    branch_total: Option<u32>,
    task_id: Option<u64>,
    child_run_id: Option<u64>,
    signal: Option<ShownWait<'a>>,
    wakes_at: Option<String>,
    deadline_at: Option<String>,
    error: Verbatim<'a>,
}

/// What a token waits for.
#[derive(Debug, Serialize)]
struct ShownWait<'a> {
    name: &'a str,
    correlation: &'a str,
}

impl<'a> ShownToken<'a> {
    pub(super) fn of(token: &'a Token) -> Self {
        let correlation = token.correlation.as_deref().unwrap_or_default();
        Self {
            id: token.id,
            node: &token.node,
            path: &token.path,
            parent: token.parent,
            state: &token.state,
            via: token.via.as_deref(),
            group: token.group,
            branch_index: token.branch_index,
            branch_total: token.branch_total,
            task_id: token.task_id,
            child_run_id: token.child_run_id,
            signal: token.signal.as_deref().map(|name| ShownWait { name, correlation }),
            wakes_at: token.wakes_at.map(rfc_3339),
            deadline_at: token.deadline_at.map(rfc_3339),
            error: Verbatim(&token.error),
        }
    }
}

/// What was decided about a run.
#[derive(Debug, Serialize)]
pub(super) struct ShownRunHistory<'a> {
    items: Vec<ShownRunStep<'a>>,
    truncated_before: Option<u64>,
}

/// What one record did to a run.
#[derive(Debug, Serialize)]
struct ShownRunStep<'a> {
    lsn: u64,
    at: String,
    cause: Verbatim<'a>,
    decisions: Vec<Verbatim<'a>>,
}

impl<'a> ShownRunHistory<'a> {
    pub(super) fn of(history: &'a RunHistory) -> Self {
        let step = |step: &'a RunStep| ShownRunStep {
            lsn: step.lsn,
            at: rfc_3339(step.at),
            cause: Verbatim(&step.cause),
            decisions: step.decisions.iter().map(|decision| Verbatim(decision)).collect(),
        };
        Self {
            items: history.steps.iter().map(step).collect(),
            truncated_before: history.truncated_before,
        }
    }
}

/// What became of a signal.
#[derive(Debug, Serialize)]
pub(super) struct ShownSignal<'a> {
    run_id: u64,
    signal: &'a str,
    outcome: Option<&'static str>,
    token: Option<u32>,
}

impl<'a> ShownSignal<'a> {
    pub(super) fn of(run_id: u64, signal: &'a str, signaled: &Signaled) -> Self {
        let outcome = match signaled.outcome() {
            SignalOutcome::Unspecified => None,
            SignalOutcome::Given => Some("given"),
            SignalOutcome::Kept => Some("kept"),
            SignalOutcome::Known => Some("known"),
        };
        Self { run_id, signal, outcome, token: signaled.token }
    }
}
