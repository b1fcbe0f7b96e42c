//! The workflows of these tests, and a worker for them.

use serde_json::{Value, json};

use crate::server::Server;

/// One task, and a condition after it.
pub(crate) fn line() -> Value {
    json!({
        "workflow": "line",
        "input_schema": {
            "type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}},
        },
        "initial_node": "double",
        "nodes": [
            {
                "ref": "double", "kind": "task", "task": {"queue": "q"},
                "input_mapping": {"n": "input.n"},
                "output_mapping": {"context.doubled": "result.n"},
            },
            {"ref": "large", "kind": "pass"},
            {"ref": "small", "kind": "pass"},
        ],
        "transitions": [
            {"ref": "is_large", "from": "double", "to": "large", "priority": 1,
             "condition": "context.doubled > 10"},
            {"ref": "is_small", "from": "double", "to": "small", "priority": 2},
        ],
        "output_mapping": {"doubled": "context.doubled"},
    })
}

/// One task for each part, and a join of all.
pub(crate) const FAN: &str = "
workflow: fan
context_schema: {type: object, properties: {all: {type: array, default: []}}}
initial_node: begin
nodes:
  - {ref: begin, kind: pass}
  - {ref: part, kind: task, task: {queue: q}, input_mapping: {item: piece}}
  - {ref: end, kind: pass}
transitions:
  - {ref: fan, from: begin, to: part, foreach: {collection: input.parts, item_var: piece}}
  - {ref: joined, from: part, to: end, synchronization: {joins_transition: fan,
     merge: [{source: branch.output, target: context.all, strategy: collect}]}}
output_mapping: {all: context.all}
";

/// A person is asked.
pub(crate) const ASK: &str = "
workflow: ask
initial_node: approve
nodes:
  - ref: approve
    kind: signal
    signal: {name: approval, correlation: input.id, schema: {type: object, required: [yes]}}
    output_mapping: {context.yes: result.yes}
output_mapping: {yes: context.yes}
";

/// Registers one that is written in YAML.
pub(crate) fn put_yaml(server: &Server, name: &str, text: &str) -> (u16, Value) {
    server.put_as(&format!("/v1/workflows/{name}"), "application/yaml", text)
}

/// Begins a run, and gives its id.
pub(crate) fn start(server: &Server, workflow: &str, input: &Value) -> u64 {
    let (status, run) =
        server.post(&format!("/v1/workflows/{workflow}/runs"), &json!({"input": input}));
    assert_eq!(status, 201, "{run}");
    run["id"].as_u64().unwrap()
}

/// Takes up to so many tasks, and waits for the first.
pub(crate) fn lease(server: &Server, max: u64) -> Vec<Value> {
    let body = json!({"worker": "anna", "queues": ["q"], "max": max, "wait_ms": 20_000});
    let (status, leases) = server.post("/v1/leases", &body);
    assert_eq!(status, 200, "{leases}");
    leases["leases"].as_array().unwrap().clone()
}

/// Reports a result.
pub(crate) fn complete(server: &Server, lease: &Value, output: &Value) -> (u16, Value) {
    let path = format!("/v1/tasks/{}/complete", lease["task_id"]);
    server.post(&path, &json!({"lease_id": lease["lease_id"], "output": output}))
}
