//! A log put back from a copy, whole or up to a record.

use std::ops::ControlFlow;

use tenure_log::{Anchor, Base, Batch, Corruption, Fault, FrameKind, Lsn, OpenLog};

use crate::beginning::Beginning;
use crate::claim::Claim;
use crate::disk::{Disk, DiskFile};
use crate::inspect::inspect_until;
use crate::options::Options;
use crate::segment;
use crate::snapshot;

/// Files are copied in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;

/// What was put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The last record.
    pub lsn: Lsn,
    /// Bytes that were copied.
    pub bytes: u64,
}

/// Where a copy is cut.
struct Cut {
    /// The last segment that is kept,
    number: u64,
    /// and up to where.
    offset: u64,
    /// The records behind it that are kept all the same: the beginning of a frame.
    rest: Vec<Vec<u8>>,
    /// Log time of the last frame that is kept.
    at_ms: u64,
    lsn: Lsn,
}

/// Puts a log back into a folder without one, up to a record or to its end. All that is kept was
/// checked; what is behind the record is not there any more. `progress` hears of bytes copied.
pub fn restore<S: Disk, D: Disk>(
    from: &S,
    to: &D,
    options: Options,
    until: Option<Lsn>,
    progress: &mut dyn FnMut(u64),
) -> Result<Restored, Fault> {
    let cut = find_cut(from, until)?;
    let snapshots: Vec<Lsn> =
        snapshot::list(from)?.into_iter().filter(|snapshot| *snapshot <= cut.lsn).collect();
    let first = crate::first_segment(from)?;
    let begins = first.map_or(Lsn(1), |first| first.first_lsn);
    if begins > Lsn(1) && snapshots.last().is_none_or(|oldest| oldest.next() < begins) {
        return Err(Fault::Corrupt(Corruption {
            file: segment::file_name(first.map_or(0, |first| first.number)),
            offset: 0,
            lsn: cut.lsn,
            found: format!(
                "the copy begins with LSN {begins} and has no snapshot at or before LSN {}",
                cut.lsn
            ),
        }));
    }
    let mut bytes = 0;
    let mut copied = |piece: u64| {
        bytes += piece;
        progress(bytes);
    };
    for lsn in &snapshots {
        copy(from, to, &snapshot::file_name(*lsn), u64::MAX, &mut copied)?;
    }
    let first = first.map_or(cut.number + 1, |first| first.number);
    for number in first..=cut.number {
        let most = if number == cut.number { cut.offset } else { u64::MAX };
        copy(from, to, &segment::file_name(number), most, &mut copied)?;
    }
    to.sync_folder().map_err(|e| Fault::io("sync", &to.name(), e))?;
    let lsn = add_rest(to, options, snapshots.first().copied(), &cut)?;
    Ok(Restored { lsn, bytes })
}

/// Reads the copy as far as it is wanted, and finds where that ends.
fn find_cut<S: Disk>(from: &S, until: Option<Lsn>) -> Result<Cut, Fault> {
    let mut cut = Cut { number: 0, offset: 0, rest: Vec::new(), at_ms: 0, lsn: Lsn::NONE };
    let inspected = inspect_until(from, Beginning::Oldest, |at| {
        let header = at.frame.header;
        // The last word of a segment says that another one follows; whether it does is not known.
        if header.kind == FrameKind::SegmentEnd {
            return ControlFlow::Continue(());
        }
        (cut.number, cut.at_ms) = (at.segment.header.number, header.at_ms);
        if let Some(until) = until
            && header.end_lsn() > until.next()
        {
            cut.offset = at.offset;
            let kept = at.frame.records().take_while(|(lsn, _)| *lsn <= until);
            cut.rest = kept.map(|(_, bytes)| bytes.to_vec()).collect();
            cut.lsn = until;
            return ControlFlow::Break(());
        }
        cut.offset = at.offset + header.frame_bytes();
        cut.lsn = header.end_lsn().before();
        ControlFlow::Continue(())
    })?;
    if cut.number == 0
        && let Some(last) = inspected.segments.last()
    {
        (cut.number, cut.offset) = (last.header.number, last.used_bytes);
        cut.lsn = last.header.first_lsn.before();
    }
    match until {
        Some(until) if until > cut.lsn => {
            Err(Fault::Beyond { folder: from.name(), wanted: until, last: cut.lsn })
        }
        Some(_) | None => Ok(cut),
    }
}

/// Copies the beginning of a file; the rest is zeros.
fn copy<S: Disk, D: Disk>(
    from: &S,
    to: &D,
    name: &str,
    most: u64,
    copied: &mut dyn FnMut(u64),
) -> Result<(), Fault> {
    let source = from.open(name).map_err(|e| Fault::io("open", name, e))?;
    let size = source.size().map_err(|e| Fault::io("look at", name, e))?;
    let target = to.create(name).map_err(|e| Fault::io("create", name, e))?;
    let bytes = size.min(most);
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = 0;
    while offset < bytes {
        let wanted = (bytes - offset).min(PIECE_BYTES as u64) as usize;
        let read = source.read_full_at(&mut piece[..wanted], offset);
        let read = read.map_err(|e| Fault::io("read", name, e))?;
        if read == 0 {
            break;
        }
        target.write_all_at(&piece[..read], offset).map_err(|e| Fault::io("write", name, e))?;
        offset += read as u64;
        copied(read as u64);
    }
    if offset < size {
        target.write_all_at(&[0], size - 1).map_err(|e| Fault::io("write", name, e))?;
    }
    target.sync().map_err(|e| Fault::io("sync", name, e))
}

/// Appends the records of the frame that was cut, in a frame of their own.
fn add_rest<D: Disk>(
    to: &D,
    options: Options,
    newest: Option<Lsn>,
    cut: &Cut,
) -> Result<Lsn, Fault> {
    let mut claim = Claim::new(to, options)?;
    let anchor: Option<Anchor> = match newest {
        Some(lsn) => Some(claim.load(lsn, &mut |_| {})?.anchor()),
        None => None,
    };
    let (mut wal, recovered) = claim.open(&Base::after(anchor), &mut |_| {})?;
    let mut lsn = recovered.last_lsn;
    if !cut.rest.is_empty() {
        let mut batch = Batch::default();
        for record in &cut.rest {
            batch.push(|out| out.extend_from_slice(record));
        }
        lsn = wal.append(&mut batch, cut.at_ms)?;
        wal.sync()?;
    }
    wal.close(cut.at_ms)?;
    Ok(lsn.max(cut.lsn))
}
