//! Frames so large that they are written in two parts, the one with the header last.
#![allow(clippy::unwrap_used)]

use crate::support::{crashes, options};
use tenure_log::{Batch, Fault, Lsn};
use tenure_wal::disk::Disk;
use tenure_wal::disk::model::{FaultKind, ModelDisk, PlannedFault};
use tenure_wal::disk::real::RealDisk;
use tenure_wal::{Options, Wal};

const SEGMENT_BYTES: u64 = 3 << 20;
const RECORD_BYTES: usize = 600_000;
const FRAMES: u64 = 3;

fn large() -> Options {
    Options { segment_bytes: SEGMENT_BYTES, ..options() }
}

fn record(lsn: u64) -> Vec<u8> {
    (0..RECORD_BYTES).map(|i| (i as u64 * 13 + i as u64 / 256 + lsn) as u8).collect()
}

/// Two records make a large frame; a small one before it, so that it does not begin with a page.
fn write<D: Disk>(disk: &D, acknowledged: &mut Lsn) -> Result<(), Fault> {
    let (mut wal, _) = Wal::open(disk, large(), None, |_| {})?;
    for _ in 0..FRAMES {
        wal.mark(1)?;
        let mut batch = Batch::default();
        for lsn in [wal.written().0 + 1, wal.written().0 + 2] {
            batch.push(|out| out.extend_from_slice(&record(lsn)));
        }
        *acknowledged = wal.commit(&mut batch, 1)?.lsn();
    }
    Ok(())
}

fn check<D: Disk>(disk: &D, acknowledged: Lsn, what: &str) {
    let mut last = 0;
    let opened = Wal::open(disk, large(), None, |frame| {
        for (lsn, bytes) in frame.records() {
            assert!(bytes == record(lsn.0), "{what}: record {lsn} changed");
            last = lsn.0;
        }
    });
    assert!(opened.is_ok(), "{what}: {}", opened.unwrap_err());
    assert!(last >= acknowledged.0, "{what}: {acknowledged} was acknowledged and {last} is left");
}

#[test]
fn a_large_frame_is_read_back_from_a_real_disk() {
    let folder = std::env::temp_dir().join(format!("tenure-wal-large-{}", std::process::id()));
    let disk = RealDisk::open(&folder).unwrap();
    let mut acknowledged = Lsn::NONE;
    write(&disk, &mut acknowledged).unwrap();
    assert_eq!(acknowledged, Lsn(2 * FRAMES));
    check(&disk, acknowledged, "a real disk");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn no_crash_loses_a_large_frame_that_was_acknowledged() {
    let mut images = 0;
    for at_call in 1.. {
        let (disk, mut acknowledged) = (ModelDisk::default(), Lsn::NONE);
        disk.plan(Some(PlannedFault { at_call, kind: FaultKind::Eio, lasting: true }));
        let ended = write(&disk, &mut acknowledged).is_ok();
        for mut crash in crashes(&disk).into_iter().step_by(4) {
            images += 1;
            let what = format!("call {at_call}, sectors {:b}", crash.bits);
            check(&disk.crashed(&mut crash), acknowledged, &what);
        }
        if ended {
            break;
        }
    }
    println!("{images} crash images");
    assert!(images > 50);
}
