//! Workflows as programs see them: the same JSON as over HTTP, field by field.

use serde::Serialize;
use tenure_sdk::{Registered, Workflow};

use crate::shown::Verbatim;
use crate::ui::moment::rfc_3339;

/// A version that a definition has.
#[derive(Debug, Serialize)]
pub(super) struct ShownVersion<'a> {
    name: &'a str,
    version: u32,
}

impl<'a> ShownVersion<'a> {
    pub(super) fn of(registered: &'a Registered) -> Self {
        Self { name: &registered.name, version: registered.version }
    }
}

/// A workflow as it is listed.
#[derive(Debug, Serialize)]
pub(super) struct ShownWorkflow<'a> {
    name: &'a str,
    version: u32,
    registered_at: String,
    nodes: u32,
    transitions: u32,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    faults: &'a [String],
}

impl<'a> ShownWorkflow<'a> {
    pub(super) fn of(workflow: &'a Workflow) -> Self {
        Self {
            name: &workflow.name,
            version: workflow.version,
            registered_at: rfc_3339(workflow.registered_at),
            nodes: workflow.nodes,
            transitions: workflow.transitions,
            faults: &workflow.faults,
        }
    }
}

/// A workflow with its definition.
#[derive(Debug, Serialize)]
pub(super) struct ShownDefinition<'a> {
    name: &'a str,
    version: u32,
    registered_at: String,
    nodes: u32,
    transitions: u32,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    faults: &'a [String],
    definition: Verbatim<'a>,
}

impl<'a> ShownDefinition<'a> {
    pub(super) fn of(workflow: &'a Workflow) -> Self {
        Self {
            name: &workflow.name,
            version: workflow.version,
            registered_at: rfc_3339(workflow.registered_at),
            nodes: workflow.nodes,
            transitions: workflow.transitions,
            faults: &workflow.faults,
            definition: Verbatim(&workflow.definition),
        }
    }
}
