//! A definition that a later release no longer compiles: no run of it begins, its runs stand still and
//! can be canceled, and all else goes on.

use tenure_code::Code;
use tenure_core::Rejection;
use tenure_core::command::{Command, ParkRun, Reply, StartRun};
use tenure_record::id::RunId;
use tenure_record::terms::Tags;
use tenure_record::time::Clock;
use tenure_value::Value;

use super::world::World;

const OLD: &str = "workflow: old
timeout_ms: 60000
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: q}}
  - {ref: c, kind: signal, signal: {name: s}}
  - {ref: d, kind: timer, timer: {delay_ms: 1000}}
transitions:
  - {from: a, to: b, spawn_count: 3, condition: '1 == 1'}
  - {from: a, to: c}
  - {from: a, to: d}
";

fn start(world: &mut World, workflow: &str, version: Option<u32>) -> Result<Reply, Rejection> {
    world.play(&Command::StartRun(StartRun {
        workflow: workflow.into(),
        version,
        input: Value::empty_map(),
        key: None,
        tags: Tags::default(),
    }))
}

/// A run of a workflow whose condition does not parse any more.
fn broken() -> (World, RunId) {
    let mut world = World::new().ending_at_most(4);
    world.register(OLD);
    let run = world.start("old", "{}");
    (world, run)
}

fn break_condition(world: &mut World) {
    world.break_source(0, |source| source.replace("1 == 1", "1 == == 1"));
}

#[test]
fn a_workflow_that_no_longer_compiles_cannot_start_and_says_why() {
    let (mut world, _) = broken();
    break_condition(&mut world);
    let refused = start(&mut world, "old", None).unwrap_err();
    assert_eq!(refused.code(), Code::Conflict);
    let said = refused.to_string();
    assert!(
        said.contains("version 1 of workflow") && said.contains("no longer compiles"),
        "{said}"
    );
    assert!(said.contains("/transitions/0/condition"), "{said}");
    let shown = world.state.workflow("old", None).unwrap();
    assert_eq!((shown.faults().len(), shown.transitions()), (1, 3));
    assert_eq!(shown.definition().source.to_json().matches("== ==").count(), 1, "it is shown");
    world.register(OLD);
    assert!(start(&mut world, "old", None).is_ok(), "a new version that compiles can");
    assert!(start(&mut world, "old", Some(1)).is_err());
    world.verify();
    world.verify_snapshots();
}

#[test]
fn runs_of_a_workflow_that_no_longer_compiles_stand_still_and_can_be_canceled() {
    let (mut world, run) = broken();
    let held = world.lease(1)[0];
    let canceled = world.start("old", "{}");
    break_condition(&mut world);
    assert_eq!(world.state.parked_runs(), 2);
    world.play(&Command::CancelRun(canceled)).unwrap();
    world.end_all();
    assert_eq!((world.run_state(canceled), world.state.parked_runs()), ("CANCELED", 1));
    let records = world.records;
    assert!(world.lease(10).is_empty(), "its tasks are not granted");
    for refused in [world.complete(held, "1"), world.fail(held, "X"), world.signal(run, "s", "1")] {
        assert!(matches!(refused, Err(Rejection::RunParked { .. })), "{refused:?}");
    }
    world.now = world.now.plus_ms(70_000);
    world.play(&Command::FireTimers).unwrap();
    assert_eq!(world.records, records, "no time passes for it");
    assert!([Clock::Log, Clock::Wall].into_iter().all(|it| world.state.next_moment(it).is_none()));
    // What a server does first when it starts with such runs.
    let found = world.state.broken_runs();
    assert_eq!(found.len(), 1);
    for (run_id, reason) in found {
        assert!(reason.contains("no longer compiles"), "{reason}");
        world.play(&Command::ParkRun(ParkRun { run_id, reason })).unwrap();
    }
    assert!(world.state.broken_runs().is_empty());
    assert!(world.state.run(run).unwrap().parked().is_some());
    let refused = world.play(&Command::UnparkRun(run)).unwrap_err();
    assert!(matches!(refused, Rejection::WorkflowBroken { .. }), "{refused}");
    world.verify();
    world.play(&Command::CancelRun(run)).unwrap();
    world.end_all();
    assert_eq!((world.run_state(run), world.state.parked_runs()), ("CANCELED", 0));
    world.verify();
    world.verify_snapshots();
}

#[test]
fn runs_go_on_where_they_stood_once_the_definition_compiles_again() {
    let (mut world, run) = broken();
    break_condition(&mut world);
    let (run_id, reason) = world.state.broken_runs().pop().unwrap();
    world.play(&Command::ParkRun(ParkRun { run_id, reason })).unwrap();
    world.break_source(0, |source| source.replace("1 == == 1", "1 == 1"));
    assert!(world.lease(10).is_empty(), "an operator lets it go on");
    world.play(&Command::UnparkRun(run)).unwrap();
    for lease in world.lease(10) {
        world.complete(lease, "1").unwrap();
    }
    world.signal(run, "s", "1").unwrap();
    world.wait(1_000);
    assert_eq!(world.run_state(run), "COMPLETED");
    world.verify();
}

#[test]
fn a_source_that_compiles_to_other_nodes_is_broken_too() {
    let (mut world, _) = broken();
    world.break_source(0, |source| source.replace(r#""ref":"d""#, r#""ref":"e""#));
    world.break_source(0, |source| source.replace(r#""to":"d""#, r#""to":"e""#));
    let refused = start(&mut world, "old", None).unwrap_err().to_string();
    assert!(refused.contains("than when it was registered"), "{refused}");
}

#[test]
fn a_child_that_ends_fails_the_run_that_cannot_go_on() {
    let mut world = World::new();
    world.register(
        "workflow: parent
initial_node: a
nodes: [{ref: a, kind: workflow, workflow: {name: child}}, {ref: b, kind: pass}]
transitions: [{from: a, to: b, condition: '1 == 1'}]
",
    );
    world.register(
        "workflow: child
initial_node: a
nodes: [{ref: a, kind: task, task: {queue: q}}]
",
    );
    let parent = world.start("parent", "{}");
    break_condition(&mut world);
    let lease = world.lease(1)[0];
    world.complete(lease, "1").unwrap();
    assert_eq!(world.run_state(parent), "FAILED");
    assert_eq!(world.codes(parent), ["WORKFLOW_BROKEN"]);
    world.verify();
}

#[test]
fn a_node_that_calls_a_workflow_that_no_longer_compiles_fails() {
    let mut world = World::new();
    world.register(
        "workflow: child
initial_node: a
nodes: [{ref: a, kind: pass}, {ref: b, kind: pass}]
transitions: [{from: a, to: b, condition: '1 == 1'}]
",
    );
    world.register(
        "workflow: parent
initial_node: a
nodes: [{ref: a, kind: workflow, workflow: {name: child}}]
",
    );
    break_condition(&mut world);
    let parent = world.start("parent", "{}");
    assert_eq!(
        (world.run_state(parent), world.codes(parent)),
        ("FAILED", vec!["WORKFLOW_BROKEN".into()])
    );
    world.verify();
}
