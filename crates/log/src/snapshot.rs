//! Snapshots as the interface sees them: a source of bytes, and a footer that says what they are.

use std::fmt;
use std::io;
use std::ops::ControlFlow;

use crate::fault::Fault;
use crate::frame::Chain;
use crate::lsn::Lsn;
use crate::recovered::Anchor;

/// What a snapshot says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotFooter {
    /// The last record whose effect the snapshot contains.
    pub lsn: Lsn,
    /// The chain up to and including that record's frame.
    pub chain: Chain,
    /// The hash of the state, as the source of the snapshot defines it.
    pub state_hash: [u8; 32],
    /// The number of items, as the source of the snapshot counts them.
    pub items: u64,
}

impl SnapshotFooter {
    /// The position in the log at which the snapshot was taken.
    #[must_use]
    pub fn anchor(&self) -> Anchor {
        Anchor { lsn: self.lsn, chain: self.chain }
    }
}

/// The source of a snapshot's bytes.
pub trait SnapshotSource: fmt::Debug + Send {
    /// Appends the next bytes; breaks when these were the last.
    ///
    /// # Errors
    /// A part of the content cannot be read, and the snapshot is given up.
    fn next(&mut self, out: &mut Vec<u8>) -> io::Result<ControlFlow<()>>;

    /// Hashes and counts the next part, once all bytes were taken; breaks with the totals.
    ///
    /// # Errors
    /// A part of the content cannot be read, and the snapshot is given up.
    fn sum(&mut self) -> io::Result<ControlFlow<SnapshotSum>>;
}

/// Hash and count of a snapshot's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotSum {
    /// The hash of the state.
    pub state_hash: [u8; 32],
    /// The number of items.
    pub items: u64,
}

/// A snapshot to be written.
#[derive(Debug)]
pub struct SnapshotWork {
    /// The last record whose effect the snapshot contains, which must be durable, and its chain.
    pub anchor: Anchor,
    /// The content.
    pub source: Box<dyn SnapshotSource>,
}

/// How writing a snapshot ended.
#[derive(Debug)]
pub enum SnapshotEnd {
    /// The snapshot was read back whole and is durable.
    Kept {
        /// What it says about itself.
        footer: SnapshotFooter,
        /// Its size in storage.
        bytes: u64,
    },
    /// The snapshot could not be written. Nothing else has changed, and another may be tried.
    GivenUp {
        /// The last record that it would have contained.
        lsn: Lsn,
        /// Why.
        fault: Fault,
    },
    /// It is not known which snapshots the storage lists. This ends the log as well.
    Broken(Fault),
}
