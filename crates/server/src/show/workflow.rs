//! Workflows, and the faults of definitions.

use tenure_api as api;
use tenure_coordinator::WorkflowInfo;
use tenure_core::command::{Registered, SubmitOutcome};
use tenure_flow::Fault;

use super::{json, time};

/// A workflow with its definition.
pub(crate) fn workflow(workflow: &WorkflowInfo) -> api::Workflow {
    api::Workflow { definition: json(&workflow.definition.source), ..listed(workflow) }
}

/// A workflow as it is listed: without its definition.
pub(crate) fn listed(workflow: &WorkflowInfo) -> api::Workflow {
    api::Workflow {
        name: workflow.name.to_string(),
        version: workflow.version,
        registered_at: time(workflow.registered_at),
        nodes: workflow.definition.nodes.len() as u32,
        transitions: workflow.transitions,
        faults: workflow.faults.iter().map(fault).collect(),
        definition: api::Payload::default(),
    }
}

/// A fault of a definition.
pub(crate) fn fault(fault: &Fault) -> api::Fault {
    api::Fault {
        pointer: fault.pointer.clone(),
        code: fault.code.as_str().to_owned(),
        message: fault.message.clone(),
        line: fault.place.map(|place| place.line as u32),
        column: fault.place.map(|place| place.column as u32),
    }
}

/// The outcome of registering a definition.
pub(crate) fn registered(registered: &Registered) -> api::Registered {
    api::Registered {
        name: registered.name.to_string(),
        version: registered.version,
        existed: registered.outcome == SubmitOutcome::Existed,
    }
}
