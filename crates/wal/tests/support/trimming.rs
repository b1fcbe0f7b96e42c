//! A log that is trimmed as it goes, so that the files of old segments become new ones.

use tenure_log::{Anchor, Fault, Lsn, Recovered};
use tenure_wal::Wal;
use tenure_wal::disk::Disk;
use tenure_wal::disk::model::ModelDisk;

use super::{BATCHES, Nothing, append, options, record};

/// Batches enough for every file to be used more than once.
const ROUNDS: usize = 3;
/// After so many batches a snapshot is taken and the log before it goes.
const TRIM_EVERY: usize = 4;

/// What somebody outside the log knows of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub acknowledged: Lsn,
    /// The last snapshot.
    pub anchor: Option<Anchor>,
}

/// What a whole run writes.
pub(crate) fn written() -> u64 {
    BATCHES.iter().sum::<u64>() * ROUNDS as u64
}

/// Writes, syncs, trims and makes spares out of what was trimmed.
pub(crate) fn write_and_trim<D: Disk>(disk: &D, told: &mut Told) -> Result<(), Fault> {
    let (mut wal, _) = Wal::open(disk, options(), None, |_| {})?;
    let batches = std::iter::repeat_n(BATCHES, ROUNDS).flatten();
    for (nth, count) in (1..).zip(batches) {
        append(&mut wal, count)?;
        told.acknowledged = wal.sync()?.lsn();
        if nth % TRIM_EVERY == 0 {
            told.anchor = Some(Anchor { lsn: wal.written(), chain: wal.chain() });
            wal.trim(wal.written())?;
            wal.prepare()?;
        }
    }
    Ok(())
}

/// Opens the log with the last snapshot; its records follow that one.
pub(crate) fn open_trimmed<D: Disk>(
    disk: &D,
    anchor: Option<Anchor>,
    what: &str,
) -> (Wal<D>, Recovered) {
    let mut next = anchor.map_or(Lsn(1), |anchor| anchor.lsn.next());
    let opened = Wal::open(disk, options(), anchor, |frame| {
        for (lsn, bytes) in frame.records() {
            assert_eq!(lsn, next, "{what}: LSNs have no gaps");
            assert_eq!(bytes, record(lsn.0), "{what}: record {lsn}");
            next = lsn.next();
        }
    });
    let (wal, recovered) = opened.unwrap_or_else(|fault| unreachable!("{what}: {fault}"));
    assert_eq!(recovered.last_lsn, next.before(), "{what}");
    (wal, recovered)
}

/// What was acknowledged is there after a crash, and the log can go on.
pub(crate) fn check_trimmed(disk: &ModelDisk, told: &Told, what: &str) {
    let (mut wal, recovered) = open_trimmed(disk, told.anchor, what);
    let last = recovered.last_lsn;
    assert!(last >= told.acknowledged, "{what}: {told:?} and {last} is left");
    assert!(last.0 <= written(), "{what}: {last} records");
    let (_, again) = open_trimmed(&disk.crashed(&mut Nothing), told.anchor, what);
    assert_eq!(again.last_lsn, last, "{what}: recovery served what was not durable");
    let anchor = Some(Anchor { lsn: last, chain: recovered.chain });
    wal.trim(last).unwrap_or_else(|fault| unreachable!("{what}: {fault}"));
    for _ in 0..3 {
        append(&mut wal, 5).unwrap_or_else(|fault| unreachable!("{what}: {fault}"));
        wal.sync().unwrap_or_else(|fault| unreachable!("{what}: {fault}"));
    }
    drop(wal);
    let (_, after) = open_trimmed(&disk.crashed(&mut Nothing), anchor, what);
    assert_eq!(after.last_lsn.0, last.0 + 15, "{what}: it goes on");
}

/// After an orderly run nothing of the old contents is left behind the end.
pub(crate) fn check_orderly_run() {
    let (disk, mut told) = (ModelDisk::default(), Told::default());
    write_and_trim(&disk, &mut told).unwrap_or_else(|fault| unreachable!("{fault}"));
    let names = disk.list().unwrap_or_default();
    assert!(names.iter().any(|name| name.starts_with("used-") || name == "spare.tmp"), "{names:?}");
    let (_, recovered) = open_trimmed(&disk, told.anchor, "an orderly run");
    assert_eq!((recovered.last_lsn.0, recovered.notes), (written(), Vec::new()));
}
