//! Nodes, as they are written.
#![allow(clippy::wildcard_enum_match_arm, reason = "what is not named is of the wrong type")]

use std::sync::Arc;

use tenure_value::Value;

use super::fields::{Fields, Findings, Targets};
use super::name::{check_len, check_name, check_ref, check_task_name};
use super::roots::{Site, SiteKind};
use super::{
    Backoff, BackoffKind, Node, NodeKind, OnFailure, Retry, RetryOn, SignalNode, TaskNode,
    TimerNode, WorkflowNode,
};
use crate::fault::FaultCode;
use crate::limits::{
    BUDGET_MAX, CODE_BYTES_MAX, LEASE_MS_MAX, LEASE_MS_MIN, RETRY_CODES_MAX, SPAN_MS_MAX,
    TAG_BYTES_MAX, TAGS_MAX, TASK_PRIORITY_MAX, TASK_PRIORITY_MIN,
};
use crate::mapping::Mapping;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Task,
    Pass,
    Workflow,
    Signal,
    Timer,
}

const KINDS: [(&str, Kind); 5] = [
    ("task", Kind::Task),
    ("pass", Kind::Pass),
    ("workflow", Kind::Workflow),
    ("signal", Kind::Signal),
    ("timer", Kind::Timer),
];

/// Which kinds of node a field belongs to. What is not listed belongs to all.
const OWNERS: [(&str, &[Kind]); 10] = [
    ("task", &[Kind::Task]),
    ("retry", &[Kind::Task]),
    ("workflow", &[Kind::Workflow]),
    ("on_failure", &[Kind::Workflow]),
    ("signal", &[Kind::Signal]),
    ("timer", &[Kind::Timer]),
    ("input_mapping", &[Kind::Task, Kind::Workflow]),
    ("output_schema", &[Kind::Task, Kind::Workflow]),
    ("timeout_ms", &[Kind::Task, Kind::Workflow, Kind::Signal]),
    ("attempt_timeout_ms", &[Kind::Task]),
];

/// A node as far as it could be read.
pub(super) struct ReadNode {
    pub(super) pointer: String,
    pub(super) name: Option<Arc<str>>,
    /// Nothing if it is not known what is done there.
    pub(super) kind: Option<NodeKind>,
    pub(super) input_mapping: Option<Mapping>,
    pub(super) output_mapping: Mapping,
    pub(super) output_schema: Option<crate::schema::Schema>,
    pub(super) timeout_ms: Option<u64>,
}

impl ReadNode {
    /// The node, once there is no fault.
    pub(super) fn finish(self) -> Option<Node> {
        Some(Node {
            name: self.name?,
            kind: self.kind?,
            input_mapping: self.input_mapping,
            output_mapping: self.output_mapping,
            output_schema: self.output_schema,
            timeout_ms: self.timeout_ms,
            on_success: Vec::new(),
            on_error: Vec::new(),
            keeps_branches: false,
        })
    }
}

pub(super) fn read(value: &Value, place: usize, found: &mut Findings) -> ReadNode {
    let pointer = format!("/nodes/{place}");
    let mut read = ReadNode {
        pointer: pointer.clone(),
        name: None,
        kind: None,
        input_mapping: None,
        output_mapping: Mapping::default(),
        output_schema: None,
        timeout_ms: None,
    };
    let Some(mut fields) = Fields::open(value, pointer, found) else { return read };
    fields.need("ref", found);
    read.name = fields.name("ref", check_ref, found);
    fields.need("kind", found);
    let kind = fields.choice("kind", &KINDS, found);
    if let Some(kind) = kind {
        check_owners(&fields, kind, found);
    }
    let site = |place_in: SiteKind| Site::of_node(place_in, place);
    read.input_mapping =
        fields.mapping("input_mapping", Targets::Plain, &site(SiteKind::InputMapping), found);
    let output =
        fields.mapping("output_mapping", Targets::Scope, &site(SiteKind::OutputMapping), found);
    read.output_mapping = output.unwrap_or_default();
    read.output_schema = fields.schema("output_schema", found);
    read.timeout_ms = fields.count("timeout_ms", (1, SPAN_MS_MAX), found);
    read.kind = kind.and_then(|kind| match kind {
        Kind::Pass => Some(NodeKind::Pass),
        Kind::Task => task(&mut fields, found).map(NodeKind::Task),
        Kind::Workflow => workflow(&mut fields, found).map(NodeKind::Workflow),
        Kind::Signal => signal(&mut fields, place, found).map(NodeKind::Signal),
        Kind::Timer => timer(&mut fields, place, found).map(NodeKind::Timer),
    });
    // What belongs to another kind was said to do so.
    for (field, _) in OWNERS {
        fields.get(field);
    }
    fields.end(found);
    read
}

fn check_owners(fields: &Fields<'_>, kind: Kind, found: &mut Findings) {
    for (field, owners) in OWNERS {
        if fields.is_there(field) && !owners.contains(&kind) {
            let named = |wanted: &Kind| KINDS.iter().find(|(_, kind)| kind == wanted);
            let names: Vec<_> = owners.iter().filter_map(named).map(|(name, _)| *name).collect();
            let message = format!("`{field}` belongs to a node of kind {}", names.join(" or "));
            found.add(&fields.at(field), FaultCode::FieldOfOtherKind, message);
        }
    }
}

fn task(fields: &mut Fields<'_>, found: &mut Findings) -> Option<TaskNode> {
    let retry = fields.object("retry", found).map(|retry| read_retry(retry, found));
    let attempt_timeout_ms = fields.count("attempt_timeout_ms", (1, SPAN_MS_MAX), found);
    fields.need("task", found)?;
    let mut task = fields.object("task", found)?;
    task.need("queue", found);
    let queue = task.name("queue", check_name, found);
    let name = task.name("name", check_task_name, found);
    let range = (TASK_PRIORITY_MIN, TASK_PRIORITY_MAX);
    let priority = task.count("priority", range, found).unwrap_or(0);
    let lease_ms = task.count("lease_ms", (LEASE_MS_MIN, LEASE_MS_MAX), found);
    let tags = task.texts("tags", (TAGS_MAX, TAG_BYTES_MAX), found);
    task.end(found);
    let retry = retry.unwrap_or_default();
    Some(TaskNode { queue: queue?, name, priority, lease_ms, tags, retry, attempt_timeout_ms })
}

fn read_retry(mut retry: Fields<'_>, found: &mut Findings) -> Retry {
    let max_failures = retry.count("max_failures", (1, BUDGET_MAX), found);
    let max_expiries = retry.count("max_expiries", (1, BUDGET_MAX), found);
    let max_attempts = retry.count("max_attempts", (1, BUDGET_MAX), found);
    let backoff = retry.object("backoff", found).map(|backoff| read_backoff(backoff, found));
    let retry_on = match retry.short_list("retry_on", RETRY_CODES_MAX, found) {
        Some(codes) => read_codes(codes, &retry.at("retry_on"), found),
        None => RetryOn::Any,
    };
    retry.end(found);
    Retry { max_failures, max_expiries, max_attempts, backoff, retry_on }
}

fn read_backoff(mut backoff: Fields<'_>, found: &mut Findings) -> Backoff {
    let kinds = [
        ("fixed", BackoffKind::Fixed),
        ("linear", BackoffKind::Linear),
        ("exponential", BackoffKind::Exponential),
    ];
    let kind = backoff.choice("kind", &kinds, found);
    let initial_ms = backoff.count("initial_ms", (0, SPAN_MS_MAX), found);
    let max_ms = backoff.count("max_ms", (0, SPAN_MS_MAX), found);
    let jitter = match backoff.get("jitter") {
        Some(Value::Int(jitter)) => Some(*jitter as f64),
        Some(Value::Float(jitter)) => Some(*jitter),
        Some(_) => Some(f64::INFINITY),
        None => None,
    };
    if jitter.is_some_and(|jitter| !(0.0..=1.0).contains(&jitter)) {
        backoff.bad("jitter", "this must be a number from 0 to 1", found);
    }
    let jitter_permille = jitter.map(|jitter| (jitter.clamp(0.0, 1.0) * 1_000.0).round() as u16);
    backoff.end(found);
    Backoff { kind, initial_ms, max_ms, jitter_permille }
}

fn read_codes(codes: &[Value], pointer: &str, found: &mut Findings) -> RetryOn {
    let mut listed = Vec::new();
    let mut is_any = false;
    for (at, code) in codes.iter().enumerate() {
        match code {
            Value::Text(code) if &**code == "*" => is_any = true,
            Value::Text(code) if check_len(code, CODE_BYTES_MAX).is_ok() => {
                listed.push(Arc::clone(code));
            }
            _ => found.add(
                &format!("{pointer}/{at}"),
                FaultCode::BadValue,
                format!("this must be a code of 1 to {CODE_BYTES_MAX} bytes, or `*` for all"),
            ),
        }
    }
    if is_any { RetryOn::Any } else { RetryOn::Codes(listed) }
}

fn workflow(fields: &mut Fields<'_>, found: &mut Findings) -> Option<WorkflowNode> {
    let choices = [("propagate", OnFailure::Propagate), ("catch", OnFailure::Catch)];
    let on_failure = fields.choice("on_failure", &choices, found).unwrap_or_default();
    fields.need("workflow", found)?;
    let mut workflow = fields.object("workflow", found)?;
    workflow.need("name", found);
    let name = workflow.name("name", check_name, found);
    let version = workflow.count("version", (1, i64::from(u32::MAX)), found);
    workflow.end(found);
    Some(WorkflowNode { workflow: name?, version, on_failure })
}

fn signal(fields: &mut Fields<'_>, place: usize, found: &mut Findings) -> Option<SignalNode> {
    fields.need("signal", found)?;
    let mut signal = fields.object("signal", found)?;
    signal.need("name", found);
    let name = signal.name("name", check_name, found);
    let site = Site::of_node(SiteKind::InputMapping, place);
    let correlation = signal.expression("correlation", site, found);
    let schema = signal.schema("schema", found);
    signal.end(found);
    Some(SignalNode { signal: name?, correlation, schema })
}

fn timer(fields: &mut Fields<'_>, place: usize, found: &mut Findings) -> Option<TimerNode> {
    fields.need("timer", found)?;
    let mut timer = fields.object("timer", found)?;
    let delay_ms = timer.count("delay_ms", (0, SPAN_MS_MAX), found);
    let site = Site::of_node(SiteKind::InputMapping, place);
    let until = timer.expression("until", site, found);
    if timer.is_there("delay_ms") == timer.is_there("until") {
        let message = "a timer has either `delay_ms` or `until`";
        found.add(&timer.pointer, FaultCode::FieldConflict, message);
    }
    timer.end(found);
    delay_ms.map(TimerNode::Delay).or(until.map(TimerNode::Until))
}
