//! Bugs that can be put in on purpose, one at a time, so that the tests show that they would be
//! noticed. Without the feature `planted` there are none, and nothing of this is compiled in.
#![cfg_attr(not(feature = "planted"), allow(unreachable_pub, reason = "only tests enter"))]

use std::io;

use tenure_log::{CrcSeed, FrameHeader, HEADER_BYTES, Lsn};

use crate::disk::{Disk, DiskFile};

/// A bug that a log could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// What is written is called durable without a sync.
    SyncSkipped,
    /// A sync fails and is taken for done.
    SyncErrorIgnored,
    /// A sync fails and is made again, which "works".
    SyncErrorRetried,
    /// A new segment's name is not made durable.
    FolderSyncMissing,
    /// A segment gets its name before its header is durable.
    RenameBeforeSync,
    /// Half-written bytes are written over.
    AppendAfterTornTail,
    /// A header is believed without its checksum.
    LengthTrusted,
    /// A frame fits every segment.
    CrcWithoutSalt,
    /// A broken frame is torn, whatever follows it.
    LaterFramesIgnored,
    /// Recovery serves what is in the page cache only.
    TailNotSynced,
    /// Recovery syncs its tail, but a failed sync before has made that do nothing.
    TailNotRewritten,
    /// A header's worth of zeros is read as a frame without records.
    ZerosParse,
    /// A snapshot gets its name without having been read back.
    SnapshotNotReadBack,
    /// A trimmed segment's file is used again as it is.
    RecycledNotZeroed,
    /// A trimmed segment's file is overwritten before its old name is durably gone.
    RecycledTooEarly,
    /// A segment says that the log goes on in the next one before that is durable.
    GoesOnTooEarly,
    /// The log is trimmed up to its end, whatever the snapshots need.
    TrimmedTooFar,
}

#[cfg(feature = "planted")]
mod switch {
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<super::Bug>> = const { Cell::new(None) };
    }

    /// Puts a bug in, for this thread.
    pub fn plant(bug: Option<super::Bug>) {
        PLANTED.set(bug);
    }

    pub(crate) fn has(bug: super::Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(not(feature = "planted"))]
mod switch {
    pub(crate) const fn has(_: super::Bug) -> bool {
        false
    }
}

pub(crate) use switch::has;
#[cfg(feature = "planted")]
pub use switch::plant;

/// A sync of the log.
pub(crate) fn sync<F: DiskFile>(file: &F) -> io::Result<()> {
    if has(Bug::SyncSkipped) {
        return Ok(());
    }
    let synced = file.sync();
    if has(Bug::SyncErrorIgnored) {
        return Ok(());
    }
    if synced.is_err() && has(Bug::SyncErrorRetried) {
        return file.sync();
    }
    synced
}

/// A sync of the folder after a rename.
pub(crate) fn sync_folder<D: Disk>(disk: &D) -> io::Result<()> {
    if has(Bug::FolderSyncMissing) { Ok(()) } else { disk.sync_folder() }
}

/// Whether these bytes begin with zeros that would be taken for a frame.
pub(crate) fn zeros_parse(bytes: &[u8]) -> bool {
    has(Bug::ZerosParse)
        && bytes.get(..HEADER_BYTES).is_some_and(|head| head.iter().all(|byte| *byte == 0))
}

/// A sync of the folder after segments were trimmed.
pub(crate) fn sync_trimmed<D: Disk>(disk: &D) -> io::Result<()> {
    if has(Bug::RecycledTooEarly) { Ok(()) } else { disk.sync_folder() }
}

/// Up to where the log may be trimmed.
pub(crate) fn trimmed_before(before: Lsn, written: Lsn) -> Lsn {
    if has(Bug::TrimmedTooFar) { written } else { before }
}

/// Reads the header of a frame.
pub(crate) fn read_header(bytes: &[u8], seed: CrcSeed) -> Option<FrameHeader> {
    match has(Bug::LengthTrusted) {
        true => FrameHeader::decode(bytes),
        false => FrameHeader::read(bytes, seed),
    }
}
