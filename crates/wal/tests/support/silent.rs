//! A disk that loses or changes one write of a snapshot and says nothing.

use tenure_log::SnapshotFooter;
use tenure_log::{Chain, Fault, Lsn};
use tenure_wal::disk::model::{FaultKind, ModelDisk, PlannedFault};
use tenure_wal::snapshot::{self, SnapshotWriter};

const LOG_ID: u128 = 0xabc;

fn footer(lsn: u64) -> SnapshotFooter {
    SnapshotFooter { lsn: Lsn(lsn), chain: Chain([lsn as u8; 32]), state_hash: [7; 32], items: lsn }
}

fn write(disk: &ModelDisk, lsn: u64) -> Result<(), Fault> {
    let mut writer = SnapshotWriter::create(disk, LOG_ID, Lsn(lsn))?;
    writer.write(&vec![lsn as u8; 1_100_000])?;
    writer.finish(&footer(lsn))
}

/// Every write of a snapshot goes wrong once, in silence: it is noticed before the file has its
/// name, and the snapshots before it stay.
pub(crate) fn check_snapshots() {
    for kind in [FaultKind::Lost, FaultKind::Changed] {
        for call in 1.. {
            let disk = ModelDisk::default();
            write(&disk, 5).unwrap();
            write(&disk, 9).unwrap();
            let before = disk.calls();
            disk.plan(Some(PlannedFault { at_call: before + call, kind, lasting: false }));
            let ended = write(&disk, 20);
            let passed = disk.calls() < before + call;
            disk.plan(None);
            let newest = snapshot::list(&disk).unwrap()[0];
            let expected = if ended.is_ok() { 20 } else { 9 };
            assert_eq!(newest, Lsn(expected), "{kind:?} at call {call}");
            let loaded = snapshot::load(&disk, LOG_ID, newest, |_| {});
            assert_eq!(loaded.ok(), Some(footer(expected)), "{kind:?} at call {call}");
            if passed {
                assert!(ended.is_ok());
                break;
            }
        }
    }
}
