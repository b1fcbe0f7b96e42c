//! The log on a local disk: a provider of the log interface of `tenure-log`.
//!
//! This crate knows segments, snapshots, files and syncs; it does not know what a task is. What was
//! synced is never lost and never changed: what a crash left half-written at the very end is cut
//! off and reported, and anything else that is broken is refused.

mod backup;
mod beginning;
mod claim;
pub mod disk;
#[cfg(feature = "model")]
pub mod forge;
mod index;
mod inspect;
mod job;
mod load;
mod options;
#[cfg(not(feature = "planted"))]
mod planted;
#[cfg(feature = "planted")]
pub mod planted;
mod reader;
mod recover;
mod restore;
mod segment;
pub mod snapshot;
mod spare;
mod thread;
mod writer;

pub use backup::CopiedFile;
pub use beginning::Beginning;
pub use claim::Claim;
pub use inspect::{Inspection, Located, SegmentState, SegmentSummary, inspect, inspect_until};
pub use job::SnapshotJob;
pub use options::{Durability, Options, Spares};
pub use reader::Reader;
pub use recover::first_segment;
pub use restore::{Restored, restore};
pub use segment::SegmentHeader;
pub use thread::LogThread;
pub use writer::{Durable, Wal};

/// Whether a file of that name in a data folder belongs to its log, its snapshots or its lock.
#[must_use]
pub fn is_log_file(name: &str) -> bool {
    let begins = ["segment-", "snapshot-", "snapshot.tmp", "spare.tmp", "used-"];
    let ends = [".wal", ".snap", ".snap.bad", ".tmp"];
    [disk::real::LOCK_FILE, disk::access::BACKUP_FILE].contains(&name)
        || begins.iter().any(|it| name.starts_with(it)) && ends.iter().any(|it| name.ends_with(it))
}
