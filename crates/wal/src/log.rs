//! What a log must be able to do for a coordinator, and no more. The one on a local disk does it,
//! and one that lives on several machines can: nothing here speaks of files.

use crate::Lsn;
use crate::fault::Fault;
use crate::frame::{Batch, Frame};
use crate::job::{SnapshotEnd, SnapshotWork};
use crate::options::Keep;
use crate::reader::Read;
use crate::recovered::{Anchor, Base, Recovered};
use crate::snapshot::Footer;
use crate::spare::Room;
use crate::writer::Released;

/// Where a batch is to stand: the number of its first record, and whose it is. A log that has gone
/// on under somebody else refuses it, so two coordinators can never both append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number that the first record of the batch must get.
    pub lsn: Lsn,
    /// The writer's time in office.
    pub epoch: u64,
}

/// A batch that was under way, given back for its room, and what became of it.
#[derive(Debug)]
pub struct Committed {
    /// As it was sent: its records are still in it.
    pub batch: Batch,
    /// What may be told now. [`Fault::Full`] means that nothing was written and that the same
    /// batch may be sent again; any other fault is the end.
    pub result: Result<Released, Fault>,
}

/// An append-only log with one writer, who sends one batch at a time.
pub trait Log {
    /// Reads what is durable, beside the writer and on any thread.
    type Reader: ReadLog + Send + 'static;

    /// The writer's time in office. Each opening has a larger one.
    fn epoch(&self) -> u64;

    /// The last record, and the chain up to and with it. No batch may be under way.
    fn end(&self) -> Anchor;

    /// Commits a batch and waits for it: the shortest way when there is nothing else to do.
    fn commit(&mut self, batch: Batch, place: Place, at_ms: u64) -> Committed;

    /// Sends a batch to be committed while the caller goes on. One may be under way.
    fn begin(&mut self, batch: Batch, place: Place, at_ms: u64);

    /// What became of the batch under way, once that is known.
    fn poll(&mut self) -> Option<Committed>;

    /// When [`Log::sync`] must be called at the latest, by log time. Only where things are told
    /// before they are durable. No batch may be under way.
    fn sync_due_ms(&self) -> Option<u64>;

    /// Makes everything durable that was written. No batch may be under way.
    fn sync(&mut self) -> Result<(), Fault>;

    /// Says in the log that all before this is durable: for a pause. No batch may be under way.
    fn mark(&mut self, at_ms: u64) -> Result<(), Fault>;

    /// The orderly end: everything is made durable, and the log says that nothing is missing. No
    /// batch may be under way, and none follows.
    fn close(&mut self, at_ms: u64) -> Result<(), Fault>;

    /// How much room there is for new work. Cheap; for about once a second. No batch may be under
    /// way.
    fn room(&mut self) -> Room;

    /// A reader, at the first record.
    fn reader(&self) -> Self::Reader;

    /// The last record that is durable. No batch may be under way.
    fn durable(&self) -> Lsn;

    /// Begins to write a snapshot while everything else goes on. One may be under way.
    fn begin_snapshot(&mut self, work: SnapshotWork);

    /// What became of the snapshot under way, once that is known.
    fn poll_snapshot(&mut self) -> Option<SnapshotEnd>;

    /// Forgets some of the oldest records, all of them before this one, if the policy lets them go.
    /// Little at a time: it is called again until nothing is left to be forgotten. No batch may be
    /// under way.
    fn trim(&mut self, before: Lsn, keep: Keep, at_ms: u64) -> Result<Trimmed, Fault>;

    /// What there is of it. No batch may be under way.
    fn extent(&self) -> Extent;
}

/// Whether a call has forgotten something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trimmed {
    /// Some, and there may be more.
    Some,
    /// There is nothing to be forgotten now.
    Nothing,
}

/// What there is of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The oldest record that can be read; the one after the last, if there is none.
    pub oldest: Lsn,
    /// Bytes that it takes.
    pub bytes: u64,
}

/// A log before it is open: first the snapshots, then what follows the one that is good.
pub trait OpenLog {
    /// The log once it is open.
    type Log;

    /// The snapshots that are there, newest first.
    fn snapshots(&mut self) -> Result<Vec<Lsn>, Fault>;

    /// Reads a snapshot. Each piece was checked; that the whole is there is known only when this
    /// returns well.
    fn load(&mut self, lsn: Lsn, visit: &mut dyn FnMut(&[u8])) -> Result<Footer, Fault>;

    /// Opens the log, and hands over every frame that follows the base. When this returns, all
    /// that was visited is durable.
    fn open(
        self,
        base: &Base,
        visit: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<(Self::Log, Recovered), Fault>;
}

/// Reads frames in order.
pub trait ReadLog {
    /// Goes to a record.
    fn seek(&mut self, lsn: Lsn);

    /// The frame that has the record that comes next.
    fn read(&mut self) -> Result<Read<'_>, Fault>;
}
