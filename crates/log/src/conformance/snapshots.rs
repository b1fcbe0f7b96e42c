//! The laws about snapshots, and about opening a log behind one.

use std::io;
use std::ops::ControlFlow;

use super::Harness;
use super::driver::{Opened, Waits, Writer, check_records, maintenance, open, try_open};
use crate::fault::Fault;
use crate::frame::Chain;
use crate::interface::{Keep, Log, Maintenance, OpenLog, ReadLog, Trimmed};
use crate::lsn::Lsn;
use crate::recovered::{Anchor, Base};
use crate::snapshot::{SnapshotEnd, SnapshotFooter, SnapshotSource, SnapshotSum, SnapshotWork};

/// Pieces of a snapshot.
const PIECES: u64 = 5;
/// Bytes of a piece.
const PIECE_BYTES: usize = 3_000;

/// A state that is known by the number of its last record.
#[derive(Debug)]
struct Source {
    lsn: Lsn,
    piece: u64,
    sums: u64,
}

impl SnapshotSource for Source {
    fn next(&mut self, out: &mut Vec<u8>) -> io::Result<ControlFlow<()>> {
        out.extend_from_slice(&piece(self.lsn, self.piece));
        self.piece += 1;
        Ok(if self.piece == PIECES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn sum(&mut self) -> io::Result<ControlFlow<SnapshotSum>> {
        self.sums += 1;
        Ok(match self.sums {
            3 => ControlFlow::Break(sum(self.lsn)),
            _ => ControlFlow::Continue(()),
        })
    }
}

fn piece(lsn: Lsn, nth: u64) -> Vec<u8> {
    (0..PIECE_BYTES).map(|at| (lsn.0 * 13 + nth * 7 + at as u64) as u8).collect()
}

fn whole(lsn: Lsn) -> Vec<u8> {
    (0..PIECES).flat_map(|nth| piece(lsn, nth)).collect()
}

fn sum(lsn: Lsn) -> SnapshotSum {
    SnapshotSum { state_hash: [lsn.0 as u8; 32], items: lsn.0 * 3 }
}

fn footer(at: Anchor) -> SnapshotFooter {
    let SnapshotSum { state_hash, items } = sum(at.lsn);
    SnapshotFooter { lsn: at.lsn, chain: at.chain, state_hash, items }
}

/// Takes a snapshot of the last record, while frames are written beside it.
fn snapshot<H: Harness>(harness: &mut H, writer: &mut Writer<H::Log>) -> Anchor {
    let anchor = writer.log.end();
    let source = Box::new(Source { lsn: anchor.lsn, piece: 0, sums: 0 });
    assert!(writer.log.poll_snapshot().is_none(), "no snapshot is under way");
    writer.log.begin_snapshot(SnapshotWork { anchor, source });
    writer.write(harness, &[2, 1]);
    let mut waits = Waits::default();
    loop {
        match writer.log.poll_snapshot() {
            Some(SnapshotEnd::Kept { footer: kept, bytes }) => {
                assert_eq!(kept, footer(anchor));
                assert!(bytes >= PIECES * PIECE_BYTES as u64, "it takes {bytes} bytes");
                return anchor;
            }
            Some(end) => unreachable!("a snapshot is written: {end:?}"),
            None => waits.wait(harness),
        }
    }
}

/// Snapshots are listed newest first, the last two are kept, and each gives back what was written,
/// before and after the log is opened again.
pub fn snapshots_are_listed_newest_first_and_are_whole<H: Harness>(harness: &mut H) {
    let Opened { mut writer, .. } = open(harness);
    let mut taken = Vec::new();
    for records in [3, 5, 2] {
        writer.write(harness, &[records]);
        taken.push(snapshot(harness, &mut writer));
        let newest_first: Vec<Lsn> = taken.iter().rev().take(2).map(|at| at.lsn).collect();
        let reader = writer.log.reader();
        assert_eq!(reader.snapshots().expect("snapshots can be listed"), newest_first);
        for at in taken.iter().rev().take(2) {
            let mut bytes = Vec::new();
            let read = reader.load_snapshot(at.lsn, &mut |piece| bytes.extend_from_slice(piece));
            assert_eq!(read.expect("a snapshot can be read"), footer(*at));
            assert_eq!(bytes, whole(at.lsn), "the snapshot at {} is whole", at.lsn);
        }
    }
    drop(writer);
    let mut claim = harness.claim().expect("a sound log is claimed");
    let listed = claim.snapshots().expect("snapshots can be listed");
    assert_eq!(listed, [taken[2].lsn, taken[1].lsn]);
    for at in &taken[1..] {
        assert!(!claim.snapshot_name(at.lsn).is_empty());
        let mut bytes = Vec::new();
        let read = claim.load(at.lsn, &mut |piece| bytes.extend_from_slice(piece));
        assert_eq!(read.expect("a snapshot can be read").anchor(), *at);
        assert_eq!(bytes, whole(at.lsn));
    }
}

/// A snapshot that was changed is corrupt; the older one is good, the log opens behind it, and the
/// bad one is not listed any more.
pub fn a_damaged_snapshot_is_refused_and_the_older_one_is_good<H: Harness>(harness: &mut H) {
    let Opened { mut writer, .. } = open(harness);
    writer.write(harness, &[4]);
    let older = snapshot(harness, &mut writer);
    writer.write(harness, &[4, 2]);
    let newest = snapshot(harness, &mut writer);
    let last = writer.next.before();
    drop(writer);
    harness.damage_snapshot(newest.lsn);
    let mut claim = harness.claim().expect("a sound log is claimed");
    let refused = claim.load(newest.lsn, &mut |_| {}).expect_err("a changed snapshot is refused");
    assert!(matches!(refused, Fault::Corrupt(_)), "{refused}");
    claim.load(older.lsn, &mut |_| {}).expect("the older one is good");
    drop(claim);
    let base = Base { anchor: Some(older), bad: vec![newest.lsn] };
    let Opened { writer, frames, .. } = try_open(harness, &base).expect("the older one is good");
    check_records(&frames, older.lsn.next(), last);
    let listed = writer.log.reader().snapshots().expect("snapshots can be listed");
    assert_eq!(listed, [older.lsn]);
}

/// A log opens behind an anchor: only what follows is visited, the records before it may be gone,
/// and an anchor of another log is refused.
pub fn opening_starts_behind_an_anchor<H: Harness>(harness: &mut H) {
    let Opened { mut writer, .. } = open(harness);
    let mut anchors = Vec::new();
    for nth in 0..120 {
        writer.write(harness, &[1 + nth % 5]);
        anchors.push(writer.log.end());
    }
    let last = writer.next.before();
    drop(writer);
    for at in anchors.iter().step_by(17) {
        let opened = try_open(harness, &Base::after(Some(*at))).expect("the anchor is the log's");
        assert_eq!(opened.recovered.last_lsn, last);
        check_records(&opened.frames, at.lsn.next(), last);
    }
    let foreign = Anchor { chain: Chain([7; 32]), ..anchors[50] };
    let beyond = Anchor { lsn: Lsn(last.0 + 10), ..anchors[50] };
    for at in [foreign, beyond] {
        let refused = try_open(harness, &Base::after(Some(at))).err().expect("it is not the log's");
        assert!(matches!(refused, Fault::Corrupt(_)), "{refused}");
    }
    let mut writer = open(harness).writer;
    let (anchor, at_ms) = (anchors[80], writer.at_ms() + 1_000_000);
    let log = maintenance(&mut writer.log);
    while log.trim(anchor.lsn.next(), Keep::Ms(0), at_ms).expect("a sound log is trimmed")
        == Trimmed::Some
    {}
    drop(writer);
    let Opened { mut writer, recovered, frames } =
        try_open(harness, &Base::after(Some(anchor))).expect("all behind the anchor is there");
    assert_eq!(recovered.last_lsn, last);
    check_records(&frames, anchor.lsn.next(), last);
    writer.write(harness, &[3]);
    assert_eq!(writer.log.end().lsn, Lsn(last.0 + 3));
}
