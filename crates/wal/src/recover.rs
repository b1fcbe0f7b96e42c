//! Recovery: everything is read and checked, and the one thing that a crash may leave (a torn end
//! that was never acknowledged) is distinguished from everything else, which is corruption.

use std::ops::ControlFlow;

use tenure_log::{
    ALIGNMENT, Anchor, Broken, Chain, Corruption, DurabilityMark, Fault, Frame, FrameHeader,
    FrameKind, HEADER_BYTES, Lsn, NUMBERS_END, Note, Recovered,
};

use crate::beginning::Beginning;
use crate::disk::{Disk, DiskFile};
use crate::index::{Entry, Shared};
use crate::load::{Loaded, is_zeros};
use crate::planted::{self, Bug};
use crate::segment::{self, Copies, FRAMES_FROM, Found, PAGE_BYTES, SegmentHeader};

/// Segments and records are counted from 1.
const COUNTS: std::ops::Range<u64> = 1..NUMBERS_END;

const NOT_THE_SNAPSHOTS: &str =
    "the log up to this record is not the one that the snapshot was taken from";

/// The oldest segment in a folder, if there is any. It says which log this is, and where it begins.
pub fn first_segment<D: Disk>(disk: &D) -> Result<Option<SegmentHeader>, Fault> {
    Ok(find_segments(disk)?.segments.first().map(|(header, _)| *header))
}

/// Where the log ends and how it can go on.
pub(crate) struct End<D: Disk> {
    pub recovered: Recovered,
    /// The last segment, if there is any.
    pub last: Option<Last<D>>,
    /// All segments that are there, oldest first.
    pub segments: Vec<SegmentHeader>,
    /// How many of them were not read, because a snapshot covers them.
    pub unread: usize,
}

pub(crate) struct Last<D: Disk> {
    pub file: D::File,
    pub header: SegmentHeader,
    /// Where the next frame would go.
    pub offset: u64,
    /// The frames at the end of which no later one says that they are durable.
    pub doubtful: Doubtful,
    /// Whether anything may be written there.
    pub tail: Tail,
}

/// Bytes that were read and may be in the page cache only.
pub(crate) struct Doubtful {
    pub from: u64,
    pub bytes: Vec<u8>,
}

impl<D: Disk> Last<D> {
    /// Makes the end durable. After a sync that failed, the page cache calls what it has clean
    /// though it is not on the disk, and another sync would not write it: so it is written again.
    pub(crate) fn make_durable(&self) -> Result<(), Fault> {
        let name = segment::file_name(self.header.number);
        let Doubtful { from, bytes } = &self.doubtful;
        if !planted::has(Bug::TailNotRewritten) {
            self.file.write_all_at(bytes, *from).map_err(|e| Fault::io("write", &name, e))?;
        }
        self.file.sync().map_err(|e| Fault::io("sync", &name, e))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Nothing but zeros follows.
    Clean,
    /// Half-written bytes follow; nothing is ever written over them.
    Torn,
}

/// Reads the log, hands every frame after the anchor and its offset to `visit`, and finds its end.
/// Changes nothing. If `visit` has enough, reading stops there, and nothing behind is judged.
pub(crate) fn recover<D: Disk>(
    disk: &D,
    beginning: Beginning,
    shared: &Shared,
    visit: &mut dyn FnMut(&Frame<'_>, u64) -> ControlFlow<()>,
) -> Result<End<D>, Fault> {
    let anchor = beginning.anchor();
    let found = find_segments(disk)?;
    let mut scan = Scan {
        anchor,
        shared,
        visit,
        recovered: Recovered {
            last_lsn: Lsn::NONE,
            chain: Chain::START,
            record_chain: Chain::START,
            at_ms: 0,
            epoch: 0,
            bytes: 0,
            may_lack: false,
            notes: found.notes,
        },
        last: None,
        buffer: Vec::new(),
        meets_anchor: false,
        flow: ControlFlow::Continue(()),
    };
    let headers: Vec<_> = found.segments.iter().map(|(header, _)| *header).collect();
    let first = beginning.first_to_read(&headers);
    if let Some(header) = headers.get(first) {
        if beginning != Beginning::Oldest {
            check_beginning(header, anchor)?;
        }
        // If the log begins right behind the snapshot there is nothing to compare it with.
        scan.meets_anchor = anchor.is_some_and(|anchor| anchor.lsn < header.first_lsn);
        (scan.recovered.last_lsn, scan.recovered.chain) =
            (header.first_lsn.before(), header.before);
        scan.recovered.record_chain = anchor.map_or(header.before, |anchor| anchor.chain);
    }
    let mut files = found.segments.into_iter().skip(first).peekable();
    while scan.flow.is_continue()
        && let Some((header, file)) = files.next()
    {
        let next = files.peek().map(|(next, _)| *next);
        scan.segment(file, header, next)?;
    }
    scan.check_anchor(&headers)?;
    check_counts(&scan.recovered, headers.last())?;
    Ok(End { recovered: scan.recovered, last: scan.last, segments: headers, unread: first })
}

struct Segments<D: Disk> {
    segments: Vec<(SegmentHeader, D::File)>,
    notes: Vec<Note>,
}

/// An opened log continues to count. Where that would lead to numbers that a reader refuses,
/// nothing is begun.
fn check_counts(recovered: &Recovered, last: Option<&SegmentHeader>) -> Result<(), Fault> {
    let Some(last) = last else { return Ok(()) };
    let is_near_the_end = |count: u64| count >= NUMBERS_END / 2;
    if [recovered.last_lsn.0, recovered.epoch, last.number].into_iter().any(is_near_the_end) {
        let file = segment::file_name(last.number);
        let found = "its frames or its header say what no log ever comes to".to_owned();
        return Err(Fault::Foreign { file, found });
    }
    Ok(())
}

/// Opens all segments and checks that they belong together.
fn find_segments<D: Disk>(disk: &D) -> Result<Segments<D>, Fault> {
    let names = disk.list().map_err(|e| Fault::io("list", &disk.name(), e))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| segment::number_in(name)).collect();
    numbers.sort_unstable();
    let mut found = Segments::<D> { segments: Vec::new(), notes: Vec::new() };
    for number in numbers {
        let name = segment::file_name(number);
        let file = disk.open(&name).map_err(|e| Fault::io("open", &name, e))?;
        let before = found.segments.last().map(|(header, _)| *header);
        let header = match segment::read_header(&file, &name)? {
            Found::Header(header, copies) => {
                if copies == Copies::One {
                    found.notes.push(Note::OneHeader { file: name.clone() });
                }
                header
            }
            // A segment gets its name after its header is durable.
            Found::Nothing => {
                let lsn = before.map_or(Lsn(1), |header| header.first_lsn);
                let found = "neither of its two headers can be read".to_owned();
                return Err(Fault::Corrupt(Corruption { file: name, offset: 0, lsn, found }));
            }
        };
        check_header(&name, number, &header, before.as_ref())?;
        let size = file.size().map_err(|e| Fault::io("look at", &name, e))?;
        if size < header.file_bytes {
            let found =
                format!("the file has {size} bytes and was made with {}", header.file_bytes);
            let lsn = header.first_lsn;
            return Err(Fault::Corrupt(Corruption { file: name, offset: size, lsn, found }));
        }
        found.segments.push((header, file));
    }
    Ok(found)
}

fn check_header(
    name: &str,
    number: u64,
    header: &SegmentHeader,
    before: Option<&SegmentHeader>,
) -> Result<(), Fault> {
    let foreign = |found: String| Fault::Foreign { file: name.to_owned(), found };
    if header.number != number {
        return Err(foreign(format!("its header says that it is segment {}", header.number)));
    }
    let is_possible = COUNTS.contains(&number) && COUNTS.contains(&header.first_lsn.0);
    if header.file_bytes < FRAMES_FROM || !is_possible {
        return Err(foreign("its header says what no log ever comes to".to_owned()));
    }
    let Some(before) = before else { return Ok(()) };
    if header.log_id != before.log_id {
        return Err(foreign("it is from another log".to_owned()));
    }
    if header.number != before.number + 1 {
        let file = segment::file_name(before.number + 1);
        let found = format!("the segment is missing between {} and {number}", before.number);
        let lsn = before.first_lsn;
        return Err(Fault::Corrupt(Corruption { file, offset: 0, lsn, found }));
    }
    // Segments that a snapshot covers are not read, so nothing else would find this.
    if header.first_lsn < before.first_lsn {
        let found = format!(
            "it begins with record {}, and the segment before it with {}",
            header.first_lsn, before.first_lsn
        );
        return Err(foreign(found));
    }
    Ok(())
}

/// The log must begin at its first record, or at the latest right behind the snapshot.
fn check_beginning(first: &SegmentHeader, anchor: Option<Anchor>) -> Result<(), Fault> {
    let lsn = anchor.map_or(Lsn::NONE, |anchor| anchor.lsn).next();
    if first.first_lsn <= lsn {
        return Ok(());
    }
    let file = segment::file_name(first.number.saturating_sub(1));
    let found = format!(
        "the segment is missing: records up to {} are in no segment and in no snapshot",
        first.first_lsn.before()
    );
    Err(Fault::Corrupt(Corruption { file, offset: 0, lsn, found }))
}

/// A frame that follows and where it begins, or where there should be one and why there is none.
type Following = Result<(u64, FrameHeader), (u64, Broken)>;

struct Scan<'a, D: Disk> {
    anchor: Option<Anchor>,
    shared: &'a Shared,
    visit: &'a mut dyn FnMut(&Frame<'_>, u64) -> ControlFlow<()>,
    recovered: Recovered,
    last: Option<Last<D>>,
    buffer: Vec<u8>,
    /// Whether the chain at the anchor was found to be the anchor's. A mark moves the chain and
    /// not the LSN, so the snapshot may have been taken on either side of it.
    meets_anchor: bool,
    /// Whether the visitor wants more.
    flow: ControlFlow<()>,
}

impl<D: Disk> Scan<'_, D> {
    /// Reads one segment to its end. `next` is the one after it.
    fn segment(
        &mut self,
        file: D::File,
        header: SegmentHeader,
        next: Option<SegmentHeader>,
    ) -> Result<(), Fault> {
        let name = segment::file_name(header.number);
        let buffer = std::mem::take(&mut self.buffer);
        let mut loaded = Loaded::<D>::new(&file, &name, header.file_bytes, buffer);
        let mut offset = FRAMES_FROM;
        let mut doubtful_from = offset;
        self.shared.note(self.entry(header, offset));
        let mut says_it_goes_on = false;
        let (broken_at, broken) = loop {
            match self.next_frame(&mut loaded, &header, offset)? {
                Ok((at, checked)) => {
                    let frame = Frame::of_checked(checked, loaded.from(at));
                    // Nothing is ever written between two frames, so no crash leaves anything there.
                    let before = &loaded.from(offset)[..(at - offset) as usize];
                    if !is_zeros(before) || !is_zeros(gap_after(loaded.from(at), &frame.header)) {
                        let found = "the gap between this frame and the next is not empty";
                        return Err(self.corrupt(&header, offset, found.to_owned()));
                    }
                    if frame.header.durable >= self.recovered.last_lsn {
                        doubtful_from = at;
                    }
                    self.frame(&frame, header, at)?;
                    if self.flow.is_break() {
                        return Ok(());
                    }
                    offset = at + frame.header.frame_bytes();
                    loaded.keep_from(doubtful_from);
                    if checked.kind == FrameKind::SegmentEnd {
                        says_it_goes_on = true;
                        break (offset, Broken::Header);
                    }
                }
                Err((at, Broken::Header)) if planted::zeros_parse(loaded.from(at)) => {
                    offset = at + HEADER_BYTES as u64;
                }
                Err(broken) => break broken,
            }
        };
        if says_it_goes_on && next.is_none() {
            return Err(self.lost_next(&header));
        }
        loaded.reach(header.file_bytes)?;
        let tail = self.judge(loaded.from(broken_at), broken_at, &header, next.as_ref(), broken)?;
        if tail == Tail::Torn {
            let lsn = self.recovered.last_lsn.next();
            self.recovered.notes.push(match next {
                Some(_) => Note::Scar { file: name.clone(), offset: broken_at },
                None => Note::Torn { file: name.clone(), offset: broken_at, lsn },
            });
        }
        let doubtful = next.is_none().then(|| {
            let rest = loaded.from(doubtful_from);
            let unsure = rest.len().min((offset - doubtful_from) as usize);
            Doubtful { from: doubtful_from, bytes: rest[..unsure].to_vec() }
        });
        self.buffer = loaded.into_buffer();
        if let Some(doubtful) = doubtful {
            self.last = Some(Last { file, header, offset, doubtful, tail });
        }
        Ok(())
    }

    /// The frame that follows the one that ends at an offset, and where it begins: right there, or,
    /// without records, with the next page. If there is none, where it is broken.
    fn next_frame(
        &self,
        loaded: &mut Loaded<'_, D>,
        segment: &SegmentHeader,
        offset: u64,
    ) -> Result<Following, Fault> {
        let broken = match self.frame_at(loaded, segment, offset)? {
            Ok(header) => return Ok(Ok((offset, header))),
            Err(broken) => broken,
        };
        let page = offset.next_multiple_of(PAGE_BYTES);
        if page == offset {
            return Ok(Err((offset, broken)));
        }
        let broken_there = match self.frame_at(loaded, segment, page)? {
            Ok(header) if header.kind != FrameKind::Records => return Ok(Ok((page, header))),
            Ok(_) => Broken::Chain,
            Err(broken) => broken,
        };
        let (gap, there) = match loaded.from(offset).split_at_checked((page - offset) as usize) {
            Some((gap, there)) => (gap, &there[..HEADER_BYTES.min(there.len())]),
            None => (loaded.from(offset), &[][..]),
        };
        // Behind nothing but zeros, it is the other one that is broken.
        match is_zeros(gap) && !is_zeros(there) {
            true => Ok(Err((page, broken_there))),
            false => Ok(Err((offset, broken))),
        }
    }

    /// The frame at an offset, if it follows the one before.
    fn frame_at(
        &self,
        loaded: &mut Loaded<'_, D>,
        segment: &SegmentHeader,
        offset: u64,
    ) -> Result<Result<FrameHeader, Broken>, Fault> {
        let seed = segment.seed(offset);
        loaded.reach(offset + HEADER_BYTES as u64)?;
        let Some(header) = planted::read_header(loaded.from(offset), seed) else {
            return Ok(Err(Broken::Header));
        };
        loaded.reach(offset + header.frame_bytes())?;
        if header.first_lsn != self.recovered.last_lsn.next() {
            return Ok(Err(Broken::Chain));
        }
        let frame = Frame::check(header, loaded.from(offset), seed, self.recovered.chain);
        Ok(frame.map(|frame| frame.header))
    }

    fn entry(&self, segment: SegmentHeader, offset: u64) -> Entry {
        let lsn = self.recovered.last_lsn.next();
        Entry { lsn, segment, offset, before: self.recovered.chain }
    }

    fn frame(
        &mut self,
        frame: &Frame<'_>,
        segment: SegmentHeader,
        offset: u64,
    ) -> Result<(), Fault> {
        let header = frame.header;
        if header.kind == FrameKind::SegmentEnd {
            self.flow = (self.visit)(frame, offset);
            return Ok(());
        }
        self.shared.note(self.entry(segment, offset));
        let last_lsn = header.end_lsn().before();
        if let Some(anchor) = self.anchor
            && last_lsn > anchor.lsn
            && !self.meets_anchor
        {
            return Err(self.corrupt(&segment, offset, NOT_THE_SNAPSHOTS.to_owned()));
        }
        if self.anchor.is_none_or(|anchor| header.first_lsn > anchor.lsn) {
            self.flow = (self.visit)(frame, offset);
            self.recovered.bytes += segment::log_bytes(&header);
        }
        self.recovered.last_lsn = last_lsn;
        self.recovered.chain = header.chain;
        if header.kind == FrameKind::Records {
            self.recovered.record_chain = header.chain;
        }
        self.recovered.may_lack = header.durability == DurabilityMark::AckedEarly;
        self.recovered.at_ms = self.recovered.at_ms.max(header.at_ms);
        self.recovered.epoch = self.recovered.epoch.max(header.epoch);
        let end = Anchor { lsn: last_lsn, chain: header.chain };
        self.meets_anchor |= self.anchor == Some(end);
        Ok(())
    }

    /// What a place means where no good frame is, and what follows it: the clean end of a segment, a torn end, or
    /// corruption.
    fn judge(
        &self,
        rest: &[u8],
        offset: u64,
        header: &SegmentHeader,
        next: Option<&SegmentHeader>,
        broken: Broken,
    ) -> Result<Tail, Fault> {
        let expected = self.recovered.last_lsn.next();
        let is_empty = is_zeros(rest);
        let tail = match is_empty || planted::has(Bug::AppendAfterTornTail) {
            true => Tail::Clean,
            false => Tail::Torn,
        };
        if let Some(next) = next {
            // The next segment goes on exactly where this one breaks off: whatever follows here
            // was torn once, and was reported then.
            if (next.first_lsn, next.before) == (expected, self.recovered.chain) {
                return Ok(tail);
            }
            let found = format!("{}, and segment {} follows", broken.found(), next.number);
            return Err(self.corrupt(header, offset, found));
        }
        if tail == Tail::Clean || planted::has(Bug::LaterFramesIgnored) {
            return Ok(tail);
        }
        let mut at = offset + ALIGNMENT;
        while let Some(bytes) = rest.get((at - offset) as usize..).filter(|b| !b.is_empty()) {
            if let Some(later) = Frame::find(bytes, header.seed(at))
                && later.durable >= expected
            {
                let found = format!(
                    "{}, but the frame at offset {at} says that it was durable",
                    broken.found()
                );
                return Err(self.corrupt(header, offset, found));
            }
            at += ALIGNMENT;
        }
        Ok(tail)
    }

    /// A snapshot covers records that the log must still have.
    fn check_anchor(&self, headers: &[SegmentHeader]) -> Result<(), Fault> {
        let Some(anchor) = self.anchor else { return Ok(()) };
        if self.meets_anchor {
            return Ok(());
        }
        let Some(header) = headers.last() else { return Ok(()) };
        let offset = self.last.as_ref().map_or(0, |last| last.offset);
        let found = match self.recovered.last_lsn >= anchor.lsn {
            true => NOT_THE_SNAPSHOTS.to_owned(),
            false => format!("the log ends here, but a snapshot goes up to LSN {}", anchor.lsn),
        };
        Err(self.corrupt(header, offset, found))
    }

    fn lost_next(&self, segment: &SegmentHeader) -> Fault {
        let file = segment::file_name(segment.number + 1);
        let found = format!(
            "the segment is missing: {} says that the log goes on in it",
            segment::file_name(segment.number)
        );
        let lsn = self.recovered.last_lsn.next();
        Fault::Corrupt(Corruption { file, offset: 0, lsn, found })
    }

    fn corrupt(&self, segment: &SegmentHeader, offset: u64, found: String) -> Fault {
        let file = segment::file_name(segment.number);
        let lsn = self.recovered.last_lsn.next();
        Fault::Corrupt(Corruption { file, offset, lsn, found })
    }
}

/// The bytes between a frame at the start of `bytes` and where the next one may begin.
fn gap_after<'a>(bytes: &'a [u8], header: &FrameHeader) -> &'a [u8] {
    let end = HEADER_BYTES + header.payload_bytes as usize;
    bytes.get(end..header.frame_bytes() as usize).unwrap_or_default()
}
