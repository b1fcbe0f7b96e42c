//! Reading a log in memory beside its writer.

use super::storage::{MemoryStorage, corrupt};
use crate::fault::Fault;
use crate::frame::Frame;
use crate::interface::{Read, ReadLog};
use crate::lsn::Lsn;
use crate::snapshot::SnapshotFooter;

/// Reads the frames of a log in memory.
#[derive(Debug)]
pub struct MemoryReader {
    storage: MemoryStorage,
    /// The next record.
    wanted: Lsn,
    buffer: Vec<u8>,
}

impl MemoryReader {
    pub(super) fn new(storage: MemoryStorage) -> Self {
        Self { storage, wanted: Lsn(1), buffer: Vec::new() }
    }
}

impl ReadLog for MemoryReader {
    fn fork(&self) -> Box<dyn ReadLog> {
        Box::new(Self::new(self.storage.clone()))
    }

    fn seek(&mut self, lsn: Lsn) {
        self.wanted = lsn;
    }

    fn read(&mut self) -> Result<Read<'_>, Fault> {
        let stored = self.storage.lock();
        if self.wanted > stored.released() {
            return Ok(Read::UpToDate);
        }
        let found = match stored.copy_frame(self.wanted, &mut self.buffer) {
            Ok(found) => found,
            Err(oldest) => return Ok(Read::Trimmed(oldest)),
        };
        drop(stored);
        let frame = Frame::read(&self.buffer, found.seed, found.before)
            .map_err(|broken| corrupt(found.first, broken.found()))?;
        self.wanted = frame.header.end_lsn();
        Ok(Read::Frame(frame))
    }

    fn log_id(&self) -> Result<u128, Fault> {
        Ok(self.storage.lock().log_id())
    }

    fn snapshots(&self) -> Result<Vec<Lsn>, Fault> {
        Ok(self.storage.lock().snapshots())
    }

    fn load_snapshot(
        &self,
        lsn: Lsn,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<SnapshotFooter, Fault> {
        self.storage.load_snapshot(lsn, visit)
    }
}
