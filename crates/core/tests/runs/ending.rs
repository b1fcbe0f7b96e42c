//! What ends over several records: its outcome holds from the first one on, nothing in it moves any
//! more, and each part of it ends once.

use tenure_core::Rejection;
use tenure_core::command::{CancelTask, Command, Reply};
use tenure_record::event;
use tenure_record::id::RunId;
use tenure_record::state::TaskState;

use super::world::World;

/// A child that waits for a signal, and one that has a task.
const CHILDREN: [&str; 2] = [
    "workflow: waits
initial_node: a
nodes: [{ref: a, kind: signal, signal: {name: s}}]
",
    "workflow: works
initial_node: a
nodes: [{ref: a, kind: task, task: {queue: q}}]
",
];

/// A parent of so many children, and of so many tasks of its own.
fn family(world: &mut World, child: &str, children: u32) -> RunId {
    CHILDREN.iter().for_each(|yaml| world.register(yaml));
    world.register(&format!(
        "workflow: parent
timeout_ms: 60000
initial_node: a
nodes:
  - {{ref: a, kind: pass}}
  - {{ref: b, kind: workflow, workflow: {{name: {child}}}}}
  - {{ref: c, kind: pass}}
transitions:
  - {{ref: t, from: a, to: b, spawn_count: {children}}}
  - {{from: b, to: c, synchronization: {{joins_transition: t}}}}
"
    ));
    world.start("parent", "{}")
}

fn states(world: &World) -> Vec<&'static str> {
    world.state.facts().runs().map(|run| run.state()).collect()
}

#[test]
fn what_fits_one_record_ends_in_one() {
    let mut world = World::new().ending_at_most(20);
    let run = family(&mut world, "works", 3);
    let before = world.records;
    world.play(&Command::CancelRun(run)).unwrap();
    assert_eq!((world.records, world.state.has_endings()), (before + 1, false));
    assert_eq!(states(&world), ["CANCELED"; 4]);
    world.verify();
}

#[test]
fn a_tree_of_runs_ends_in_parts_and_its_top_last() {
    let mut world = World::new().ending_at_most(8);
    let run = family(&mut world, "works", 10);
    let held = world.lease(4);
    assert!(matches!(
        world.play(&Command::CancelRun(run)).unwrap(),
        Reply::Run(_, event::RunState::Running)
    ));
    assert_eq!(states(&world)[1..], ["RUNNING"; 10], "the decision is taken; nothing has ended");
    // Whatever reaches it now finds it ended.
    assert!(world.lease(10).is_empty(), "what is ending is granted to nobody");
    let lost = world.complete(held[0], "1").unwrap();
    assert!(matches!(lost, Reply::LeaseLost(Rejection::LeaseLost { .. })), "{lost:?}");
    let records = world.records;
    let again = world.complete(held[0], "1").unwrap_err();
    assert!(matches!(again, Rejection::LeaseLost { .. }), "a stale report is on record once");
    let beat = world.play(&Command::Heartbeat(held[1].into())).unwrap_err();
    assert!(matches!(beat, Rejection::LeaseLost { .. }), "{beat:?}");
    let cancel = CancelTask { task_id: held[2].task_id, grace_ms: None };
    world.play(&Command::CancelTask(cancel)).unwrap();
    assert!(matches!(world.play(&Command::CancelRun(run)), Ok(Reply::Run(..))));
    let signal = world.signal(run, "s", "1").unwrap_err();
    assert!(matches!(signal, Rejection::RunEnding { .. }), "{signal:?}");
    world.now = world.now.plus_ms(70_000);
    world.play(&Command::FireTimers).unwrap();
    world.play(&Command::FireTimers).unwrap();
    assert_eq!(world.records, records, "nothing of that is a record");
    world.crash();
    let mut parts = 0;
    while world.state.has_endings() {
        assert_eq!(world.run_state(run), "RUNNING", "it is over with the last part");
        let items_max = world.state.end_items_max();
        world.play(&Command::ContinueEnding { items_max }).unwrap();
        parts += 1;
    }
    assert!(parts > 4, "{parts} parts");
    assert_eq!(states(&world), ["CANCELED"; 11]);
    assert!(held.iter().all(|it| world.task_state(it.task_id) == TaskState::Canceled));
    world.verify();
    world.verify_snapshots();
}

#[test]
fn a_parent_hears_of_its_child_with_the_last_part() {
    let mut world = World::new().ending_at_most(6);
    let child = family(&mut world, "waits", 9);
    world.play(&Command::CancelRun(child)).unwrap();
    world.end_all();
    world.register(
        "workflow: grandparent
initial_node: a
nodes: [{ref: a, kind: workflow, workflow: {name: parent}}]
",
    );
    let run = world.start("grandparent", "{}");
    let parent = RunId(run.0 + 1);
    world.play(&Command::CancelRun(parent)).unwrap();
    assert_eq!((world.run_state(run), world.run_state(parent)), ("WAITING", "RUNNING"));
    world.end_all();
    assert_eq!((world.run_state(run), world.run_state(parent)), ("FAILED", "CANCELED"));
    assert_eq!(world.codes(run)[0], "RUN_CANCELED");
    world.verify();
}

#[test]
fn a_failure_in_a_wide_tree_fails_the_run_and_its_children_are_canceled() {
    let mut world = World::new().ending_at_most(5);
    let run = family(&mut world, "works", 7);
    let lease = world.lease(1)[0];
    world.fail(lease, "BROKEN").unwrap();
    world.end_all();
    assert_eq!(world.run_state(run), "FAILED");
    let counts = |state: &str| states(&world).iter().filter(|it| **it == state).count();
    assert_eq!((counts("FAILED"), counts("CANCELED")), (2, 6), "the child that failed and the run");
    world.verify();
    world.verify_snapshots();
}

/// Ten branches of a task each, then a task that follows them.
fn race(world: &mut World, synchronization: &str) -> RunId {
    world.register(&format!(
        "workflow: w
context_schema: {{type: object, properties: {{r: {{type: array, default: []}}}}}}
initial_node: a
nodes:
  - {{ref: a, kind: pass}}
  - {{ref: b, kind: task, task: {{queue: q}}, retry: {{max_failures: 1}}}}
  - {{ref: c, kind: task, task: {{queue: q}}}}
transitions:
  - {{ref: t, from: a, to: b, spawn_count: 10}}
  - {{from: b, to: c, synchronization: {{joins_transition: t, {synchronization}}}}}
output_mapping: {{r: context.r}}
"
    ));
    world.start("w", "{}")
}

#[test]
fn a_join_fires_at_once_and_what_came_late_ends_in_parts() {
    let mut world = World::new().ending_at_most(4);
    let run = race(&mut world, "wait_for: any");
    let held = world.lease(10);
    world.complete(held[3], "3").unwrap();
    assert!(world.state.has_endings());
    let next = world.lease(10);
    assert_eq!(next.len(), 1, "the run goes on where its branches meet");
    let lost = world.complete(held[4], "4").unwrap();
    assert!(matches!(lost, Reply::LeaseLost(_)), "{lost:?}");
    // The run is not over before all that came late is.
    world.complete(next[0], "1").unwrap();
    assert_eq!(world.run_state(run), "RUNNING");
    world.crash();
    assert!(world.end_all() > 2);
    assert_eq!(world.run_state(run), "COMPLETED");
    world.verify();
    world.verify_snapshots();
}

/// One branch of the outer group fails and ends in parts. Before it has, another one arrives, and the
/// rest of the group ends in parts too.
#[test]
fn a_group_ends_in_parts_around_a_branch_that_does() {
    for items_max in 2..12 {
        let mut world = World::new().ending_at_most(items_max);
        world.register(
            "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: pass}
  - {ref: c, kind: task, task: {queue: q}, retry: {max_failures: 1}}
  - {ref: d, kind: pass}
  - {ref: e, kind: task, task: {queue: q}}
transitions:
  - {ref: t, from: a, to: b, spawn_count: 3}
  - {ref: u, from: b, to: c, spawn_count: 4}
  - {from: c, to: d, synchronization: {joins_transition: u, fail_fast: true}}
  - {from: d, to: e, synchronization: {joins_transition: t, wait_for: any}}
",
        );
        let run = world.start("w", "{}");
        let held = world.lease(12);
        world.fail(held[0], "BROKEN").unwrap();
        for lease in &held[8..] {
            world.complete(*lease, "1").unwrap();
        }
        let next = world.lease(12);
        assert_eq!(next.len(), 1, "the run goes on where its branches meet");
        world.crash();
        while world.state.has_endings() {
            world.play(&Command::ContinueEnding { items_max }).unwrap();
            world.verify_snapshots();
        }
        world.complete(next[0], "1").unwrap();
        assert_eq!(world.run_state(run), "COMPLETED");
        world.verify();
    }
}

#[test]
fn branches_that_time_out_together_are_merged_as_timed_out_before_they_end() {
    let merged = |items_max: usize| {
        let mut world = World::new().ending_at_most(items_max);
        let run = race(
            &mut world,
            "timeout_ms: 1000, timeout_from: fan_out, on_timeout: proceed_with_available,
             merge: [{target: context.r, strategy: append, include_failed: true}]",
        );
        let held = world.lease(10);
        world.complete(held[1], "1").unwrap();
        world.wait(1_000);
        let next = world.lease(10);
        world.complete(next[0], "1").unwrap();
        world.end_all();
        assert_eq!(world.run_state(run), "COMPLETED");
        world.verify();
        world.output(run)
    };
    let (whole, parts) = (merged(2_000), merged(4));
    assert_eq!(whole, parts, "how many records it takes changes nothing");
    assert_eq!(whole.matches("\"ok\":false").count(), 9, "{whole}");
}

#[test]
fn a_branch_that_fails_ends_in_parts_and_the_others_go_on() {
    let mut world = World::new().ending_at_most(4);
    world.register(
        "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: pass}
  - {ref: c, kind: task, task: {queue: q}, retry: {max_failures: 1}}
  - {ref: d, kind: pass}
  - {ref: e, kind: pass}
transitions:
  - {ref: outer, from: a, to: b, spawn_count: 2}
  - {ref: inner, from: b, to: c, spawn_count: 6}
  - {from: c, to: d, synchronization: {joins_transition: inner}}
  - {from: d, to: e, synchronization: {joins_transition: outer, wait_for: any}}
",
    );
    let run = world.start("w", "{}");
    let held = world.lease(12);
    // One of the first branch fails, and takes the five others of it along.
    world.fail(held[0], "BROKEN").unwrap();
    assert!(world.state.has_endings());
    let lost = world.complete(held[1], "1").unwrap();
    assert!(matches!(lost, Reply::LeaseLost(_)), "{lost:?}");
    let replies = held[2..].iter().map(|lease| world.complete(*lease, "1").unwrap());
    let lost = replies.filter(|reply| matches!(reply, Reply::LeaseLost(_))).count();
    assert_eq!((lost, world.run_state(run)), (4, "RUNNING"));
    world.crash();
    world.end_all();
    assert_eq!(world.run_state(run), "COMPLETED");
    world.verify();
    world.verify_snapshots();
}

#[test]
fn a_run_that_ends_takes_along_what_is_ending_in_it() {
    let mut world = World::new().ending_at_most(4);
    let run = race(&mut world, "wait_for: any");
    let held = world.lease(10);
    world.complete(held[0], "0").unwrap();
    assert!(world.state.has_endings());
    world.play(&Command::CancelRun(run)).unwrap();
    world.end_all();
    assert_eq!(world.run_state(run), "CANCELED");
    world.verify();
    world.verify_snapshots();
}

#[test]
fn a_workflow_that_calls_itself_stops_at_the_runs_that_its_tree_may_have() {
    let mut world = World::new().ending_at_most(10);
    world.register(
        "workflow: again
limits: {max_runs: 20}
initial_node: a
nodes: [{ref: a, kind: pass}, {ref: b, kind: workflow, workflow: {name: again}}]
transitions: [{from: a, to: b, spawn_count: 2}]
",
    );
    let run = world.start("again", "{}");
    world.end_all();
    assert_eq!(world.state.facts().run_count(), 20);
    assert_eq!(world.run_state(run), "FAILED");
    assert_eq!(world.codes(run).last().map(String::as_str), Some("LIMIT_RUNS"));
    world.verify();
}

#[test]
fn a_run_is_over_only_when_the_groups_of_its_ending_scopes_have_closed() {
    let mut world = World::new().ending_at_most(2);
    world.register(
        "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: pass}
  - {ref: c, kind: task, task: {queue: q}}
  - {ref: d, kind: pass}
  - {ref: e, kind: pass}
  - {ref: f, kind: pass}
transitions:
  - {ref: outer, from: a, to: b, spawn_count: 1}
  - {ref: inner, from: b, to: c, spawn_count: 1}
  - {from: c, to: d, synchronization: {joins_transition: inner}}
  - {from: d, to: e, synchronization: {joins_transition: outer, timeout_ms: 60, timeout_from: fan_out, else_to: f}}
",
    );
    let run = world.start("w", "{}");
    world.now = world.now.plus_ms(60);
    world.play(&Command::FireTimers).unwrap();
    assert!(world.state.has_endings(), "the task, its token and its group are more than two");
    // The first part ends the last token, and leaves the inner group to the second.
    world.play(&Command::ContinueEnding { items_max: 2 }).unwrap();
    assert!(world.state.has_endings());
    world.end_all();
    assert_eq!(world.run_state(run), "COMPLETED");
    world.verify();
    world.verify_snapshots();
}
