//! What a log in memory has stored: frames as bytes, snapshots, and the epoch that fences writers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fault::{Corruption, Fault};
use crate::frame::{Chain, CrcSeed, Frame, FrameHeader};
use crate::interface::{AppendAt, Extent, Keep, Room, Trimmed};
use crate::lsn::Lsn;
use crate::recovered::{Anchor, Recovered};
use crate::snapshot::SnapshotFooter;

/// The name of the log in messages.
const NAME: &str = "the log in memory";
/// Snapshots that are kept.
const SNAPSHOTS_KEPT: usize = 2;
/// A snapshot is handed over in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;

/// The storage of a log. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage {
    stored: Arc<Mutex<Stored>>,
}

impl MemoryStorage {
    /// Storage for a new log with this id.
    #[must_use]
    pub fn new(log_id: u128) -> Self {
        let stored = Stored { log_id, ..Stored::default() };
        Self { stored: Arc::new(Mutex::new(stored)) }
    }

    /// Limits the bytes of all frames; without a limit there is always room.
    pub fn limit_bytes(&self, bytes_max: Option<u64>) {
        self.lock().bytes_max = bytes_max;
    }

    /// The bytes of all frames.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// The last record that is stored.
    #[must_use]
    pub fn last_lsn(&self) -> Lsn {
        self.lock().end().lsn
    }

    /// Changes a byte of a snapshot.
    pub fn damage_snapshot(&self, lsn: Lsn) {
        let mut stored = self.lock();
        let byte = stored.snapshots.get_mut(&lsn).and_then(|snapshot| snapshot.bytes.first_mut());
        *byte.expect("a snapshot that is there is damaged") ^= 1;
    }

    /// Changes a byte of the frame with a record.
    pub fn damage_frame(&self, lsn: Lsn) {
        let mut stored = self.lock();
        let at = stored.frames.partition_point(|frame| frame.header.end_lsn() <= lsn);
        let byte = stored.frames.get_mut(at).and_then(|frame| frame.bytes.last_mut());
        *byte.expect("a frame that is there is damaged") ^= 1;
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn load_snapshot(
        &self,
        lsn: Lsn,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<SnapshotFooter, Fault> {
        let found = self.lock().snapshots.get(&lsn).cloned();
        let found = found.ok_or_else(|| {
            Fault::io("open", &snapshot_name(lsn), std::io::ErrorKind::NotFound.into())
        })?;
        if blake3::hash(&found.bytes) != found.hash {
            let file = snapshot_name(lsn);
            let found = "it was changed".to_owned();
            return Err(Fault::Corrupt(Corruption { file, offset: 0, lsn, found }));
        }
        found.bytes.chunks(PIECE_BYTES).for_each(visit);
        Ok(found.footer)
    }
}

#[derive(Debug, Default)]
pub(super) struct Stored {
    log_id: u128,
    epoch: u64,
    frames: VecDeque<StoredFrame>,
    /// The last record.
    end: Option<Anchor>,
    /// Log time of the last statement that everything is durable.
    marked_at_ms: u64,
    released: Lsn,
    bytes: u64,
    bytes_max: Option<u64>,
    snapshots: BTreeMap<Lsn, StoredSnapshot>,
}

#[derive(Debug)]
struct StoredFrame {
    header: FrameHeader,
    before: Chain,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(super) struct StoredSnapshot {
    footer: SnapshotFooter,
    bytes: Vec<u8>,
    hash: blake3::Hash,
}

/// The answer of the storage to an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Appended {
    /// The frame is stored, now or since an earlier append of the same bytes.
    Done,
    /// The frame does not follow the last one: one before it is missing.
    Gap,
    /// There is no room.
    Full,
    /// Another writer has the log.
    Deposed,
}

impl Stored {
    /// Appends a frame at its place, if the writer's epoch is still the last.
    pub(super) fn append(&mut self, at: AppendAt, before: Chain, frame: &[u8]) -> Appended {
        let header = FrameHeader::read(frame, self.seed(at.lsn)).expect("a sealed frame is sent");
        let next = self.end().lsn.next();
        if at.epoch != self.epoch {
            return Appended::Deposed;
        }
        if at.lsn > next {
            return Appended::Gap;
        }
        if at.lsn < next {
            // The same bytes were stored before, or the place is taken by another writer's.
            let is_stored = self.frames.iter().any(|frame| frame.header.chain == header.chain);
            return if is_stored { Appended::Done } else { Appended::Deposed };
        }
        let bytes = frame.len() as u64;
        if self.bytes_max.is_some_and(|max| self.bytes + bytes > max) {
            return Appended::Full;
        }
        self.bytes += bytes;
        self.end = Some(Anchor { lsn: header.end_lsn().before(), chain: header.chain });
        self.frames.push_back(StoredFrame { header, before, bytes: frame.to_vec() });
        Appended::Done
    }

    /// What the checksums of the frame that begins with a record start from.
    pub(super) fn seed(&self, first: Lsn) -> CrcSeed {
        CrcSeed { salt: self.log_id as u64, position: first.0 }
    }

    pub(super) fn log_id(&self) -> u128 {
        self.log_id
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Fences off the writer before.
    pub(super) fn next_epoch(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    pub(super) fn end(&self) -> Anchor {
        self.end.unwrap_or(Anchor { lsn: Lsn::NONE, chain: Chain::START })
    }

    pub(super) fn released(&self) -> Lsn {
        self.released
    }

    pub(super) fn release(&mut self, lsn: Lsn) {
        self.released = self.released.max(lsn);
    }

    pub(super) fn mark(&mut self, at_ms: u64) {
        self.marked_at_ms = self.marked_at_ms.max(at_ms);
    }

    pub(super) fn room(&self) -> Room {
        // As on a disk, the last part is for work that was accepted before.
        match self.bytes_max {
            Some(max) if self.bytes >= max / 5 * 4 => Room::Low,
            Some(_) | None => Room::Plenty,
        }
    }

    pub(super) fn extent(&self) -> Extent {
        Extent { oldest: self.oldest(), bytes: self.bytes }
    }

    fn oldest(&self) -> Lsn {
        self.frames.front().map_or(self.end().lsn.next(), |frame| frame.header.first_lsn)
    }

    /// Forgets the oldest frame if all its records are before this one and the policy allows it.
    pub(super) fn trim(&mut self, before: Lsn, keep: Keep, at_ms: u64) -> Trimmed {
        let Some(oldest) = self.frames.front() else { return Trimmed::Nothing };
        let may_go = oldest.header.end_lsn() <= before
            && match keep {
                Keep::All => false,
                Keep::Bytes(bytes) => self.bytes > bytes,
                Keep::Ms(ms) => oldest.header.at_ms.saturating_add(ms) <= at_ms,
            };
        if !may_go {
            return Trimmed::Nothing;
        }
        self.bytes -= oldest.bytes.len() as u64;
        self.frames.pop_front();
        Trimmed::Some
    }

    /// Copies the frame with a record into the buffer and says what came before it; none if the
    /// record is not stored.
    pub(super) fn copy_frame(&self, lsn: Lsn, into: &mut Vec<u8>) -> Result<FrameBefore, Lsn> {
        let at = self.frames.partition_point(|frame| frame.header.end_lsn() <= lsn);
        let found = self.frames.get(at).filter(|frame| frame.header.first_lsn <= lsn);
        let frame = found.ok_or(self.oldest())?;
        into.clear();
        into.extend_from_slice(&frame.bytes);
        let first = frame.header.first_lsn;
        Ok(FrameBefore { first, seed: self.seed(first), before: frame.before })
    }

    /// Reads everything after the anchor, checks it, and hands it over.
    pub(super) fn recover(
        &mut self,
        anchor: Option<Anchor>,
        visit: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<Recovered, Fault> {
        let after = anchor.map_or(Lsn::NONE, |anchor| anchor.lsn);
        if self.oldest() > after.next() {
            return Err(corrupt(after.next(), "the record is in no frame and in no snapshot"));
        }
        if self.end().lsn < after {
            return Err(corrupt(self.end().lsn.next(), "the log ends before the snapshot"));
        }
        let (mut at_ms, mut bytes) = (self.marked_at_ms, 0);
        let mut meets_anchor = anchor.is_none() || self.oldest() == after.next();
        for stored in &self.frames {
            let seed = self.seed(stored.header.first_lsn);
            let frame = Frame::read(&stored.bytes, seed, stored.before)
                .map_err(|broken| corrupt(stored.header.first_lsn, broken.found()))?;
            at_ms = at_ms.max(frame.header.at_ms);
            let end = Anchor { lsn: frame.header.end_lsn().before(), chain: frame.header.chain };
            meets_anchor |= anchor == Some(end);
            if frame.header.first_lsn > after {
                bytes += stored.bytes.len() as u64;
                visit(&frame);
            }
        }
        if !meets_anchor {
            return Err(corrupt(after, "the log is not the one that the snapshot was taken from"));
        }
        let end = self.end();
        // What an unfinished writer has stored is durable: it counts from here on.
        self.released = end.lsn;
        Ok(Recovered {
            last_lsn: end.lsn,
            chain: end.chain,
            record_chain: end.chain,
            at_ms,
            epoch: self.epoch,
            bytes,
            may_lack: false,
            notes: Vec::new(),
        })
    }

    /// Newest first.
    pub(super) fn snapshots(&self) -> Vec<Lsn> {
        self.snapshots.keys().rev().copied().collect()
    }

    pub(super) fn remove_snapshot(&mut self, lsn: Lsn) {
        self.snapshots.remove(&lsn);
    }

    pub(super) fn put_snapshot(&mut self, footer: SnapshotFooter, bytes: Vec<u8>) {
        let hash = blake3::hash(&bytes);
        self.snapshots.insert(footer.lsn, StoredSnapshot { footer, bytes, hash });
        while self.snapshots.len() > SNAPSHOTS_KEPT {
            self.snapshots.pop_first();
        }
    }
}

/// What is needed to check a frame.
pub(super) struct FrameBefore {
    pub(super) first: Lsn,
    pub(super) seed: CrcSeed,
    pub(super) before: Chain,
}

pub(super) fn snapshot_name(lsn: Lsn) -> String {
    format!("the snapshot at LSN {lsn}")
}

pub(super) fn corrupt(lsn: Lsn, found: &str) -> Fault {
    let (file, found) = (NAME.to_owned(), found.to_owned());
    Fault::Corrupt(Corruption { file, offset: 0, lsn, found })
}
