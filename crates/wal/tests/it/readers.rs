//! Readers of segments that are trimmed, and whose files are overwritten under them.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{append, options, record};
use tenure_log::{Lsn, Read};
use tenure_wal::Wal;
use tenure_wal::disk::model::ModelDisk;

#[test]
fn a_reader_in_a_trimmed_segment_is_told_so() {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    for _ in 0..12 {
        append(&mut wal, 2).unwrap();
        wal.sync().unwrap();
    }
    let mut reader = wal.reader();
    assert!(matches!(reader.read().unwrap(), Read::Frame(_)));
    wal.trim(wal.written()).unwrap();
    // The file that the reader has open is zeros now.
    wal.prepare().unwrap();
    let Read::Trimmed(oldest) = reader.read().unwrap() else { unreachable!("it is gone") };
    assert!(matches!(reader.read().unwrap(), Read::Trimmed(again) if again == oldest));
    reader.seek(oldest);
    let Read::Frame(frame) = reader.read().unwrap() else { unreachable!("it is there") };
    assert_eq!(frame.header.first_lsn, oldest);
}

/// The reader is always in the segment that is about to be trimmed.
#[test]
fn a_reader_never_takes_a_file_that_is_used_again_for_damage() {
    const BATCHES: u64 = 3_000;
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    let (mut reader, done) = (wal.reader(), AtomicBool::new(false));
    let (mut frames, mut trimmed) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..BATCHES {
                append(&mut wal, 3).unwrap();
                let durable = wal.sync().unwrap().lsn();
                wal.trim(Lsn(durable.0.saturating_sub(2))).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            match reader.read().unwrap() {
                Read::Frame(frame) => {
                    frames += 1;
                    assert!(frame.records().all(|(lsn, bytes)| bytes == record(lsn.0)));
                }
                Read::UpToDate => std::thread::yield_now(),
                Read::Trimmed(oldest) => {
                    trimmed += 1;
                    reader.seek(oldest);
                }
            }
        }
    });
    println!("{frames} frames read, {trimmed} times too late");
    assert!(frames > 0);
}
