//! A log in memory: a complete provider without files and threads, for tests and as an example.
//!
//! [`MemoryStorage`] outlives its writers, as a disk or a database does. Opening it with
//! [`MemoryStorage::claim`] fences off the writer before. Everything that happens follows from the
//! seed in [`MemoryOptions`], also which replies get lost.

mod reader;
mod storage;
mod writer;

use crate::fault::Fault;
use crate::frame::Frame;
use crate::interface::OpenLog;
use crate::lsn::Lsn;
use crate::recovered::{Base, Recovered};
use crate::snapshot::SnapshotFooter;

pub use reader::MemoryReader;
pub use storage::MemoryStorage;
pub use writer::MemoryLog;

/// How a [`MemoryLog`] behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// The number of frames that may be under way.
    pub depth: usize,
    /// How many of a thousand replies get lost, half of them before the append takes effect and half
    /// of them after.
    pub lost_permille: u64,
    /// A reply arrives after at most this number of polls.
    pub delay_polls_max: u64,
    /// The source of all chance.
    pub seed: u64,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self { depth: 1, lost_permille: 0, delay_polls_max: 0, seed: 1 }
    }
}

impl MemoryStorage {
    /// Prepares to open the log.
    #[must_use]
    pub fn claim(&self, options: MemoryOptions) -> MemoryClaim {
        MemoryClaim { storage: self.clone(), options }
    }
}

/// A log in memory before it is open.
#[derive(Debug)]
pub struct MemoryClaim {
    storage: MemoryStorage,
    options: MemoryOptions,
}

impl OpenLog for MemoryClaim {
    type Log = MemoryLog;

    fn snapshots(&mut self) -> Result<Vec<Lsn>, Fault> {
        Ok(self.storage.lock().snapshots())
    }

    fn snapshot_name(&self, lsn: Lsn) -> String {
        storage::snapshot_name(lsn)
    }

    fn load(&mut self, lsn: Lsn, visit: &mut dyn FnMut(&[u8])) -> Result<SnapshotFooter, Fault> {
        self.storage.load_snapshot(lsn, visit)
    }

    fn open(
        self,
        base: &Base,
        visit: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<(MemoryLog, Recovered), Fault> {
        let Self { storage, options } = self;
        let mut stored = storage.lock();
        let recovered = stored.recover(base.anchor, visit)?;
        let epoch = stored.next_epoch();
        for lsn in &base.bad {
            stored.remove_snapshot(*lsn);
        }
        let end = stored.end();
        drop(stored);
        Ok((MemoryLog::new(storage, options, epoch, end), recovered))
    }
}
