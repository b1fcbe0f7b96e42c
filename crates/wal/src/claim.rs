//! A folder whose lock this process holds, before its log is read: no other process writes to it, so
//! what the snapshots say holds until the log is open.

use tenure_log::{Base, Corruption, Fault, Frame, Lsn, OpenLog, Recovered, SnapshotFooter};

use crate::disk::Disk;
use crate::options::Options;
use crate::recover;
use crate::snapshot;
use crate::writer::Wal;

/// A locked folder.
#[derive(Debug)]
pub struct Claim<D: Disk> {
    disk: D,
    options: Options,
    lock: D::Lock,
}

impl<D: Disk> Claim<D> {
    /// Locks the folder, unless another process holds the lock.
    pub fn new(disk: &D, options: Options) -> Result<Self, Fault> {
        let folder = || disk.name();
        let lock = disk.lock().map_err(|cause| Fault::NoFolder { folder: folder(), cause })?;
        let lock = lock.ok_or_else(|| Fault::InUse { folder: folder() })?;
        Ok(Self { disk: disk.clone(), options, lock })
    }
}

impl<D: Disk> OpenLog for Claim<D> {
    type Log = Wal<D>;

    fn snapshots(&mut self) -> Result<Vec<Lsn>, Fault> {
        let found = snapshot::list(&self.disk)?;
        let Some(newest) = found.first() else { return Ok(found) };
        // A log that was ever written has a segment: without one, what followed is lost.
        match recover::first_segment(&self.disk)? {
            Some(_) => Ok(found),
            None => Err(Fault::Corrupt(Corruption {
                file: snapshot::file_name(*newest),
                offset: 0,
                lsn: newest.next(),
                found: "there is a snapshot, and no segment of the log that follows it".to_owned(),
            })),
        }
    }

    fn snapshot_name(&self, lsn: Lsn) -> String {
        snapshot::file_name(lsn)
    }

    fn load(&mut self, lsn: Lsn, visit: &mut dyn FnMut(&[u8])) -> Result<SnapshotFooter, Fault> {
        let log_id = recover::first_segment(&self.disk)?
            .map_or(self.options.new_log_id, |first| first.log_id);
        snapshot::load(&self.disk, log_id, lsn, visit)
    }

    fn open(
        self,
        base: &Base,
        visit: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<(Wal<D>, Recovered), Fault> {
        let Self { disk, options, lock } = self;
        let (wal, recovered) = Wal::open_locked(&disk, lock, options, base.anchor, visit)?;
        for lsn in &base.bad {
            snapshot::set_aside(&disk, *lsn)?;
        }
        Ok((wal, recovered))
    }
}
