//! Runs that are over are forgotten by themselves, with their tasks.

use tenure_core::command::{Command, Retention};
use tenure_core::time::Timestamp;

use super::world::World;

const WORKFLOW: &str = "workflow: w
initial_node: a
nodes: [{ref: a, kind: task, task: {queue: q}}]
";

#[test]
fn a_run_that_is_over_has_a_moment_at_which_it_is_forgotten() {
    let mut world = World::new();
    world.register(WORKFLOW);
    let retention = Retention { age_ms: 1_000, ..Retention::default() };
    let run = world.start("w", "{}");
    assert_eq!(world.state.next_purge(&retention), None, "it is live");
    let lease = world.lease(1)[0];
    world.complete(lease, "1").unwrap();
    assert_eq!(world.state.next_purge(&retention), Some(world.now.plus_ms(1_000)));
    world.now = world.now.plus_ms(1_000);
    world.play(&Command::PurgeTasks(retention)).unwrap();
    assert!(world.state.run(run).is_none());
    assert_eq!(world.state.next_purge(&retention), None);
    world.verify();
    world.verify_snapshots();
}

#[test]
fn tasks_of_runs_are_not_counted_among_those_that_are_too_many() {
    let mut world = World::new();
    world.register(WORKFLOW);
    world.start("w", "{}");
    world.start("w", "{}");
    for lease in world.lease(2) {
        world.complete(lease, "1").unwrap();
    }
    let kept = Retention { tasks_max: 2, ..Retention::default() };
    assert!(world.state.next_purge(&kept).unwrap() > world.now, "two runs may stay");
    let fewer = Retention { tasks_max: 1, ..Retention::default() };
    assert_eq!(world.state.next_purge(&fewer), Some(Timestamp::ZERO));
    world.play(&Command::PurgeTasks(fewer)).unwrap();
    assert_eq!(world.state.facts().run_count(), 1);
    assert!(world.state.next_purge(&fewer).unwrap() > world.now);
}
