//! What is known about a log before it is opened, and what opening it has found.

use std::fmt;

use crate::frame::Chain;
use crate::lsn::Lsn;

/// A position in the log that is known from a snapshot: the log contains this record, and this is
/// the chain there. Records up to it need not be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The record.
    pub lsn: Lsn,
    /// The chain up to and including the frame that ends with the record.
    pub chain: Chain,
}

/// What opening a log starts from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base {
    /// The snapshot whose records need not be replayed; none to replay the whole log.
    pub anchor: Option<Anchor>,
    /// Snapshots that cannot be read. They are set aside once the log is open.
    pub bad: Vec<Lsn>,
}

impl Base {
    /// A base at this anchor, without bad snapshots.
    #[must_use]
    pub fn after(anchor: Option<Anchor>) -> Self {
        Self { anchor, bad: Vec::new() }
    }
}

/// A finding that operators should see, though the log is sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The end was half-written when the last process ended. What is lost was never acknowledged.
    Torn {
        /// Which file.
        file: String,
        /// Where the torn bytes begin.
        offset: u64,
        /// The record that would have followed.
        lsn: Lsn,
    },
    /// Bytes follow the end of an older segment: a torn end that was reported once, or a disk that
    /// has begun to change data at rest.
    Scar {
        /// Which file.
        file: String,
        /// Where the bytes begin.
        offset: u64,
    },
    /// One of a segment's two headers cannot be read; the other one could.
    OneHeader {
        /// Which file.
        file: String,
    },
    /// A snapshot cannot be read. The state was built from an older one, or from the whole log.
    BadSnapshot {
        /// Which file.
        file: String,
        /// What is wrong with it.
        found: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Torn { file, offset, lsn } => write!(
                f,
                "{file} ends in a torn frame at offset {offset}, LSN {lsn}: it was never \
                 acknowledged and is left out; its bytes stay in the file"
            ),
            Note::Scar { file, offset } => write!(
                f,
                "something follows the end of {file} at offset {offset}: an end that was torn once \
                 and was left out then; if none was ever reported, the disk may be failing"
            ),
            Note::OneHeader { file } => write!(
                f,
                "one of the two headers of {file} cannot be read; the other is good, but the disk \
                 may be failing"
            ),
            Note::BadSnapshot { file, found } => write!(
                f,
                "{file} cannot be used: {found}; the state was made of what is older, and nothing \
                 is lost, but the disk may be failing"
            ),
        }
    }
}

/// What opening a log has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The last record.
    pub last_lsn: Lsn,
    /// The chain up to and including the last frame, which may be a mark.
    pub chain: Chain,
    /// The chain up to and including the frame of the last record.
    pub record_chain: Chain,
    /// Log time of the last frame.
    pub at_ms: u64,
    /// The epoch of the last writer.
    pub epoch: u64,
    /// Bytes of the log after the base.
    pub bytes: u64,
    /// Whether acknowledged records may be missing: the last writer acknowledged records before
    /// they were durable, and did not close the log.
    pub may_lack: bool,
    /// What operators should see.
    pub notes: Vec<Note>,
}
