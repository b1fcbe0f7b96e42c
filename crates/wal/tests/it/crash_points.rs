//! A crash after every single call to the disk, in every legal way, and then again inside the
//! recovery from it.
//!
//! Proves P1, P2 and P12.
#![allow(clippy::unwrap_used)]

use crate::support::trimming::{self, Told, check_trimmed, open_trimmed, write_and_trim};
use crate::support::{BATCHES, Nothing, check_after_crash, crashes, open, options, write_all};
use tenure_log::Lsn;
use tenure_wal::Wal;
use tenure_wal::disk::model::{FaultKind, ModelDisk, PlannedFault};

/// The disk as it is when the process dies in that call, and what it had acknowledged.
fn died_at(call: u64) -> (ModelDisk, Lsn, bool) {
    let disk = ModelDisk::default();
    disk.plan(Some(PlannedFault { at_call: call, kind: FaultKind::Eio, lasting: true }));
    let mut acknowledged = Lsn::NONE;
    let ended = write_all(&disk, &BATCHES, |lsn| acknowledged = lsn).is_ok();
    (disk, acknowledged, ended)
}

fn written() -> u64 {
    BATCHES.iter().sum()
}

#[test]
fn no_crash_loses_what_was_acknowledged() {
    let mut images = 0;
    for call in 1.. {
        let (disk, acknowledged, ended) = died_at(call);
        for mut crash in crashes(&disk) {
            images += 1;
            let what = format!("call {call}, sectors {:b}, names {}", crash.bits, crash.names);
            check_after_crash(&disk.crashed(&mut crash), acknowledged, written(), &what);
        }
        if ended {
            break;
        }
    }
    println!("{images} crash images");
    assert!(images > 500);
}

#[test]
fn no_crash_inside_recovery_loses_anything_either() {
    let mut images = 0;
    for call in 1.. {
        let (disk, acknowledged, ended) = died_at(call);
        // The edges of the first crash; every point and many ways of the second.
        for mut first in crashes(&disk).into_iter().step_by(3) {
            let once = disk.crashed(&mut first);
            for again in 1.. {
                let twice = once.killed();
                let fault = PlannedFault { at_call: again, kind: FaultKind::Eio, lasting: true };
                twice.plan(Some(fault));
                let opened = open(&twice).is_ok();
                twice.plan(None);
                for mut second in crashes(&twice).into_iter().step_by(3) {
                    images += 1;
                    let what = format!(
                        "call {call}, sectors {:b}, names {}; then call {again}, {:b}, {}",
                        first.bits, first.names, second.bits, second.names
                    );
                    let image = twice.crashed(&mut second);
                    check_after_crash(&image, acknowledged, written(), &what);
                }
                if opened {
                    break;
                }
            }
        }
        if ended {
            break;
        }
    }
    println!("{images} crash images");
    assert!(images > 5_000);
}

#[test]
fn what_a_killed_process_left_in_the_page_cache_is_durable_once_it_is_served() {
    for call in 1.. {
        let (disk, acknowledged, ended) = died_at(call);
        let killed = disk.killed();
        let (wal, _, records) = open(&killed).unwrap();
        assert!(records.len() as u64 >= acknowledged.0, "call {call}");
        drop(wal);
        let (_, _, left) = open(&killed.crashed(&mut Nothing)).unwrap();
        assert_eq!(left, records, "call {call}: it was served and is gone");
        if ended {
            break;
        }
    }
}

/// The same for a log that is trimmed, and whose old files become new segments.
fn died_trimming_at(call: u64) -> (ModelDisk, Told, bool) {
    let (disk, mut told) = (ModelDisk::default(), Told::default());
    disk.plan(Some(PlannedFault { at_call: call, kind: FaultKind::Eio, lasting: true }));
    let ended = write_and_trim(&disk, &mut told).is_ok();
    (disk, told, ended)
}

#[test]
fn a_file_that_is_used_again_is_as_good_as_a_new_one() {
    trimming::check_orderly_run();
}

#[test]
fn no_crash_while_old_files_become_new_segments_loses_anything() {
    let mut images = 0;
    for call in 1.. {
        let (disk, told, ended) = died_trimming_at(call);
        for mut crash in crashes(&disk) {
            images += 1;
            let what = format!("call {call}, sectors {:b}, names {}", crash.bits, crash.names);
            check_trimmed(&disk.crashed(&mut crash), &told, &what);
        }
        if ended {
            break;
        }
    }
    println!("{images} crash images");
    assert!(images > 1_000);
}

#[test]
fn no_crash_inside_recovery_loses_anything_of_a_trimmed_log_either() {
    let mut images = 0;
    for call in (1..).step_by(3) {
        let (disk, told, ended) = died_trimming_at(call);
        for mut first in crashes(&disk).into_iter().step_by(9) {
            let once = disk.crashed(&mut first);
            for again in 1.. {
                let twice = once.killed();
                let fault = PlannedFault { at_call: again, kind: FaultKind::Eio, lasting: true };
                twice.plan(Some(fault));
                let opened = Wal::open(&twice, options(), told.anchor, |_| {})
                    .and_then(|(mut wal, _)| wal.prepare());
                twice.plan(None);
                for mut second in crashes(&twice).into_iter().step_by(5) {
                    images += 1;
                    let what = format!("call {call}, {:b}; then {again}", first.bits);
                    let image = twice.crashed(&mut second);
                    let (_, recovered) = open_trimmed(&image, told.anchor, &what);
                    assert!(recovered.last_lsn >= told.acknowledged, "{what}");
                }
                if opened.is_ok() {
                    break;
                }
            }
        }
        if ended {
            break;
        }
    }
    println!("{images} crash images");
    assert!(images > 3_000);
}
