//! The real log on the modelled disk, with syncs that take virtual time: what is begun is committed
//! when the clock says so, and the next batch is decided meanwhile.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tenure_log::{
    Anchor, AppendAt, Batch, Committed, Extent, Fault, Keep, Log, Lsn, Maintenance, Outcome, Room,
    SnapshotEnd, SnapshotWork, Trimmed,
};
use tenure_wal::disk::model::ModelDisk;
use tenure_wal::{Reader, SnapshotJob, Wal};

use crate::last_frames::LastFrames;
use crate::process::Machine;
use crate::random::Random;

/// Records that may be told, as bytes, in the order of the log. The laws read them.
pub(crate) type Tape = Rc<RefCell<Vec<Vec<u8>>>>;

/// How long a sync takes for now, at most, if that is longer than usual.
pub(crate) type Slow = Rc<Cell<u64>>;

/// How often the log was used which way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Uses {
    pub(crate) here: u64,
    pub(crate) beside: u64,
    pub(crate) full: u64,
    pub(crate) marks: u64,
    pub(crate) snapshots: u64,
    pub(crate) snapshots_failed: u64,
    pub(crate) trimmed: u64,
}

/// A log whose syncs take virtual time.
#[derive(Debug)]
pub(crate) struct SimLog {
    wal: Wal<ModelDisk>,
    clock: Rc<Cell<u64>>,
    random: Random,
    sync_ms: u64,
    slow: Slow,
    under_way: Option<UnderWay>,
    /// The snapshot under way, and when its next piece is due.
    snapshot: Option<(SnapshotJob<ModelDisk>, u64)>,
    /// When the disk is done with what was done here.
    busy_until: u64,
    tape: Tape,
    last_frames: Rc<RefCell<LastFrames>>,
    pub(crate) uses: Uses,
}

#[derive(Debug)]
struct UnderWay {
    batch: Batch,
    at: AppendAt,
    at_ms: u64,
    done_at: u64,
}

impl SimLog {
    pub(crate) fn new(
        wal: Wal<ModelDisk>,
        random: Random,
        sync_ms: u64,
        machine: &Machine,
    ) -> Self {
        let Machine { clock, slow, tape, last_frames, .. } = machine;
        Self {
            wal,
            clock: Rc::clone(clock),
            random,
            sync_ms,
            slow: Rc::clone(slow),
            under_way: None,
            snapshot: None,
            busy_until: 0,
            tape: Rc::clone(tape),
            last_frames: Rc::clone(last_frames),
            uses: Uses::default(),
        }
    }

    /// When a sync that begins now is done.
    fn done_by(&mut self) -> u64 {
        self.clock.get() + self.random.between(0, self.sync_ms.max(self.slow.get()))
    }

    /// When the batch under way is to be committed.
    pub(crate) fn done_at(&self) -> Option<u64> {
        self.under_way.as_ref().map(|sent| sent.done_at)
    }

    /// When the snapshot under way goes on.
    pub(crate) fn snapshot_at(&self) -> Option<u64> {
        self.snapshot.as_ref().map(|(_, at)| *at)
    }

    /// Until when the caller is kept waiting.
    pub(crate) fn busy_until(&self) -> u64 {
        self.busy_until
    }

    fn write(&mut self, batch: Batch, at: AppendAt, at_ms: u64) -> Committed {
        let committed = self.wal.commit_at(batch, at, at_ms);
        match &committed.outcome {
            Outcome::Done { .. } => {
                let (records, bytes) = (committed.batch.records(), committed.batch.payload_bytes());
                self.last_frames.borrow_mut().wrote(records as usize, bytes);
                let records = committed.batch.records_from(at.lsn);
                self.tape.borrow_mut().extend(records.map(|(_, bytes)| bytes.to_vec()));
            }
            Outcome::Full => self.uses.full += 1,
            Outcome::Unknown | Outcome::Failed(_) => {}
        }
        committed
    }
}

impl Log for SimLog {
    type Reader = Reader<ModelDisk>;
    type Maintenance = Self;

    fn epoch(&self) -> u64 {
        self.wal.epoch()
    }

    fn end(&self) -> Anchor {
        self.wal.end()
    }

    fn commit(&mut self, batch: Batch, at: AppendAt, at_ms: u64) -> Committed {
        assert!(self.under_way.is_none(), "one batch is under way at a time");
        self.uses.here += 1;
        self.busy_until = self.done_by();
        self.write(batch, at, at_ms)
    }

    fn begin(&mut self, batch: Batch, at: AppendAt, at_ms: u64) {
        assert!(self.under_way.is_none(), "one batch is under way at a time");
        self.uses.beside += 1;
        let done_at = self.done_by();
        self.under_way = Some(UnderWay { batch, at, at_ms, done_at });
    }

    fn poll(&mut self) -> Option<Committed> {
        let sent = self.under_way.take_if(|sent| sent.done_at <= self.clock.get())?;
        Some(self.write(sent.batch, sent.at, sent.at_ms))
    }

    fn maintenance(&mut self) -> Option<&mut Self> {
        self.under_way.is_none().then_some(self)
    }

    fn reader(&self) -> Reader<ModelDisk> {
        self.wal.reader()
    }

    fn begin_snapshot(&mut self, work: SnapshotWork) {
        assert!(self.snapshot.is_none(), "one snapshot is under way at a time");
        let job = SnapshotJob::new(self.wal.disk().clone(), self.wal.log_id(), work);
        self.snapshot = Some((job, self.clock.get()));
    }

    fn poll_snapshot(&mut self) -> Option<SnapshotEnd> {
        let (job, at) = self.snapshot.as_mut().filter(|(_, at)| *at <= self.clock.get())?;
        let Some(end) = job.step() else {
            *at = self.clock.get() + self.random.between(0, self.sync_ms);
            return None;
        };
        match end {
            SnapshotEnd::Kept { .. } => self.uses.snapshots += 1,
            SnapshotEnd::GivenUp { .. } | SnapshotEnd::Broken(_) => self.uses.snapshots_failed += 1,
        }
        self.snapshot = None;
        Some(end)
    }
}

impl Maintenance for SimLog {
    fn sync_due_ms(&self) -> Option<u64> {
        self.wal.sync_due_ms()
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.wal.sync().map(drop)
    }

    fn mark(&mut self, at_ms: u64) -> Result<u64, Fault> {
        self.uses.marks += 1;
        Maintenance::mark(&mut self.wal, at_ms)
    }

    fn close(&mut self, at_ms: u64) -> Result<(), Fault> {
        self.wal.close(at_ms)
    }

    fn room(&mut self) -> Room {
        self.wal.room()
    }

    fn durable(&self) -> Lsn {
        self.wal.durable()
    }

    fn trim(&mut self, before: Lsn, keep: Keep, at_ms: u64) -> Result<Trimmed, Fault> {
        let trimmed = self.wal.trim_one(before, keep, at_ms)?;
        self.uses.trimmed += u64::from(trimmed == Trimmed::Some);
        Ok(trimmed)
    }

    fn extent(&self) -> Extent {
        self.wal.extent()
    }
}

#[cfg(test)]
mod tests {
    use tenure_log::conformance::{Harness, Support, Takeover};
    use tenure_log::conformance_tests;
    use tenure_wal::disk::model::Survival;
    use tenure_wal::{Claim, Options, Spares, snapshot};

    use super::*;

    /// Of what was not synced nothing survives.
    struct Nothing;

    impl Survival for Nothing {
        fn keeps(&mut self, _: usize, _: usize) -> bool {
            false
        }

        fn names(&mut self, _: usize) -> usize {
            0
        }
    }

    /// The simulated machine: the log on the modelled disk, with syncs that take virtual time.
    struct Simulated(Machine);

    impl Harness for Simulated {
        type Claim = Claim<ModelDisk>;
        type Log = SimLog;

        fn claim(&mut self) -> Result<Claim<ModelDisk>, Fault> {
            self.0.starts += 1;
            let salt_seed = self.0.starts;
            let (spares, segment_bytes) = (Spares::Caller, 32 << 10);
            let options = Options { spares, segment_bytes, salt_seed, ..Options::new(7) };
            Claim::new(&self.0.disk.model, options)
        }

        fn start(&mut self, log: Wal<ModelDisk>) -> SimLog {
            SimLog::new(log, Random::new(self.0.starts), 3, &self.0)
        }

        fn takeover(&self) -> Takeover {
            Takeover::Locked
        }

        fn wait(&mut self) {
            self.0.clock.set(self.0.clock.get() + 1);
        }

        fn crash(&mut self) {
            self.0.disk.model = self.0.disk.model.crashed(&mut Nothing);
        }

        fn fill(&mut self) -> Support {
            self.0.disk.limit(Some(0));
            Support::Done
        }

        fn make_room(&mut self) {
            self.0.disk.limit(None);
        }

        fn damage_snapshot(&mut self, lsn: Lsn) {
            let (model, name) = (&self.0.disk.model, snapshot::file_name(lsn));
            let mut bytes = model.bytes(&name).unwrap_or_default();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            model.put(&name, bytes);
        }
    }

    conformance_tests!(Simulated(Machine::new()));
}
