//! The log of a house: what is sent is committed when the gate is open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_log::{Anchor, AppendAt, Batch, Committed, Extent, Log, SnapshotEnd, SnapshotWork};
use tenure_wal::disk::model::ModelDisk;
use tenure_wal::{Reader, SnapshotJob, Wal};

/// Holds syncs back while it is shut.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<AtomicBool>);

impl Gate {
    pub(crate) fn shut(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn open(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_shut(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
pub(crate) struct SteppedLog {
    wal: Wal<ModelDisk>,
    gate: Gate,
    under_way: Option<(Batch, AppendAt, u64)>,
    snapshot: Option<SnapshotJob<ModelDisk>>,
    /// Records of each frame so far.
    pub(crate) frames: Vec<u32>,
}

impl SteppedLog {
    pub(crate) fn new(wal: Wal<ModelDisk>, gate: Gate) -> Self {
        Self { wal, gate, under_way: None, snapshot: None, frames: Vec::new() }
    }

    pub(crate) fn extent(&self) -> Extent {
        self.wal.extent()
    }
}

impl Log for SteppedLog {
    type Reader = Reader<ModelDisk>;
    type Maintenance = Wal<ModelDisk>;

    fn epoch(&self) -> u64 {
        self.wal.epoch()
    }

    fn end(&self) -> Anchor {
        self.wal.end()
    }

    fn commit(&mut self, batch: Batch, at: AppendAt, at_ms: u64) -> Committed {
        self.frames.push(batch.records());
        self.wal.commit_at(batch, at, at_ms)
    }

    fn begin(&mut self, batch: Batch, at: AppendAt, at_ms: u64) {
        assert!(self.under_way.is_none(), "one batch is under way at a time");
        self.under_way = Some((batch, at, at_ms));
    }

    fn poll(&mut self) -> Option<Committed> {
        let (batch, at, at_ms) = self.under_way.take_if(|_| !self.gate.is_shut())?;
        Some(self.commit(batch, at, at_ms))
    }

    fn maintenance(&mut self) -> Option<&mut Wal<ModelDisk>> {
        self.under_way.is_none().then_some(&mut self.wal)
    }

    fn reader(&self) -> Reader<ModelDisk> {
        self.wal.reader()
    }

    fn begin_snapshot(&mut self, work: SnapshotWork) {
        assert!(self.snapshot.is_none(), "one snapshot is under way at a time");
        let job = SnapshotJob::new(self.wal.disk().clone(), self.wal.log_id(), work);
        self.snapshot = Some(job);
    }

    fn poll_snapshot(&mut self) -> Option<SnapshotEnd> {
        let end = self.snapshot.as_mut()?.step()?;
        self.snapshot = None;
        Some(end)
    }
}
