//! `tenure wal verify`: what is sound, what is not, and what is not even whole.

use serde_json::{Value, json};
use tenure_record::codec;
use tenure_record::event::{
    About, Event, LeaseExtended, Record, Report, ReportsApplied, TaskCompleted, TasksPurged,
};
use tenure_record::id::{LeaseId, Lsn, TaskId};
use tenure_record::name::Text;
use tenure_record::time::Timestamp;

use super::{tenure, wal};
use crate::support::{Folder, Ran, Story};

/// When the story of [`Story::lifecycle`] ends.
const END_MS: u64 = 1_000_000_050_000;

/// Adds a record that is whole: only what it says can be wrong.
fn append(folder: &Folder, lsn: u64, at: u64, event: Event<'_>) {
    let mut bytes = Vec::new();
    codec::encode(
        &Record { lsn: Lsn(lsn), at: Timestamp(at), wall: Timestamp(at), event },
        &mut bytes,
    );
    folder.append(&bytes);
}

/// Task 1 done once more, under a lease that is over.
fn second_completion() -> Event<'static> {
    report(Report::TaskCompleted(TaskCompleted {
        about: About {
            task_id: TaskId(1),
            queue: Text::Borrowed("mail"),
            attempt: 2,
            previous: Lsn(7),
            ..About::default()
        },
        lease_id: LeaseId(2),
        worker: Text::Borrowed("ben"),
        output: b"\"again\"",
        cascade: Vec::new(),
    }))
}

fn report(report: Report<'_>) -> Event<'_> {
    Event::ReportsApplied(ReportsApplied { reports: vec![report] })
}

fn said(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap()
}

/// The law that a log breaks, after a look at all that is said about it.
fn law_broken(folder: &Folder, lsn: u64) -> String {
    let frame = folder.last_frame();
    let ran = wal("verify", folder, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (65, ""), "{}", ran.stderr);
    let file = format!("segment-{:016x}.wal", frame.segment);
    let place = format!("unsound: {file}, frame at offset {}, LSN {lsn}: ", frame.offset);
    assert!(ran.stderr.contains(&place), "{place} is not in {}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    let ran = wal("verify", folder, &["-o", "json"]);
    assert_eq!(ran.code, 65);
    let violation = &said(&ran)["violation"];
    assert_eq!(said(&ran)["sound"], false);
    assert_eq!(
        (&violation["lsn"], &violation["file"], &violation["offset"]),
        (&json!(lsn), &json!(file), &json!(frame.offset))
    );
    let law = violation["law"].as_str().unwrap().to_owned();
    assert!(ran.stderr.contains(&format!("breaks the law {law}")), "{}", ran.stderr);
    assert!(ran.stderr.contains(violation["found"].as_str().unwrap()), "{}", ran.stderr);
    law
}

#[test]
fn a_sound_log_is_proved_and_summed_up() {
    let folder = Folder::new("verify");
    let written = Story::lifecycle(&folder);
    let ran = wal("verify", &folder, &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let expected = format!(
        "folder    {}\n\
         records   7, LSN 1 to 7\n\
         time      2001-09-09T01:46:40.000Z to 2001-09-09T01:47:30.000Z\n\
         tasks     2 created, 0 purged, 2 left: 1 WAITING, 1 COMPLETED\n\
         grants    2: 1 completed, 1 ran out\n\
         reports   heartbeats that moved a lease's end: 1, too late: 1\n\
         state     {}\n\
         The log is sound.\n",
        folder.path(),
        written.state_hash
    );
    assert_eq!(ran.stdout, expected);
    let ran = wal("verify", &folder, &["-o", "json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let expected = json!({
        "folder": folder.path(),
        "sound": true,
        "after_lsn": 0,
        "records": 7,
        "first_at": "2001-09-09T01:46:40.000Z",
        "last_at": "2001-09-09T01:47:30.000Z",
        "tasks": {
            "known": 0, "created": 2, "purged": 0, "WAITING": 1, "LEASED": 0, "COMPLETED": 1, "FAILED": 0,
            "DEAD": 0, "CANCELED": 0,
        },
        "grants": {
            "given": 2, "completed": 1, "failed": 0, "released": 0, "ran_out": 1,
            "disconnected": 0, "revoked": 0, "canceled": 0, "timed_out": 0, "attempt_timed_out": 0, "open": 0,
        },
        "heartbeats": 1,
        "stale_reports": 1,
        "state_hash": written.state_hash,
        "notes": [],
    });
    assert_eq!(said(&ran), expected);
}

#[test]
fn a_completion_under_a_lease_that_is_over_is_named() {
    let folder = Folder::new("verify-twice");
    Story::lifecycle(&folder);
    append(&folder, 8, END_MS, second_completion());
    assert_eq!(law_broken(&folder, 8), "OnlyTheOpenLeaseCounts");
}

#[test]
fn what_could_not_be_applied_is_named_and_ends_no_process() {
    let folder = Folder::new("verify-panic");
    Story::lifecycle(&folder);
    append(
        &folder,
        8,
        END_MS,
        Event::TasksPurged(TasksPurged { tasks: vec![TaskId(99)], runs: Vec::new() }),
    );
    assert_eq!(law_broken(&folder, 8), "TasksExist");
}

#[test]
fn a_record_with_another_number_or_an_older_time_is_named() {
    let folder = Folder::new("verify-lsn");
    Story::lifecycle(&folder);
    let heartbeat = LeaseExtended { task_id: TaskId(1), ..LeaseExtended::default() };
    append(&folder, 9, END_MS, report(Report::LeaseExtended(heartbeat.clone())));
    assert_eq!(law_broken(&folder, 8), "NoGapInLsns");
    let folder = Folder::new("verify-time");
    Story::lifecycle(&folder);
    append(&folder, 8, END_MS - 1, report(Report::LeaseExtended(heartbeat)));
    assert_eq!(law_broken(&folder, 8), "TimeNeverGoesBack");
}

#[test]
fn bytes_that_say_the_same_in_another_way_are_named() {
    let folder = Folder::new("verify-bytes");
    Story::lifecycle(&folder);
    let mut bytes = Vec::new();
    let event = Event::TasksPurged(TasksPurged { tasks: vec![TaskId(1)], runs: Vec::new() });
    codec::encode(
        &Record { lsn: Lsn(8), at: Timestamp(END_MS), wall: Timestamp(END_MS), event },
        &mut bytes,
    );
    // The version as two bytes instead of one.
    bytes.splice(1..2, [0x81, 0]);
    folder.append(&bytes);
    assert_eq!(law_broken(&folder, 8), "BytesAreTheRecord");
}

#[test]
fn a_broken_law_comes_before_what_is_corrupt_behind_it() {
    let folder = Folder::new("verify-both");
    Story::lifecycle(&folder);
    append(&folder, 8, END_MS, second_completion());
    append(&folder, 9, END_MS, second_completion());
    let broken = folder.last_frame();
    append(&folder, 10, END_MS, second_completion());
    folder.flip_byte(broken.segment, broken.offset + 100);
    assert!(wal("stat", &folder, &[]).stderr.contains("corrupt"));
    let ran = wal("verify", &folder, &[]);
    assert_eq!(ran.code, 65);
    assert!(ran.stderr.contains("unsound") && ran.stderr.contains("LSN 8"), "{}", ran.stderr);
}

#[test]
fn a_corrupt_log_is_refused_as_everywhere() {
    let folder = Folder::new("verify-corrupt");
    let written = Story::lifecycle(&folder);
    let second = written.frames[1];
    folder.flip_byte(second.segment, second.offset + 100);
    let ran = wal("verify", &folder, &["-o", "json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (65, ""));
    let place = format!("corrupt: segment-0000000000000001.wal at offset {}, LSN 2", second.offset);
    assert!(ran.stderr.contains(&place), "{}", ran.stderr);
    assert!(ran.stderr.contains("tenure wal verify"), "{}", ran.stderr);
}

#[test]
fn a_torn_end_is_a_note_and_the_rest_is_sound() {
    let folder = Folder::new("verify-torn");
    let written = Story::lifecycle(&folder);
    folder.write(written.end.segment, written.end.offset, b"half a frame");
    let ran = wal("verify", &folder, &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("The log is sound.\n\nnote: "), "{}", ran.stdout);
    let notes = said(&wal("verify", &folder, &["-o", "json"]))["notes"].clone();
    assert!(notes[0].as_str().unwrap().contains("torn frame"), "{notes}");
}

#[test]
fn a_log_without_records_is_sound_and_so_is_one_that_is_being_written() {
    let folder = Folder::new("verify-empty");
    let ran = wal("verify", &folder, &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("records   0\n"), "{}", ran.stdout);
    Story::lifecycle(&folder);
    let _writer = folder.open();
    assert_eq!(said(&wal("verify", &folder, &["-o", "json"]))["records"], 7);
}

#[test]
fn a_record_that_this_binary_does_not_know_is_no_proof() {
    let folder = Folder::new("verify-unknown");
    Story::lifecycle(&folder);
    folder.append(&[8, 99]);
    let ran = wal("verify", &folder, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (65, ""));
    assert!(ran.stderr.contains("LSN 8") && ran.stderr.contains("version 99"), "{}", ran.stderr);
}

#[test]
fn verify_wants_a_folder() {
    assert_eq!(tenure(&["wal", "verify"]).code, 2);
    assert_eq!(tenure(&["wal", "verify", "--data", ".", "--from", "1"]).code, 2);
}
