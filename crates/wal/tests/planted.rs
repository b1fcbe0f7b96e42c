//! Tests of the tests: each planted bug must be caught by some check, and without one all pass.
//!
//! `cargo test -p tenure-wal --features planted --test planted -- --nocapture` prints a line for
//! each: `planted: NAME | checks | how many`.
#![allow(clippy::unwrap_used)]

mod support;

use std::panic::catch_unwind;
use std::sync::Mutex;

use support::reference::{Ends, open_image, reference};
use support::trimming::{Told, check_orderly_run, check_trimmed, write_and_trim};
use support::{BATCHES, Nothing, check_after_crash, crashes, open, write_all};
use tenure_log::{Fault, Lsn};
use tenure_wal::disk::model::{FaultKind, ModelDisk, PlannedFault, SECTOR_BYTES};
use tenure_wal::planted::{Bug, plant};

/// Each has its own bug at a time.
const THREADS: usize = 2;

const BUGS: [Bug; 16] = [
    Bug::SyncSkipped,
    Bug::SyncErrorIgnored,
    Bug::SyncErrorRetried,
    Bug::FolderSyncMissing,
    Bug::RenameBeforeSync,
    Bug::AppendAfterTornTail,
    Bug::LengthTrusted,
    Bug::CrcWithoutSalt,
    Bug::LaterFramesIgnored,
    Bug::TailNotSynced,
    Bug::TailNotRewritten,
    Bug::ZerosParse,
    Bug::SnapshotNotReadBack,
    Bug::RecycledNotZeroed,
    Bug::RecycledTooEarly,
    Bug::GoesOnTooEarly,
];

/// The checks of the other files, each small enough to run once for every bug.
const CHECKS: [(&str, fn()); 9] = [
    ("crash after a call", crash_after_every_call),
    ("one failing call", one_failing_call),
    ("killed process", killed_process),
    ("flipped bits", flipped_bits),
    ("another salt", another_salt),
    ("lost sectors", lost_sectors),
    ("silent disk", support::silent::check_snapshots),
    ("files used again", check_orderly_run),
    ("crash while files are used again", crash_while_recycling),
];

/// Writes with a call that fails, and then lets the power fail in every way.
fn fail_every_call(lasting: bool) {
    for at_call in 1.. {
        let disk = ModelDisk::default();
        disk.plan(Some(PlannedFault { at_call, kind: FaultKind::Eio, lasting }));
        let mut acknowledged = Lsn::NONE;
        let ended = write_all(&disk, &BATCHES, |lsn| acknowledged = lsn);
        let passed = disk.calls() < at_call;
        disk.plan(None);
        for mut crash in crashes(&disk) {
            let image = disk.crashed(&mut crash);
            check_after_crash(&image, acknowledged, BATCHES.iter().sum(), "planted");
        }
        if passed {
            break;
        }
        assert!(matches!(ended, Err(Fault::Io { .. })), "a call failed and nobody says so");
    }
}

fn crash_after_every_call() {
    fail_every_call(true);
}

fn one_failing_call() {
    fail_every_call(false);
}

fn crash_while_recycling() {
    for at_call in 1.. {
        let (disk, mut told) = (ModelDisk::default(), Told::default());
        disk.plan(Some(PlannedFault { at_call, kind: FaultKind::Eio, lasting: true }));
        let ended = write_and_trim(&disk, &mut told).is_ok();
        for mut crash in crashes(&disk) {
            check_trimmed(&disk.crashed(&mut crash), &told, "planted");
        }
        if ended {
            break;
        }
    }
}

fn killed_process() {
    for at_call in 1.. {
        let disk = ModelDisk::default();
        disk.plan(Some(PlannedFault { at_call, kind: FaultKind::Eio, lasting: true }));
        let ended = write_all(&disk, &BATCHES, |_| {}).is_ok();
        let killed = disk.killed();
        let (_, _, records) = open(&killed).unwrap();
        let (_, _, left) = open(&killed.crashed(&mut Nothing)).unwrap();
        assert!(left == records, "it was served and is gone");
        if ended {
            break;
        }
    }
}

fn flipped_bits() {
    let reference = reference(Ends::WithMark);
    for (file, bytes) in &reference.image {
        let mut image = reference.image.clone();
        for at in (0..bytes.len()).step_by(5) {
            image.get_mut(file).unwrap()[at] ^= 1 << (at % 8);
            reference.check_flip(file, at, &open_image(&image), file);
            image.get_mut(file).unwrap()[at] ^= 1 << (at % 8);
        }
    }
}

fn lost_sectors() {
    let reference = reference(Ends::WithMark);
    for (file, bytes) in &reference.image {
        // One sector, and several in a row, as when a track is lost.
        for count in [1, 2, 4] {
            for at in 0..=bytes.len() / SECTOR_BYTES - count {
                let mut after = bytes.clone();
                after[at * SECTOR_BYTES..(at + count) * SECTOR_BYTES].fill(0);
                reference.check_sectors(file, &after, &format!("{file}, {count} from {at}"));
            }
        }
    }
}

fn another_salt() {
    reference(Ends::WithRecords).check_salts();
}

fn caught_by(bug: Option<Bug>) -> Vec<&'static str> {
    plant(bug);
    let caught = CHECKS.iter().filter(|(_, check)| catch_unwind(check).is_err());
    let caught = caught.map(|(name, _)| *name).collect();
    plant(None);
    caught
}

#[test]
fn every_planted_bug_is_caught() {
    assert_eq!(caught_by(None), [""; 0], "without a bug all is well");
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (left, found) = (Mutex::new(BUGS.iter().enumerate()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let Some((nth, bug)) = left.lock().unwrap().next() else { return };
            let caught = caught_by(Some(*bug));
            found.lock().unwrap().push((nth, bug, caught));
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    std::panic::set_hook(loud);
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|(nth, ..)| *nth);
    assert_eq!(found.len(), BUGS.len(), "each was tried");
    for (_, bug, caught) in &found {
        println!("planted: wal::{bug:?} | {} | {}", caught.join(", "), caught.len());
    }
    for (_, bug, caught) in found {
        assert!(!caught.is_empty(), "nobody notices {bug:?}");
    }
}
