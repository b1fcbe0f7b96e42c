//! A snapshot being written, a piece at a time: on a thread of its own, or where everything happens
//! in a fixed order.

use std::fmt;
use std::ops::ControlFlow;

use crate::Lsn;
use crate::disk::Disk;
use crate::fault::Fault;
use crate::recovered::Anchor;
use crate::snapshot::{Footer, Sealed, SnapshotWriter, TEMPORARY};

/// Where the bytes of a snapshot come from.
pub trait SnapshotSource: fmt::Debug + Send {
    /// Adds the next bytes; breaks when these were the last.
    fn next(&mut self, out: &mut Vec<u8>) -> ControlFlow<()>;

    /// Goes on to add them up, once all were asked for; breaks with what they add up to.
    fn sum(&mut self) -> ControlFlow<Sum>;
}

/// What a snapshot adds up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The hash of the state.
    pub state_hash: [u8; 32],
    /// How many things are in it.
    pub items: u64,
}

/// A snapshot to be written.
#[derive(Debug)]
pub struct SnapshotWork {
    /// The last record whose effect is in it, which must be durable, and the chain up to there.
    pub anchor: Anchor,
    /// What is in it.
    pub source: Box<dyn SnapshotSource>,
}

/// What became of a snapshot.
#[derive(Debug)]
pub enum SnapshotEnd {
    /// It was read back whole, and its name is durable.
    Kept {
        /// What it says about itself.
        footer: Footer,
        /// How long its file is.
        bytes: u64,
    },
    /// It could not be written. Nothing else has changed, and another one may be tried.
    GivenUp {
        /// Which it would have been.
        lsn: Lsn,
        /// Why.
        fault: Fault,
    },
    /// Its name is there, or not: the folder failed. That is the end of the log as well.
    Broken(Fault),
}

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
                let flow = self.source.next(&mut self.buffer);
                writer.write(&self.buffer)?;
                match flow {
                    ControlFlow::Continue(()) => Stage::Write(writer),
                    ControlFlow::Break(()) => Stage::Sum(writer),
                }
            }
            Stage::Sum(writer) => match self.source.sum() {
                ControlFlow::Continue(()) => Stage::Sum(writer),
                ControlFlow::Break(Sum { state_hash, items }) => {
                    Stage::ReadBack(writer.seal(Footer { lsn, chain, state_hash, items })?)
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
