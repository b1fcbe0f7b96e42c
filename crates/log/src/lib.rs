//! The log interface: an append-only sequence of records with one writer at a time, and snapshots
//! beside it. Nothing in this crate knows where a log is stored.
//!
//! A *provider* stores [`Frame`]s and gives them back: `tenure-wal` keeps them in files on a local
//! disk, and [`MemoryLog`] in memory. The coordinator knows only the traits: [`OpenLog`] to recover, [`Log`] to append,
//! [`ReadLog`] to read beside the writer, and [`Maintenance`] for upkeep.

mod backup;
mod batch;
#[cfg(feature = "conformance")]
pub mod conformance;
mod fault;
mod frame;
mod interface;
mod lsn;
mod memory;
mod recovered;
mod released;
mod snapshot;

pub use backup::{Backup, BackupContents, BackupFile, BackupSource, Since};
pub use batch::Batch;
pub use fault::{Corruption, Fault};
pub use frame::{
    ALIGNMENT, Broken, Chain, CrcSeed, DurabilityMark, FORMAT, Frame, FrameHeader, FrameKind,
    FrameStamp, HEADER_BYTES, NUMBERS_END, PAYLOAD_BYTES_MAX, PayloadDigest,
};
pub use interface::{
    AppendAt, Committed, Extent, Keep, Log, Maintenance, OpenLog, Outcome, Read, ReadLog, Room,
    Trimmed,
};
pub use lsn::Lsn;
pub use memory::{MemoryClaim, MemoryLog, MemoryOptions, MemoryReader, MemoryStorage};
pub use recovered::{Anchor, Base, Note, Recovered};
pub use released::Released;
pub use snapshot::{SnapshotEnd, SnapshotFooter, SnapshotSource, SnapshotSum, SnapshotWork};
