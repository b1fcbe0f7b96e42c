//! The three durabilities, and the log on its own thread.
#![allow(clippy::unwrap_used)]

use crate::support::{Nothing, append, check_after_crash, crashes, open, options, record};
use tenure_log::{AppendAt, Batch, Committed, Fault, Log, Lsn, Outcome};
use tenure_wal::disk::model::{FaultKind, ModelDisk, PlannedFault};
use tenure_wal::disk::real::RealDisk;
use tenure_wal::{Durability, LogThread, Options, Spares, Wal};

fn batch_of(first: u64, count: u64) -> Batch {
    let mut batch = Batch::default();
    for lsn in first..first + count {
        batch.push(|out| out.extend_from_slice(&record(lsn)));
    }
    batch
}

#[test]
fn in_sync_mode_what_is_told_is_durable() {
    let disk = ModelDisk::default();
    let (mut wal, _) = Wal::open(&disk, options(), None, |_| {}).unwrap();
    for lsn in 1..20 {
        let told = wal.commit(&mut batch_of(lsn, 1), lsn).unwrap();
        assert_eq!((told.lsn(), wal.durable()), (Lsn(lsn), Lsn(lsn)));
        assert_eq!(wal.sync_due_ms(), None);
        let (_, _, left) = open(&disk.crashed(&mut Nothing)).unwrap();
        assert_eq!(left.len() as u64, lsn);
    }
}

#[test]
fn in_interval_mode_a_crash_takes_back_no_more_than_the_interval() {
    let disk = ModelDisk::default();
    let options = Options { durability: Durability::IntervalMs(5), ..options() };
    let (mut wal, _) = Wal::open(&disk, options, None, |_| {}).unwrap();
    for ms in 1..=100 {
        let told = wal.commit(&mut batch_of(ms, 1), ms).unwrap();
        assert_eq!(told.lsn(), Lsn(ms));
        assert!(ms - wal.durable().0 <= 5, "at {ms} ms {} is durable", wal.durable());
        for mut crash in crashes(&disk).into_iter().step_by(7) {
            let image = disk.crashed(&mut crash);
            check_after_crash(&image, wal.durable(), ms, &format!("{ms} ms, {:b}", crash.bits));
        }
    }
    assert!(wal.sync_due_ms().is_some_and(|due| (101..=105).contains(&due)));
    wal.sync().unwrap();
    assert_eq!(wal.sync_due_ms(), None);
}

#[test]
fn in_os_mode_only_a_segment_that_is_left_is_made_durable() {
    let disk = ModelDisk::default();
    let options = Options { durability: Durability::Os, ..options() };
    let (mut wal, _) = Wal::open(&disk, options, None, |_| {}).unwrap();
    let mut durable = Lsn::NONE;
    for lsn in 1..=40 {
        wal.commit(&mut batch_of(lsn, 1), lsn).unwrap();
        durable = durable.max(wal.durable());
        for mut crash in crashes(&disk).into_iter().step_by(11) {
            let image = disk.crashed(&mut crash);
            check_after_crash(&image, wal.durable(), lsn, &format!("{lsn}, {:b}", crash.bits));
        }
    }
    assert!(durable > Lsn::NONE && durable < Lsn(40), "{durable}");
    assert_eq!(wal.sync_due_ms(), None);
}

#[track_caller]
fn released(committed: &Committed) -> Lsn {
    let Outcome::Done { released, .. } = committed.outcome else {
        unreachable!("{:?}", committed.outcome)
    };
    released.lsn()
}

#[test]
fn the_next_batch_is_made_while_the_last_one_syncs() {
    let folder = std::env::temp_dir().join(format!("tenure-wal-thread-{}", std::process::id()));
    let disk = RealDisk::open(&folder).unwrap();
    let options = Options { spares: Spares::Background, ..options() };
    let (wal, _) = Wal::open(&disk, options, None, |_| {}).unwrap();
    let (ring, bell) = std::sync::mpsc::channel();
    let mut log = LogThread::start(wal, move || ring.send(()).unwrap()).unwrap();
    let epoch = log.epoch();
    let at = |lsn| AppendAt { lsn: Lsn(lsn), epoch };
    let mut next = 1;
    for _ in 0..50 {
        log.begin(batch_of(next, 3), at(next), next);
        let ready = batch_of(next + 3, 1);
        bell.recv().unwrap();
        let committed = log.poll().expect("the bell rings when it is done");
        assert_eq!(released(&committed), Lsn(next + 2));
        assert_eq!(committed.batch.records(), 3, "it comes back as it was sent");
        let committed = log.commit(ready, at(next + 3), next);
        assert_eq!(released(&committed), Lsn(next + 3));
        next += 4;
    }
    assert_eq!(log.end().lsn, Lsn(next - 1));
    let elsewhere =
        [AppendAt { lsn: Lsn(next + 1), epoch }, AppendAt { lsn: Lsn(next), epoch: epoch + 1 }];
    for place in elsewhere {
        let refused = log.commit(batch_of(next, 1), place, next).outcome;
        assert!(matches!(refused, Outcome::Failed(Fault::Deposed { .. })), "{refused:?}");
    }
    assert!(log.poll().is_none());
    log.wal().mark(next).unwrap();
    drop(log);
    let (mut wal, recovered, records) = open(&disk).unwrap();
    assert_eq!((recovered.last_lsn.0, records.len() as u64), (next - 1, next - 1));
    append(&mut wal, 1).unwrap();
    drop(wal);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Whoever starts next must know that ids which were told may be missing.
#[test]
fn a_log_that_tells_early_says_so_from_its_beginning_to_its_orderly_end() {
    let early = [Durability::IntervalMs(5), Durability::Os];
    for (durability, is_early) in
        early.map(|early| (early, true)).into_iter().chain([(Durability::Sync, false)])
    {
        let disk = ModelDisk::default();
        let options = Options { durability, ..options() };
        let (mut wal, _) = Wal::open(&disk, options, None, |_| {}).unwrap();
        let may_lack = |disk: &ModelDisk| open(&disk.crashed(&mut Nothing)).unwrap().1.may_lack;
        assert_eq!(may_lack(&disk), is_early, "{durability:?}, before the first record");
        wal.commit(&mut batch_of(1, 1), 1).unwrap();
        wal.sync().unwrap();
        assert_eq!(may_lack(&disk), is_early, "{durability:?}, behind a record");
        wal.close(2).unwrap();
        assert!(!may_lack(&disk), "{durability:?}, after an orderly end");
    }
}

/// After a sync that failed, the page cache shows what is not on the disk and calls it clean. So an
/// opening writes again whatever no later frame calls durable, and that is more than the last frame.
#[test]
fn all_that_was_told_early_is_durable_once_the_log_is_open_again() {
    for durability in [Durability::IntervalMs(1_000), Durability::Os] {
        for synced in 0..6 {
            let disk = ModelDisk::default();
            let early = Options { durability, segment_bytes: 64 << 10, ..options() };
            let (mut wal, _) = Wal::open(&disk, early, None, |_| {}).unwrap();
            for lsn in 1..=6 {
                assert_eq!(wal.commit(&mut batch_of(lsn, 1), 1).unwrap().lsn(), Lsn(lsn));
                if lsn == synced {
                    wal.sync().unwrap();
                }
            }
            let at_call = disk.calls() + 1;
            disk.plan(Some(PlannedFault { at_call, kind: FaultKind::Eio, lasting: false }));
            wal.sync().unwrap_err();
            drop(wal);
            let left = |disk: &ModelDisk| open(&disk.crashed(&mut Nothing)).unwrap().2.len();
            assert_eq!(left(&disk) as u64, synced, "no more than that is on the disk");
            let opened = disk.killed();
            assert_eq!(open(&opened).unwrap().2.len(), 6, "the page cache has all of it");
            assert_eq!(left(&opened), 6, "{durability:?}, {synced} were synced");
        }
    }
}
