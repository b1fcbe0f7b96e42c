//! What a log does when nothing goes wrong.
#![allow(clippy::unwrap_used)]

use crate::support::{self, BATCHES, append, open, options, record, write_all};
use tenure_log::{Anchor, Batch, Fault, Lsn, Note, Read};
use tenure_wal::Wal;
use tenure_wal::disk::Disk;
use tenure_wal::disk::model::ModelDisk;
use tenure_wal::disk::real::RealDisk;

const WRITTEN: u64 = 21;

#[test]
fn what_is_written_is_read_back_over_segments_and_starts() {
    let disk = ModelDisk::default();
    write_all(&disk, &BATCHES, |_| {}).unwrap();
    let segments = disk.list().unwrap().iter().filter(|name| name.ends_with(".wal")).count();
    assert!(segments >= 3, "{segments} segments");
    for start in 0..3 {
        let (mut wal, recovered, records) = open(&disk).unwrap();
        assert_eq!(recovered.last_lsn.0, WRITTEN + start);
        assert_eq!(recovered.notes, []);
        assert_eq!(wal.epoch(), recovered.epoch + 1);
        assert!((1..).zip(&records).all(|(lsn, bytes)| *bytes == record(lsn)));
        append(&mut wal, 1).unwrap();
        wal.sync().unwrap();
    }
}

#[test]
fn the_same_on_a_real_disk() {
    let folder = std::env::temp_dir().join(format!("tenure-wal-{}", std::process::id()));
    let disk = RealDisk::open(&folder).unwrap();
    write_all(&disk, &BATCHES, |_| {}).unwrap();
    let (wal, recovered, records) = open(&disk).unwrap();
    assert_eq!((recovered.last_lsn.0, records.len() as u64), (WRITTEN, WRITTEN));
    let second = Wal::open(&disk, options(), None, |_| {});
    assert!(matches!(second, Err(Fault::InUse { .. })), "two writers");
    assert_eq!(second.unwrap_err().exit_code(), 73);
    drop(wal);
    open(&disk).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_reader_sees_only_what_is_durable_and_starts_anywhere() {
    let disk = ModelDisk::default();
    write_all(&disk, &BATCHES, |_| {}).unwrap();
    let (mut wal, _, _) = open(&disk).unwrap();
    let mut reader = wal.reader();
    for from in 1..=WRITTEN {
        reader.seek(Lsn(from));
        let mut next = None;
        while let Read::Frame(frame) = reader.read().unwrap() {
            for (lsn, bytes) in frame.records().filter(|(lsn, _)| lsn.0 >= from) {
                assert_eq!(lsn.0, next.unwrap_or(from), "from {from}");
                assert_eq!(bytes, record(lsn.0));
                next = Some(lsn.0 + 1);
            }
        }
        assert_eq!(next, Some(WRITTEN + 1));
    }
    append(&mut wal, 2).unwrap();
    assert!(matches!(reader.read().unwrap(), Read::UpToDate), "it is not durable yet");
    wal.sync().unwrap();
    let Read::Frame(frame) = reader.read().unwrap() else { unreachable!("now it is") };
    assert_eq!(frame.header.first_lsn.0, WRITTEN + 1);
}

#[test]
fn trimmed_records_are_gone_and_the_rest_stays() {
    let disk = ModelDisk::default();
    write_all(&disk, &BATCHES, |_| {}).unwrap();
    let (mut wal, _, _) = open(&disk).unwrap();
    wal.trim(Lsn(15)).unwrap();
    let mut reader = wal.reader();
    reader.seek(Lsn(1));
    let Read::Trimmed(oldest) = reader.read().unwrap() else { unreachable!("1 is gone") };
    assert!(oldest > Lsn(1) && oldest <= Lsn(15), "{oldest}");
    reader.seek(Lsn(15));
    assert!(matches!(reader.read().unwrap(), Read::Frame(_)));
    let anchor = Anchor { lsn: wal.written(), chain: wal.chain() };
    drop(wal);
    // Without its beginning a log can only be opened with a snapshot's word for what was there.
    let opened = Wal::open(&disk, options(), None, |_| {});
    assert!(matches!(opened, Err(Fault::Corrupt(_))));
    let (_, recovered) = Wal::open(&disk, options(), Some(anchor), |_| {}).unwrap();
    assert_eq!(recovered.last_lsn.0, WRITTEN);
}

#[test]
fn an_anchor_saves_reading_and_is_held_against_the_log() {
    let disk = ModelDisk::default();
    let mut anchors = Vec::new();
    {
        let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
        for count in BATCHES {
            let lsn = append(&mut wal, count).unwrap();
            wal.sync().unwrap();
            anchors.push(Anchor { lsn, chain: wal.chain() });
        }
    }
    for anchor in &anchors {
        let mut visited = Vec::new();
        let visit =
            |frame: &tenure_log::Frame<'_>| visited.extend(frame.records().map(|(lsn, _)| lsn.0));
        Wal::open(&disk, options(), Some(*anchor), visit).unwrap();
        assert_eq!(visited, (anchor.lsn.0 + 1..=WRITTEN).collect::<Vec<_>>());
    }
    let wrong = Anchor { chain: anchors[1].chain, ..anchors[2] };
    let beyond = Anchor { lsn: Lsn(WRITTEN + 1), ..anchors[7] };
    for anchor in [wrong, beyond] {
        let opened = Wal::open(&disk, options(), Some(anchor), |_| {});
        assert!(matches!(opened, Err(Fault::Corrupt(_))), "{anchor:?}");
    }
    let told = Wal::open(&disk, options(), Some(beyond), |_| {}).unwrap_err().to_string();
    assert!(told.contains("the log ends here"), "{told}");
}

#[test]
fn a_full_disk_refuses_a_frame_and_takes_it_when_there_is_room() {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    disk.limit_room(Some(support::SEGMENT_BYTES + 100));
    let mut written = 0;
    let full = loop {
        match append(&mut wal, 3) {
            Ok(lsn) => written = lsn.0,
            Err(fault) => break fault,
        }
        wal.sync().unwrap();
    };
    assert!(matches!(full, Fault::Full));
    assert_eq!(wal.written().0, written);
    assert!(!disk.list().unwrap().iter().any(|name| name.ends_with(".tmp")), "room is given back");
    disk.limit_room(None);
    append(&mut wal, 3).unwrap();
    wal.sync().unwrap();
    drop(wal);
    let (_, recovered, _) = open(&disk).unwrap();
    assert_eq!((recovered.last_lsn.0, recovered.notes), (written + 3, Vec::<Note>::new()));
}

/// What does not fit a segment would be written behind its end.
#[test]
#[should_panic(expected = "does not fit a segment")]
fn a_frame_that_fits_no_segment_is_never_begun() {
    let (mut wal, _) = Wal::open(&ModelDisk::default(), options(), None, |_| {}).unwrap();
    let mut of = |bytes| {
        let mut batch = Batch::default();
        batch.push(|out| out.extend(vec![7; bytes]));
        wal.append(&mut batch, 1_000).unwrap();
        wal.sync().unwrap();
    };
    // Behind the two headers and before the page of the last word there are two pages.
    let largest = 8_192 - 88 - 4;
    of(largest);
    of(largest);
    of(largest + 1);
}

#[test]
fn a_torn_mark_is_told_of_with_the_place_where_it_begins() {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    append(&mut wal, 1).unwrap();
    wal.sync().unwrap();
    wal.mark(2_000).unwrap();
    drop(wal);
    let name = "segment-0000000000000001.wal";
    let mut bytes = disk.bytes(name).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[end] ^= 1;
    disk.put(name, bytes);
    let (_, recovered, records) = open(&disk).unwrap();
    assert_eq!(records.len(), 1);
    let begins = end as u64 / 4_096 * 4_096;
    let torn = Note::Torn { file: name.to_owned(), offset: begins, lsn: Lsn(2) };
    assert_eq!(recovered.notes, [torn]);
}
