//! Timers fire in the order of their moments, whether a sweep comes at each of them, late, or after a
//! restart.

use tenure_core::command::{Command, Reply, Rest, Swept};
use tenure_core::state::TimerRef;
use tenure_record::codec;
use tenure_record::event::Event;
use tenure_record::id::RunId;
use tenure_record::time::Now;

use super::world::World;

/// Its timer fires at 1 s; its signal is out of time at 2 s, its task's node at 3 s, and the run at
/// 5 s. Each of them but the last is taken up by a transition, which says so in the context.
const ALL_KINDS: &str = "
workflow: w
timeout_ms: 5000
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: rest, kind: timer, timer: {delay_ms: 1000}}
  - {ref: rested, kind: pass, output_mapping: {context.seen: 'context.seen + \"timer \"'}}
  - {ref: ask, kind: signal, signal: {name: s}, timeout_ms: 2000}
  - {ref: asked, kind: pass, output_mapping: {context.seen: 'context.seen + \"signal \"'}}
  - {ref: work, kind: task, task: {queue: q}, timeout_ms: 3000}
  - {ref: worked, kind: pass, output_mapping: {context.seen: 'context.seen + \"node \"'}}
  - {ref: never, kind: signal, signal: {name: never}}
context_schema: {type: object, properties: {seen: {type: string, default: ''}}}
transitions:
  - {from: a, to: rest}
  - {from: a, to: ask}
  - {from: a, to: work}
  - {from: rest, to: rested}
  - {from: ask, to: asked, outcome: error}
  - {from: work, to: worked, outcome: error}
  - {from: worked, to: never}
";

/// What sweeps at these moments lead to.
fn fired_after(waits: &[u64], restart: bool) -> (World, RunId) {
    let mut world = World::new();
    world.register(ALL_KINDS);
    let run = world.start("w", "{}");
    for (wait, nth) in waits.iter().zip(1..) {
        world.now = world.now.plus_ms(*wait);
        if restart && nth == waits.len() {
            world.crash();
        }
        world.fire_all();
    }
    world.end_all();
    world.verify();
    world.verify_snapshots();
    (world, run)
}

#[test]
fn a_late_sweep_and_a_restart_lead_to_what_punctual_sweeps_lead_to() {
    let (punctual, run) = fired_after(&[1_000; 5], false);
    assert_eq!(punctual.run_state(run), "TIMED_OUT");
    for (waits, restart) in [
        (&[10_000][..], false),
        (&[10_000], true),
        (&[2_500, 10_000], true),
        (&[999, 1, 4_000], false),
        (&[4_999, 1], true),
    ] {
        let (late, run) = fired_after(waits, restart);
        let facts = |world: &World| (world.run_state(run), world.context(run), world.error(run));
        assert_eq!(facts(&late), facts(&punctual), "{waits:?}, restart: {restart}");
    }
}

#[test]
fn a_record_ends_where_the_next_moment_belongs_before_its_last_list() {
    let (world, _) = fired_after(&[10_000], false);
    let fired = world.log.iter().filter_map(|bytes| match codec::decode(bytes).unwrap().event {
        Event::TimerFired(event) => {
            Some([event.runs.len(), event.joins.len(), event.nodes.len(), event.timers.len()])
        }
        _ => None,
    });
    // The timer first, then both nodes, then the run.
    assert_eq!(fired.collect::<Vec<_>>(), [[0, 0, 0, 1], [0, 0, 2, 0], [1, 0, 0, 0]]);
}

#[test]
fn a_timer_that_comes_before_its_runs_deadline_wins_however_late_the_sweep() {
    for late_ms in [0, 500, 60_000] {
        let mut world = World::new();
        world.register(
            "workflow: w
timeout_ms: 1500
initial_node: rest
nodes: [{ref: rest, kind: timer, timer: {delay_ms: 1000}}]
",
        );
        let run = world.start("w", "{}");
        world.now = world.now.plus_ms(1_000 + late_ms);
        let first = world.state.first_due(Now::both(world.now));
        assert!(matches!(first, Some(TimerRef::Timer(..))), "{first:?}");
        let reply = world.play(&Command::FireTimers).unwrap();
        assert_eq!(reply, Reply::Swept(Swept { items: 1, rest: Rest::Nothing }));
        assert_eq!(world.run_state(run), "COMPLETED", "{late_ms} ms late");
    }
}

#[test]
fn a_lease_that_used_up_its_tasks_budget_before_the_runs_deadline_fails_the_run() {
    let mut world = World::new();
    world.register(
        "workflow: w
timeout_ms: 60000
initial_node: a
nodes: [{ref: a, kind: task, task: {queue: q}, retry: {max_expiries: 1}}]
",
    );
    let run = world.start("w", "{}");
    world.lease(1);
    world.wait(120_000);
    assert_eq!(world.run_state(run), "FAILED");
    assert!(world.error(run).contains("TASK_DEAD"), "{}", world.error(run));
}
