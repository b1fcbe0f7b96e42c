//! From a value to a definition, or to all that is wrong with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_value::Value;

use super::fields::{Fields, Findings, Targets};
use super::graph::Graph;
use super::group::{self, Groups, Linked};
use super::name::{check_name, suggestion};
use super::node::{self, ReadNode};
use super::roots::{Names, Site};
use super::transition::{self, ReadTransition};
use super::{
    Artifacts, CommitOn, Definition, FanOut, Limits, NodeIndex, OnArtifactConflict, OnNoMatch,
    OnRunTimeout, Outcome, Spawn, Transition, TransitionIndex,
};
use crate::fault::{Fault, FaultCode};
use crate::limits::{
    MAX_CASCADE_DEFAULT, MAX_CASCADE_MAX, MAX_DEPTH_DEFAULT, MAX_DEPTH_MAX, MAX_RUNS_DEFAULT,
    MAX_RUNS_MAX, MAX_SPAWN_DEFAULT, MAX_SPAWN_MAX, MAX_TOKENS_DEFAULT, MAX_TOKENS_MAX, NODES_MAX,
    SPAN_MS_MAX, TRANSITIONS_MAX,
};
use crate::mapping::Mapping;
use crate::schema::Schema;

pub(super) fn compile(source: &Value) -> Result<Definition, Vec<Fault>> {
    let mut found = Findings::default();
    let Some(read) = read(source, &mut found) else { return Err(found.into_faults()) };
    let compiled = link(source, read, &mut found);
    let faults = found.into_faults();
    match compiled {
        Some(definition) if faults.is_empty() => Ok(definition),
        _ => Err(faults),
    }
}

/// A definition as far as it could be read; names are still names.
struct Read {
    name: Option<Arc<str>>,
    input_schema: Option<Schema>,
    context_schema: Option<Schema>,
    output_schema: Option<Schema>,
    initial_node: Option<Arc<str>>,
    timeout_ms: Option<u64>,
    on_timeout: OnRunTimeout,
    on_no_match: OnNoMatch,
    limits: Limits,
    nodes: Vec<ReadNode>,
    transitions: Vec<ReadTransition>,
    output_mapping: Option<Mapping>,
    artifacts: Artifacts,
}

fn read(source: &Value, found: &mut Findings) -> Option<Read> {
    let mut fields = Fields::open(source, String::new(), found)?;
    fields.need("workflow", found);
    let name = fields.name("workflow", check_name, found);
    let input_schema = fields.schema("input_schema", found);
    let context_schema = fields.schema("context_schema", found);
    let output_schema = fields.schema("output_schema", found);
    fields.need("initial_node", found);
    let initial_node = fields.text("initial_node", found);
    let timeout_ms = fields.count("timeout_ms", (1, SPAN_MS_MAX), found);
    let choices = [("fail", OnRunTimeout::Fail), ("cancel", OnRunTimeout::Cancel)];
    let on_timeout = fields.choice("on_timeout", &choices, found).unwrap_or_default();
    let choices = [("fail", OnNoMatch::Fail), ("end", OnNoMatch::End)];
    let on_no_match = fields.choice("on_no_match", &choices, found).unwrap_or_default();
    let limits = limits(&mut fields, found);
    fields.need("nodes", found);
    let list = fields.short_list("nodes", NODES_MAX, found).unwrap_or_default();
    let nodes = list.iter().enumerate().map(|(at, value)| node::read(value, at, found)).collect();
    let list = fields.short_list("transitions", TRANSITIONS_MAX, found).unwrap_or_default();
    let transitions =
        list.iter().enumerate().map(|(at, value)| transition::read(value, at, found)).collect();
    let site = Site::final_output();
    let output_mapping = fields.mapping("output_mapping", Targets::Plain, &site, found);
    let artifacts = artifacts(&mut fields, found);
    fields.end(found);
    Some(Read {
        name,
        input_schema,
        context_schema,
        output_schema,
        initial_node,
        timeout_ms,
        on_timeout,
        on_no_match,
        limits,
        nodes,
        transitions,
        output_mapping,
        artifacts,
    })
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_tokens: MAX_TOKENS_DEFAULT,
            max_spawn: MAX_SPAWN_DEFAULT,
            max_depth: MAX_DEPTH_DEFAULT,
            max_runs: MAX_RUNS_DEFAULT,
            max_cascade: MAX_CASCADE_DEFAULT,
        }
    }
}

fn limits(fields: &mut Fields<'_>, found: &mut Findings) -> Limits {
    let mut limits = Limits::default();
    let Some(mut said) = fields.object("limits", found) else { return limits };
    if let Some(max) = said.count("max_tokens", (1, MAX_TOKENS_MAX), found) {
        limits.max_tokens = max;
    }
    if let Some(max) = said.count("max_spawn", (1, MAX_SPAWN_MAX), found) {
        limits.max_spawn = max;
    }
    if let Some(max) = said.count("max_depth", (1, MAX_DEPTH_MAX), found) {
        limits.max_depth = max;
    }
    if let Some(max) = said.count("max_runs", (1, MAX_RUNS_MAX), found) {
        limits.max_runs = max;
    }
    if let Some(max) = said.count("max_cascade", (1, MAX_CASCADE_MAX), found) {
        limits.max_cascade = max;
    }
    said.end(found);
    limits
}

fn artifacts(fields: &mut Fields<'_>, found: &mut Findings) -> Artifacts {
    let Some(mut said) = fields.object("artifacts", found) else { return Artifacts::default() };
    let choices = [("success", CommitOn::Success), ("always", CommitOn::Always)];
    let commit_on = said.choice("commit_on", &choices, found).unwrap_or_default();
    let choices = [
        ("qualify", OnArtifactConflict::Qualify),
        ("last_wins", OnArtifactConflict::LastWins),
        ("fail", OnArtifactConflict::Fail),
    ];
    let on_conflict = said.choice("on_conflict", &choices, found).unwrap_or_default();
    said.end(found);
    Artifacts { commit_on, on_conflict }
}

/// Names become places, and the whole is looked at. Nothing if a part is missing, which is a fault.
fn link(source: &Value, mut read: Read, found: &mut Findings) -> Option<Definition> {
    let names = node_names(&read.nodes, found);
    let initial =
        read.initial_node.as_ref().and_then(|name| find(name, &names, "/initial_node", found));
    let transitions: Vec<Linked<'_>> =
        read.transitions.iter().map(|transition| linked(transition, &names, found)).collect();
    let groups = group::resolve(&transitions, &names, found);
    let graph = Graph::of(read.nodes.len(), &transitions, &groups);
    // With a wrong ref somewhere, half of the graph would be called unreachable.
    let is_whole = !found.has(FaultCode::UnknownRef) && !found.has(FaultCode::MissingField);
    if let Some(initial) = initial.filter(|_| is_whole) {
        graph.check_reach(initial, &read.nodes, found);
    }
    graph.check_cycles(&read.nodes, &transitions, found);
    let uses = std::mem::take(&mut found.uses);
    let in_scope = Names::of(&read.nodes, &transitions, &groups, &graph);
    uses.iter().for_each(|used| in_scope.check(used, found));
    let kept = in_scope.kept_branches(&uses);
    let compiled = compile_transitions(&transitions, &groups);
    let nodes = std::mem::take(&mut read.nodes);
    let nodes = nodes.into_iter().map(ReadNode::finish).collect::<Option<Vec<_>>>();
    let mut definition = Definition {
        name: read.name?,
        source: source.clone(),
        hash: Definition::hash_of(source),
        input_schema: read.input_schema,
        context_defaults: defaults(read.context_schema.as_ref()),
        context_schema: read.context_schema,
        output_schema: read.output_schema,
        initial_node: initial?,
        timeout_ms: read.timeout_ms,
        on_timeout: read.on_timeout,
        on_no_match: read.on_no_match,
        limits: read.limits,
        nodes: nodes?,
        transitions: compiled?,
        groups: groups.groups,
        output_mapping: read.output_mapping,
        artifacts: read.artifacts,
    };
    order_transitions(&mut definition);
    for (node, keeps) in definition.nodes.iter_mut().zip(kept) {
        node.keeps_branches = keeps;
    }
    Some(definition)
}

fn defaults(schema: Option<&Schema>) -> Value {
    let empty = Value::empty_map();
    let Some(schema) = schema else { return empty };
    let whole = schema.source().as_map().and_then(|schema| schema.get("default"));
    schema.with_defaults(whole.filter(|value| value.as_map().is_some()).unwrap_or(&empty))
}

fn node_names(nodes: &[ReadNode], found: &mut Findings) -> BTreeMap<Arc<str>, NodeIndex> {
    let mut names = BTreeMap::new();
    for (place, node) in nodes.iter().enumerate() {
        let Some(name) = &node.name else { continue };
        if names.contains_key(name) {
            let message = format!("another node is called `{name}` too; give each its own name");
            found.add(&format!("{}/ref", node.pointer), FaultCode::DuplicateRef, message);
            continue;
        }
        names.insert(Arc::clone(name), NodeIndex::of(place));
    }
    names
}

fn find(
    name: &Arc<str>,
    names: &BTreeMap<Arc<str>, NodeIndex>,
    pointer: &str,
    found: &mut Findings,
) -> Option<NodeIndex> {
    let index = names.get(name).copied();
    if index.is_none() {
        let near = suggestion(name, names.keys().map(|name| &**name));
        let message = format!("there is no node `{name}`{near}");
        found.add(pointer, FaultCode::UnknownRef, message);
    }
    index
}

fn linked<'a>(
    read: &'a ReadTransition,
    names: &BTreeMap<Arc<str>, NodeIndex>,
    found: &mut Findings,
) -> Linked<'a> {
    let mut end = |field: &str, name: &Option<Arc<str>>| {
        let pointer = format!("{}/{field}", read.pointer);
        name.as_ref().and_then(|name| find(name, names, &pointer, found))
    };
    let (from, to) = (end("from", &read.from), end("to", &read.to));
    if let Some(join) = &read.join
        && let Some(else_to) = &join.else_to
    {
        find(else_to, names, &format!("{}/else_to", join.pointer), found);
    }
    Linked { read, from, to }
}

fn compile_transitions(transitions: &[Linked<'_>], groups: &Groups) -> Option<Vec<Transition>> {
    let compiled = transitions.iter().enumerate().map(|(place, Linked { read, from, to })| {
        let spawn = || read.spawn.clone().unwrap_or(Spawn::Count(1));
        Some(Transition {
            name: read.name.clone(),
            from: (*from)?,
            to: (*to)?,
            priority: read.priority,
            outcome: read.outcome,
            condition: read.condition.clone(),
            loop_max: read.loop_max,
            fan_out: groups.opens[place].map(|group| FanOut { group, spawn: spawn() }),
            joins: groups.joins[place],
        })
    });
    compiled.collect()
}

/// What a node tries after each outcome, in order.
fn order_transitions(definition: &mut Definition) {
    let mut order: Vec<usize> = (0..definition.transitions.len()).collect();
    // The sort is stable, so equal tiers stay in definition order.
    order.sort_by_key(|place| definition.transitions[*place].priority);
    for place in order {
        let transition = &definition.transitions[place];
        let node = &mut definition.nodes[transition.from.get()];
        let index = TransitionIndex::of(place);
        if transition.outcome != Outcome::Error {
            node.on_success.push(index);
        }
        if transition.outcome != Outcome::Success {
            node.on_error.push(index);
        }
    }
}
