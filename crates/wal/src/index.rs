//! Where records are: a sparse index from LSN to segment and offset, shared with the readers.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tenure_log::{Chain, Lsn};

use crate::segment::{FRAMES_FROM, SegmentHeader};

/// A frame is remembered after about so many bytes.
const STRIDE_BYTES: u64 = 256 << 10;

/// Where a frame begins, and the chain before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub lsn: Lsn,
    pub segment: SegmentHeader,
    pub offset: u64,
    pub before: Chain,
}

/// What writer and readers share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// By LSN, ascending; the beginning of every segment is among them.
    entries: RwLock<Vec<Entry>>,
    durable: AtomicU64,
    released: AtomicU64,
    /// How many read files that may be trimmed meanwhile.
    holds: AtomicU32,
}

/// A reader of whole files: until this is dropped, no trimmed file is reused.
#[derive(Debug)]
pub(crate) struct Hold(Shared);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.0.holds.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Shared {
    /// Remembers a frame if it is far enough from the last one that is remembered.
    pub(crate) fn note(&self, entry: Entry) {
        let mut entries = self.0.entries.write().unwrap_or_else(PoisonError::into_inner);
        let near = entries.last().is_some_and(|last| {
            last.segment.number == entry.segment.number && entry.offset < last.offset + STRIDE_BYTES
        });
        if !near {
            entries.push(entry);
        }
    }

    /// Remembers the beginnings of segments that are older than all that is remembered.
    pub(crate) fn note_older(&self, segments: &[SegmentHeader]) {
        let older = segments.iter().map(|segment| Entry {
            lsn: segment.first_lsn,
            segment: *segment,
            offset: FRAMES_FROM,
            before: segment.before,
        });
        self.0.entries.write().unwrap_or_else(PoisonError::into_inner).splice(0..0, older);
    }

    /// Remembers a frame that a reader has come by, if none is remembered near it: nobody has read
    /// the segments that a snapshot covers.
    pub(crate) fn learn(&self, entry: Entry) {
        let place = |entry: &Entry| (entry.segment.number, entry.offset);
        let find = |entries: &[Entry]| {
            let at = entries.partition_point(|known| place(known) <= place(&entry));
            let is_near = |known: &Entry| {
                known.segment.number == entry.segment.number
                    && known.offset.abs_diff(entry.offset) < STRIDE_BYTES
            };
            let before = at.checked_sub(1).and_then(|before| entries.get(before));
            let is_known = before.is_none_or(is_near) || entries.get(at).is_some_and(is_near);
            (!is_known).then_some(at)
        };
        let known = self.0.entries.read().unwrap_or_else(PoisonError::into_inner);
        if find(&known).is_none() {
            return;
        }
        drop(known);
        let mut entries = self.0.entries.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = find(&entries) {
            entries.insert(at, entry);
        }
    }

    /// The last remembered frame at or before a record.
    pub(crate) fn find(&self, lsn: Lsn) -> Option<Entry> {
        let entries = self.0.entries.read().unwrap_or_else(PoisonError::into_inner);
        let after = entries.partition_point(|entry| entry.lsn <= lsn);
        // A segment without records begins with the same LSN as the next: take the first of them.
        let found = entries[..after].last()?;
        let first = entries.partition_point(|entry| entry.lsn < found.lsn);
        Some(entries[first])
    }

    /// The first segment after this one.
    pub(crate) fn segment_after(&self, number: u64) -> Option<Entry> {
        let entries = self.0.entries.read().unwrap_or_else(PoisonError::into_inner);
        let at = entries.partition_point(|entry| entry.segment.number <= number);
        entries.get(at).copied()
    }

    /// The segments, oldest first.
    pub(crate) fn segments(&self) -> Vec<SegmentHeader> {
        let entries = self.0.entries.read().unwrap_or_else(PoisonError::into_inner);
        let rows = entries.chunk_by(|a, b| a.segment.number == b.segment.number);
        rows.map(|row| row[0].segment).collect()
    }

    /// Asks that no trimmed file is used again for a while.
    pub(crate) fn hold(&self) -> Hold {
        self.0.holds.fetch_add(1, Ordering::AcqRel);
        Hold(self.clone())
    }

    /// Whether a file that is being trimmed may still be read.
    pub(crate) fn is_held(&self) -> bool {
        self.0.holds.load(Ordering::Acquire) > 0
    }

    /// The oldest record that can still be read.
    pub(crate) fn oldest(&self) -> Option<Lsn> {
        let entries = self.0.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.first().map(|entry| entry.lsn)
    }

    /// Forgets segments before this one.
    pub(crate) fn forget_before(&self, number: u64) {
        let mut entries = self.0.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.segment.number >= number);
    }

    /// Whether this segment was there and is forgotten.
    pub(crate) fn forgot(&self, number: u64) -> bool {
        let entries = self.0.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.first().is_some_and(|oldest| number < oldest.segment.number)
    }

    pub(crate) fn durable(&self) -> Lsn {
        Lsn(self.0.durable.load(Ordering::Acquire))
    }

    /// The last record that may be told: readers go as far.
    pub(crate) fn released(&self) -> Lsn {
        Lsn(self.0.released.load(Ordering::Acquire))
    }

    pub(crate) fn set_released(&self, lsn: Lsn) {
        self.0.released.store(lsn.0, Ordering::Release);
    }

    pub(crate) fn set_durable(&self, lsn: Lsn) {
        self.0.durable.store(lsn.0, Ordering::Release);
    }
}
