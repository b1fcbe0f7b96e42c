//! Snapshots of workflows and runs: a crash at every call to the disk, and a start from each image
//! with its snapshots and without.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tenure_coordinator::{Keep, Recovery, Request, Upkeep, recover};
use tenure_core::command::{RegisterWorkflow, StartRun};
use tenure_core::invariant;
use tenure_flow::{Definition, yaml};
use tenure_record::id::RunId;
use tenure_record::terms::Tags;
use tenure_value::Value;
use tenure_wal::disk::Disk;
use tenure_wal::disk::model::{FaultKind, ModelDisk, PlannedFault, Survival};
use tenure_wal::{Claim, Options, Wal};

use crate::support::asks::{complete, lease};
use crate::support::{House, SMALL_SEGMENT_BYTES, START_MS, options};

const WORKFLOW: &str = "workflow: w
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: task, task: {queue: q}}
  - {ref: c, kind: task, task: {queue: q}}
transitions:
  - {ref: t, from: a, to: b, foreach: {collection: input.list, item_var: x}}
  - {from: b, to: c, synchronization: {joins_transition: t, merge: [{target: context.r, strategy: append}]}}
";

/// A snapshot now and then; the log is kept whole, to compare.
fn often() -> Upkeep {
    Upkeep { snapshot_log_bytes: 3_000, log_keep: Keep::All, ..Upkeep::default() }
}

fn register() -> RegisterWorkflow {
    let definition = Definition::compile(&yaml::parse(WORKFLOW).unwrap()).unwrap();
    let definition = Arc::new(definition);
    RegisterWorkflow { definition }
}

fn begin(n: usize) -> StartRun {
    let input = format!(r#"{{"n":{n},"list":["one","two","{}"]}}"#, "x".repeat(300));
    StartRun {
        workflow: "w".into(),
        version: None,
        input: Value::from_json(input.as_bytes()).unwrap(),
        key: None,
        tags: Tags::default(),
    }
}

fn start(disk: &ModelDisk) -> Recovery<Wal<ModelDisk>> {
    let options = Options { segment_bytes: SMALL_SEGMENT_BYTES, ..options() };
    recover(Claim::new(disk, options).unwrap(), 1, |_| {}).unwrap()
}

/// The same folder as if no snapshot had ever been taken.
fn without_snapshots(disk: &ModelDisk) -> ModelDisk {
    let disk = disk.killed();
    for name in disk.list().unwrap().iter().filter(|name| name.contains("snapshot")) {
        disk.remove(name).unwrap();
    }
    disk
}

/// Keeps what a number says, of sectors and of names.
struct Luck(u64);

impl Survival for Luck {
    fn keeps(&mut self, _: usize, _: usize) -> bool {
        self.0 = self.0.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 >> 63 == 1
    }

    fn names(&mut self, pending: usize) -> usize {
        self.0 as usize % (pending + 1)
    }
}

/// Sends a request, and steps a few times; gives the response unless the machine has stopped.
fn tell<R: Request>(house: &mut House, request: R) -> Result<Option<R::Response>, ()> {
    let probe = house.ask(request);
    for _ in 0..4 {
        house.coordinator.step(house.reading()).map_err(|_| ())?;
    }
    Ok(probe.heard().and_then(Result::ok))
}

/// Begins a run and works on it.
fn round(house: &mut House, n: usize, acknowledged: &mut Vec<RunId>) -> Result<(), ()> {
    acknowledged.extend(tell(house, begin(n))?.map(|started| started.run.id));
    for _ in 0..3 {
        for grant in tell(house, lease("anna", &["q"], 0))?.unwrap_or_default() {
            tell(house, complete(grant.lease()))?;
        }
    }
    Ok(())
}

/// Runs begin and go on until a call to the disk fails; says which were acknowledged.
fn live(house: &mut House, at_call: u64) -> Result<Vec<RunId>, Vec<RunId>> {
    let mut acknowledged = Vec::new();
    if tell(house, register()).is_err() || house.disk.calls() >= at_call {
        return Err(acknowledged);
    }
    for n in 0..12 {
        if round(house, n, &mut acknowledged).is_err() || house.disk.calls() >= at_call {
            return Err(acknowledged);
        }
    }
    Ok(acknowledged)
}

#[test]
fn no_crash_makes_runs_of_a_snapshot_differ_from_those_of_the_log() {
    let (mut images, mut with_snapshots) = (0, 0);
    for call in (1..).step_by(3) {
        let mut house = House::kept(ModelDisk::default(), START_MS, often());
        let at_call = house.disk.calls() + call;
        house.disk.plan(Some(PlannedFault { at_call, kind: FaultKind::Eio, lasting: true }));
        let lived = live(&mut house, at_call);
        let disk = house.disk;
        disk.plan(None);
        let (acknowledged, has_ended) = match lived {
            Ok(acknowledged) => (acknowledged, true),
            Err(acknowledged) => (acknowledged, false),
        };
        let crashed = [1, 0x5555].map(|luck| disk.crashed(&mut Luck(luck ^ call)));
        for image in [disk.killed()].into_iter().chain(crashed) {
            images += 1;
            let whole = start(&without_snapshots(&image));
            let recovery = start(&image);
            with_snapshots += u64::from(recovery.kept.newest.is_some());
            let facts = recovery.state.facts();
            assert_eq!(facts.hash(), whole.state.facts().hash(), "call {call}");
            invariant::check_facts(facts).unwrap();
            assert!(acknowledged.iter().all(|id| facts.run(*id).is_some()), "call {call}");
        }
        if has_ended {
            break;
        }
    }
    println!("{images} images, {with_snapshots} with a snapshot");
    assert!(images > 100 && with_snapshots > 50);
}
