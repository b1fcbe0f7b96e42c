//! A snapshot being written, a piece at a time: on a thread of its own, or where everything happens
//! in a fixed order.

use std::ops::ControlFlow;

use tenure_log::{
    Anchor, Fault, Lsn, SnapshotEnd, SnapshotFooter, SnapshotSource, SnapshotSum, SnapshotWork,
};

use crate::disk::Disk;
use crate::snapshot::{Sealed, SnapshotWriter, TEMPORARY};

/// A snapshot being written.
#[derive(Debug)]
pub struct SnapshotJob<D: Disk> {
    disk: D,
    log_id: u128,
    anchor: Anchor,
    source: Box<dyn SnapshotSource>,
    stage: Stage<D>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Stage<D: Disk> {
    Begin,
    Write(SnapshotWriter<D>),
    Sum(SnapshotWriter<D>),
    ReadBack(Sealed<D>),
    Name(Sealed<D>),
    /// It has ended.
    Over,
}

impl<D: Disk> SnapshotJob<D> {
    /// Nothing is written yet.
    #[must_use]
    pub fn new(disk: D, log_id: u128, work: SnapshotWork) -> Self {
        let SnapshotWork { anchor, source } = work;
        Self { disk, log_id, anchor, source, stage: Stage::Begin, buffer: Vec::new() }
    }

    /// The last record whose effect is in it.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        self.anchor.lsn
    }

    /// Does the next piece. Says how it ended, once it has; then it must not be called again.
    pub fn step(&mut self) -> Option<SnapshotEnd> {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        // Only from the moment on at which it gets its name does a failure mean more.
        if let Stage::Name(sealed) = stage {
            let (footer, bytes) = (sealed.footer(), sealed.bytes());
            return Some(match sealed.name() {
                Ok(()) => SnapshotEnd::Kept { footer, bytes },
                Err(fault) => SnapshotEnd::Broken(fault),
            });
        }
        match self.go_on(stage) {
            Ok(stage) => {
                self.stage = stage;
                None
            }
            Err(fault) => Some(self.give_up(fault)),
        }
    }

    /// Ends it before its time.
    pub fn give_up(&mut self, fault: Fault) -> SnapshotEnd {
        self.stage = Stage::Over;
        // Its room is wanted elsewhere; if it cannot be had, the next start removes the file.
        let _ = self.disk.remove(TEMPORARY);
        SnapshotEnd::GivenUp { lsn: self.anchor.lsn, fault }
    }

    fn go_on(&mut self, stage: Stage<D>) -> Result<Stage<D>, Fault> {
        let Anchor { lsn, chain } = self.anchor;
        Ok(match stage {
            Stage::Begin => Stage::Write(SnapshotWriter::create(&self.disk, self.log_id, lsn)?),
            Stage::Write(mut writer) => {
                self.buffer.clear();
                let flow = self.source.next(&mut self.buffer).map_err(Fault::snapshot_source)?;
                writer.write(&self.buffer)?;
                match flow {
                    ControlFlow::Continue(()) => Stage::Write(writer),
                    ControlFlow::Break(()) => Stage::Sum(writer),
                }
            }
            Stage::Sum(writer) => match self.source.sum().map_err(Fault::snapshot_source)? {
                ControlFlow::Continue(()) => Stage::Sum(writer),
                ControlFlow::Break(SnapshotSum { state_hash, items }) => {
                    Stage::ReadBack(writer.seal(SnapshotFooter {
                        lsn,
                        chain,
                        state_hash,
                        items,
                    })?)
                }
            },
            Stage::ReadBack(mut sealed) => match sealed.read_back()? {
                ControlFlow::Continue(()) => Stage::ReadBack(sealed),
                ControlFlow::Break(()) => Stage::Name(sealed),
            },
            Stage::Name(..) | Stage::Over => unreachable!("a snapshot ends once"),
        })
    }
}
