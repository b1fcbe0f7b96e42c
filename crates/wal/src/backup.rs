//! A copy of a log that is in use: its files as they are, and of the last segment only what is
//! released. Nothing waits for it: a file that is trimmed meanwhile stays readable while it is open.

use std::io::{self, ErrorKind};

use tenure_log::{Backup, BackupContents, BackupFile, BackupSource, Fault, Lsn, Read, Since};

use crate::disk::{Disk, DiskFile};
use crate::index::Shared;
use crate::reader::Reader;
use crate::segment::{self, SegmentHeader};
use crate::snapshot;

/// How often a copy is begun anew because files went while they were being opened.
const TRIES_MAX: u32 = 10;

impl<D: Disk> BackupSource for Reader<D> {
    fn begin_backup(&self, since: Since) -> Result<Backup, Fault> {
        // While it is held, trimmed files are removed and not used again.
        let hold = self.shared().hold();
        let mut tries = 1;
        loop {
            match open_all(self, since) {
                Ok(Opened { lsn, since, files }) => {
                    return Ok(Backup { lsn, since, files, hold: Box::new(hold) });
                }
                // It was trimmed, or replaced by a newer snapshot, since it was listed.
                Err(Fault::Io { cause, .. })
                    if cause.kind() == ErrorKind::NotFound && tries < TRIES_MAX =>
                {
                    tries += 1;
                }
                Err(fault) => return Err(fault),
            }
        }
    }
}

/// An open file of a copy.
#[derive(Debug)]
struct Contents<F>(F);

impl<F: DiskFile> BackupContents for Contents<F> {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_full_at(into, offset)
    }
}

/// A file of a copy, being written. The folder of a copy gets its name when all of them are
/// finished: until then it is nobody's, whatever is in it.
#[derive(Debug)]
pub struct CopiedFile<D: Disk> {
    disk: D,
    name: String,
    file: D::File,
    /// Bytes that are there so far.
    pub offset: u64,
}

impl<D: Disk> CopiedFile<D> {
    /// Begins one.
    pub fn create(disk: &D, name: &str) -> Result<Self, Fault> {
        let file = disk.create(name).map_err(|e| Fault::io("create", name, e))?;
        Ok(Self { disk: disk.clone(), name: name.to_owned(), file, offset: 0 })
    }

    /// Adds what comes next.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let written = self.file.write_all_at(bytes, self.offset);
        written.map_err(|e| Fault::io("write", &self.name, e))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Makes it as long as it was, and durable with its name.
    pub fn finish(self, size: u64) -> Result<(), Fault> {
        if self.offset < size {
            let last = self.file.write_all_at(&[0], size - 1);
            last.map_err(|e| Fault::io("write", &self.name, e))?;
        }
        self.file.sync().map_err(|e| Fault::io("sync", &self.name, e))?;
        self.disk.sync_folder().map_err(|e| Fault::io("sync", &self.disk.name(), e))
    }
}

struct Opened {
    lsn: Lsn,
    since: Lsn,
    files: Vec<BackupFile>,
}

fn open_all<D: Disk>(reader: &Reader<D>, since: Since) -> Result<Opened, Fault> {
    let (disk, shared) = (reader.disk(), reader.shared());
    let lsn = shared.released();
    let snapshots: Vec<Lsn> =
        snapshot::list(disk)?.into_iter().filter(|snapshot| *snapshot <= lsn).collect();
    let oldest_state = snapshots.last().copied().unwrap_or_default();
    let (last, end) = end_of(reader, lsn)?;
    let mut segments = shared.segments();
    segments.retain(|segment| segment.number <= last);
    if since == Since::Snapshot {
        let first_lsn = oldest_state.next();
        let needed = segments.partition_point(|segment| segment.first_lsn <= first_lsn);
        segments.drain(..needed.saturating_sub(1));
    }
    let begins_at_first = segments.first().is_some_and(|first| first.first_lsn == Lsn(1));
    let since = if begins_at_first { Lsn::NONE } else { oldest_state };
    let mut files = Vec::with_capacity(snapshots.len() + segments.len());
    for lsn in snapshots {
        let name = snapshot::file_name(lsn);
        let file = disk.open(&name).map_err(|e| Fault::io("open", &name, e))?;
        let size = file.size().map_err(|e| Fault::io("look at", &name, e))?;
        files.push(BackupFile { name, bytes: size, size, contents: Box::new(Contents(file)) });
    }
    for SegmentHeader { number, file_bytes, .. } in segments {
        let name = segment::file_name(number);
        let file = disk.open(&name).map_err(|e| Fault::io("open", &name, e))?;
        // What comes behind is being written, and may be there in any order.
        let bytes = if number == last { end } else { file_bytes };
        files.push(BackupFile {
            name,
            bytes,
            size: file_bytes,
            contents: Box::new(Contents(file)),
        });
    }
    Ok(Opened { lsn, since, files })
}

/// In which segment a record's frame is, and where it ends there.
fn end_of<D: Disk>(reader: &Reader<D>, lsn: Lsn) -> Result<(u64, u64), Fault> {
    if !lsn.is_some() {
        return Ok(first_place(reader.shared()));
    }
    let mut reader = reader.fork();
    reader.seek(lsn);
    loop {
        match reader.read()? {
            Read::Frame(frame) if frame.header.end_lsn() > lsn => break,
            Read::Frame(_) => {}
            Read::UpToDate | Read::Trimmed(_) => break,
        }
    }
    Ok(reader.place().unwrap_or_else(|| first_place(reader.shared())))
}

/// Where the first frame of the log will be.
fn first_place(shared: &Shared) -> (u64, u64) {
    shared.segment_after(0).map_or((0, 0), |entry| (entry.segment.number, entry.offset))
}
