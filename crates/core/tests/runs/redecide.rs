//! Deciding again: what the record says was asked, on the state before it. (That it gives the same
//! for every record of every other test here is checked as they go, in `world.rs`.)

use tenure_code::Code;
use tenure_core::redecide::{Redecided, Undecidable, redecide};
use tenure_core::{State, apply};
use tenure_record::codec;
use tenure_record::event::{Event, Record, Report, RunState, Step, TaskCompleted};
use tenure_record::id::{Lsn, RunId};
use tenure_record::time::{Clock, Timestamp};
use tenure_value::Value;

use super::world::World;

const ORDER: &str = "
workflow: order
initial_node: pack
nodes:
  - {ref: pack, kind: task, task: {queue: q}, output_mapping: {context.weight: result}}
  - {ref: heavy, kind: pass}
  - {ref: light, kind: timer, timer: {delay_ms: 5000}}
  - {ref: ask, kind: signal, signal: {name: ok}}
transitions:
  - {from: pack, to: heavy, priority: 1, condition: context.weight > 10}
  - {from: pack, to: light, priority: 2}
  - {from: heavy, to: ask}
";

/// The state after so many records.
fn after(world: &World, records: usize) -> State {
    let mut state = State::replaying(7);
    for bytes in &world.log[..records] {
        apply(&mut state, &codec::decode(bytes).unwrap());
    }
    state
}

/// Decides the last record again, after somebody has changed it.
fn again(
    world: &World,
    run: RunId,
    change: impl FnOnce(&mut Record<'_>),
) -> Result<Redecided, Undecidable> {
    let mut record = codec::decode(world.log.last().unwrap()).unwrap();
    change(&mut record);
    redecide(after(world, world.log.len() - 1), &record, run)
}

fn packed(weight: &str) -> (World, RunId) {
    let mut world = World::new();
    world.register(ORDER);
    let run = world.start("order", "{}");
    let lease = world.lease(1)[0];
    world.complete(lease, weight).unwrap();
    (world, run)
}

fn name(decision: &Option<Value>) -> &str {
    let map = decision.as_ref().and_then(Value::as_map);
    map.and_then(|map| map.get("decision")?.as_text()).unwrap_or("-")
}

#[test]
fn a_record_that_decides_nothing_is_refused() {
    let mut world = World::new();
    world.register(ORDER);
    let run = world.start("order", "{}");
    world.lease(1);
    let refused = again(&world, run, |_| {}).unwrap_err();
    assert_eq!(refused, Undecidable::NoDecision { event: "LeaseGranted" });
    let (world, _) = packed("20");
    let refused = again(&world, RunId(99), |_| {}).unwrap_err();
    assert_eq!(refused, Undecidable::OtherRun);
}

#[test]
fn the_same_rules_decide_the_same() {
    let (mut world, run) = packed("20");
    let found = again(&world, run, |_| {}).unwrap();
    assert!(found.is_same() && !found.pairs.is_empty(), "{found:#?}");
    assert_eq!(found.cause.to_json(), r#"{"event":"TaskCompleted","lease_id":1,"task_id":1}"#);
    world.signal(run, "ok", "{}").unwrap();
    let found = again(&world, run, |_| {}).unwrap();
    assert!(found.is_same(), "{found:#?}");
    assert_eq!(found.lsn, Lsn(5));
}

/// The completion in a record that has nothing else.
fn completion<'r, 'a>(record: &'r mut Record<'a>) -> &'r mut TaskCompleted<'a> {
    match &mut record.event {
        Event::ReportsApplied(event) => match event.reports.as_mut_slice() {
            [Report::TaskCompleted(item)] => item,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_decision_that_differs_is_marked_and_the_others_stay_beside_each_other() {
    let (world, run) = packed("20");
    let found = again(&world, run, |record| {
        let item = completion(record);
        for decision in &mut item.cascade {
            if let Step::CreateTokens(step) = &mut decision.step {
                step.tokens[0].node += 1;
                break;
            }
        }
    });
    let found = found.unwrap();
    assert!(!found.is_same());
    let marked: Vec<_> = found.pairs.iter().filter(|pair| !pair.is_same).collect();
    assert_eq!(marked.len(), 1, "{found:#?}");
    assert_eq!(
        (name(&marked[0].recorded), name(&marked[0].decided)),
        ("CreateTokens", "CreateTokens")
    );
    assert_ne!(marked[0].recorded, marked[0].decided);
}

#[test]
fn a_decision_that_is_missing_or_too_many_stands_alone() {
    let (world, run) = packed("20");
    let mut taken = None;
    let found = again(&world, run, |record| {
        let item = completion(record);
        taken = Some(item.cascade.remove(1).step.name());
    });
    let found = found.unwrap();
    let alone: Vec<_> = found.pairs.iter().filter(|pair| pair.recorded.is_none()).collect();
    assert_eq!(alone.len(), 1, "{found:#?}");
    assert_eq!(Some(name(&alone[0].decided)), taken);
    let found = again(&world, run, |record| {
        let item = completion(record);
        let mut more = item.cascade.last().unwrap().clone();
        more.step = Step::FinishRun(tenure_record::event::FinishRun {
            state: RunState::Failed,
            ..Default::default()
        });
        item.cascade.push(more);
    });
    let found = found.unwrap();
    let last = found.pairs.last().unwrap();
    assert_eq!(
        (name(&last.recorded), name(&last.decided), last.is_same),
        ("FinishRun", "-", false)
    );
}

#[test]
fn a_difference_in_what_is_not_told_is_told_in_full() {
    let (world, run) = packed("20");
    let found = again(&world, run, |record| {
        let item = completion(record);
        item.cascade[0].previous = Lsn(1);
    });
    let found = found.unwrap();
    assert!(!found.is_same());
    assert!(found.pairs[0].recorded.as_ref().unwrap().as_text().is_some(), "{found:#?}");
}

#[test]
fn what_would_be_refused_today_says_why() {
    let (mut world, run) = packed("20");
    world.signal(run, "ok", "{}").unwrap();
    let found = again(&world, run, |record| {
        let Event::SignalReceived(item) = &mut record.event else { panic!("{record:?}") };
        item.name = tenure_record::name::Text::Borrowed("another");
    });
    let found = found.unwrap();
    assert_eq!(found.refused.as_ref().unwrap().code(), Code::NotFound);
    assert!(!found.is_same() && found.pairs.iter().all(|pair| pair.decided.is_none()));
}

const MOMENTS: &str = "
workflow: moments
initial_node: begin
nodes:
  - {ref: begin, kind: task, task: {queue: q}}
  - {ref: past, kind: timer, timer: {until: input.past}}
  - {ref: delay, kind: timer, timer: {delay_ms: 5000}}
  - {ref: soon, kind: timer, timer: {until: input.soon}}
  - {ref: later, kind: timer, timer: {until: input.later}}
  - {ref: end, kind: pass}
transitions:
  - {from: begin, to: past}
  - {from: past, to: delay}
  - {from: delay, to: soon}
  - {from: soon, to: later}
  - {from: later, to: end}
";

/// Every record is decided again as it is played, in `World::play`.
#[test]
fn a_wall_clock_ahead_of_log_time_or_behind_it_is_read_from_the_record() {
    const YEAR_MS: i64 = 365 * 86_400_000;
    for wall_ahead_ms in [-30 * YEAR_MS, -3_600_000, -1, 0, 1, 86_400_000, 30 * YEAR_MS] {
        let mut world = World::new();
        world.wall_ahead_ms = wall_ahead_ms;
        world.register(MOMENTS);
        let wall = world.wall().0;
        let (past, soon, later) = (wall - 1, wall + 60_000, wall + 3_600_000);
        let input = format!(r#"{{"past": {past}, "soon": {soon}, "later": {later}}}"#);
        let run = world.start("moments", &input);
        let lease = world.lease(1)[0];
        world.complete(lease, "1").unwrap();
        let what = format!("the wall clock is {wall_ahead_ms} ms ahead");
        let next = |world: &World, clock| world.state.next_moment(clock);
        assert_eq!(next(&world, Clock::Log), Some(world.now.plus_ms(5_000)), "{what}");
        world.wait(4_999);
        assert_eq!(next(&world, Clock::Wall), None, "{what}");
        world.wait(1);
        assert_eq!(
            (next(&world, Clock::Log), next(&world, Clock::Wall)),
            (None, Some(Timestamp(soon)))
        );
        world.wait(54_999);
        assert_eq!(next(&world, Clock::Wall), Some(Timestamp(soon)), "{what}");
        world.wait(1);
        assert_eq!(next(&world, Clock::Wall), Some(Timestamp(later)), "{what}");
        world.wait(3_540_000 - 1);
        assert_eq!(world.run_state(run), "WAITING", "{what}");
        world.wait(1);
        assert_eq!(world.run_state(run), "COMPLETED", "{what}");
        world.verify();
    }
}

#[test]
fn a_delay_is_not_stretched_by_a_wall_clock_that_is_set_back() {
    let (mut world, run) = packed("1");
    world.wall_ahead_ms = -86_400_000;
    world.wait(4_999);
    assert_eq!(world.run_state(run), "WAITING");
    world.wait(1);
    assert_eq!(world.run_state(run), "COMPLETED");
}
