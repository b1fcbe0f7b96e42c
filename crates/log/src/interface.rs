//! The traits that a coordinator needs of a log, and that every provider implements.

use std::fmt;

use crate::batch::Batch;
use crate::fault::Fault;
use crate::frame::Frame;
use crate::lsn::Lsn;
use crate::recovered::{Anchor, Base, Recovered};
use crate::released::Released;
use crate::snapshot::{SnapshotEnd, SnapshotFooter, SnapshotWork};

/// The position at which a batch must be appended: the number of its first record, and the epoch of
/// its writer. A log that continued under another writer refuses it, so two coordinators can never
/// both append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendAt {
    /// The number that the first record of the batch must get.
    pub lsn: Lsn,
    /// The writer's epoch.
    pub epoch: u64,
}

/// A batch that the log gives back, and its outcome.
#[derive(Debug)]
pub struct Committed {
    /// The batch as it was sent; its records are still in it.
    pub batch: Batch,
    /// The outcome of the append.
    pub outcome: Outcome,
}

/// The outcome of an append.
#[derive(Debug)]
pub enum Outcome {
    /// The frame is committed.
    Done {
        /// The proof that its records may be acknowledged.
        released: Released,
        /// Its last record, and the chain up to and including the frame.
        end: Anchor,
    },
    /// There was no room. Nothing was written, and the same batch may be sent again once every frame
    /// that was begun behind it has come back as well.
    Full,
    /// The log does not know whether the frame was committed: the reply got lost. Nothing of it may
    /// be told, and nothing new may be sent, until [`Log::resolve`] has found out.
    Unknown,
    /// The log failed, or refused the writer. Nothing may be appended any more.
    Failed(Fault),
}

/// An append-only log that is open for its one writer.
///
/// Up to [`Log::depth`] frames are *under way* at a time: begun, and not yet given back by
/// [`Log::poll`] as [`Outcome::Done`]. They are committed in the order in which they were begun and
/// come back in that order. What one of them comes back with holds for those behind it:
///
/// - After [`Outcome::Full`], each frame that was begun behind it comes back as `Full` too.
/// - After [`Outcome::Unknown`], `poll` gives nothing back until the batch was passed to
///   [`Log::resolve`]; then the same frame comes back again, before all others.
/// - After [`Outcome::Failed`], the log is not used any more.
pub trait Log {
    /// Reads what is released, beside the writer and on any thread.
    type Reader: ReadLog;
    /// Upkeep of the log.
    type Maintenance: Maintenance;

    /// The writer's epoch. Each opening of a log has a larger one.
    fn epoch(&self) -> u64;

    /// The number of frames that may be under way, at least one. A local disk takes one: the next
    /// frame is larger while it waits. A log behind a network takes more, to hide the latency.
    fn depth(&self) -> usize {
        1
    }

    /// The last record that is committed, and the chain up to and including its frame.
    fn end(&self) -> Anchor;

    /// Commits a batch and waits for its outcome: the fastest way when the caller has nothing else to
    /// do. No other frame may be under way. A frame whose outcome is unknown is under way from here
    /// on.
    fn commit(&mut self, batch: Batch, at: AppendAt, at_ms: u64) -> Committed;

    /// Sends a batch to be committed while the caller continues. Fewer frames than the depth may be
    /// under way.
    fn begin(&mut self, batch: Batch, at: AppendAt, at_ms: u64);

    /// The outcome of the oldest frame under way, once there is one.
    fn poll(&mut self) -> Option<Committed>;

    /// Finds out what became of the oldest frame under way, which came back as
    /// [`Outcome::Unknown`]: the log is read back, and if the frame is not there and the writer still
    /// has the log, the same bytes are sent to the same place. Never another number, never another
    /// batch. `poll` gives the outcome.
    ///
    /// A log that always knows its outcomes, such as a local disk, need not implement this.
    fn resolve(&mut self, batch: Batch, at: AppendAt, at_ms: u64) {
        let records = batch.records();
        unreachable!("the outcome of {records} records at {at:?}, {at_ms} is known");
    }

    /// Upkeep; none while a frame is under way that upkeep would have to wait for. Only a log of
    /// depth 1 may refuse it: a deeper one may have frames under way all the time.
    fn maintenance(&mut self) -> Option<&mut Self::Maintenance>;

    /// A reader, positioned at the first record.
    fn reader(&self) -> Self::Reader;

    /// Begins to write a snapshot while everything else continues. One may be under way.
    fn begin_snapshot(&mut self, work: SnapshotWork);

    /// The end of the snapshot under way, once it is known.
    fn poll_snapshot(&mut self) -> Option<SnapshotEnd>;
}

/// Upkeep of a log that is open for writing. [`Log::maintenance`] gives access while the log is
/// free, so none of these waits for a batch.
pub trait Maintenance {
    /// When [`Maintenance::sync`] must be called at the latest, by log time. Only where records are
    /// acknowledged before they are durable.
    fn sync_due_ms(&self) -> Option<u64>;

    /// Makes everything durable that was written.
    ///
    /// # Errors
    /// A fault ends the log.
    fn sync(&mut self) -> Result<(), Fault>;

    /// States in the log that everything before is durable, for a pause. Returns the bytes by which
    /// the log grew.
    ///
    /// # Errors
    /// [`Fault::Full`] if there is no room for the mark; any other fault ends the log.
    fn mark(&mut self, at_ms: u64) -> Result<u64, Fault>;

    /// The orderly end: everything is made durable, and the log states that nothing is missing. No
    /// batch follows.
    ///
    /// # Errors
    /// [`Fault::Full`] if there is no room for the statement; any other fault ends the log.
    fn close(&mut self, at_ms: u64) -> Result<(), Fault>;

    /// How much room there is for new work. Cheap enough to be called once a second.
    fn room(&mut self) -> Room;

    /// The last record that is durable.
    fn durable(&self) -> Lsn;

    /// Forgets some of the oldest records, all of them before `before`, if the policy allows it. One
    /// call does little; repeat it until nothing is left to forget.
    ///
    /// # Errors
    /// A fault ends the log.
    fn trim(&mut self, before: Lsn, keep: Keep, at_ms: u64) -> Result<Trimmed, Fault>;

    /// What is stored of the log.
    fn extent(&self) -> Extent;
}

/// How much room there is for new work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Enough.
    Plenty,
    /// Little: new work should be refused while it still can be. What is left is for work that was
    /// accepted before.
    Low,
}

/// How much of the log is kept beyond what the snapshots need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Everything.
    All,
    /// What was written in the last milliseconds, by log time.
    Ms(u64),
    /// This number of bytes, and at least what the snapshots need.
    Bytes(u64),
}

/// Whether a call to [`Maintenance::trim`] has forgotten something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trimmed {
    /// Some records, and there may be more.
    Some,
    /// There is nothing to forget now.
    Nothing,
}

/// What is stored of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The oldest record that can be read; the one after the last, if there is none.
    pub oldest: Lsn,
    /// Bytes in storage.
    pub bytes: u64,
}

/// A log before it is open: first its snapshots are read, then the records that follow the newest
/// good one.
pub trait OpenLog {
    /// The log once it is open.
    type Log;

    /// The snapshots, newest first.
    ///
    /// # Errors
    /// If the storage cannot be read, or what it contains cannot be a log.
    fn snapshots(&mut self) -> Result<Vec<Lsn>, Fault>;

    /// What operators call the snapshot at this record, such as the name of its file.
    fn snapshot_name(&self, lsn: Lsn) -> String;

    /// Reads a snapshot. Each piece was checked; that the snapshot is whole is known only when this
    /// returns successfully.
    ///
    /// # Errors
    /// [`Fault::Corrupt`] or [`Fault::Io`] if an older snapshot may still be good.
    fn load(&mut self, lsn: Lsn, visit: &mut dyn FnMut(&[u8])) -> Result<SnapshotFooter, Fault>;

    /// Opens the log, and passes every frame after the base to `visit`. When this returns, all that
    /// was visited is durable, and a writer that had the log open before is fenced off.
    ///
    /// # Errors
    /// If the log cannot be read, or does not follow the base.
    fn open(
        self,
        base: &Base,
        visit: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<(Self::Log, Recovered), Fault>;
}

/// Reads frames in order, up to what is released.
pub trait ReadLog: fmt::Debug + Send + Sync + 'static {
    /// Another reader of the same log, positioned at the first record.
    fn fork(&self) -> Box<dyn ReadLog>;

    /// Moves to a record.
    fn seek(&mut self, lsn: Lsn);

    /// The frame that contains the next record.
    ///
    /// # Errors
    /// If the log cannot be read, or is not what was written.
    fn read(&mut self) -> Result<Read<'_>, Fault>;

    /// The id that distinguishes this log from every other; a copy has the same one.
    ///
    /// # Errors
    /// If the log cannot be read.
    fn log_id(&self) -> Result<u128, Fault>;

    /// The snapshots, newest first.
    ///
    /// # Errors
    /// If the storage cannot be read.
    fn snapshots(&self) -> Result<Vec<Lsn>, Fault>;

    /// Reads a snapshot. Each piece was checked; that the snapshot is whole is known only when this
    /// returns successfully.
    ///
    /// # Errors
    /// [`Fault::Corrupt`] or [`Fault::Io`] if an older snapshot may still be good.
    fn load_snapshot(
        &self,
        lsn: Lsn,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<SnapshotFooter, Fault>;
}

/// What a reader found.
#[derive(Debug)]
pub enum Read<'a> {
    /// A frame. The first one may begin before the record that was asked for.
    Frame(Frame<'a>),
    /// Everything that is released was read; later there may be more.
    UpToDate,
    /// The record was trimmed; this is the oldest that is stored.
    Trimmed(Lsn),
}

impl ReadLog for Box<dyn ReadLog> {
    fn fork(&self) -> Box<dyn ReadLog> {
        (**self).fork()
    }

    fn seek(&mut self, lsn: Lsn) {
        (**self).seek(lsn);
    }

    fn read(&mut self) -> Result<Read<'_>, Fault> {
        (**self).read()
    }

    fn log_id(&self) -> Result<u128, Fault> {
        (**self).log_id()
    }

    fn snapshots(&self) -> Result<Vec<Lsn>, Fault> {
        (**self).snapshots()
    }

    fn load_snapshot(
        &self,
        lsn: Lsn,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<SnapshotFooter, Fault> {
        (**self).load_snapshot(lsn, visit)
    }
}
