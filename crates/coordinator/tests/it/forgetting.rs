//! A crash at every call while tasks are forgotten, snapshots come and segments go; and folders put
//! back, which are whole once that is said.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use tenure_coordinator::request::TakeSnapshot;
use tenure_coordinator::{Keep, Upkeep, put_back, recover};
use tenure_core::command::Retention;
use tenure_core::state::StateHash;
use tenure_core::{State, apply, invariant};
use tenure_log::{BackupSource, Log, Read, Since};
use tenure_record::codec;
use tenure_record::id::TaskId;
use tenure_record::state::TaskState;
use tenure_wal::disk::model::{FaultKind, ModelDisk, PlannedFault, Survival};
use tenure_wal::{Claim, Options};

use crate::support::asks::{complete, lease, new_task, submit_task};
use crate::support::{House, SMALL_SEGMENT_BYTES, START_MS, options};

const AGE_MS: u64 = 1_500;
const ROUNDS: usize = 90;

fn upkeep(snapshot_log_bytes: u64, log_keep: Keep) -> Upkeep {
    let retention = Retention { age_ms: AGE_MS, items_max: 5, ..Retention::default() };
    Upkeep { snapshot_log_bytes, log_keep, retention, ..Upkeep::default() }
}

fn often() -> Upkeep {
    upkeep(6_000, Keep::Bytes(1))
}

fn small() -> Options {
    Options { segment_bytes: SMALL_SEGMENT_BYTES, ..options() }
}

/// What those outside were told.
#[derive(Debug, Default)]
struct Told {
    made: BTreeMap<TaskId, usize>,
    completed: BTreeMap<TaskId, u64>,
}

/// One round: a task comes, every other one is done, and time passes. Says whether all went well.
fn round(house: &mut House, n: usize, told: &mut Told) -> bool {
    let task = new_task("mail", format!("{n:01200}"));
    let submitted = house.ask(submit_task(task));
    let mut is_well = steps(house);
    if let Some(Ok(made)) = submitted.heard() {
        told.made.insert(made[0].task_id, n);
    }
    if n.is_multiple_of(2) && is_well {
        let leased = house.ask(lease("anna", &["mail"], 0));
        is_well = steps(house);
        if let Some(Ok(grants)) = leased.heard()
            && let Some(grant) = grants.first()
        {
            let done = house.ask(complete(grant.lease()));
            is_well = is_well && steps(house);
            if let Some(Ok(task)) = done.heard() {
                assert_eq!(task.state, TaskState::Completed);
                told.completed.insert(task.id, house.now_ms);
            }
        }
    }
    house.now_ms += 100;
    is_well && steps(house)
}

fn steps(house: &mut House) -> bool {
    (0..6).all(|_| house.coordinator.step(house.reading()).is_ok())
}

/// The state after each record, from a log that nobody trims.
fn states() -> BTreeMap<u64, StateHash> {
    let seldom = upkeep(u64::MAX, Keep::All);
    let mut house = House::kept(ModelDisk::default(), START_MS, seldom);
    let mut told = Told::default();
    (0..ROUNDS).for_each(|n| assert!(round(&mut house, n, &mut told)));
    let mut reader = house.coordinator.log().reader();
    let mut state = State::replaying(1);
    let mut states = BTreeMap::from([(0, state.facts().hash())]);
    while let Read::Frame(frame) = reader.read().unwrap() {
        for (lsn, bytes) in frame.records() {
            apply(&mut state, &codec::decode(bytes).unwrap());
            states.insert(lsn.0, state.facts().hash());
        }
    }
    states
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

fn check(
    image: &ModelDisk,
    told: &Told,
    now_ms: u64,
    states: &BTreeMap<u64, StateHash>,
    what: &str,
) {
    let claim = Claim::new(image, small()).unwrap();
    let recovery =
        recover(claim, 1, |_| {}).unwrap_or_else(|fault| unreachable!("{what}: {fault}"));
    let facts = recovery.state.facts();
    invariant::check_facts(facts).unwrap();
    assert_eq!(
        states.get(&facts.last_lsn().0),
        Some(&facts.hash()),
        "{what}: a full replay differs"
    );
    for (id, n) in &told.made {
        let Some(task) = facts.task(*id) else {
            // Only what was done, and long enough ago.
            let done = told.completed.get(id);
            let may_go = done.is_none_or(|done| done + AGE_MS <= now_ms);
            assert!(may_go, "{what}: task {id} is gone too early");
            continue;
        };
        assert_eq!(task.payload(), format!("{n:01200}").as_bytes(), "{what}");
    }
}

#[test]
fn no_crash_while_tasks_are_forgotten_and_segments_go_gives_another_state() {
    let states = states();
    let (mut images, mut trimmed) = (0, false);
    for call in 1.. {
        let mut house = House::kept(ModelDisk::default(), START_MS, often());
        let at_call = house.disk.calls() + call;
        house.disk.plan(Some(PlannedFault { at_call, kind: FaultKind::Eio, lasting: true }));
        let mut told = Told::default();
        for n in 0..ROUNDS {
            if !round(&mut house, n, &mut told) || house.disk.calls() >= at_call {
                break;
            }
        }
        let has_ended = house.disk.calls() < at_call;
        if has_ended {
            trimmed = house.coordinator.log().extent().oldest.0 > 1;
        }
        house.disk.plan(None);
        let crashed = [1, 3, u64::MAX].map(|luck| house.disk.crashed(&mut Luck(luck ^ call)));
        for image in [house.disk.killed()].into_iter().chain(crashed) {
            images += 1;
            check(&image, &told, house.now_ms, &states, &format!("call {call}"));
        }
        if has_ended {
            break;
        }
    }
    println!("{images} images");
    assert!(images > 1_000 && trimmed, "{images} images, trimmed: {trimmed}");
}

/// A copy of a folder in use, and the state that it stands for.
fn copy() -> (ModelDisk, StateHash, u64) {
    let mut house = House::kept(ModelDisk::default(), START_MS, often());
    let mut told = Told::default();
    (0..ROUNDS).for_each(|n| assert!(round(&mut house, n, &mut told)));
    let probe = house.ask(TakeSnapshot);
    for _ in 0..50 {
        house.settle();
    }
    probe.answer();
    house.tell(submit_task(new_task("mail", "the last"))).answer();
    let backup = house.coordinator.log().reader().begin_backup(Since::Snapshot).unwrap();
    let copy = ModelDisk::default();
    for file in &backup.files {
        let mut bytes = vec![0; file.size as usize];
        file.read(&mut bytes[..file.bytes as usize], 0).unwrap();
        copy.put(&file.name, bytes);
    }
    let facts = house.coordinator.state().facts();
    (copy, facts.hash(), facts.last_lsn().0)
}

#[test]
fn a_folder_that_was_put_back_is_whole_whatever_crashes_once_that_is_said() {
    let (copy, hash, lsn) = copy();
    let kinds = [
        (FaultKind::Eio, true),
        (FaultKind::Eio, false),
        (FaultKind::Enospc, false),
        (FaultKind::Eintr, false),
        (FaultKind::Short, false),
    ];
    let (mut refused, mut images) = (0, 0);
    for (kind, lasting) in kinds {
        for call in 1.. {
            let folder = ModelDisk::default();
            folder.plan(Some(PlannedFault { at_call: call, kind, lasting }));
            let put = put_back(&copy, &folder, small(), None, None, &mut |_| {});
            let has_passed = folder.calls() < call;
            folder.plan(None);
            match put {
                // It has no name yet, and never gets one.
                Err(_) => refused += 1,
                Ok(restoration) => {
                    assert_eq!((restoration.state_hash, restoration.lsn.0), (hash, lsn));
                    for luck in [0, 1, 3, u64::MAX] {
                        images += 1;
                        let image = folder.crashed(&mut Luck(luck));
                        let claim = Claim::new(&image, small()).unwrap();
                        let recovery = recover(claim, 1, |_| {});
                        let recovery = recovery
                            .unwrap_or_else(|fault| unreachable!("{kind:?} at {call}: {fault}"));
                        let facts = recovery.state.facts();
                        assert_eq!(facts.hash(), hash, "{kind:?} at {call}");
                        assert_eq!(facts.last_lsn().0, lsn + 1, "the ids jumped, on record");
                    }
                }
            }
            if has_passed {
                break;
            }
        }
    }
    println!("{refused} refused, {images} images");
    assert!(refused > 50 && images > 20, "{refused} refused, {images} images");
}
