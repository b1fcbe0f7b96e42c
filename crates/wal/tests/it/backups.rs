//! Copies of a log that is in use, and logs put back from them.
#![allow(clippy::unwrap_used)]

use crate::support::{self, append, crashes, options, record};
use tenure_log::SnapshotFooter;
use tenure_log::{Backup, BackupSource, Batch, Fault, Lsn, Note, Read, Since};
use tenure_wal::disk::Disk;
use tenure_wal::disk::model::{FaultKind, ModelDisk, PlannedFault};
use tenure_wal::snapshot::{self, SnapshotWriter};
use tenure_wal::{CopiedFile, Options, Wal, restore};

/// Takes the copy out of a backup.
fn take(backup: &Backup) -> ModelDisk {
    let copy = ModelDisk::default();
    for file in &backup.files {
        let mut bytes = vec![0; file.size as usize];
        let mut offset = 0;
        // In odd pieces, as they come.
        while offset < file.bytes {
            let until = bytes.len().min(offset as usize + 1_000);
            offset += file.read(&mut bytes[offset as usize..until], offset).unwrap() as u64;
        }
        copy.put(&file.name, bytes);
    }
    copy
}

/// A snapshot of nothing but its number.
fn snapshot(wal: &Wal<ModelDisk>) -> SnapshotFooter {
    let end = wal.end();
    let footer = SnapshotFooter {
        lsn: end.lsn,
        chain: end.chain,
        state_hash: [7; 32],
        items: wal.written().0,
    };
    let mut writer = SnapshotWriter::create(wal.disk(), wal.log_id(), footer.lsn).unwrap();
    writer.write(b"as it is").unwrap();
    writer.finish(&footer).unwrap();
    footer
}

/// Everything in a folder, from its oldest record on.
fn records(
    disk: &ModelDisk,
    anchor: Option<tenure_log::Anchor>,
) -> (Vec<(Lsn, Vec<u8>)>, Vec<Note>) {
    let mut found = Vec::new();
    let (_, recovered) = Wal::open(disk, options(), anchor, |frame| {
        found.extend(frame.records().map(|(lsn, bytes)| (lsn, bytes.to_vec())));
    })
    .unwrap();
    (found, recovered.notes)
}

#[test]
fn a_copy_has_all_that_was_told_and_nothing_else() {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    let empty = wal.reader().begin_backup(Since::Snapshot).unwrap();
    assert_eq!((empty.lsn, records(&take(&empty), None)), (Lsn(0), (Vec::new(), Vec::new())));
    for count in 1..40 {
        append(&mut wal, count % 4 + 1).unwrap();
        let told = wal.sync().unwrap().lsn();
        let backup = wal.reader().begin_backup(Since::Snapshot).unwrap();
        // What comes later is not in it, though it is written before the copy is read.
        append(&mut wal, 2).unwrap();
        let (found, notes) = records(&take(&backup), None);
        assert_eq!((backup.lsn, found.len() as u64, notes.len()), (told, told.0, 0));
        assert!(found.iter().all(|(lsn, bytes)| *bytes == record(lsn.0)));
        wal.sync().unwrap();
    }
}

/// A mark follows the last record when nothing happens for a while, and a copy ends with the record.
#[test]
fn a_snapshot_that_is_taken_behind_a_mark_fits_a_copy() {
    for restarts in [false, true] {
        let disk = ModelDisk::default();
        let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
        append(&mut wal, 3).unwrap();
        wal.sync().unwrap();
        wal.mark(1_000).unwrap();
        if restarts {
            drop(wal);
            (wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
            wal.mark(2_000).unwrap();
        }
        let footer = snapshot(&wal);
        let copy = take(&wal.reader().begin_backup(Since::Snapshot).unwrap());
        let anchor = Some(footer.anchor());
        assert_eq!(records(&copy, anchor), (Vec::new(), Vec::new()));
        let back = ModelDisk::default();
        let restored = restore(&copy, &back, options(), None, &mut |_| {}).unwrap();
        assert_eq!(restored.lsn, Lsn(3));
        drop(wal);
        // The log itself fits too, on whichever side of the mark it is looked at.
        assert_eq!(records(&disk, anchor), (Vec::new(), Vec::new()));
    }
}

#[test]
fn a_copy_outlives_the_files_that_it_is_taken_from() {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    for _ in 0..12 {
        append(&mut wal, 2).unwrap();
        wal.sync().unwrap();
    }
    let backup = wal.reader().begin_backup(Since::Oldest).unwrap();
    // Everything is trimmed, and what was made of it is overwritten.
    for _ in 0..12 {
        wal.trim(wal.written()).unwrap();
        wal.prepare().unwrap();
        append(&mut wal, 2).unwrap();
        wal.sync().unwrap();
    }
    assert!(matches!(wal.reader().read().unwrap(), Read::Trimmed(_)));
    let (found, notes) = records(&take(&backup), None);
    assert_eq!((found.len(), notes.len()), (24, 0));
    assert!(found.iter().all(|(lsn, bytes)| *bytes == record(lsn.0)));
    // Once nobody reads them any more, files are used again.
    drop(backup);
    for _ in 0..12 {
        append(&mut wal, 2).unwrap();
        wal.sync().unwrap();
    }
    wal.trim(wal.written()).unwrap();
    assert!(disk.list().unwrap().iter().any(|name| name.starts_with("used-")));
}

#[test]
fn a_log_is_put_back_up_to_any_record() {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    for count in [1, 3, 2, 5, 1, 4, 2, 3, 1, 1, 6, 2] {
        append(&mut wal, count).unwrap();
        wal.sync().unwrap();
    }
    let copy = take(&wal.reader().begin_backup(Since::Oldest).unwrap());
    let last = wal.written();
    for until in (0..=last.0).map(Lsn) {
        let folder = ModelDisk::default();
        let restored = restore(&copy, &folder, options(), Some(until), &mut |_| {}).unwrap();
        assert_eq!(restored.lsn, until);
        let (found, notes) = records(&folder, None);
        assert_eq!((found.len() as u64, notes.len()), (until.0, 0), "up to {until}");
        assert!(found.iter().all(|(lsn, bytes)| *bytes == record(lsn.0)));
        // And it goes on.
        let (mut wal, _) = Wal::open(&folder, options(), None, |_| {}).unwrap();
        assert_eq!(append(&mut wal, 1).unwrap(), until.next());
    }
    let beyond = restore(&copy, &ModelDisk::default(), options(), Some(last.next()), &mut |_| {});
    assert!(matches!(beyond, Err(Fault::Beyond { last: end, .. }) if end == last));
}

#[test]
fn a_copy_goes_back_to_the_older_snapshot_and_no_further() {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    let mut footers = Vec::new();
    for _ in 0..3 {
        for _ in 0..6 {
            append(&mut wal, 2).unwrap();
            wal.sync().unwrap();
        }
        footers.push(snapshot(&wal));
    }
    append(&mut wal, 3).unwrap();
    wal.sync().unwrap();
    let [_, older, newer] = footers[..] else { unreachable!("three were taken") };
    let backup = wal.reader().begin_backup(Since::Snapshot).unwrap();
    assert_eq!((backup.lsn, backup.since), (wal.written(), older.lsn));
    let whole = wal.reader().begin_backup(Since::Oldest).unwrap();
    assert!(whole.files.len() > backup.files.len());
    let copy = take(&backup);
    for until in (older.lsn.0..=wal.written().0).map(Lsn) {
        let folder = ModelDisk::default();
        restore(&copy, &folder, options(), Some(until), &mut |_| {}).unwrap();
        let base = if until >= newer.lsn { newer } else { older };
        let (found, _) = records(&folder, Some(base.anchor()));
        assert_eq!(found.len() as u64, until.0 - base.lsn.0, "up to {until}");
    }
    let before = restore(&copy, &ModelDisk::default(), options(), Some(Lsn(2)), &mut |_| {});
    assert!(matches!(before, Err(Fault::Corrupt(_) | Fault::Beyond { .. })), "{before:?}");
}

/// A log with two snapshots and records after them, and the copy in the making.
fn copied_log() -> (Wal<ModelDisk>, SnapshotFooter, Backup) {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    let mut newest = None;
    for _ in 0..2 {
        for _ in 0..4 {
            append(&mut wal, 2).unwrap();
            wal.sync().unwrap();
        }
        newest = Some(snapshot(&wal));
    }
    append(&mut wal, 3).unwrap();
    wal.sync().unwrap();
    let backup = wal.reader().begin_backup(Since::Snapshot).unwrap();
    (wal, newest.unwrap(), backup)
}

/// Writes a copy as `tenure backup` does: piece by piece, each file durable before the next.
fn write_copy(backup: &Backup, to: &ModelDisk) -> Result<(), Fault> {
    for file in &backup.files {
        let mut copied = CopiedFile::create(to, &file.name)?;
        let mut piece = [0; 1_000];
        while copied.offset < file.bytes {
            let read = file.read(&mut piece, copied.offset)?;
            copied.write(&piece[..read])?;
        }
        copied.finish(file.size)?;
    }
    Ok(())
}

/// All that a whole copy has to have.
fn assert_whole(disk: &ModelDisk, newest: SnapshotFooter, last: Lsn, what: &str) {
    let there = snapshot::list(disk).unwrap();
    assert_eq!((there.len(), there[0]), (2, newest.lsn), "{what}");
    for lsn in there {
        snapshot::load(disk, log_id(disk), lsn, |_| {})
            .unwrap_or_else(|fault| unreachable!("{what}: {fault}"));
    }
    let (found, notes) = records(disk, Some(newest.anchor()));
    assert_eq!((found.len() as u64, notes.len()), (last.0 - newest.lsn.0, 0), "{what}");
    assert!(found.iter().all(|(lsn, bytes)| *bytes == record(lsn.0)), "{what}");
}

fn log_id(disk: &ModelDisk) -> u128 {
    tenure_wal::first_segment(disk).unwrap().unwrap().log_id
}

#[test]
fn a_copy_that_is_finished_survives_any_crash_and_one_that_is_not_says_so() {
    let (wal, newest, backup) = copied_log();
    let mut images = 0;
    for call in 1.. {
        let copy = ModelDisk::default();
        copy.plan(Some(PlannedFault { at_call: call, kind: FaultKind::Eio, lasting: true }));
        let written = write_copy(&backup, &copy);
        copy.plan(None);
        // Its folder has no name yet unless the last call went well.
        if written.is_err() {
            continue;
        }
        for mut crash in crashes(&copy) {
            images += 1;
            let what = format!("call {call}, {:b}", crash.bits);
            assert_whole(&copy.crashed(&mut crash), newest, wal.written(), &what);
        }
        assert!(call > 20, "it takes more than {call} calls");
        break;
    }
    assert!(images > 0);
}

#[test]
fn a_copy_whose_writing_failed_once_is_whole_or_told_of() {
    let (wal, newest, backup) = copied_log();
    let kinds = [FaultKind::Eio, FaultKind::Enospc, FaultKind::Eintr, FaultKind::Short];
    for kind in kinds {
        for call in 1.. {
            let copy = ModelDisk::default();
            copy.plan(Some(PlannedFault { at_call: call, kind, lasting: false }));
            let written = write_copy(&backup, &copy);
            let has_passed = copy.calls() < call;
            copy.plan(None);
            if written.is_ok() {
                let crashed = copy.crashed(&mut support::Nothing);
                assert_whole(&crashed, newest, wal.written(), &format!("{kind:?} at {call}"));
            }
            if has_passed {
                break;
            }
        }
    }
}

#[test]
fn a_log_that_was_put_back_survives_any_crash_once_that_is_said() {
    let (wal, newest, backup) = copied_log();
    let copy = take(&backup);
    let kinds = [
        (FaultKind::Eio, true),
        (FaultKind::Eio, false),
        (FaultKind::Enospc, false),
        (FaultKind::Eintr, false),
        (FaultKind::Short, false),
    ];
    let mut images = 0;
    for (kind, lasting) in kinds {
        for call in 1.. {
            let folder = ModelDisk::default();
            folder.plan(Some(PlannedFault { at_call: call, kind, lasting }));
            let restored = restore(&copy, &folder, options(), None, &mut |_| {});
            let has_passed = folder.calls() < call;
            folder.plan(None);
            if restored.is_ok() {
                for mut crash in crashes(&folder) {
                    images += 1;
                    let what = format!("{kind:?} at {call}, {:b}", crash.bits);
                    assert_whole(&folder.crashed(&mut crash), newest, wal.written(), &what);
                }
            }
            if has_passed {
                break;
            }
        }
    }
    println!("{images} images");
    assert!(images > 20);
}

#[test]
fn a_copy_and_a_log_put_back_are_as_long_as_they_say() {
    let (_, _, backup) = copied_log();
    let bytes: u64 = backup.files.iter().map(|file| file.bytes).sum();
    assert!(bytes > 0);
    assert_eq!(backup.bytes(), bytes);
    let (copy, folder) = (take(&backup), ModelDisk::default());
    let mut told = Vec::new();
    let restored = restore(&copy, &folder, options(), None, &mut |bytes| told.push(bytes)).unwrap();
    assert!(restored.bytes > 0 && told.is_sorted());
    assert_eq!(told.last(), Some(&restored.bytes), "the last word is all of it");
    for file in &backup.files {
        let there = folder.bytes(&file.name).map(|bytes| bytes.len() as u64);
        assert_eq!(there, Some(file.size), "{}", file.name);
    }
}

/// Files go while they are being opened, so it is tried again; those that are gone for good, or
/// cannot be read, must not keep it trying for ever.
#[test]
fn a_copy_is_begun_anew_when_a_file_is_gone_and_is_given_up_in_the_end() {
    let (wal, _, _) = copied_log();
    let disk = wal.disk();
    let calls = |begun: &dyn Fn() -> bool| {
        let before = disk.calls();
        (begun(), disk.calls() - before)
    };
    let begin = || wal.reader().begin_backup(Since::Oldest).is_ok();
    let (is_begun, once) = calls(&begin);
    assert!(is_begun);
    let unreadable =
        PlannedFault { at_call: disk.calls() + 1, kind: FaultKind::Eio, lasting: true };
    disk.plan(Some(unreadable));
    assert_eq!(calls(&begin), (false, 1), "no other try mends a disk");
    disk.plan(None);
    let oldest = disk.list().unwrap().into_iter().find(|name| name.ends_with(".wal")).unwrap();
    disk.take(&oldest);
    let (is_begun, often) = calls(&begin);
    assert!(!is_begun && often > 3 * once, "{often} calls, and {once} for one try");
}

#[test]
fn a_copied_file_is_made_as_long_as_it_was_and_nothing_of_it_changes() {
    let disk = ModelDisk::default();
    for (size, expected) in [(3, &[1, 2, 3][..]), (5, &[1, 2, 3, 0, 0])] {
        let mut file = CopiedFile::create(&disk, "copied").unwrap();
        file.write(&[1, 2]).unwrap();
        file.write(&[3]).unwrap();
        file.finish(size).unwrap();
        assert_eq!(disk.bytes("copied").unwrap(), expected);
    }
}

/// The oldest record of a copy may be the one right behind its snapshot, and no later one.
#[test]
fn a_copy_that_begins_right_behind_its_snapshot_is_put_back() {
    let fill = |wal: &mut Wal<ModelDisk>, until: Option<Lsn>| loop {
        let (next, bytes) = (wal.written().next(), wal.extent().bytes);
        if until == Some(next) {
            return next;
        }
        append(wal, 1).unwrap();
        wal.sync().unwrap();
        if until.is_none() && wal.extent().bytes > bytes {
            return next;
        }
    };
    let (mut first, _) = Wal::open(&ModelDisk::default(), options(), None, |_| {}).unwrap();
    let second_begins = fill(&mut first, None);
    let (mut wal, _) = Wal::open(&ModelDisk::default(), options(), None, |_| {}).unwrap();
    fill(&mut wal, Some(second_begins));
    snapshot(&wal);
    append(&mut wal, 1).unwrap();
    wal.sync().unwrap();
    wal.trim(second_begins).unwrap();
    assert_eq!(wal.extent().oldest, second_begins);
    let copy = take(&wal.reader().begin_backup(Since::Oldest).unwrap());
    let restored = restore(&copy, &ModelDisk::default(), options(), None, &mut |_| {}).unwrap();
    assert_eq!(restored.lsn, second_begins);
    let [only] = snapshot::list(&copy).unwrap()[..] else { unreachable!("there is one") };
    copy.take(&snapshot::file_name(only));
    let alone = restore(&copy, &ModelDisk::default(), options(), None, &mut |_| {});
    assert!(matches!(alone, Err(Fault::Corrupt(_))), "{alone:?}");
}

/// Files are copied in pieces of a megabyte, and the last piece ends where the copy is cut.
#[test]
fn nothing_behind_the_cut_of_a_long_segment_is_put_back() {
    let disk = ModelDisk::default();
    let options = Options { segment_bytes: 4 << 20, ..options() };
    let (mut wal, _) = Wal::open(&disk, options, None, |_| {}).unwrap();
    for lsn in 1..=30 {
        let mut batch = Batch::default();
        batch.push(|out| out.extend(vec![lsn; 100_000]));
        wal.append(&mut batch, 1_000).unwrap();
        wal.sync().unwrap();
    }
    let copy = take(&wal.reader().begin_backup(Since::Oldest).unwrap());
    let folder = ModelDisk::default();
    let restored = restore(&copy, &folder, options, Some(Lsn(15)), &mut |_| {}).unwrap();
    assert_eq!(restored.lsn, Lsn(15));
    assert!(restored.bytes > 1 << 20 && restored.bytes < 2 << 20, "{}", restored.bytes);
    let (_, recovered) = Wal::open(&folder, options, None, |_| {}).unwrap();
    assert_eq!((recovered.last_lsn, recovered.notes), (Lsn(15), Vec::new()));
}
