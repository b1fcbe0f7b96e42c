//! Copies of a log that is in use, and logs put back from them.
#![allow(clippy::unwrap_used)]

mod support;

use support::{append, options, record};
use tenure_wal::disk::Disk;
use tenure_wal::disk::model::ModelDisk;
use tenure_wal::snapshot::{Footer, SnapshotWriter};
use tenure_wal::{Backup, Fault, Lsn, Note, Read, Since, Wal, restore};

/// Takes the copy out of a backup.
fn take(backup: &Backup<ModelDisk>) -> ModelDisk {
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
fn snapshot(wal: &Wal<ModelDisk>) -> Footer {
    let footer = Footer {
        lsn: wal.written(),
        chain: wal.chain(),
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
    anchor: Option<tenure_wal::Anchor>,
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
    let empty = Backup::begin(&wal.reader(), Since::Snapshot).unwrap();
    assert_eq!((empty.lsn, records(&take(&empty), None)), (Lsn(0), (Vec::new(), Vec::new())));
    for count in 1..40 {
        append(&mut wal, count % 4 + 1).unwrap();
        let told = wal.sync().unwrap().lsn();
        let backup = Backup::begin(&wal.reader(), Since::Snapshot).unwrap();
        // What comes later is not in it, though it is written before the copy is read.
        append(&mut wal, 2).unwrap();
        let (found, notes) = records(&take(&backup), None);
        assert_eq!((backup.lsn, found.len() as u64, notes.len()), (told, told.0, 0));
        assert!(found.iter().all(|(lsn, bytes)| *bytes == record(lsn.0)));
        wal.sync().unwrap();
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
    let backup = Backup::begin(&wal.reader(), Since::Oldest).unwrap();
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
    let copy = take(&Backup::begin(&wal.reader(), Since::Oldest).unwrap());
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
    let backup = Backup::begin(&wal.reader(), Since::Snapshot).unwrap();
    assert_eq!((backup.lsn, backup.since), (wal.written(), older.lsn));
    let whole = Backup::begin(&wal.reader(), Since::Oldest).unwrap();
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
