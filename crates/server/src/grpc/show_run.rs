//! Workflows and runs as they are shown over gRPC. Values are JSON text.

use tenure_coordinator::{
    EndingInfo, ParkedInfo, Redecided, RunInfo, RunStep, TokenInfo, WorkflowInfo,
};
use tenure_core::command::{Signaled, SubmitOutcome};
use tenure_core::redecide::Pair;
use tenure_flow::Fault;
use tenure_proto::v1;
use tenure_record::id::{Lsn, RunId};
use tenure_value::Value;

use super::show::{moment, tags};

/// A state, by the name that it has outside.
pub(super) fn state(name: &str) -> v1::RunState {
    v1::RunState::from_str_name(&format!("RUN_STATE_{name}")).unwrap_or_default()
}

fn json(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.bytes());
    value.write_json(&mut bytes);
    bytes
}

/// A value that may not be; empty for none.
fn maybe_json(value: Option<&Value>) -> Vec<u8> {
    value.map(json).unwrap_or_default()
}

/// A workflow as it is listed.
pub(super) fn listed(workflow: &WorkflowInfo) -> v1::Workflow {
    v1::Workflow {
        name: workflow.name.to_string(),
        version: workflow.version,
        registered_at: workflow.registered_at.0,
        definition: Vec::new(),
        nodes: workflow.definition.nodes.len() as u32,
        transitions: workflow.transitions,
        faults: workflow.faults.iter().map(fault).collect(),
    }
}

/// A workflow with its definition.
pub(super) fn workflow(workflow: &WorkflowInfo) -> v1::Workflow {
    v1::Workflow { definition: json(&workflow.definition.source), ..listed(workflow) }
}

/// A run.
pub(super) fn run(run: &RunInfo) -> v1::Run {
    let (tokens, live_tokens) = run.tokens;
    v1::Run {
        id: run.id.0,
        workflow: run.workflow.to_string(),
        version: run.version,
        state: state(run.state).into(),
        input: json(&run.input),
        context: json(&run.context),
        output: maybe_json(run.output.as_ref()),
        error: maybe_json(run.error.as_ref()),
        started_at: run.started_at.0,
        finished_at: moment(run.finished_at),
        deadline_at: moment(run.deadline_at),
        parent: run.parent.map(|(run, token)| v1::ParentOfRun { run_id: run.0, token: token.0 }),
        key: run.key.as_ref().map(|key| key.to_string()),
        tags: tags(&run.tags),
        tokens: tokens as u64,
        live_tokens,
        kept_signals: run.kept_signals as u64,
        root: run.root.0,
        ending: run.ending.as_ref().map(ending),
        parked: run.parked.as_ref().map(parking),
    }
}

fn ending(ending: &EndingInfo) -> v1::EndingOfRun {
    v1::EndingOfRun {
        state: state(ending.state.as_str()).into(),
        error: maybe_json(ending.error.as_ref()),
        since: ending.since.0,
    }
}

fn parking(parked: &ParkedInfo) -> v1::ParkingOfRun {
    v1::ParkingOfRun { reason: parked.reason.to_string(), at: parked.at.0 }
}

/// A token.
pub(super) fn token(token: TokenInfo) -> v1::Token {
    let (signal, correlation) = token.signal.unzip();
    v1::Token {
        id: token.id.0,
        node: token.node.to_string(),
        path: token.path,
        parent: token.parent.map(|parent| parent.0),
        state: token.state.to_owned(),
        via: token.via.map(|via| via.to_string()),
        group: token.branch.map(|(group, ..)| group.0),
        branch_index: token.branch.map(|(_, index, _)| index),
        branch_total: token.branch.map(|(.., total)| total),
        task_id: token.task_id.map(|task| task.0),
        child_run_id: token.child.map(|run| run.0),
        signal,
        correlation,
        wakes_at: moment(token.wakes_at),
        deadline_at: moment(token.deadline_at),
        error: maybe_json(token.error.as_ref()),
    }
}

/// What is known of a run's past.
pub(super) fn history(steps: &[RunStep], truncated_before: Option<Lsn>) -> v1::RunHistoryResponse {
    let step = |step: &RunStep| v1::RunStep {
        lsn: step.lsn.0,
        at: step.at.0,
        cause: json(&step.cause),
        decisions: step.decisions.iter().map(json).collect(),
    };
    v1::RunHistoryResponse {
        steps: steps.iter().map(step).collect(),
        truncated_before: truncated_before.map(|lsn| lsn.0),
        next_cursor: String::new(),
    }
}

/// What became of a signal.
pub(super) fn signaled(
    run_id: RunId,
    signal: String,
    started: SubmitOutcome,
    signaled: Signaled,
) -> v1::SignalResponse {
    let (outcome, token) = match signaled {
        Signaled::Given(token) => (v1::SignalOutcome::Given, Some(token.0)),
        Signaled::Kept => (v1::SignalOutcome::Kept, None),
        Signaled::Known => (v1::SignalOutcome::Known, None),
    };
    let started = started == SubmitOutcome::Created;
    v1::SignalResponse { outcome: outcome.into(), token, run_id: run_id.0, started, signal }
}

/// What is wrong with a definition.
pub(super) fn fault(fault: &Fault) -> v1::Fault {
    v1::Fault {
        pointer: fault.pointer.clone(),
        code: fault.code.as_str().to_owned(),
        message: fault.message.clone(),
        line: fault.place.map(|place| place.line as u32),
        column: fault.place.map(|place| place.column as u32),
    }
}

/// What was decided, and what would be now.
pub(super) fn redecided(run_id: RunId, found: &Redecided) -> v1::RedecideResponse {
    let pair = |pair: &Pair| v1::RedecidedPair {
        same: pair.is_same,
        recorded: maybe_json(pair.recorded.as_ref()),
        decided: maybe_json(pair.decided.as_ref()),
    };
    v1::RedecideResponse {
        run_id: run_id.0,
        lsn: found.lsn.0,
        at: found.at.0,
        same: found.is_same(),
        cause: json(&found.cause),
        decisions: found.pairs.iter().map(pair).collect(),
        refused: found.refused.as_ref().map(|rejection| v1::RedecideRefusal {
            code: rejection.code().to_string(),
            detail: rejection.to_string(),
        }),
    }
}
