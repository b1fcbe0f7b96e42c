//! Every error code that a run can end with, each brought about by the smallest workflow for it.

use tenure_code::Code;
use tenure_core::Rejection;
use tenure_core::command::{CancelTask, Command};
use tenure_core::limits::{CAUSES_MAX, CHILD_DEPTH_MAX};
use tenure_record::id::TokenId;

use super::world::{Checks, World};

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
        ("DUPLICATE_KEY", two(PASS, PASS, &foreach(", key: x")), r#"{"list":[1,2,1.0]}"#),
        ("DUPLICATE_KEY", two(PASS, PASS, &foreach(", key: x")), r#"{"list":[0,-0.0]}"#),
        ("DUPLICATE_KEY", two(PASS, PASS, &foreach(", key: x")), r#"{"list":[[1.0],[1]]}"#),
        ("EMPTY_FOREACH", two(PASS, PASS, &foreach(", on_empty: fail")), r#"{"list":[]}"#),
        ("SPAWN_INVALID", two(PASS, PASS, ", spawn_count: {from: input.n}"), r#"{"n":-1}"#),
        ("SPAWN_INVALID", two(PASS, PASS, ", spawn_count: {from: input.n}"), r#"{"n":"x"}"#),
        ("SPAWN_INVALID", two(PASS, PASS, ", spawn_count: {from: input.n}"), r#"{"n":2.5}"#),
        ("SPAWN_INVALID", two(PASS, PASS, ", spawn_count: {from: input.n}"), r#"{"n":1e300}"#),
        ("LIMIT_SPAWN", two(PASS, PASS, ", spawn_count: {from: input.n}"), r#"{"n":1e10}"#),
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
    let endless = looping.replace("1000", "1000000").replace("50", "1000000");
    let mut world = World::with(Checks::Touched);
    world.register(&endless);
    let run = world.start("w", "{}");
    assert_eq!(world.codes(run), ["CASCADE_LIMIT"]);
    assert!(
        world.error(run).contains("more work than one record may take"),
        "{}",
        world.error(run)
    );
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
fn a_whole_double_is_a_number_of_branches_and_a_key_as_its_integer() {
    let count = two(PASS, PASS, ", spawn_count: {from: input.n}");
    let keys = two(PASS, PASS, ", foreach: {collection: input.n, item_var: x, key: x}");
    for (yaml, input) in [(count, r#"{"n":3.0}"#), (keys, r#"{"n":[1.0,1.5,"2"]}"#)] {
        let mut world = World::new();
        world.register(&yaml);
        let run = world.start("w", input);
        assert_eq!(world.run_state(run), "COMPLETED", "{yaml}");
        let tokens: Vec<_> = world.state.run(run).unwrap().tokens(TokenId(1)).collect();
        assert_eq!(tokens.len(), 1 + 3, "{yaml}");
        world.verify();
    }
}

#[test]
fn only_an_inner_join_hands_what_inner_branches_gave_to_the_outer_branch() {
    let nested = |joins: &str| {
        format!(
            "workflow: w
initial_node: begin
nodes:
  - {{ref: begin, kind: pass}}
  - {{ref: split, kind: pass}}
  - {{ref: work, kind: pass, output_mapping: {{branch.output: part}}}}
  - {{ref: sum, kind: pass, output_mapping: {{branch.output: \"has(context.parts) ? context.parts : 'none'\"}}}}
  - {{ref: end, kind: pass}}
transitions:
  - {{ref: outer, from: begin, to: split, foreach: {{collection: input.orders, item_var: order}}}}
  - {{ref: inner, from: split, to: work, foreach: {{collection: order, item_var: part}}}}
{joins}
output_mapping: {{all: context.all}}
"
        )
    };
    let to_outer = "synchronization: {joins_transition: outer, merge: [{target: context.all, strategy: collect}]}";
    let through = format!(
        "  - {{from: work, to: sum, synchronization: {{joins_transition: inner, merge: [{{target: context.parts, strategy: collect}}]}}}}
  - {{from: sum, to: end, {to_outer}}}"
    );
    let past = format!(
        "  - {{from: work, to: end, {to_outer}}}
  - {{from: begin, to: sum, condition: \"false\"}}"
    );
    for (joins, output) in [(through, r#"{"all":[[1,2],[3]]}"#), (past, r#"{"all":[{},{}]}"#)] {
        let mut world = World::new();
        world.register(&nested(&joins));
        let run = world.start("w", r#"{"orders":[[1,2],[3]]}"#);
        assert_eq!((world.run_state(run), world.output(run)), ("COMPLETED", output.to_owned()));
        world.verify();
    }
}

#[test]
fn an_output_that_a_run_would_change_fails_its_node_with_the_place() {
    let yaml = two("kind: task, task: {queue: q}, retry: {max_failures: 1}", PASS, "");
    for (output, says) in [
        (r#"{"a":[1,123456789012345678901234567890]}"#, "the output at /a/1: the integer"),
        (r#"{"a":1,"b":{"c":1,"c":2}}"#, "the output at /b/c: the key is there twice"),
        (r#"[1e400]"#, "the output at /0: the number 1e400 is too large"),
        (r#"{"a":0.1e-400}"#, "the output at /a: the number 0.1e-400 is too close to 0"),
        (r#"{"a":nul}"#, "the output is not JSON at /a: "),
    ] {
        let mut world = World::new();
        world.register(&yaml);
        let run = world.start("w", "{}");
        let lease = world.lease(1)[0];
        world.complete(lease, output).unwrap();
        assert_eq!(world.codes(run), ["OUTPUT_INVALID"], "{output}");
        let view = world.state.run(run).unwrap();
        let message = view.error().unwrap().as_map().unwrap().get("message").unwrap().clone();
        assert!(message.as_text().unwrap().starts_with(says), "{message:?}");
        world.verify();
    }
}

#[test]
fn a_workflow_that_starts_itself_ends_with_a_bounded_chain_of_causes() {
    let mut world = World::new();
    let nests = "workflow: w
initial_node: a
nodes: [{ref: a, kind: workflow, workflow: {name: w}}]
";
    world.register(nests);
    let run = world.start("w", "{}");
    assert_eq!(world.run_state(run), "FAILED");
    let error = world.state.run(run).unwrap().error().unwrap().clone();
    let error = error.as_map().unwrap();
    let causes = error.get("causes").unwrap().as_list().unwrap().as_slice();
    assert_eq!(causes.len(), CAUSES_MAX);
    let omitted = error.get("causes_omitted").unwrap().as_int().unwrap();
    assert_eq!(omitted as usize + CAUSES_MAX, CHILD_DEPTH_MAX as usize);
    assert!(causes.iter().all(|cause| cause.as_map().unwrap().get("causes_omitted").is_none()));
    world.verify();
}

#[test]
fn a_task_that_ends_badly_says_how() {
    let yaml = two(
        "kind: task, task: {queue: q}, output_schema: {type: integer}, retry: {max_failures: 1}",
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
    world.play(&Command::ReleaseTask(lease.into())).unwrap();
    assert_eq!(world.codes(run), ["TASK_CANCELED"]);

    let run = world.start("w", "{}");
    while world.run_state(run) == "RUNNING" {
        world.lease(1);
        world.now = world.now.plus_ms(60_000);
        world.play(&Command::FireTimers).unwrap();
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
    assert_eq!((refused.code(), world.records), (Code::InvalidRequest, records));
    assert!(world.play(&start(r#"{"n":1}"#)).is_ok());
}
