//! A run that stands still: nothing of it is granted, fired, signaled or taken until an operator lets
//! it go on, and a cancel ends it.

use tenure_code::Code;
use tenure_core::Rejection;
use tenure_core::command::{Command, ParkRun};
use tenure_record::id::RunId;
use tenure_record::time::Clock;

use super::world::World;

fn parked() -> (World, RunId) {
    let mut world = World::new().ending_at_most(4);
    world.register(
        "workflow: w
timeout_ms: 60000
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: q}, timeout_ms: 50000}
  - {ref: c, kind: signal, signal: {name: s}}
  - {ref: d, kind: timer, timer: {delay_ms: 1000}}
transitions:
  - {from: a, to: b, spawn_count: 3}
  - {from: a, to: c}
  - {from: a, to: d}
",
    );
    let run = world.start("w", "{}");
    (world, run)
}

fn park(world: &mut World, run_id: RunId) {
    let reason = "what comes next does not fit one record".to_owned();
    world.play(&Command::ParkRun(ParkRun { run_id, reason })).unwrap();
}

#[test]
fn a_parked_run_stands_still_and_goes_on_where_it_stood() {
    let (mut world, run) = parked();
    let held = world.lease(1)[0];
    park(&mut world, run);
    let records = world.records;
    assert!(world.lease(10).is_empty(), "its tasks are granted to nobody");
    for refused in [world.complete(held, "1"), world.fail(held, "X"), world.signal(run, "s", "1")] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, Rejection::RunParked { .. }), "{refused}");
        assert_eq!(refused.code(), Code::RunParked);
    }
    park(&mut world, run);
    world.now = world.now.plus_ms(70_000);
    world.play(&Command::FireTimers).unwrap();
    assert_eq!(world.records, records, "no time passes for it");
    assert!([Clock::Log, Clock::Wall].into_iter().all(|it| world.state.next_moment(it).is_none()));
    world.crash();
    world.play(&Command::UnparkRun(run)).unwrap();
    world.fire_all();
    world.end_all();
    let error = world.error(run);
    assert_eq!(world.run_state(run), "FAILED", "{error}");
    assert!(error.contains("NODE_TIMEOUT"), "its nodes' deadlines passed before its own: {error}");
    world.verify();
    world.verify_snapshots();
}

#[test]
fn what_was_held_is_granted_in_its_old_place() {
    let (mut world, run) = parked();
    park(&mut world, run);
    let other = world.start("w", "{}");
    world.play(&Command::UnparkRun(run)).unwrap();
    let order: Vec<_> = world.lease(10).iter().map(|lease| lease.task_id.0).collect();
    assert_eq!(order, [1, 2, 3, 4, 5, 6]);
    world.signal(run, "s", "1").unwrap();
    world.play(&Command::CancelRun(other)).unwrap();
    world.end_all();
    world.verify();
}

#[test]
fn a_parked_run_can_be_canceled() {
    let (mut world, run) = parked();
    world.lease(2);
    park(&mut world, run);
    world.play(&Command::CancelRun(run)).unwrap();
    world.crash();
    world.end_all();
    assert_eq!(world.run_state(run), "CANCELED");
    assert!(world.play(&Command::UnparkRun(run)).is_err(), "it is over");
    world.verify();
    world.verify_snapshots();
}
