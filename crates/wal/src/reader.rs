//! Reading beside the writer: from any record that is still there up to what is durable.

use crate::Lsn;
use crate::disk::{Disk, DiskFile};
use crate::fault::{Corruption, Fault};
use crate::frame::{self, Frame, HEADER_BYTES};
use crate::index::{Entry, Shared};
use crate::segment;

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

    /// Goes to a record.
    pub fn seek(&mut self, lsn: Lsn) {
        (self.wanted, self.place) = (lsn, None);
    }

    /// Reads the frame that has the record that comes next.
    pub fn read(&mut self) -> Result<Read<'_>, Fault> {
        loop {
            if self.wanted > self.shared.durable() {
                return Ok(Read::UpToDate);
            }
            if self.place.is_none() {
                match self.shared.find(self.wanted) {
                    Some(entry) => self.enter(entry)?,
                    None => return Ok(Read::Trimmed(self.shared.oldest().unwrap_or_default())),
                }
            }
            let Some(end) = self.load()? else { continue };
            if end > self.wanted {
                self.wanted = end;
                break;
            }
        }
        // Borrowed anew: what was loaded last is the frame that is wanted.
        let Some(Place { next, .. }) = &mut self.place else {
            unreachable!("a frame is loaded from a place");
        };
        let place = next.segment.place(next.offset);
        let frame = match frame::read(&self.buffer, place, next.before) {
            Ok(frame) => frame,
            Err(broken) => return Err(corrupt(next, broken.found())),
        };
        step(next, &frame);
        Ok(Read::Frame(frame))
    }

    fn enter(&mut self, entry: Entry) -> Result<(), Fault> {
        let name = segment::file_name(entry.segment.number);
        let file = self.disk.open(&name).map_err(|e| Fault::io("open", &name, e))?;
        self.place = Some(Place { file, next: entry });
        Ok(())
    }

    /// Brings the bytes of the next frame into the buffer and says which record comes after it.
    /// A frame that is not wanted is passed; at the end of a segment the next one is entered.
    fn load(&mut self) -> Result<Option<Lsn>, Fault> {
        let Some(Place { file, next }) = &mut self.place else { return Ok(None) };
        // Where the next segment begins with what is wanted, this one ends: what follows here, if
        // anything, was torn, and may even look like a frame.
        let after = self.shared.segment_after(next.segment.number);
        if let Some(after) = after.filter(|after| after.lsn == next.lsn) {
            self.enter(after)?;
            return Ok(None);
        }
        let name = segment::file_name(next.segment.number);
        let place = next.segment.place(next.offset);
        self.buffer.resize(HEADER_BYTES, 0);
        let read = file.read_full_at(&mut self.buffer, next.offset);
        read.map_err(|e| Fault::io("read", &name, e))?;
        let header =
            frame::read_header(&self.buffer, place).filter(|header| header.first_lsn == next.lsn);
        let Some(header) = header else {
            return Err(corrupt(next, "the frame with this durable record cannot be read"));
        };
        self.buffer.resize(HEADER_BYTES + header.payload_bytes as usize, 0);
        let read =
            file.read_full_at(&mut self.buffer[HEADER_BYTES..], next.offset + HEADER_BYTES as u64);
        read.map_err(|e| Fault::io("read", &name, e))?;
        if header.end_lsn() > self.wanted {
            return Ok(Some(header.end_lsn()));
        }
        match frame::read(&self.buffer, place, next.before) {
            Ok(frame) => step(next, &frame),
            Err(broken) => return Err(corrupt(next, broken.found())),
        }
        Ok(None)
    }
}

/// The place after a frame.
fn step(next: &mut Entry, frame: &Frame<'_>) {
    next.lsn = frame.header.end_lsn();
    next.offset += frame.header.frame_bytes();
    next.before = frame.header.chain;
}

fn corrupt(at: &Entry, found: &str) -> Fault {
    let file = segment::file_name(at.segment.number);
    Fault::Corrupt(Corruption { file, offset: at.offset, lsn: at.lsn, found: found.to_owned() })
}
