//! What an opening is told about a log beforehand, and what it says about it afterwards.

use std::fmt;

use crate::Lsn;
use crate::frame::Chain;
use crate::segment::SegmentHeader;

/// What is known beforehand: the log contained this record, and this was its chain. From a
/// snapshot; records up to it need not be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The last record of the snapshot.
    pub lsn: Lsn,
    /// The chain up to and with the frame that ended with it.
    pub chain: Chain,
}

impl Anchor {
    /// The last segment that begins at or before the record after this; older ones need not be read.
    pub(crate) fn first_to_read(&self, headers: &[SegmentHeader]) -> usize {
        let after = headers.partition_point(|header| header.first_lsn <= self.lsn);
        after.saturating_sub(1)
    }
}

/// Where the reading of a log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// With the first record, which must be there.
    First,
    /// Behind a snapshot; what is before it need not be there, and is not handed over.
    After(Anchor),
    /// With the oldest record that is there.
    Oldest,
}

impl Beginning {
    pub(crate) fn anchor(self) -> Option<Anchor> {
        match self {
            Beginning::After(anchor) => Some(anchor),
            Beginning::First | Beginning::Oldest => None,
        }
    }
}

/// What an opening goes on from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base {
    /// The snapshot whose records need not be replayed; none if all have to be.
    pub anchor: Option<Anchor>,
    /// Snapshots that cannot be read. Once the log is open, they are set aside.
    pub bad: Vec<Lsn>,
}

impl Base {
    /// After this snapshot, and none is bad.
    #[must_use]
    pub fn after(anchor: Option<Anchor>) -> Self {
        Self { anchor, bad: Vec::new() }
    }
}

/// Something that people should hear of, though the log is sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The end was half-written when the last process ended. Nobody was told of what is lost.
    Torn {
        /// Which file.
        file: String,
        /// From where on.
        offset: u64,
        /// The record that would have come.
        lsn: Lsn,
    },
    /// Bytes behind the end of an older segment: an end that was torn and reported once, or a
    /// disk that has begun to change what nobody writes.
    Scar {
        /// Which file.
        file: String,
        /// From where on.
        offset: u64,
    },
    /// One of a segment's two headers cannot be read; the other one could.
    OneHeader {
        /// Which file.
        file: String,
    },
    /// A snapshot cannot be read. The state was made of an older one, or of the whole log.
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

/// What a log turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The last record.
    pub last_lsn: Lsn,
    /// The chain up to and with the last frame, which may be a mark.
    pub chain: Chain,
    /// The chain up to and with the frame of the last record.
    pub record_chain: Chain,
    /// Log time of the last frame.
    pub at_ms: u64,
    /// The last writer's time in office.
    pub epoch: u64,
    /// Whether records may be missing that somebody was told of: the last writer told early, and
    /// did not end in good order.
    pub may_lack: bool,
    /// What people should hear of.
    pub notes: Vec<Note>,
}
