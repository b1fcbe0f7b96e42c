//! Forgetting the beginning of a log: whole segments, oldest first.

use super::Wal;
use tenure_log::{Extent, Fault, Keep, Lsn, Maintenance, Room, Trimmed};

use crate::disk::Disk;
use crate::planted;
use crate::segment;
use crate::spare::Reuse;

impl<D: Disk> Wal<D> {
    /// Forgets segments that have only records before this one; the one being written stays. Some
    /// of their files are kept, to be overwritten and used again.
    pub fn trim(&mut self, before: Lsn) -> Result<(), Fault> {
        self.expect_good();
        if self.segments.get(1).is_none_or(|second| second.first_lsn > before) {
            return Ok(());
        }
        let mut kept = Vec::new();
        while let [oldest, next, ..] = self.segments.as_slice()
            && next.first_lsn <= before
        {
            // Readers hear of it first: they must not look for a file that is gone.
            self.shared.forget_before(next.number);
            let reuse = match self.shared.is_held() {
                true => Reuse::Nothing,
                false => Reuse::Some,
            };
            let put_away = self.stock.put_away(oldest, reuse, &mut kept);
            put_away.map_err(|fault| self.broken(fault))?;
            self.segments.remove(0);
        }
        // Only then may the files be overwritten: a crash must not bring back the old name of one.
        let synced = planted::sync_trimmed(&self.disk);
        synced.map_err(|e| self.broken(Fault::io("sync", &self.disk.name(), e)))?;
        self.stock.keep(kept);
        Ok(())
    }

    /// Forgets the oldest segment, if it has only records before this one and the policy lets it
    /// go.
    pub fn trim_one(&mut self, before: Lsn, keep: Keep, at_ms: u64) -> Result<Trimmed, Fault> {
        self.expect_good();
        let [_, next, ..] = self.segments.as_slice() else { return Ok(Trimmed::Nothing) };
        let next = *next;
        let may_go = next.first_lsn <= planted::trimmed_before(before, self.written)
            && match keep {
                Keep::All => false,
                Keep::Bytes(bytes) => self.extent().bytes > bytes,
                Keep::Ms(ms) => {
                    // All that is in a segment is older than the first frame of the next.
                    let first = segment::first_frame_at_ms(&self.disk, &next)?;
                    first.is_some_and(|first| first.saturating_add(ms) <= at_ms)
                }
            };
        if !may_go {
            return Ok(Trimmed::Nothing);
        }
        self.trim(next.first_lsn)?;
        Ok(Trimmed::Some)
    }

    /// What there is of the log.
    #[must_use]
    pub fn extent(&self) -> Extent {
        let oldest = self.segments.first().map_or(self.written.next(), |first| first.first_lsn);
        Extent { oldest, bytes: self.segments.iter().map(|segment| segment.file_bytes).sum() }
    }
}

impl<D: Disk> Maintenance for Wal<D> {
    fn sync_due_ms(&self) -> Option<u64> {
        Wal::sync_due_ms(self)
    }

    fn sync(&mut self) -> Result<(), Fault> {
        Wal::sync(self).map(drop)
    }

    fn mark(&mut self, at_ms: u64) -> Result<u64, Fault> {
        Wal::mark(self, at_ms)?;
        Ok(segment::MARK_BYTES)
    }

    fn close(&mut self, at_ms: u64) -> Result<(), Fault> {
        Wal::close(self, at_ms)
    }

    fn room(&mut self) -> Room {
        Wal::room(self)
    }

    fn durable(&self) -> Lsn {
        Wal::durable(self)
    }

    fn trim(&mut self, before: Lsn, keep: Keep, at_ms: u64) -> Result<Trimmed, Fault> {
        self.trim_one(before, keep, at_ms)
    }

    fn extent(&self) -> Extent {
        Wal::extent(self)
    }
}
