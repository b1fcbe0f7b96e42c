//! Looking at a log without touching it: for tools, and for people with a question. No lock is
//! taken and nothing is mended, so a log that a server is writing may be looked at too; its end is
//! then in motion.

use std::ops::ControlFlow;

use tenure_log::{Fault, Frame, FrameKind, Lsn, Recovered};

use crate::beginning::Beginning;
use crate::disk::{Disk, DiskFile};
use crate::index::Shared;
use crate::load::is_zeros;
use crate::recover::{self, Tail};
use crate::segment::{self, FRAMES_FROM, SegmentHeader};

/// Bytes behind a segment's last frame are looked at in pieces of this size.
const PIECE_BYTES: u64 = 1 << 20;

/// What a log turned out to be, segment by segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// What opening it would have found.
    pub recovered: Recovered,
    /// Oldest first.
    pub segments: Vec<SegmentSummary>,
}

/// What is in one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// What its header says.
    pub header: SegmentHeader,
    /// Its file's name.
    pub file: String,
    /// Its frames, with marks and its last word that the log goes on.
    pub frames: u64,
    /// Those that only say what is durable.
    pub marks: u64,
    /// The records in its frames.
    pub records: u64,
    /// Bytes up to the end of its last frame, headers included.
    pub used_bytes: u64,
    /// What follows its last frame.
    pub state: SegmentState,
}

impl SegmentSummary {
    fn new(header: SegmentHeader) -> Self {
        Self {
            header,
            file: segment::file_name(header.number),
            frames: 0,
            marks: 0,
            records: 0,
            used_bytes: FRAMES_FROM,
            state: SegmentState::Sealed,
        }
    }

    /// Its last record, if it has any.
    #[must_use]
    pub fn last_lsn(&self) -> Option<Lsn> {
        (self.records > 0).then(|| Lsn(self.header.first_lsn.0 + self.records - 1))
    }

    fn add(&mut self, frame: &Frame<'_>, offset: u64) {
        self.frames += 1;
        self.marks += u64::from(frame.header.kind == FrameKind::Mark);
        self.records += u64::from(frame.header.records);
        self.used_bytes = offset + frame.header.frame_bytes();
    }
}

/// What a segment is to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentState {
    /// Another follows it; it is never written again.
    Sealed,
    /// The last one: the next frame goes here.
    Open,
    /// Half-written bytes follow its last frame; it is never written again.
    Torn,
}

impl SegmentState {
    /// As it is told outside.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SegmentState::Sealed => "sealed",
            SegmentState::Open => "open",
            SegmentState::Torn => "torn",
        }
    }
}

/// A frame and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Located<'a> {
    /// In which segment.
    pub segment: &'a SegmentSummary,
    /// Where its first byte is in the segment's file.
    pub offset: u64,
    /// The frame itself.
    pub frame: Frame<'a>,
}

/// Reads and checks the log from its beginning on as opening it would, hands every frame to `visit`
/// in order, and changes nothing.
pub fn inspect<D: Disk>(
    disk: &D,
    beginning: Beginning,
    mut visit: impl FnMut(&Located<'_>),
) -> Result<Inspection, Fault> {
    inspect_until(disk, beginning, |at| {
        visit(at);
        ControlFlow::Continue(())
    })
}

/// Like [`inspect`], until `visit` has enough. Then what it has seen is all that was checked and
/// all that is told of; the segments behind it were not read.
pub fn inspect_until<D: Disk>(
    disk: &D,
    beginning: Beginning,
    mut visit: impl FnMut(&Located<'_>) -> ControlFlow<()>,
) -> Result<Inspection, Fault> {
    let shared = Shared::default();
    let mut segments: Vec<SegmentSummary> = Vec::new();
    let mut flow = ControlFlow::Continue(());
    let end = recover::recover(disk, beginning, &shared, &mut |frame, offset| {
        note_segments(&shared, &mut segments);
        let Some(segment) = segments.last_mut() else { unreachable!("a frame is in a segment") };
        flow = visit(&Located { segment: &*segment, offset, frame: *frame });
        segment.add(frame, offset);
        flow
    })?;
    if flow.is_break() {
        return Ok(Inspection { recovered: end.recovered, segments });
    }
    // Segments without a frame were never told to the visitor.
    note_segments(&shared, &mut segments);
    let before_last = segments.len().saturating_sub(1);
    let (sealed, last) = segments.split_at_mut(before_last);
    for segment in sealed {
        if !rest_is_zeros(disk, segment)? {
            segment.state = SegmentState::Torn;
        }
    }
    if let ([segment], Some(end)) = (last, &end.last) {
        segment.state = match end.tail {
            Tail::Clean => SegmentState::Open,
            Tail::Torn => SegmentState::Torn,
        };
    }
    Ok(Inspection { recovered: end.recovered, segments })
}

/// Recovery notes the beginning of every segment before its first frame is visited.
fn note_segments(shared: &Shared, segments: &mut Vec<SegmentSummary>) {
    let known = |segments: &[SegmentSummary]| segments.last().map_or(0, |last| last.header.number);
    while let Some(entry) = shared.segment_after(known(segments)) {
        segments.push(SegmentSummary::new(entry.segment));
    }
}

/// Whether a segment that others follow ends cleanly; if not, it was torn once.
fn rest_is_zeros<D: Disk>(disk: &D, segment: &SegmentSummary) -> Result<bool, Fault> {
    let name = &segment.file;
    let file = disk.open(name).map_err(|e| Fault::io("open", name, e))?;
    let mut offset = segment.used_bytes;
    let mut piece = Vec::new();
    while offset < segment.header.file_bytes {
        piece.resize(PIECE_BYTES.min(segment.header.file_bytes - offset) as usize, 0);
        let read = file.read_full_at(&mut piece, offset).map_err(|e| Fault::io("read", name, e))?;
        if !is_zeros(&piece[..read]) {
            return Ok(false);
        }
        offset += piece.len() as u64;
    }
    Ok(true)
}
