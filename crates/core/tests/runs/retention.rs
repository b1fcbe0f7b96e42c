//! Runs that are over are forgotten by themselves, with their tasks.

use tenure_core::command::{Archived, Command, Retention};
use tenure_core::id::{Lsn, RunId, TaskId};
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

#[test]
fn a_run_goes_with_its_tasks_once_it_is_archived_and_they_never_go_alone() {
    let mut world = World::new();
    world.register(WORKFLOW);
    let run = world.start("w", "{}");
    let archived = |tasks: &[u64], runs: &[RunId], as_of| {
        let tasks = tasks.iter().copied().map(TaskId).collect();
        Command::PurgeArchived(Archived { tasks, runs: runs.to_vec(), as_of })
    };
    let all = Lsn(u64::MAX);
    world.play(&archived(&[1], &[run], all)).unwrap();
    assert!(world.state.run(run).is_some(), "it is live");
    let lease = world.lease(1)[0];
    let before = world.state.last_lsn();
    world.complete(lease, "1").unwrap();
    world.play(&archived(&[], &[run], before)).unwrap();
    assert!(world.state.run(run).is_some(), "its end is not in the archive");
    world.play(&archived(&[1], &[], all)).unwrap();
    assert!(world.state.task(TaskId(1)).is_some(), "a task of a run goes with it");
    let end = world.state.last_lsn();
    world.play(&archived(&[1], &[run, run], end)).unwrap();
    assert!(world.state.run(run).is_none() && world.state.task(TaskId(1)).is_none());
    world.verify();
    world.verify_snapshots();
}
