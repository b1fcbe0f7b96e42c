//! Every error code that a run can end with, each brought about by the smallest workflow for it.

use tenure_core::Rejection;
use tenure_core::command::{CancelTask, Command};

use super::world::World;

/// One node and what follows it; `q` is the queue of all tasks.
fn two(first: &str, second: &str, transition: &str) -> String {
    format!(
        "workflow: w
initial_node: a
nodes:
  - {{ref: a, {first}}}
  - {{ref: b, {second}}}
transitions:
  - {{ref: t, from: a, to: b{transition}}}
"
    )
}

const PASS: &str = "kind: pass";
const TASK: &str = "kind: task, task: {queue: q}";

/// Starts a run that fails by itself, and gives its codes.
fn codes_of(yaml: &str, input: &str) -> Vec<String> {
    let mut world = World::new();
    world.register(yaml);
    let run = world.start("w", input);
    assert_eq!(world.run_state(run), "FAILED", "{yaml}");
    world.verify();
    world.codes(run)
}

#[test]
fn routing_and_spawning_say_why() {
    let foreach = |rest: &str| format!(", foreach: {{collection: input.list, item_var: x{rest}}}");
    let cases = [
        ("CONDITION_ERROR", two(PASS, PASS, ", condition: input.absent"), "{}"),
        ("CONDITION_ERROR", two(PASS, PASS, ", condition: input.n"), r#"{"n":1}"#),
        ("NO_MATCH", two(PASS, PASS, ", condition: \"false\""), "{}"),
        ("FOREACH_NOT_LIST", two(PASS, PASS, &foreach("")), r#"{"list":{}}"#),
        ("FOREACH_MISSING", two(PASS, PASS, &foreach("")), r#"{"list":null}"#),
        ("FOREACH_MISSING", two(PASS, PASS, &foreach("")), "{}"),
        ("DUPLICATE_KEY", two(PASS, PASS, &foreach(", key: x")), r#"{"list":[1,2,1]}"#),
        ("EMPTY_FOREACH", two(PASS, PASS, &foreach(", on_empty: fail")), r#"{"list":[]}"#),
        ("SPAWN_INVALID", two(PASS, PASS, ", spawn_count: {from: input.n}"), r#"{"n":-1}"#),
        ("SPAWN_INVALID", two(PASS, PASS, ", spawn_count: {from: input.n}"), r#"{"n":"x"}"#),
        (
            "MAPPING_ERROR",
            two("kind: pass, output_mapping: {context.x: result.absent}", PASS, ""),
            "{}",
        ),
        (
            "MAPPING_ERROR",
            two("kind: task, task: {queue: q}, input_mapping: {x: input.absent}", PASS, ""),
            "{}",
        ),
        ("WORKFLOW_NOT_FOUND", two("kind: workflow, workflow: {name: gone}", PASS, ""), "{}"),
    ];
    for (code, yaml, input) in cases {
        assert_eq!(codes_of(&yaml, input)[0], code, "{yaml}");
    }
}

#[test]
fn limits_say_which() {
    let limited = |limits: &str, rest: &str| format!("{rest}limits: {{{limits}}}\n");
    let wide = two(PASS, PASS, ", spawn_count: 5");
    let cases = [
        (
            "LIMIT_SPAWN",
            limited("max_spawn: 4", &two(PASS, PASS, ", spawn_count: {from: input.n}")),
        ),
        ("LIMIT_TOKENS", limited("max_tokens: 4", &wide)),
    ];
    for (code, yaml) in cases {
        assert_eq!(codes_of(&yaml, r#"{"n":5}"#)[0], code, "{yaml}");
    }
    let deep = "workflow: w
initial_node: a
limits: {max_depth: 1}
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: pass}
  - {ref: c, kind: pass}
transitions:
  - {from: a, to: b, spawn_count: 2}
  - {from: b, to: c, spawn_count: 2}
";
    assert_eq!(codes_of(deep, "{}")[0], "LIMIT_DEPTH");
    let looping = "workflow: w
initial_node: a
limits: {max_cascade: 50}
nodes:
  - {ref: a, kind: pass}
transitions:
  - {from: a, to: a, loop: {max_iterations: 1000}}
";
    assert_eq!(codes_of(looping, "{}")[0], "CASCADE_LIMIT");
    let limit = looping.replace("1000", "3");
    assert_eq!(codes_of(&limit, "{}")[0], "LOOP_LIMIT");
    let large = "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass, output_mapping: {context.x: input.x, context.y: input.x, context.z: input.x, context.w: input.x, context.v: input.x}}
";
    let text = "x".repeat(1_000_000);
    assert_eq!(codes_of(large, &format!("{{\"x\":\"{text}\"}}"))[0], "LIMIT_CONTEXT");
}

#[test]
fn a_join_that_fails_says_why() {
    let join = |rest: &str| {
        format!(
            "workflow: w
context_schema: {{type: object, properties: {{r: {{type: array}}}}}}
initial_node: a
nodes:
  - {{ref: a, kind: pass}}
  - {{ref: b, kind: pass, output_mapping: {{branch.output: \"{{'v': branch.index}}\"}}}}
  - {{ref: c, kind: pass}}
transitions:
  - {{ref: t, from: a, to: b, spawn_count: {{from: input.n}}}}
  - {{from: b, to: c, synchronization: {{joins_transition: t{rest}}}}}
"
        )
    };
    let cases = [
        ("JOIN_UNREACHABLE", join(", wait_for: {m_of_n: 4}")),
        (
            "MERGE_TYPE",
            join(", merge: [{source: branch.index, target: context.r, strategy: merge}]"),
        ),
        ("MERGE_INVALID", join(", merge: [{target: context.r, strategy: keyed}]")),
        (
            "MERGE_CONFLICT",
            join(", merge: [{target: context.o, strategy: deep_merge, on_conflict: error}]"),
        ),
        (
            "MAPPING_ERROR",
            join(
                ", merge: [{source: branch.output.gone, target: context.r, strategy: append, missing: error}]",
            ),
        ),
    ];
    for (code, yaml) in cases {
        assert_eq!(codes_of(&yaml, r#"{"n":3}"#)[0], code, "{yaml}");
    }
}

#[test]
fn a_token_outside_of_a_group_is_no_sibling() {
    let yaml = "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: pass}
  - {ref: c, kind: pass}
transitions:
  - {ref: t, from: a, to: b, spawn_count: 2, condition: input.fans}
  - {from: a, to: b, priority: 1}
  - {from: b, to: c, synchronization: {joins_transition: t}}
";
    assert_eq!(codes_of(yaml, r#"{"fans":false}"#), ["NOT_A_SIBLING"]);
}

#[test]
fn a_task_that_ends_badly_says_how() {
    let yaml = two(
        "kind: task, task: {queue: q}, output_schema: {type: integer}, retry: {max_attempts: 1}",
        PASS,
        "",
    );
    let mut world = World::new();
    world.register(&yaml);
    let run = world.start("w", "{}");
    let lease = world.lease(1)[0];
    world.complete(lease, "\"x\"").unwrap();
    assert_eq!(world.codes(run), ["OUTPUT_INVALID"]);

    let run = world.start("w", "{}");
    let lease = world.lease(1)[0];
    world.complete(lease, "no json").unwrap();
    assert_eq!(world.codes(run), ["OUTPUT_INVALID"]);

    let run = world.start("w", "{}");
    let lease = world.lease(1)[0];
    world
        .play(&Command::FailTask(tenure_core::command::FailTask {
            code: None,
            ..super::world::fail(lease, "X")
        }))
        .unwrap();
    assert_eq!(world.codes(run), ["TASK_FAILED"]);

    let run = world.start("w", "{}");
    let lease = world.lease(1)[0];
    let cancel = CancelTask { task_id: lease.task_id, grace_ms: None };
    world.play(&Command::CancelTask(cancel)).unwrap();
    world.play(&Command::ReleaseTask(lease)).unwrap();
    assert_eq!(world.codes(run), ["TASK_CANCELED"]);

    let run = world.start("w", "{}");
    while world.run_state(run) == "RUNNING" {
        world.lease(1);
        world.now = world.now.plus_ms(60_000);
        world.play(&Command::ExpireLeases).unwrap();
    }
    assert_eq!(world.codes(run), ["TASK_DEAD"]);
    world.verify();
}

#[test]
fn time_says_whose_it_was() {
    let cases = [
        ("NODE_TIMEOUT", two("kind: task, task: {queue: q}, timeout_ms: 5", PASS, ""), "FAILED"),
        (
            "SIGNAL_TIMEOUT",
            two("kind: signal, signal: {name: s}, timeout_ms: 5", PASS, ""),
            "FAILED",
        ),
        ("RUN_TIMEOUT", format!("timeout_ms: 5\n{}", two(TASK, PASS, "")), "TIMED_OUT"),
        (
            "RUN_TIMEOUT",
            format!("timeout_ms: 5\non_timeout: cancel\n{}", two(TASK, PASS, "")),
            "CANCELED",
        ),
    ];
    for (code, yaml, state) in cases {
        let mut world = World::new();
        world.register(&yaml);
        let run = world.start("w", "{}");
        world.lease(1);
        world.wait(5);
        assert_eq!((world.run_state(run), world.codes(run)), (state, vec![code.to_owned()]));
        world.verify();
    }
}

#[test]
fn what_cannot_begin_leaves_no_record() {
    let mut world = World::new();
    world.register(&format!(
        "input_schema: {{type: object, required: [n]}}\n{}",
        two(PASS, PASS, "")
    ));
    let records = world.records;
    let start = |input: &str| {
        Command::StartRun(tenure_core::command::StartRun {
            workflow: "w".into(),
            version: None,
            input: super::world::json(input),
            key: None,
            tags: Default::default(),
        })
    };
    let refused = world.play(&start("{}")).unwrap_err();
    assert!(matches!(refused, Rejection::InputInvalid { .. }), "{refused}");
    assert_eq!((refused.code(), world.records), ("invalid_request", records));
    assert!(world.play(&start(r#"{"n":1}"#)).is_ok());
}
