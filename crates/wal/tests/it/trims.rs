//! What of a log may go, and when: never more than the policy says.
#![allow(clippy::unwrap_used)]

use crate::support::{SEGMENT_BYTES, append, options};
use tenure_log::{Keep, Lsn, Trimmed};
use tenure_wal::Wal;
use tenure_wal::disk::Disk;
use tenure_wal::disk::model::ModelDisk;

/// A log of several segments, and where each of them begins.
fn several_segments() -> (Wal<ModelDisk>, Vec<Lsn>) {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    let mut begins = vec![Lsn(1)];
    let mut bytes = wal.extent().bytes;
    while begins.len() < 4 {
        let first = wal.written().next();
        append(&mut wal, 2).unwrap();
        wal.sync().unwrap();
        if wal.extent().bytes > bytes {
            bytes = wal.extent().bytes;
            begins.push(first);
        }
    }
    (wal, begins)
}

#[test]
fn no_record_goes_that_somebody_still_needs() {
    let (mut wal, begins) = several_segments();
    let everything = Keep::Bytes(0);
    for pair in begins.windows(2) {
        let [oldest, next] = pair else { unreachable!("they come in pairs") };
        let needed = wal.trim_one(next.before(), everything, 0).unwrap();
        assert_eq!((needed, wal.extent().oldest), (Trimmed::Nothing, *oldest));
        let free = wal.trim_one(*next, everything, 0).unwrap();
        assert_eq!((free, wal.extent().oldest), (Trimmed::Some, *next));
    }
    let last = wal.trim_one(wal.written(), everything, 0).unwrap();
    assert_eq!(last, Trimmed::Nothing, "the segment that is being written stays");
}

#[test]
fn a_log_that_is_no_longer_than_it_may_be_stays() {
    let (mut wal, begins) = several_segments();
    let (all, bytes) = (wal.written(), wal.extent().bytes);
    assert_eq!(bytes, begins.len() as u64 * SEGMENT_BYTES);
    assert_eq!(wal.trim_one(all, Keep::All, u64::MAX).unwrap(), Trimmed::Nothing);
    assert_eq!(wal.trim_one(all, Keep::Bytes(bytes), 0).unwrap(), Trimmed::Nothing);
    assert_eq!(wal.trim_one(all, Keep::Bytes(bytes - 1), 0).unwrap(), Trimmed::Some);
    assert_eq!(wal.extent().bytes, bytes - SEGMENT_BYTES);
}

#[test]
fn a_segment_goes_when_its_last_record_is_old_enough() {
    let (mut wal, begins) = several_segments();
    // All that is in it was written before the first frame of the next.
    let next_at_ms = 1_000 + begins[1].before().0;
    let (all, keep) = (wal.written(), Keep::Ms(500));
    assert_eq!(wal.trim_one(all, keep, next_at_ms + 499).unwrap(), Trimmed::Nothing);
    assert_eq!(wal.trim_one(all, keep, next_at_ms + 500).unwrap(), Trimmed::Some);
    assert_eq!(wal.extent().oldest, begins[1]);
}

#[test]
fn files_that_are_named_almost_like_trimmed_ones_are_left_alone() {
    let disk = ModelDisk::default();
    let strangers = ["used-1.tmp", "used-00000000000000zz.tmp", "used-0000000000000001"];
    for name in strangers {
        disk.put(name, vec![7; 100]);
    }
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    for _ in 0..20 {
        append(&mut wal, 2).unwrap();
        wal.sync().unwrap();
    }
    for name in strangers {
        assert_eq!(disk.bytes(name), Some(vec![7; 100]), "{name} of {:?}", disk.list());
    }
}
