//! Reading beside the writer: from any record that is still there up to what is durable.

use tenure_log::{
    Corruption, Fault, Frame, FrameHeader, FrameKind, HEADER_BYTES, Lsn, Read, ReadLog,
    SnapshotFooter,
};

use crate::disk::{Disk, DiskFile};
use crate::index::{Entry, Shared};
use crate::planted;
use crate::recover;
use crate::segment::{self, PAGE_BYTES};
use crate::snapshot;

/// Reads frames in order.
#[derive(Debug)]
pub struct Reader<D: Disk> {
    disk: D,
    shared: Shared,
    /// The record that is wanted next.
    wanted: Lsn,
    /// Where to look for it, once that was found out.
    cursor: Option<Cursor<D>>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Cursor<D: Disk> {
    file: D::File,
    /// The next frame: where it begins and what comes before it.
    next: Entry,
}

impl<D: Disk> Reader<D> {
    pub(crate) fn new(disk: D, shared: Shared) -> Self {
        Self { disk, shared, wanted: Lsn(1), cursor: None, buffer: Vec::new() }
    }

    /// Another reader of the same log, at the first record.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::new(self.disk.clone(), self.shared.clone())
    }

    pub(crate) fn disk(&self) -> &D {
        &self.disk
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The segment that it is in, and where the frame that it read last ends there.
    pub(crate) fn place(&self) -> Option<(u64, u64)> {
        self.cursor.as_ref().map(|cursor| (cursor.next.segment.number, cursor.next.offset))
    }

    /// What tells this log from every other one.
    pub fn log_id(&self) -> Result<u128, Fault> {
        Ok(recover::first_segment(&self.disk)?.map_or(0, |first| first.log_id))
    }

    /// The snapshots that are there, newest first.
    pub fn snapshots(&self) -> Result<Vec<Lsn>, Fault> {
        snapshot::list(&self.disk)
    }

    /// Reads a snapshot. Each piece was checked; that the whole is there is known only when this
    /// returns well. One that is forgotten meanwhile cannot be opened.
    pub fn load_snapshot(
        &self,
        lsn: Lsn,
        visit: impl FnMut(&[u8]),
    ) -> Result<SnapshotFooter, Fault> {
        snapshot::load(&self.disk, self.log_id()?, lsn, visit)
    }

    /// Goes to a record.
    pub fn seek(&mut self, lsn: Lsn) {
        (self.wanted, self.cursor) = (lsn, None);
    }

    /// Reads the frame that has the record that comes next.
    pub fn read(&mut self) -> Result<Read<'_>, Fault> {
        let header = loop {
            if self.wanted > self.shared.released() {
                return Ok(Read::UpToDate);
            }
            if self.is_forgotten() {
                self.cursor = None;
            }
            if self.cursor.is_none() {
                match self.shared.find(self.wanted) {
                    Some(entry) => self.enter(entry)?,
                    None => return Ok(Read::Trimmed(self.shared.oldest().unwrap_or_default())),
                }
            }
            match self.load() {
                Ok(Some(header)) => break header,
                Ok(None) => {}
                // It was trimmed meanwhile, and its file is being overwritten: that is no damage.
                Err(_) if self.is_forgotten() => {}
                Err(fault) => return Err(fault),
            }
        };
        self.wanted = header.end_lsn();
        Ok(Read::Frame(Frame::of_checked(header, &self.buffer)))
    }

    /// Whether the segment that is being read was trimmed.
    fn is_forgotten(&self) -> bool {
        self.cursor.as_ref().is_some_and(|cursor| self.shared.forgot(cursor.next.segment.number))
    }

    fn enter(&mut self, entry: Entry) -> Result<(), Fault> {
        let number = entry.segment.number;
        let name = segment::file_name(number);
        self.cursor = match self.disk.open(&name) {
            Ok(file) => Some(Cursor { file, next: entry }),
            // It was trimmed since it was found.
            Err(_) if self.shared.forgot(number) => None,
            Err(error) => return Err(Fault::io("open", &name, error)),
        };
        Ok(())
    }

    /// Brings the next frame into the buffer, checks it, and gives its header. A frame that is not
    /// wanted is passed; at the end of a segment the next one is entered.
    fn load(&mut self) -> Result<Option<FrameHeader>, Fault> {
        let Some(Cursor { file, next }) = &mut self.cursor else { return Ok(None) };
        // Where the next segment begins with what is wanted, this one ends: what follows here, if
        // anything, was torn, and may even look like a frame.
        let after = self.shared.segment_after(next.segment.number);
        if let Some(after) = after.filter(|after| after.lsn == next.lsn) {
            self.enter(after)?;
            return Ok(None);
        }
        let name = segment::file_name(next.segment.number);
        let mut read_header = |offset: u64| {
            self.buffer.resize(HEADER_BYTES, 0);
            let read = file.read_full_at(&mut self.buffer, offset);
            read.map_err(|e| Fault::io("read", &name, e))?;
            let header = planted::read_header(&self.buffer, next.segment.seed(offset));
            Ok(header.filter(|header| header.first_lsn == next.lsn))
        };
        let mut header = read_header(next.offset)?;
        if header.is_none() {
            // A mark begins with a page of its own.
            let page = next.offset.next_multiple_of(PAGE_BYTES);
            header = read_header(page)?.filter(|header| header.kind != FrameKind::Records);
            next.offset = if header.is_some() { page } else { next.offset };
        }
        let Some(header) = header else {
            return Err(corrupt(next, "the frame with this durable record cannot be read"));
        };
        let seed = next.segment.seed(next.offset);
        self.buffer.resize(HEADER_BYTES + header.payload_bytes as usize, 0);
        let read =
            file.read_full_at(&mut self.buffer[HEADER_BYTES..], next.offset + HEADER_BYTES as u64);
        read.map_err(|e| Fault::io("read", &name, e))?;
        let checked = Frame::check(header, &self.buffer, seed, next.before);
        let header = checked.map_err(|broken| corrupt(next, broken.found()))?.header;
        next.lsn = header.end_lsn();
        next.offset += header.frame_bytes();
        next.before = header.chain;
        if header.end_lsn() > self.wanted {
            return Ok(Some(header));
        }
        self.shared.learn(*next);
        Ok(None)
    }
}

impl<D: Disk> ReadLog for Reader<D> {
    fn fork(&self) -> Box<dyn ReadLog> {
        Box::new(Reader::fork(self))
    }

    fn seek(&mut self, lsn: Lsn) {
        Reader::seek(self, lsn);
    }

    fn read(&mut self) -> Result<Read<'_>, Fault> {
        Reader::read(self)
    }

    fn log_id(&self) -> Result<u128, Fault> {
        Reader::log_id(self)
    }

    fn snapshots(&self) -> Result<Vec<Lsn>, Fault> {
        Reader::snapshots(self)
    }

    fn load_snapshot(
        &self,
        lsn: Lsn,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<SnapshotFooter, Fault> {
        Reader::load_snapshot(self, lsn, visit)
    }
}

fn corrupt(at: &Entry, found: &str) -> Fault {
    let file = segment::file_name(at.segment.number);
    Fault::Corrupt(Corruption { file, offset: at.offset, lsn: at.lsn, found: found.to_owned() })
}
