//! A client brings a definition of a workflow.

use std::sync::Arc;

use tenure_flow::Definition;

use super::*;
use crate::command::RegisterWorkflow;
use crate::limits::{WORKFLOW_VERSIONS_MAX, WORKFLOWS_MAX};

/// A definition that is another one for each time.
fn register(name: &str, timeout_ms: usize) -> Command {
    let nodes = "initial_node: a\nnodes: [{ref: a, kind: pass}]";
    let yaml = format!("workflow: {name}\ntimeout_ms: {timeout_ms}\n{nodes}\n");
    let definition = Definition::compile(&tenure_flow::yaml::parse(&yaml).unwrap()).unwrap();
    Command::RegisterWorkflow(RegisterWorkflow { definition: Arc::new(definition) })
}

#[test]
fn a_workflow_has_as_many_versions_as_are_allowed_and_not_one_more() {
    let versions_max = WORKFLOW_VERSIONS_MAX as usize;
    let mut world = World::new();
    for version in 1..=versions_max {
        world.play_unchecked(&register("w", version));
    }
    assert_eq!(world.state.facts().workflows["w"].len(), versions_max);
    let refusal = world.refusal(&register("w", versions_max + 1));
    assert_eq!(refusal, Some(Rejection::TooManyVersions { name: "w".into() }));
    assert_eq!(world.refusal(&register("w", versions_max)), None, "it is so already");
    assert_eq!(world.refusal(&register("v", 1)), None, "another one has versions of its own");
}

#[test]
fn there_are_as_many_workflows_as_are_allowed_and_not_one_more() {
    let mut world = World::new();
    for number in 1..=WORKFLOWS_MAX {
        world.play_unchecked(&register(&format!("w{number}"), 1));
    }
    assert_eq!(world.state.facts().workflow_count(), WORKFLOWS_MAX);
    assert_eq!(world.refusal(&register("another", 1)), Some(Rejection::TooManyWorkflows));
    assert_eq!(world.refusal(&register("w1", 2)), None, "those that are there go on");
}
