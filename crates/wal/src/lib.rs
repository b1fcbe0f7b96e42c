//! The truth of Tenure: an append-only log of bytes, and snapshots beside it.
//!
//! The log knows frames, segments, checksums and syncs; it does not know what a task is. What was
//! synced is never lost and never changed: what a crash left half-written at the very end is cut
//! off and reported, and anything else that is broken is refused.

mod backup;
mod claim;
pub mod disk;
mod fault;
#[cfg(feature = "model")]
pub mod forge;
mod frame;
mod index;
mod inspect;
mod job;
mod load;
mod log;
mod options;
#[cfg(not(feature = "planted"))]
mod planted;
#[cfg(feature = "planted")]
pub mod planted;
mod reader;
mod recover;
mod recovered;
mod restore;
mod segment;
pub mod snapshot;
mod spare;
mod thread;
mod writer;

pub use backup::{Backup, BackupFile, CopiedFile, Since};
pub use claim::Claim;
pub use fault::{Corruption, Fault};
pub use frame::{Batch, Chain, Frame, Header, Kind, MARK_BYTES, PAYLOAD_BYTES_MAX, Word};
pub use inspect::{Inspection, Located, SegmentState, SegmentSummary, inspect, inspect_until};
pub use job::{SnapshotEnd, SnapshotJob, SnapshotSource, SnapshotWork, Sum};
pub use log::{Committed, Extent, Log, OpenLog, Place, ReadLog, Trimmed};
pub use options::{Durability, Keep, Options, Spares};
pub use reader::{Read, Reader};
pub use recover::first_segment;
pub use recovered::{Anchor, Base, Beginning, Note, Recovered};
pub use restore::{Restored, restore};
pub use segment::{FORMAT, SegmentHeader};
pub use spare::Room;
pub use thread::LogThread;
pub use writer::{Durable, Released, Wal};

use std::fmt;

/// A record's number in the log. The first is 1 and there are no gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Before the first record.
    pub const NONE: Self = Self(0);

    /// Whether it is a record's.
    #[must_use]
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// The one after this.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The one before this.
    #[must_use]
    pub fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
