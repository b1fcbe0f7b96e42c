//! Cases that go wrong elsewhere, one test for each row of the design's table that the other files
//! do not play.

use tenure_core::command::Command;
use tenure_record::state::TaskState;

use super::world::{Checks, World};

#[test]
fn a_branch_of_two_nodes_counts_once() {
    let mut world = World::new();
    world.register(
        "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: q}}
  - {ref: c, kind: task, task: {queue: q}}
  - {ref: d, kind: pass}
transitions:
  - {ref: t, from: a, to: b, spawn_count: 3}
  - {from: b, to: c}
  - {from: c, to: d, synchronization: {joins_transition: t, merge: [{target: context.r, strategy: append}]}}
output_mapping: {r: context.r}
",
    );
    let run = world.start("w", "{}");
    while world.run_state(run) == "RUNNING" {
        let leases = world.lease(5);
        for lease in leases {
            let output = lease.task_id.to_string();
            world.complete(lease, &output).unwrap();
        }
    }
    assert_eq!(world.output(run), r#"{"r":[4,5,6]}"#);
    world.verify();
}

#[test]
fn nested_groups_of_one_name_do_not_leak_into_each_other() {
    let mut world = World::new();
    world.register(
        "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: pass}
  - {ref: c, kind: task, task: {queue: q}, input_mapping: {at: branch.index}}
  - {ref: d, kind: pass, output_mapping: {branch.output: context.inner}}
  - {ref: e, kind: pass}
transitions:
  - {ref: outer, from: a, to: b, spawn_count: 2}
  - {ref: inner, from: b, to: c, spawn_count: 3}
  - {from: c, to: d, synchronization: {joins_transition: inner, merge: [{target: context.inner, strategy: append}]}}
  - {from: d, to: e, synchronization: {joins_transition: outer, merge: [{target: context.all, strategy: collect}]}}
output_mapping: {all: context.all, branches: outputs.c._branches, inner: context.inner}
",
    );
    let run = world.start("w", "{}");
    let leases = world.lease(6);
    // The inner join of one branch fires alone; what is in the other does not matter.
    for nth in [5, 3, 4] {
        world.complete(leases[nth], &nth.to_string()).unwrap();
    }
    let view = world.state.run(run).unwrap();
    let states: Vec<_> = view.groups().map(|group| group.state().as_str()).collect();
    assert_eq!(states, ["open", "open", "fired"]);
    let path = view.tokens(tenure_record::id::TokenId(1)).map(|token| token.path()).max().unwrap();
    assert_eq!(path, "root/outer#1[1]/inner#3[2]");
    for nth in [1, 0, 2] {
        world.complete(leases[nth], &nth.to_string()).unwrap();
    }
    assert_eq!(world.output(run), r#"{"all":[[0,1,2],[3,4,5]],"branches":[0,1,2,3,4,5]}"#);
    world.verify();
}

#[test]
fn a_loop_around_a_fan_out_and_its_join_opens_the_next_instance() {
    let mut world = World::new();
    world.register(
        "workflow: w
context_schema: {type: object, properties: {r: {type: array, default: []}}}
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: q}}
  - {ref: c, kind: pass}
  - {ref: d, kind: pass}
transitions:
  - {ref: t, from: a, to: b, spawn_count: 2}
  - {from: b, to: c, synchronization: {joins_transition: t, merge: [{target: context.r, strategy: append, mode: extend}]}}
  - {from: c, to: a, loop: {max_iterations: 1}}
  - {from: c, to: d, priority: 1}
output_mapping: {r: context.r}
",
    );
    let run = world.start("w", "{}");
    for round in 0..2 {
        let leases = world.lease(5);
        assert_eq!(leases.len(), 2, "round {round}");
        for lease in leases.into_iter().rev() {
            let output = lease.task_id.to_string();
            world.complete(lease, &output).unwrap();
        }
    }
    assert_eq!(world.output(run), r#"{"r":[1,2,3,4]}"#);
    let names: Vec<_> = world.state.run(run).unwrap().groups().map(|group| group.id.0).collect();
    assert_eq!(names, [1, 2]);
    world.verify();
}

#[test]
fn an_empty_list_runs_the_target_once_with_nothing() {
    let mut world = World::new();
    let yaml = |on_empty: &str| {
        format!(
        "workflow: w{on_empty}
initial_node: a
nodes:
  - {{ref: a, kind: pass}}
  - {{ref: b, kind: pass}}
  - {{ref: c, kind: pass, output_mapping: {{context.ran: 'true'}}}}
transitions:
  - {{ref: t, from: a, to: b, foreach: {{collection: input.list, item_var: x, on_empty: {on_empty}}}}}
  - {{from: b, to: c, synchronization: {{joins_transition: t, merge: [{{target: context.r, strategy: append}}]}}}}
output_mapping: {{r: context.r, ran: context.ran}}
"
    )
    };
    world.register(&yaml("join"));
    world.register(&yaml("skip"));
    let run = world.start("wjoin", r#"{"list":[]}"#);
    assert_eq!(world.output(run), r#"{"r":[],"ran":true}"#);
    let run = world.start("wskip", r#"{"list":[]}"#);
    assert_eq!(world.output(run), "{}");
    world.verify();
}

#[test]
fn a_child_that_waits_is_canceled_when_its_parents_join_fires() {
    let mut world = World::new();
    world.register(
        "workflow: child\ninitial_node: a\nnodes: [{ref: a, kind: task, task: {queue: q}}]\n",
    );
    world.register(
        "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: workflow, workflow: {name: child}}
  - {ref: c, kind: pass}
transitions:
  - {ref: t, from: a, to: b, spawn_count: 2}
  - {from: b, to: c, synchronization: {joins_transition: t, wait_for: any}}
",
    );
    let run = world.start("w", "{}");
    let leases = world.lease(2);
    world.complete(leases[1], "1").unwrap();
    assert_eq!(world.run_state(run), "COMPLETED");
    assert_eq!(world.task_state(leases[0].task_id), TaskState::Canceled);
    let states: Vec<_> = world.state.facts().runs().map(|run| run.state()).collect();
    assert_eq!(states, ["COMPLETED", "CANCELED", "COMPLETED"]);
    world.verify();
}

#[test]
fn late_siblings_may_run_on_and_hold_only_the_run() {
    let mut world = World::new();
    world.register(
        "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: q}}
  - {ref: c, kind: pass, output_mapping: {context.done: 'true'}}
transitions:
  - {ref: t, from: a, to: b, spawn_count: 3}
  - {from: b, to: c, synchronization: {joins_transition: t, wait_for: any, on_late: abandon}}
output_mapping: {done: context.done}
",
    );
    let run = world.start("w", "{}");
    let leases = world.lease(3);
    world.complete(leases[2], "1").unwrap();
    assert_eq!(
        (world.run_state(run), world.context(run)),
        ("RUNNING", r#"{"done":true}"#.to_owned())
    );
    world.fail(leases[0], "BROKEN").unwrap();
    assert_eq!(world.run_state(run), "RUNNING");
    world.complete(leases[1], "1").unwrap();
    assert_eq!(world.run_state(run), "COMPLETED");
    world.verify();
}

#[test]
fn a_join_whose_time_is_over_proceeds_or_goes_elsewhere() {
    let mut world = World::new();
    let yaml = |name: &str, rest: &str| {
        format!(
        "workflow: {name}
initial_node: a
nodes:
  - {{ref: a, kind: pass}}
  - {{ref: b, kind: task, task: {{queue: q}}}}
  - {{ref: c, kind: pass, output_mapping: {{context.met: 'true'}}}}
  - {{ref: d, kind: pass, output_mapping: {{context.code: error.code}}}}
transitions:
  - {{ref: t, from: a, to: b, spawn_count: 3}}
  - {{from: b, to: c, synchronization: {{joins_transition: t, timeout_ms: 100, {rest}, else_to: d, merge: [{{target: context.r, strategy: append, include_failed: true}}]}}}}
output_mapping: {{met: context.met, code: context.code, r: context.r}}
"
    )
    };
    world.register(&yaml(
        "proceed",
        "timeout_from: first_arrival, on_timeout: proceed_with_available",
    ));
    world.register(&yaml("elsewhere", "timeout_from: fan_out"));
    let run = world.start("proceed", "{}");
    let leases = world.lease(3);
    world.wait(1_000);
    assert_eq!(world.run_state(run), "RUNNING", "no branch has arrived, so no time runs");
    world.complete(leases[1], "1").unwrap();
    world.wait(100);
    let ended = |index: u32| {
        format!(
            r#"{{"error":{{"code":"BRANCH_TIMED_OUT","message":"the join's time was over before it came"}},"index":{index},"key":null,"ok":false}}"#
        )
    };
    let arrived = r#"{"index":1,"key":null,"ok":true,"value":1}"#;
    let expected = format!(r#"{{"met":true,"r":[{},{arrived},{}]}}"#, ended(0), ended(2));
    assert_eq!(world.output(run), expected);

    let run = world.start("elsewhere", "{}");
    world.lease(3);
    world.wait(100);
    assert_eq!(world.output(run), r#"{"code":"JOIN_TIMEOUT"}"#);
    world.verify();
}

#[test]
fn branches_begin_as_others_settle() {
    let mut world = World::new();
    world.register(
        "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: q}, input_mapping: {x: x}}
  - {ref: c, kind: pass}
transitions:
  - {ref: t, from: a, to: b, foreach: {collection: input.list, item_var: x, max_concurrency: 2}}
  - {from: b, to: c, synchronization: {joins_transition: t, merge: [{target: context.r, strategy: append}]}}
output_mapping: {r: context.r}
",
    );
    let run = world.start("w", r#"{"list":[10,11,12,13,14]}"#);
    let mut most = 0;
    while world.run_state(run) == "RUNNING" {
        let leases = world.lease(5);
        most = most.max(leases.len());
        for lease in leases.into_iter().rev() {
            let payload =
                String::from_utf8(world.state.task(lease.task_id).unwrap().payload().to_vec());
            let value = payload.unwrap().replace(r#"{"x":"#, "").replace('}', "");
            world.complete(lease, &value).unwrap();
        }
    }
    assert_eq!((most, world.output(run)), (2, r#"{"r":[10,11,12,13,14]}"#.to_owned()));
    world.verify();
}

#[test]
fn a_wide_fan_out_begins_in_chunks_and_a_cancel_ends_it_in_parts() {
    let mut world = World::with(Checks::Touched);
    let yaml = "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: q}, input_mapping: {x: x}}
  - {ref: c, kind: pass}
transitions:
  - {ref: t, from: a, to: b, foreach: {collection: input.list, item_var: x}}
  - {from: b, to: c, synchronization: {joins_transition: t, merge: [{target: context.r, strategy: append}]}}
output_mapping: {r: context.r}
";
    world.register(yaml);
    let items: Vec<String> = (0..2_500).map(|n| n.to_string()).collect();
    let input = format!("{{\"list\":[{}]}}", items.join(","));
    let run = world.start("w", &input);
    let mut continued = 0;
    while world.state.has_dispatch() {
        world.play(&Command::ContinueDispatch).unwrap();
        continued += 1;
    }
    assert_eq!(continued, 2);
    let canceled = world.start("w", &input);
    let before = world.records;
    world.play(&Command::CancelRun(canceled)).unwrap();
    assert_eq!((world.records, world.run_state(canceled)), (before + 1, "RUNNING"));
    // Two thousand items are in one record, and then the group and the run are left.
    assert_eq!((world.end_all(), world.run_state(canceled)), (2, "CANCELED"));
    assert!(!world.state.has_dispatch());
    while world.run_state(run) == "RUNNING" {
        for lease in world.lease(1_000) {
            let output = (lease.task_id.0 - 1).to_string();
            world.complete(lease, &output).unwrap();
        }
    }
    assert_eq!(world.output(run), format!("{{\"r\":[{}]}}", items.join(",")));
    world.verify();
}

#[test]
fn finished_runs_are_purged_with_their_tasks() {
    let mut world = World::new();
    world.register(
        "workflow: w\ninitial_node: a\nnodes: [{ref: a, kind: task, task: {queue: q}}]\n",
    );
    world.start("w", "{}");
    let lease = world.lease(1)[0];
    let purge = Command::PurgeTasks(tenure_core::command::Retention {
        age_ms: 1_000,
        tasks_max: 100,
        ..Default::default()
    });
    world.complete(lease, "1").unwrap();
    world.play(&purge).unwrap();
    assert!(world.state.task(lease.task_id).is_some());
    world.now = world.now.plus_ms(1_000);
    world.play(&purge).unwrap();
    assert!(world.state.task(lease.task_id).is_none());
    assert_eq!(world.state.facts().run_count(), 0);
    world.verify();
}
