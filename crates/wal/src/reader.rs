//! Reading beside the writer: from any record that is still there up to what is durable.

use crate::Lsn;
use crate::disk::{Disk, DiskFile};
use crate::fault::{Corruption, Fault};
use crate::frame::{self, Frame, HEADER_BYTES, Header, Kind};
use crate::index::{Entry, Shared};
use crate::recover;
use crate::segment::{self, PAGE_BYTES};
use crate::snapshot::{self, Footer};

/// Reads frames in order.
#[derive(Debug)]
pub struct Reader<D: Disk> {
    disk: D,
    shared: Shared,
    /// The record that is wanted next.
    wanted: Lsn,
    /// Where to look for it, once that was found out.
    place: Option<Place<D>>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Place<D: Disk> {
    file: D::File,
    /// The next frame: where it begins and what comes before it.
    next: Entry,
}

/// What a reader found.
#[derive(Debug)]
pub enum Read<'a> {
    /// A frame. The first one may begin before the record that was asked for.
    Frame(Frame<'a>),
    /// All that is durable was read; later there may be more.
    UpToDate,
    /// The record is gone; this is the oldest that is there.
    Trimmed(Lsn),
}

impl<D: Disk> Reader<D> {
    pub(crate) fn new(disk: D, shared: Shared) -> Self {
        Self { disk, shared, wanted: Lsn(1), place: None, buffer: Vec::new() }
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
        self.place.as_ref().map(|place| (place.next.segment.number, place.next.offset))
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
    pub fn load_snapshot(&self, lsn: Lsn, visit: impl FnMut(&[u8])) -> Result<Footer, Fault> {
        snapshot::load(&self.disk, self.log_id()?, lsn, visit)
    }

    /// Goes to a record.
    pub fn seek(&mut self, lsn: Lsn) {
        (self.wanted, self.place) = (lsn, None);
    }

    /// Reads the frame that has the record that comes next.
    pub fn read(&mut self) -> Result<Read<'_>, Fault> {
        let header = loop {
            if self.wanted > self.shared.released() {
                return Ok(Read::UpToDate);
            }
            if self.is_forgotten() {
                self.place = None;
            }
            if self.place.is_none() {
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
        self.place.as_ref().is_some_and(|place| self.shared.forgot(place.next.segment.number))
    }

    fn enter(&mut self, entry: Entry) -> Result<(), Fault> {
        let number = entry.segment.number;
        let name = segment::file_name(number);
        self.place = match self.disk.open(&name) {
            Ok(file) => Some(Place { file, next: entry }),
            // It was trimmed since it was found.
            Err(_) if self.shared.forgot(number) => None,
            Err(error) => return Err(Fault::io("open", &name, error)),
        };
        Ok(())
    }

    /// Brings the next frame into the buffer, checks it, and gives its header. A frame that is not
    /// wanted is passed; at the end of a segment the next one is entered.
    fn load(&mut self) -> Result<Option<Header>, Fault> {
        let Some(Place { file, next }) = &mut self.place else { return Ok(None) };
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
            let header = frame::read_header(&self.buffer, next.segment.place(offset));
            Ok(header.filter(|header| header.first_lsn == next.lsn))
        };
        let mut header = read_header(next.offset)?;
        if header.is_none() {
            // A mark begins with a page of its own.
            let page = next.offset.next_multiple_of(PAGE_BYTES);
            header = read_header(page)?.filter(|header| header.kind != Kind::Records);
            next.offset = if header.is_some() { page } else { next.offset };
        }
        let Some(header) = header else {
            return Err(corrupt(next, "the frame with this durable record cannot be read"));
        };
        let place = next.segment.place(next.offset);
        self.buffer.resize(HEADER_BYTES + header.payload_bytes as usize, 0);
        let read =
            file.read_full_at(&mut self.buffer[HEADER_BYTES..], next.offset + HEADER_BYTES as u64);
        read.map_err(|e| Fault::io("read", &name, e))?;
        let checked = frame::read(&self.buffer, place, next.before);
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

fn corrupt(at: &Entry, found: &str) -> Fault {
    let file = segment::file_name(at.segment.number);
    Fault::Corrupt(Corruption { file, offset: at.offset, lsn: at.lsn, found: found.to_owned() })
}
