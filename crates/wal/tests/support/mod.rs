//! A workload that writes known records, and what must be true of what is read back.
#![allow(clippy::unwrap_used)]
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod image;
pub(crate) mod progress;
pub(crate) mod reference;
pub(crate) mod script;
pub(crate) mod silent;
pub(crate) mod trimming;

use tenure_log::{Batch, Fault, Lsn, Read, Recovered};
use tenure_wal::disk::Disk;
use tenure_wal::disk::model::{ModelDisk, Survival};
use tenure_wal::{Options, Spares, Wal};

/// Two headers, two pages for a few frames, and one for the word that the log goes on, so that a
/// short run needs several segments.
pub(crate) const SEGMENT_BYTES: u64 = 17 << 10;

pub(crate) fn options() -> Options {
    Options {
        // The model's calls must come in the same order every time.
        spares: Spares::Caller,
        segment_bytes: SEGMENT_BYTES,
        recycled_max: 2,
        low_water_bytes: 2 * SEGMENT_BYTES,
        ..Options::new(0xabc)
    }
}

/// Record `lsn`: its size and content follow from its number.
pub(crate) fn record(lsn: u64) -> Vec<u8> {
    let size = match lsn % 7 {
        0 => 0,
        1 => 3_400,
        2 => 3_000,
        _ => 20 + (lsn % 50) as usize,
    };
    (0..size).map(|i| (lsn as usize * 31 + i * 7) as u8).collect()
}

/// Batches of these many records.
pub(crate) const BATCHES: [u64; 8] = [1, 3, 2, 5, 1, 4, 2, 3];

/// Writes one batch of `count` records.
pub(crate) fn append<D: Disk>(wal: &mut Wal<D>, count: u64) -> Result<Lsn, Fault> {
    let mut batch = Batch::default();
    for lsn in wal.written().0 + 1..=wal.written().0 + count {
        batch.push(|out| out.extend_from_slice(&record(lsn)));
    }
    wal.append(&mut batch, 1_000 + wal.written().0)
}

/// Writes and syncs all batches; says after each sync what is acknowledged.
pub(crate) fn write_all<D: Disk>(
    disk: &D,
    batches: &[u64],
    mut acknowledged: impl FnMut(Lsn),
) -> Result<(), Fault> {
    let (mut wal, _) = Wal::open(disk, options(), None, |_| {})?;
    for (nth, count) in batches.iter().enumerate() {
        append(&mut wal, *count)?;
        acknowledged(wal.sync()?.lsn());
        if nth == 3 {
            wal.prepare()?;
        }
        if nth == 5 {
            wal.mark(5_000)?;
        }
    }
    Ok(())
}

/// An open log, how it was found, and all its records.
pub(crate) type Opened<D> = (Wal<D>, Recovered, Vec<Vec<u8>>);

/// Opens a log and gives all its records.
pub(crate) fn open<D: Disk>(disk: &D) -> Result<Opened<D>, Fault> {
    let mut records = Vec::new();
    let (wal, recovered) = Wal::open(disk, options(), None, |frame| {
        for (lsn, bytes) in frame.records() {
            assert_eq!(lsn.0, records.len() as u64 + 1, "LSNs have no gaps");
            records.push(bytes.to_vec());
        }
    })?;
    Ok((wal, recovered, records))
}

/// Opens a log after a crash: what was acknowledged is there, what is there is what was written,
/// and it can go on.
pub(crate) fn check_after_crash(disk: &ModelDisk, acknowledged: Lsn, written: u64, what: &str) {
    let (mut wal, recovered, records) = match open(disk) {
        Ok(opened) => opened,
        Err(fault) => unreachable!("{what}: {fault}"),
    };
    let last = records.len() as u64;
    assert!(last >= acknowledged.0, "{what}: {acknowledged} was acknowledged and {last} is left");
    assert!(last <= written, "{what}: {last} records of {written}");
    assert_eq!(recovered.last_lsn.0, last, "{what}");
    for (lsn, bytes) in (1..).zip(&records) {
        assert_eq!(*bytes, record(lsn), "{what}: record {lsn}");
    }
    // What was seen at the start must survive the next crash too.
    let again = disk.crashed(&mut Nothing);
    let (_, _, seen) = open(&again).unwrap_or_else(|fault| unreachable!("{what}: {fault}"));
    assert_eq!(seen, records, "{what}: recovery served what was not durable");
    append(&mut wal, 2).unwrap_or_else(|fault| unreachable!("{what}: {fault}"));
    wal.sync().unwrap_or_else(|fault| unreachable!("{what}: {fault}"));
    let mut reader = wal.reader();
    let mut read = 0;
    while let Read::Frame(frame) =
        reader.read().unwrap_or_else(|fault| unreachable!("{what}: {fault}"))
    {
        read += u64::from(frame.header.records);
    }
    assert_eq!(read, last + 2, "{what}: the reader sees the same");
    drop(wal);
    let (_, _, after) = open(&disk.crashed(&mut Nothing))
        .unwrap_or_else(|fault| unreachable!("{what}, and then again: {fault}"));
    assert_eq!(after.len() as u64, last + 2, "{what}: it goes on");
}

/// A crash after which nothing unsynced is left.
pub(crate) struct Nothing;

impl Survival for Nothing {
    fn keeps(&mut self, _: usize, _: usize) -> bool {
        false
    }

    fn names(&mut self, _: usize) -> usize {
        0
    }
}

/// A crash that keeps the sectors whose bit is set, in their order, and so many names.
pub(crate) struct Mask {
    pub bits: u64,
    pub nth: u32,
    pub names: usize,
}

impl Survival for Mask {
    fn keeps(&mut self, _: usize, _: usize) -> bool {
        let keeps = self.bits.rotate_right(self.nth) & 1 == 1;
        self.nth += 1;
        keeps
    }

    fn names(&mut self, pending: usize) -> usize {
        self.names.min(pending)
    }
}

/// All legal ways in which a crash at this moment can leave the disk, if there are few; else the
/// edges and a sample.
pub(crate) fn crashes(disk: &ModelDisk) -> Vec<Mask> {
    let (sectors, names) = disk.pending();
    let count = sectors.len() as u32;
    let masks: Vec<u64> = match count {
        0..=8 => (0..1 << count).collect(),
        _ => {
            let edges = [0, u64::MAX, 1, !1, 2, !2, 1 << 63, 0x5555_5555_5555_5555];
            let random = (1_u64..9).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            edges.into_iter().chain(random).collect()
        }
    };
    let each = |bits| (0..=names).map(move |names| Mask { bits, nth: 0, names });
    masks.into_iter().flat_map(each).collect()
}
