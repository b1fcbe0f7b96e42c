//! Deciding old records again: the state before them comes from the log, or from a snapshot and the
//! log after it.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tenure_code::Code;
use tenure_coordinator::{Keep, RedecideError, Upkeep, redecide};
use tenure_core::command::{RegisterWorkflow, StartRun};
use tenure_flow::Definition;
use tenure_log::Log;
use tenure_record::id::{Lsn, RunId};
use tenure_record::terms::Tags;
use tenure_value::Value;
use tenure_wal::disk::model::ModelDisk;

use crate::support::asks::{complete, lease, new_task, submit_task};
use crate::support::{House, START_MS};

const TWO_STEPS: &str = "
workflow: two_steps
initial_node: one
nodes:
  - {ref: one, kind: task, task: {queue: steps}, output_mapping: {context.n: result}}
  - {ref: two, kind: task, task: {queue: steps}}
  - {ref: never, kind: pass}
transitions:
  - {from: one, to: two, priority: 1, condition: context.n == 1}
  - {from: one, to: never, priority: 2}
";

fn register() -> RegisterWorkflow {
    let definition = Arc::new(Definition::from_yaml(TWO_STEPS).unwrap());
    RegisterWorkflow { definition }
}

fn start() -> StartRun {
    StartRun {
        workflow: "two_steps".into(),
        version: None,
        input: Value::empty_map(),
        key: None,
        tags: Tags::default(),
    }
}

/// Plays a run to its end, and gives the records that decided something about it.
fn play(house: &mut House) -> (RunId, Vec<Lsn>) {
    house.tell(register()).answer();
    let started = house.tell(start()).answer();
    let mut decided = vec![house.last_lsn()];
    for _ in 0..2 {
        let grant = house.tell(lease("anna", &["steps"], 0)).grants()[0].lease();
        house.tell(complete(grant)).answer();
        decided.push(house.last_lsn());
    }
    (started.run.id, decided)
}

#[test]
fn a_record_that_is_not_there_or_decides_nothing_is_refused() {
    let mut house = House::new();
    let (run, decided) = play(&mut house);
    let ask = |run, lsn| redecide(house.coordinator.log().reader(), None, run, lsn).unwrap_err();
    assert_eq!(ask(run, Lsn(999)).code(), Code::NotFound);
    assert_eq!(ask(RunId(9), decided[0]).code(), Code::NotFound);
    let registered = ask(run, Lsn(1));
    assert_eq!(registered.code(), Code::InvalidRequest);
    assert!(registered.to_string().contains("WorkflowRegistered"), "{registered}");
}

#[test]
fn every_record_of_a_run_is_decided_again_in_the_same_way() {
    let mut house = House::new();
    let (run, decided) = play(&mut house);
    for lsn in decided {
        let found = redecide(house.coordinator.log().reader(), None, run, lsn).unwrap();
        assert!(found.is_same() && !found.pairs.is_empty(), "{found:#?}");
        assert_eq!(found.lsn, lsn);
    }
}

#[test]
fn a_trimmed_log_says_what_can_be_rebuilt_and_a_snapshot_stands_for_what_is_gone() {
    let upkeep =
        Upkeep { snapshot_log_bytes: 8_000, log_keep: Keep::Bytes(1), ..Upkeep::default() };
    let mut house = House::kept(ModelDisk::default(), START_MS, upkeep);
    for n in 0..600 {
        house.tell(submit_task(new_task("mail", format!("{n:0300}")))).answer();
        house.step();
    }
    let kept = house.coordinator.kept().clone();
    let oldest = house.coordinator.log().extent().oldest;
    assert!(oldest.0 > 1, "something was trimmed");
    let error = redecide(house.coordinator.log().reader(), None, RunId(1), Lsn(1)).unwrap_err();
    let RedecideError::Trimmed { oldest } = error else { unreachable!("{error}") };
    assert_eq!(Some(Lsn(oldest.0 - 1)), kept.older, "the older snapshot is where it can begin");
    assert_eq!(RedecideError::Trimmed { oldest }.code(), Code::LogTrimmed);
    let (run, decided) = play(&mut house);
    for lsn in decided {
        let found = redecide(house.coordinator.log().reader(), None, run, lsn).unwrap();
        assert!(found.is_same() && !found.pairs.is_empty(), "{found:#?}");
    }
}
