//! Snapshots and trimming: a crash at every call, a changed bit in every block, and what a start
//! makes of it.
//!
//! Proves P10 and P11.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;

use support::asks::{complete, lease, new_task, submit, submit_task};
use support::{House, SMALL_SEGMENT_BYTES, START_MS, options};
use tenure_code::Code;
use tenure_coordinator::request::{SubmitTasks, TakeSnapshot};
use tenure_coordinator::{Failure, Keep, Recovery, SnapshotInfo, Upkeep, recover};
use tenure_core::invariant;
use tenure_core::state::StateHash;
use tenure_log::{Fault, Lsn, Note};
use tenure_record::id::TaskId;
use tenure_wal::disk::Disk;
use tenure_wal::disk::model::{FaultKind, ModelDisk, PlannedFault, Survival};
use tenure_wal::snapshot::{self, file_name};
use tenure_wal::{Claim, Options, Wal, forge};

/// A snapshot now and then, and nothing is kept that is not needed.
fn often() -> Upkeep {
    Upkeep { snapshot_log_bytes: 8_000, log_keep: Keep::Bytes(1), ..Upkeep::default() }
}

fn seldom() -> Upkeep {
    Upkeep { snapshot_log_bytes: u64::MAX, log_keep: Keep::All, ..Upkeep::default() }
}

/// A task whose payload says which it is.
fn numbered(n: usize, bytes: usize) -> SubmitTasks {
    submit_task(new_task("mail", format!("{n:0bytes$}")))
}

fn take(house: &mut House) -> SnapshotInfo {
    let probe = house.ask(TakeSnapshot);
    for _ in 0..1_000 {
        house.settle();
        if let Some(outcome) = probe.heard() {
            return outcome.unwrap();
        }
    }
    unreachable!("a snapshot comes to an end")
}

fn start(disk: &ModelDisk) -> Result<Recovery<Wal<ModelDisk>>, Failure> {
    let options = Options { segment_bytes: SMALL_SEGMENT_BYTES, ..options() };
    recover(Claim::new(disk, options)?, 1, |_| {})
}

/// A folder with two snapshots, some records after them, and the state that it stands for.
fn with_two(upkeep: Upkeep, tasks: usize, bytes: usize) -> (ModelDisk, StateHash) {
    let mut house = House::kept(ModelDisk::default(), START_MS, upkeep);
    for n in 0..tasks {
        house.tell(numbered(n, bytes)).answer();
        if n == tasks / 3 || n == 2 * tasks / 3 {
            take(&mut house);
        }
    }
    house.settle();
    let hash = house.coordinator.state().facts().hash();
    (house.disk.killed(), hash)
}

#[test]
fn a_snapshot_has_what_was_asked_before_and_a_start_goes_on_from_it() {
    let mut house = House::kept(ModelDisk::default(), START_MS, seldom());
    (0..20).for_each(|n| drop(house.tell(numbered(n, 100)).answer()));
    let taken = take(&mut house);
    assert_eq!((taken.lsn.0, taken.tasks), (20, 20));
    assert_eq!(take(&mut house), taken, "nothing has changed, so it is the same");
    let grant = house.tell(lease("anna", &["mail"], 0)).grants()[0].lease();
    house.tell(complete(grant)).answer();
    let hash = house.coordinator.state().facts().hash();
    let recovery = start(&house.disk.killed()).unwrap();
    assert_eq!((recovery.records, recovery.kept.newest.unwrap().lsn), (2, taken.lsn));
    assert_eq!(recovery.state.facts().hash(), hash);
    let mut state = recovery.state;
    state.serve(tenure_record::time::Now::both(tenure_record::time::Timestamp(START_MS)));
    invariant::check(&state).unwrap();
}

#[test]
fn a_snapshot_never_knows_more_than_the_log() {
    let mut house = House::kept(ModelDisk::default(), START_MS, seldom());
    house.tell(submit("mail")).answer();
    // The log is busy with one frame, and the next is decided meanwhile.
    house.gate.shut();
    let held: Vec<_> = (0..8).map(|_| house.ask(submit("mail"))).collect();
    house.step();
    let snapshot = house.ask(TakeSnapshot);
    let later: Vec<_> = (0..8).map(|_| house.ask(submit("mail"))).collect();
    for _ in 0..20 {
        house.step();
    }
    assert!(held.iter().chain(&later).all(|probe| probe.waits()) && snapshot.waits());
    assert_eq!(snapshot::list(&house.disk).unwrap(), []);
    house.gate.open();
    for _ in 0..100 {
        house.settle();
    }
    let taken = snapshot.answer();
    let recovery = start(&house.disk.killed()).unwrap();
    assert_eq!(recovery.kept.newest.unwrap().lsn, taken.lsn);
    assert_eq!(recovery.state.last_lsn().0, 17);
    assert_eq!(recovery.records, 17 - taken.lsn.0);
}

#[test]
fn who_asks_while_one_of_the_same_record_is_written_gets_that_one() {
    let mut house = House::kept(ModelDisk::default(), START_MS, often());
    (0..5).for_each(|n| drop(house.tell(numbered(n, 100)).answer()));
    let first = house.ask(TakeSnapshot);
    house.step();
    let second = house.ask(TakeSnapshot);
    for _ in 0..20 {
        house.settle();
    }
    assert_eq!((first.answer().lsn.0, second.answer().lsn.0), (5, 5));
    let kept = house.coordinator.kept();
    assert_eq!((kept.taken, kept.older), (1, None), "there is nothing older to fall back to");
}

#[test]
fn by_size_and_by_age_snapshots_come_by_themselves_and_the_log_stays_small() {
    let mut house = House::kept(ModelDisk::default(), START_MS, often());
    for n in 0..600 {
        house.tell(numbered(n, 300)).answer();
        house.step();
    }
    for _ in 0..20 {
        house.settle();
    }
    let kept = house.coordinator.kept().clone();
    assert!(kept.taken >= 3, "{kept:?}");
    assert_eq!(snapshot::list(&house.disk).unwrap().len(), 2);
    let (older, oldest) = (kept.older.unwrap(), house.coordinator.log().extent().oldest);
    assert!(Lsn(1) < oldest && oldest.0 <= older.0 + 1, "{oldest} and {older}");
    let recovery = start(&house.disk.killed()).unwrap();
    assert_eq!(recovery.state.facts().task_count(), 600);
    assert!(recovery.records < 300, "{}", recovery.records);
}

#[test]
fn a_log_that_is_kept_by_age_goes_when_it_is_old_enough() {
    let upkeep = Upkeep { log_keep: Keep::Ms(3_600_000), ..often() };
    let mut house = House::kept(ModelDisk::default(), START_MS, upkeep);
    let fill = |house: &mut House, from: usize| {
        (from..from + 400).for_each(|n| drop(house.tell(numbered(n, 300)).answer()));
        for _ in 0..20 {
            house.settle();
        }
        house.coordinator.log().extent().oldest
    };
    assert_eq!(fill(&mut house, 0), Lsn(1), "all of it is young");
    house.pass_ms(3_700_000);
    let oldest = fill(&mut house, 400);
    assert!(oldest > Lsn(100), "{oldest}");
}

#[test]
fn a_snapshot_that_cannot_be_written_is_told_of_and_tried_again_later() {
    let mut house = House::kept(ModelDisk::default(), START_MS, seldom());
    (0..5).for_each(|n| drop(house.tell(numbered(n, 100)).answer()));
    for kind in [FaultKind::Enospc, FaultKind::Eio] {
        let at_call = house.disk.calls() + 2;
        house.disk.plan(Some(PlannedFault { at_call, kind, lasting: false }));
        let probe = house.ask(TakeSnapshot);
        for _ in 0..20 {
            house.settle();
        }
        house.disk.plan(None);
        assert_eq!(probe.refusal().code(), Code::Unavailable);
        assert!(house.coordinator.take_snapshot_failure().is_some());
        assert!(!house.disk.list().unwrap().contains(&"snapshot.tmp".to_owned()));
        house.tell(submit("mail")).answer();
    }
    assert_eq!(house.coordinator.kept().failed, 2);
    assert_eq!(take(&mut house).tasks, 7);
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

/// Lives until a call to the disk fails, and says who was acknowledged.
fn live_until(call: u64) -> (ModelDisk, BTreeMap<TaskId, usize>, bool) {
    let mut house = House::kept(ModelDisk::default(), START_MS, often());
    let at_call = house.disk.calls() + call;
    house.disk.plan(Some(PlannedFault { at_call, kind: FaultKind::Eio, lasting: true }));
    let mut acknowledged = BTreeMap::new();
    let mut is_dead = false;
    for n in 0..90 {
        let probe = house.ask(numbered(n, 1_200));
        for _ in 0..4 {
            is_dead = is_dead || house.coordinator.step(house.reading()).is_err();
            if is_dead {
                break;
            }
        }
        if let Some(Ok(made)) = probe.heard() {
            acknowledged.insert(made[0].task_id, n);
        }
        // A snapshot that fails is no end; the machine has stopped all the same.
        is_dead = is_dead || house.disk.calls() >= at_call;
        if is_dead {
            break;
        }
    }
    (house.disk, acknowledged, !is_dead)
}

#[test]
fn no_crash_while_snapshots_come_and_segments_go_loses_what_was_acknowledged() {
    let (mut images, mut with_snapshots) = (0, 0);
    for call in 1.. {
        let (disk, acknowledged, has_ended) = live_until(call);
        disk.plan(None);
        let crashed = [1, 3, 0x5555, u64::MAX].map(|luck| disk.crashed(&mut Luck(luck ^ call)));
        for image in [disk.killed()].into_iter().chain(crashed) {
            images += 1;
            let recovery = start(&image).unwrap_or_else(|failure| panic!("call {call}: {failure}"));
            assert!(recovery.notes.iter().all(|note| !matches!(note, Note::BadSnapshot { .. })));
            with_snapshots += u64::from(recovery.kept.newest.is_some());
            let facts = recovery.state.facts();
            invariant::check_facts(facts).unwrap();
            for (id, n) in &acknowledged {
                let task = facts.task(*id).unwrap_or_else(|| panic!("call {call}: {id} is gone"));
                assert_eq!(task.payload(), format!("{n:01200}").as_bytes(), "call {call}");
            }
        }
        if has_ended {
            break;
        }
    }
    println!("{images} images, {with_snapshots} with a snapshot");
    assert!(images > 1_000 && with_snapshots > 500);
}

fn flip(disk: &ModelDisk, name: &str, at: usize) -> ModelDisk {
    let disk = disk.killed();
    let mut bytes = disk.bytes(name).unwrap();
    bytes[at] ^= 1 << (at % 8);
    disk.put(name, bytes);
    disk
}

#[test]
fn a_changed_bit_in_any_block_falls_back_to_the_older_with_an_alarm() {
    let (disk, hash) = with_two(often(), 200, 20_000);
    let [newest, older] = snapshot::list(&disk).unwrap()[..] else { unreachable!("two are kept") };
    let name = file_name(newest);
    let size = disk.bytes(&name).unwrap().len();
    assert!(size > 2 << 20, "more than two blocks");
    let block = (1 << 20) + 8;
    let places = (0..).map(|n| 48 + n * block).take_while(|at| *at < size);
    let places = places.flat_map(|at| [at, at + 4, at + 8, at + block / 2]);
    for at in places.chain([0, 8, 20, 33, 44, size - 97, size - 90, size - 50, size - 1]) {
        let rotten = flip(&disk, &name, at.min(size - 1));
        let recovery = start(&rotten).unwrap_or_else(|failure| panic!("byte {at}: {failure}"));
        assert_eq!(recovery.state.facts().hash(), hash, "byte {at}");
        assert_eq!(recovery.kept.newest.unwrap().lsn.0, older.0, "byte {at}");
        assert_eq!(recovery.kept.bad, 1);
        let told = matches!(&recovery.notes[..], [Note::BadSnapshot { file, .. }] if *file == name);
        assert!(told, "byte {at}: {:?}", recovery.notes);
        let names = rotten.list().unwrap();
        assert!(names.contains(&format!("{name}.bad")) && !names.contains(&name), "{names:?}");
    }
}

#[test]
fn with_both_bad_the_whole_log_is_replayed_or_the_start_is_refused() {
    for (upkeep, is_whole) in [(seldom(), true), (often(), false)] {
        let (disk, hash) = with_two(upkeep, 60, 2_000);
        let [newest, older] = snapshot::list(&disk).unwrap()[..] else { unreachable!("two") };
        let once = flip(&disk, &file_name(newest), 100);
        let both = flip(&once, &file_name(older), 100);
        match start(&both) {
            Ok(recovery) => {
                assert!(is_whole, "what is trimmed is in no snapshot");
                assert_eq!((recovery.state.facts().hash(), recovery.kept.bad), (hash, 2));
                assert_eq!(recovery.notes.len(), 2);
            }
            Err(failure) => {
                assert!(!is_whole, "{failure}");
                assert!(matches!(failure, Failure::NoSnapshot { .. }), "{failure}");
                assert_eq!(failure.exit_code(), 65);
                assert!(failure.to_string().contains("corrupt"), "{failure}");
                let names = both.list().unwrap();
                assert!(names.contains(&file_name(newest)), "nothing is changed: {names:?}");
            }
        }
    }
}

#[test]
fn a_snapshot_that_is_whole_and_gives_another_state_stops_the_start() {
    let (disk, _) = with_two(often(), 60, 2_000);
    let newest = snapshot::list(&disk).unwrap()[0];
    let name = file_name(newest);
    let size = disk.bytes(&name).unwrap().len();
    // A payload, and the hash in the footer; the checksums are made to fit.
    for at in [5_000, size - 96 + 60] {
        let changed = flip(&disk, &name, at);
        let mut bytes = changed.bytes(&name).unwrap();
        forge::reseal_snapshot(&mut bytes).unwrap();
        changed.put(&name, bytes);
        let failure = start(&changed).unwrap_err();
        assert!(matches!(failure, Failure::Hash { .. }), "{failure}");
        assert_eq!(failure.exit_code(), 65);
    }
}

/// The test above would notice.
#[cfg(feature = "planted")]
#[test]
fn without_the_check_of_its_hash_another_state_would_be_served() {
    use tenure_coordinator::planted::{Bug, plant};
    let (disk, hash) = with_two(often(), 60, 2_000);
    let name = file_name(snapshot::list(&disk).unwrap()[0]);
    let changed = flip(&disk, &name, 5_000);
    let mut bytes = changed.bytes(&name).unwrap();
    forge::reseal_snapshot(&mut bytes).unwrap();
    changed.put(&name, bytes);
    plant(Some(Bug::SnapshotHashUnchecked));
    let served = start(&changed);
    plant(None);
    assert_ne!(served.unwrap().state.facts().hash(), hash);
    println!("planted: coordinator::SnapshotHashUnchecked | a forged snapshot is refused | 1");
}

#[test]
fn a_snapshot_without_a_log_is_refused() {
    let (disk, _) = with_two(seldom(), 30, 100);
    for name in disk.list().unwrap().iter().filter(|name| name.starts_with("segment-")) {
        disk.take(name);
    }
    let failure = start(&disk).unwrap_err();
    assert!(matches!(failure, Failure::Log(Fault::Corrupt(_))), "{failure}");
}
