//! Snapshots: whole or not there, on every crash and after every changed bit.
//!
//! Proves P11.
#![allow(clippy::unwrap_used)]

use crate::support::{self, BATCHES, crashes, open, options, write_all};
use tenure_log::SnapshotFooter;
use tenure_log::{Chain, Fault, Lsn};
use tenure_wal::Wal;
use tenure_wal::disk::Disk;
use tenure_wal::disk::model::{FaultKind, ModelDisk, PlannedFault};
use tenure_wal::snapshot::{self, SnapshotWriter};

const LOG_ID: u128 = 0xabc;

fn footer(lsn: u64) -> SnapshotFooter {
    SnapshotFooter {
        lsn: Lsn(lsn),
        chain: Chain([lsn as u8; 32]),
        state_hash: [7; 32],
        items: lsn * 2,
    }
}

/// More than two blocks, in uneven pieces.
fn content(lsn: u64) -> Vec<u8> {
    (0..2_300_000_u64).map(|i| (i * 31 + i / 4_096 + lsn) as u8).collect()
}

fn small(lsn: u64) -> Vec<u8> {
    content(lsn)[..700].to_vec()
}

fn write<D: Disk>(disk: &D, lsn: u64, content: &[u8]) -> Result<(), Fault> {
    let mut writer = SnapshotWriter::create(disk, LOG_ID, Lsn(lsn))?;
    for piece in content.chunks(7_777) {
        writer.write(piece)?;
    }
    writer.finish(&footer(lsn))
}

fn load<D: Disk>(disk: &D, lsn: u64) -> Result<(SnapshotFooter, Vec<u8>), Fault> {
    let mut bytes = Vec::new();
    let footer = snapshot::load(disk, LOG_ID, Lsn(lsn), |piece| bytes.extend_from_slice(piece))?;
    Ok((footer, bytes))
}

#[test]
fn a_snapshot_reads_back_and_two_are_kept() {
    let disk = ModelDisk::default();
    for lsn in [5, 9, 20] {
        write(&disk, lsn, &content(lsn)).unwrap();
        assert_eq!(load(&disk, lsn).unwrap(), (footer(lsn), content(lsn)));
    }
    assert_eq!(snapshot::list(&disk).unwrap(), [Lsn(20), Lsn(9)]);
    write(&disk, 21, &[]).unwrap();
    assert_eq!(load(&disk, 21).unwrap(), (footer(21), Vec::new()), "an empty state is one, too");
}

/// All at once at the end, every sync of the log would wait behind it.
#[test]
fn a_snapshot_is_made_durable_while_it_is_written() {
    let disk = ModelDisk::default();
    let mut writer = SnapshotWriter::create(&disk, LOG_ID, Lsn(9)).unwrap();
    let mut unsure_max = 0;
    for piece in content(9).chunks(7_777) {
        writer.write(piece).unwrap();
        unsure_max = unsure_max.max(disk.pending().0.len() * 512);
    }
    assert!(unsure_max < 1 << 20, "{unsure_max} bytes were not durable at once");
}

#[test]
fn what_a_crash_left_of_one_is_gone_with_the_next_start() {
    let disk = ModelDisk::default();
    disk.put("snapshot.tmp", vec![1; 1_000]);
    open(&disk).unwrap();
    assert_eq!(disk.bytes("snapshot.tmp"), None);
}

#[test]
fn one_that_was_set_aside_stays_until_the_next_good_one() {
    let disk = ModelDisk::default();
    let (bad, strange) = ("snapshot-0000000000000005.snap.bad", "snapshot-5.snap.bad");
    disk.put(bad, vec![1]);
    disk.put(strange, vec![1]);
    let mut writer = SnapshotWriter::create(&disk, LOG_ID, Lsn(9)).unwrap();
    writer.write(b"as it is").unwrap();
    assert!(disk.bytes(bad).is_some(), "there is no other yet");
    writer.finish(&footer(9)).unwrap();
    assert_eq!((disk.bytes(bad), disk.bytes(strange)), (None, Some(vec![1])));
}

#[test]
fn a_write_that_the_disk_lost_or_changed_is_noticed_before_the_file_has_its_name() {
    support::silent::check_snapshots();
}

#[test]
fn no_crash_leaves_half_a_snapshot_or_takes_an_older_one() {
    for call in 1.. {
        let disk = ModelDisk::default();
        write(&disk, 5, &small(5)).unwrap();
        write(&disk, 9, &small(9)).unwrap();
        let at_call = disk.calls() + call;
        disk.plan(Some(PlannedFault { at_call, kind: FaultKind::Eio, lasting: true }));
        let ended = write(&disk, 20, &small(20)).is_ok();
        for mut crash in crashes(&disk) {
            let image = disk.crashed(&mut crash);
            let there = snapshot::list(&image).unwrap();
            assert!(there.contains(&Lsn(9)), "call {call}: {there:?}");
            assert!(!ended || there.contains(&Lsn(20)), "it was there and is gone");
            for lsn in there {
                assert_eq!(load(&image, lsn.0).unwrap().1, small(lsn.0), "call {call}");
            }
        }
        if ended {
            break;
        }
    }
}

#[test]
fn no_bit_of_a_snapshot_can_change_unseen() {
    let disk = ModelDisk::default();
    write(&disk, 9, &small(9)).unwrap();
    let name = "snapshot-0000000000000009.snap";
    let good = disk.bytes(name).unwrap();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        disk.put(name, bad);
        assert!(load(&disk, 9).is_err(), "bit {bit}");
    }
    for end in 0..good.len() {
        disk.put(name, good[..end].to_vec());
        assert!(load(&disk, 9).is_err(), "cut at {end}");
    }
    disk.put(name, [good.clone(), vec![0]].concat());
    assert!(load(&disk, 9).is_err(), "something follows");
    disk.put("snapshot-000000000000000a.snap", good.clone());
    assert!(matches!(load(&disk, 10), Err(Fault::Foreign { .. })), "renamed");
    disk.put(name, good);
    assert!(load(&disk, 9).is_ok());
    let other = snapshot::load(&disk, LOG_ID + 1, Lsn(9), |_| {});
    assert!(matches!(other, Err(Fault::Foreign { .. })), "from another log");
}

#[test]
fn a_log_goes_on_from_a_snapshot_after_its_beginning_is_gone() {
    let disk = ModelDisk::default();
    write_all(&disk, &BATCHES, |_| {}).unwrap();
    let (mut wal, recovered, _) = open(&disk).unwrap();
    let whole = SnapshotFooter { chain: recovered.chain, ..footer(recovered.last_lsn.0) };
    let writer = SnapshotWriter::create(&disk, wal.log_id(), whole.lsn).unwrap();
    writer.finish(&whole).unwrap();
    support::append(&mut wal, 3).unwrap();
    wal.sync().unwrap();
    wal.trim(whole.lsn).unwrap();
    drop(wal);
    let newest = snapshot::list(&disk).unwrap()[0];
    let footer = snapshot::load(&disk, LOG_ID, newest, |_| {}).unwrap();
    let mut visited = 0;
    let (_, after) = Wal::open(&disk, options(), Some(footer.anchor()), |frame| {
        visited += frame.header.records;
    })
    .unwrap();
    assert_eq!((visited, after.last_lsn.0), (3, whole.lsn.0 + 3));
}
