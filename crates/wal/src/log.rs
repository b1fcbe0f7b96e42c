//! What a log must be able to do for a coordinator, and no more. The one on a local disk does it,
//! and one that lives on several machines can: nothing here speaks of files.

use crate::Lsn;
use crate::fault::Fault;
use crate::frame::Batch;
use crate::reader::Read;
use crate::recover::Anchor;
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
    /// A snapshot in the making, on any thread.
    type Snapshot: WriteSnapshot + Send + 'static;

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

    /// Begins a snapshot of the state after a record.
    fn snapshot(&self, lsn: Lsn) -> Result<Self::Snapshot, Fault>;

    /// Forgets records before this one, as far as that is convenient. No batch may be under way.
    fn trim(&mut self, before: Lsn) -> Result<(), Fault>;
}

/// Reads frames in order.
pub trait ReadLog {
    /// Goes to a record.
    fn seek(&mut self, lsn: Lsn);

    /// The frame that has the record that comes next.
    fn read(&mut self) -> Result<Read<'_>, Fault>;
}

/// A snapshot in the making.
pub trait WriteSnapshot {
    /// Adds bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault>;

    /// Ends it. When this returns, it was read back whole and is durable.
    fn finish(self, footer: &Footer) -> Result<(), Fault>;
}
