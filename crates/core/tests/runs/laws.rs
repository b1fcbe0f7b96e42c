//! The laws of runs that a log shows by itself: each is broken by one change, and named.

use tenure_audit::{Audit, Law};
use tenure_core::command::Command;
use tenure_record::codec;
use tenure_record::event::{
    CloseScope, Decision, DropBranches, Event, GroupState, Record, Report, RunState, Step,
    WorkflowDeleted,
};
use tenure_record::id::{GroupId, Lsn, RunId, TokenId};
use tenure_record::name::Text;

use super::world::World;

/// A run of two branches: registered, started, leased, both completed.
fn story() -> World {
    let mut world = World::new();
    world.register(
        "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: q}}
  - {ref: c, kind: pass}
transitions:
  - {ref: t, from: a, to: b, spawn_count: 2}
  - {from: b, to: c, synchronization: {joins_transition: t}}
",
    );
    world.start("w", "{}");
    let leases = world.lease(2);
    leases.into_iter().for_each(|lease| drop(world.complete(lease, "1").unwrap()));
    world
}

/// The law that the story breaks after a change, and at which record.
fn broken(change: impl FnOnce(&mut Vec<Record<'_>>)) -> Option<(Law, usize)> {
    let world = story();
    let mut records: Vec<_> = world.log.iter().map(|bytes| codec::decode(bytes).unwrap()).collect();
    change(&mut records);
    let mut audit = Audit::new();
    let judged = records.iter().zip(1..).map(|(record, nth)| (audit.record(record), nth));
    judged.filter_map(|(judged, nth)| Some((judged.err()?.law, nth))).next()
}

fn started<'r, 'a>(log: &'r mut [Record<'a>]) -> &'r mut Vec<Decision<'a>> {
    let Event::RunStarted(event) = &mut log[1].event else { panic!("a run starts here") };
    &mut event.cascade
}

fn completed<'r, 'a>(log: &'r mut [Record<'a>], nth: usize) -> &'r mut Vec<Decision<'a>> {
    let Event::ReportsApplied(event) = &mut log[nth].event else { panic!("a task completes here") };
    let Report::TaskCompleted(item) = &mut event.reports[0] else {
        panic!("a task completes here")
    };
    &mut item.cascade
}

fn nth_update(cascade: &mut [Decision<'_>], change: impl FnOnce(&mut TokenId)) {
    let update = cascade.iter_mut().find_map(|decision| match &mut decision.step {
        Step::UpdateTokenStates(step) => Some(&mut step.tokens[0].token),
        _ => None,
    });
    change(update.unwrap());
}

#[test]
fn a_sound_story_passes() {
    assert_eq!(broken(|_| {}), None);
    story().verify();
}

#[test]
fn what_begins_out_of_order_is_found() {
    let found = broken(|log| {
        let Event::RunStarted(event) = &mut log[1].event else { panic!() };
        event.run.run_id = RunId(2);
    });
    assert_eq!(found, Some((Law::RunsGrowInOrder, 2)));
    let found = broken(|log| {
        let Event::WorkflowRegistered(event) = &mut log[0].event else { panic!() };
        event.version = 2;
    });
    assert_eq!(found, Some((Law::RunsGrowInOrder, 1)));
    let found = broken(|log| {
        let Step::CreateTokens(step) = &mut started(log)[0].step else { panic!() };
        step.tokens[0].token = TokenId(2);
    });
    assert_eq!(found, Some((Law::RunsGrowInOrder, 2)));
}

#[test]
fn what_has_ended_and_changes_is_found() {
    let found = broken(|log| nth_update(completed(log, 4), |token| *token = TokenId(2)));
    assert_eq!(found, Some((Law::TheEndedStaysEnded, 5)));
    let found = broken(|log| {
        let cascade = completed(log, 4);
        let finish = cascade.pop().unwrap();
        cascade.insert(1, finish);
    });
    assert_eq!(found, Some((Law::TheEndedStaysEnded, 5)));
    let found = broken(|log| {
        let Step::FinishRun(step) = &mut completed(log, 4).last_mut().unwrap().step else {
            panic!()
        };
        step.state = RunState::Running;
    });
    assert_eq!(found, Some((Law::TheEndedStaysEnded, 5)));
}

#[test]
fn a_group_that_closes_twice_or_counts_too_many_is_found() {
    let found = broken(|log| {
        let cascade = completed(log, 4);
        let drops = |decision: &Decision<'_>| matches!(decision.step, Step::DropBranches(_));
        let at = cascade.iter().position(drops).unwrap();
        let again = DropBranches { group: GroupId(1), state: GroupState::Failed };
        let run_id = RunId(1);
        let step = Step::DropBranches(again);
        cascade.insert(at, Decision { run_id, previous: Lsn::NONE, step });
    });
    assert_eq!(found, Some((Law::GroupsCloseOnce, 5)));
    let found = broken(|log| {
        for decision in completed(log, 3) {
            if let Step::SettleBranch(step) = &mut decision.step {
                step.count = 3;
            }
        }
    });
    assert_eq!(found, Some((Law::GroupsCloseOnce, 4)));
}

#[test]
fn a_record_that_is_missing_in_a_runs_history_is_found() {
    let found = broken(|log| completed(log, 4)[0].previous = Lsn(2));
    assert_eq!(found, Some((Law::HistoryIsAChain, 5)));
}

/// A run of six tasks whose cancel takes several records.
fn ending() -> World {
    let mut world = World::new().ending_at_most(4);
    world.register(
        "workflow: w
initial_node: a
nodes: [{ref: a, kind: pass}, {ref: b, kind: task, task: {queue: q}}]
transitions: [{from: a, to: b, spawn_count: 6}]
",
    );
    let run = world.start("w", "{}");
    world.play(&Command::CancelRun(run)).unwrap();
    world.end_all();
    world
}

#[test]
fn what_is_ending_and_does_more_than_end_is_found() {
    let law_of = |change: fn(&mut Vec<Record<'_>>)| {
        let world = ending();
        let mut records: Vec<_> =
            world.log.iter().map(|bytes| codec::decode(bytes).unwrap()).collect();
        change(&mut records);
        let mut audit = Audit::new();
        records.iter().find_map(|record| audit.record(record).err()).map(|found| found.law)
    };
    assert_eq!(law_of(|_| {}), None);
    let begins_again = |log: &mut Vec<Record<'_>>| {
        let Event::RunCancelRequested(event) = &mut log[2].event else { panic!() };
        let decision = event.cascade[0].clone();
        event.cascade.push(decision);
    };
    assert_eq!(law_of(begins_again), Some(Law::WhatEndsOnlyEnds));
    let goes_on = |log: &mut Vec<Record<'_>>| {
        let Event::EndContinued(event) = &mut log[3].event else { panic!() };
        let step = Step::UpdateTokenStates(Default::default());
        event.cascade.push(Decision { run_id: RunId(1), previous: Lsn::NONE, step });
    };
    assert_eq!(law_of(goes_on), Some(Law::WhatEndsOnlyEnds));
    let closes_what_was_open = |log: &mut Vec<Record<'_>>| {
        let Event::EndContinued(event) = &mut log[3].event else { panic!() };
        let step = Step::CloseScope(CloseScope { group: GroupId(1), index: None });
        event.cascade.push(Decision { run_id: RunId(1), previous: Lsn::NONE, step });
    };
    assert_eq!(law_of(closes_what_was_open), Some(Law::WhatEndsOnlyEnds));
}

#[test]
fn a_workflow_that_has_runs_or_does_not_exist_is_not_deleted() {
    let deleted = |name: &'static str, version| {
        Event::WorkflowDeleted(WorkflowDeleted { name: Text::Borrowed(name), version })
    };
    for (name, version) in [("w", 0), ("w", 1), ("w", 2), ("another", 0)] {
        let found = broken(|log| log[2].event = deleted(name, version));
        assert_eq!(found, Some((Law::OnlyTheUnusedIsDeleted, 3)), "{name} {version}");
    }
    let found = broken(|log| {
        let begun = std::mem::replace(&mut log[1].event, deleted("w", 1));
        log[2].event = begun;
    });
    assert_eq!(found, Some((Law::RunsGrowInOrder, 3)), "a run of what is gone");
}
