//! Nobody is told anything that a crash could undo.
//!
//! Proves P2, P4, P9, P13 and P14.
#![allow(clippy::unwrap_used, clippy::panic)]

use tenure_code::Code;
use tenure_coordinator::request::{GetStatus, Maintain};
use tenure_coordinator::{EngineOptions, Next, Refusal};
use tenure_core::command::{Command, IdJump};
use tenure_log::Fault;
use tenure_record::id::Lsn;
use tenure_record::state::TaskState;
use tenure_wal::disk::model::{FaultKind, PlannedFault};
use tenure_wal::{Durability, Options};

use crate::support::asks::{complete, get, lease, submit, submit_keyed};
use crate::support::{self, House, START_MS, options};

#[test]
fn replies_reads_and_refusals_wait_for_what_they_saw() {
    let mut house = House::new();
    house.gate.shut();
    // Two at once, so that the frame goes to the log's thread.
    let submits: Vec<_> = (0..6).map(|_| house.ask(submit("mail"))).collect();
    house.settle();
    assert!(submits.iter().all(|submit| submit.waits()));
    let read = house.ask(get(1));
    let unknown = house.ask(get(99));
    let leased = house.ask(lease("anna", &["mail"], 0));
    house.settle();
    assert!(read.waits() && unknown.waits() && leased.waits(), "they saw what may be undone");
    house.gate.open();
    house.settle();
    assert!(submits.iter().all(|submit| !submit.waits()));
    let task = read.answer();
    assert_eq!(task.state, TaskState::Waiting, "as it was when it was asked");
    assert_eq!(unknown.refusal().code(), Code::NotFound);
    assert_eq!(leased.grants().len(), 1);
}

#[test]
fn the_next_frame_is_decided_while_the_last_one_syncs() {
    let mut house = House::new();
    house.gate.shut();
    for _ in 0..6 {
        house.ask(submit("mail"));
    }
    house.settle();
    let later: Vec<_> = (0..7).map(|_| house.ask(submit("mail"))).collect();
    house.settle();
    assert_eq!(house.last_lsn(), Lsn(13), "applied");
    assert_eq!(house.coordinator.released(), Lsn::NONE, "and not told");
    house.gate.open();
    house.settle();
    assert_eq!(house.coordinator.log().frames, [6, 7]);
    assert!(later.iter().all(|submit| !submit.waits()));
}

#[test]
fn a_lone_request_is_committed_without_a_hand_over() {
    let mut house = House::new();
    house.gate.shut();
    let submit = house.ask(submit("mail"));
    assert_ne!(house.step(), Next::Now);
    assert!(!submit.waits(), "one step is enough, though the thread is held up");
}

#[test]
fn a_read_that_saw_nothing_new_is_answered_at_once() {
    let mut house = House::new();
    house.tell(submit("mail"));
    house.gate.shut();
    let read = house.ask(get(1));
    house.step();
    assert!(!read.waits());
}

#[test]
fn a_failed_sync_is_the_end_and_nobody_hears_of_what_was_not_durable() {
    let mut house = House::new();
    house.tell(submit("mail"));
    let parked = house.tell(lease("anna", &["other"], 5_000));
    let at_call = house.disk.calls() + 2;
    house.disk.plan(Some(PlannedFault { at_call, kind: FaultKind::Eio, lasting: true }));
    let submit = house.ask(submit("mail"));
    let reading = house.reading();
    let fault = house.coordinator.step(reading).unwrap_err();
    assert!(matches!(fault, Fault::Io { .. }), "{fault}");
    assert!(submit.waits());
    house.coordinator.turn_away(&fault.to_string());
    assert!(matches!(submit.refusal(), Refusal::Unavailable(_)));
    assert!(matches!(parked.refusal(), Refusal::Unavailable(_)));
    let late = house.ask(support::asks::get(1));
    assert_eq!(late.refusal().code(), Code::Unavailable);
}

#[test]
fn a_full_disk_holds_the_frame_and_it_is_written_when_there_is_room() {
    let mut house = House::with(
        tenure_wal::disk::model::ModelDisk::default(),
        START_MS,
        Options { segment_bytes: 48 << 10, ..options() },
    );
    house.tell(submit("mail"));
    let lease = house.tell(lease("anna", &["mail"], 0)).grants()[0].lease();
    // Reports go on until the very last room is used.
    house.disk.limit_room(Some(48 << 10));
    let mut held = None;
    for _ in 0..2_000 {
        house.now_ms += 1;
        let report = house.ask(support::asks::heartbeat(lease));
        house.step();
        if report.waits() {
            held = Some(report);
            break;
        }
    }
    let held = held.expect("the disk is full at last");
    let read = house.ask(get(1));
    house.now_ms += 100;
    house.step();
    assert!(held.waits(), "it was tried again and there is still no room");
    assert!(read.waits(), "it saw what is not durable");
    house.disk.limit_room(None);
    house.pass_ms(100);
    held.answer();
    read.answer();
    let lsn = house.last_lsn();
    let house = house.restart(START_MS);
    assert_eq!(house.last_lsn(), lsn);
}

#[test]
fn a_restart_goes_on_where_it_ended() {
    let mut house = House::new();
    for key in ["a", "b", "c"] {
        house.tell(submit_keyed("mail", key));
    }
    let lease = house.tell(lease("anna", &["mail"], 0)).grants()[0].lease();
    let (hash, epoch) = (house.coordinator.state().facts().hash(), epoch(&mut house));
    let mut house = house.restart(START_MS + 5);
    assert_eq!(house.coordinator.state().facts().hash(), hash);
    assert!(self::epoch(&mut house) > epoch);
    let known = house.tell(submit_keyed("mail", "b")).answer();
    assert_eq!(known[0].task_id.0, 2, "the key is part of the record");
    let done = house.tell(complete(lease));
    assert_eq!(done.answer().state, TaskState::Completed);
}

fn epoch(house: &mut House) -> u64 {
    let status = house.tell(GetStatus);
    status.answer().epoch
}

#[test]
fn an_orderly_end_settles_everything_and_marks_the_log() {
    let mut house = House::new();
    house.tell(submit("mail"));
    let parked = house.tell(lease("anna", &["other"], 5_000));
    house.inbox.close("the server stops");
    let late = house.ask(submit("mail"));
    assert_eq!(late.refusal().code(), Code::Unavailable);
    house.settle();
    let reading = house.reading();
    house.coordinator.close(reading).unwrap();
    assert_eq!(parked.grants().len(), 0, "a worker that waits hears that nothing came");
}

#[test]
fn in_a_relaxed_mode_the_sync_follows_in_time() {
    let disk = tenure_wal::disk::model::ModelDisk::default();
    let options = Options { durability: Durability::IntervalMs(5), ..options() };
    let mut house = House::with(disk, START_MS, options);
    let submit = house.ask(submit("mail"));
    let next = house.step();
    assert!(!submit.waits(), "told before it is durable, as was asked for");
    assert_eq!(next, Next::WithinMs(5));
    assert!(!house.disk.pending().0.is_empty());
    house.pass_ms(5);
    assert!(house.disk.pending().0.is_empty(), "durable by now");
}

#[test]
fn after_an_unclean_end_in_a_relaxed_mode_ids_jump_ahead() {
    let relaxed = Options { durability: Durability::Os, ..options() };
    let start = |disk| House::with(disk, START_MS, relaxed);
    let task_id = |house: &mut House| house.tell(submit("mail")).answer()[0].task_id.0;
    let mut house = start(tenure_wal::disk::model::ModelDisk::default());
    assert_eq!(task_id(&mut house), 1);
    // The power fails: what was told is lost.
    let mut house = start(house.disk.crashed(&mut Nothing));
    assert_eq!(house.last_lsn(), Lsn::NONE);
    let second = task_id(&mut house);
    assert!(second > 1_000_000, "an id that was told is not given again, but {second} is");
    // An orderly end leaves nothing to be afraid of.
    house.inbox.close("the server stops");
    house.settle();
    let reading = house.reading();
    let disk = house.disk.clone();
    house.coordinator.close(reading).unwrap();
    assert_eq!(task_id(&mut start(disk.crashed(&mut Nothing))), second + 1);
}

#[test]
fn a_folder_whose_ids_cannot_jump_is_not_served() {
    let folder = std::env::temp_dir().join(format!("tenure-ids-{}", std::process::id()));
    let copy = folder.with_extension("copy");
    let open = |folder| EngineOptions::default().durability(Durability::Os).open(folder, |_| {});
    let tenure = open(&folder).unwrap();
    let jump = |jump| tenure.ask(Maintain(Command::SkipIds(jump))).wait();
    let jumps =
        |kind: IdJump| std::iter::repeat_with(|| jump(kind)).take_while(Result::is_ok).count();
    assert_eq!((jumps(IdJump::Restore), jumps(IdJump::UncleanStart)), (127, 255));
    // As it is while the server runs, so that it looks like an unclean end.
    std::fs::create_dir_all(&copy).unwrap();
    for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
    }
    let refused = open(&copy).map(|_| ()).unwrap_err();
    assert_eq!(refused.code(), Code::IdsExhausted, "{refused}");
    drop(tenure);
    open(&folder).unwrap();
    for folder in [folder, copy] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// What was not synced is lost.
struct Nothing;

impl tenure_wal::disk::model::Survival for Nothing {
    fn keeps(&mut self, _: usize, _: usize) -> bool {
        false
    }

    fn names(&mut self, _: usize) -> usize {
        0
    }
}

#[test]
fn when_little_room_is_left_new_work_is_refused_and_the_rest_goes_on() {
    let segment_bytes = 48 << 10;
    let options = Options { segment_bytes, low_water_bytes: 2 * segment_bytes, ..options() };
    let disk = tenure_wal::disk::model::ModelDisk::default();
    disk.limit_room(Some(8 * segment_bytes));
    let mut house = House::with(disk, START_MS, options);
    house.tell(submit("mail"));
    let lease = house.tell(lease("anna", &["mail"], 0)).grants()[0].lease();
    house.disk.limit_room(Some(2 * segment_bytes));
    house.pass_ms(1_000);
    let refused = house.tell(submit("mail")).refusal();
    assert_eq!(refused.code(), Code::DiskFull);
    house.tell(get(1)).answer();
    let done = house.tell(complete(lease));
    assert_eq!(done.answer().state, TaskState::Completed);
    house.disk.limit_room(None);
    house.pass_ms(1_000);
    assert_eq!(house.tell(submit("mail")).answer().len(), 1, "by itself");
}
