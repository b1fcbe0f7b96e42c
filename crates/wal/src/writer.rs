//! Writing: one frame at a time, and only one that is not yet durable. The first write or sync
//! that fails is the end of this writer.

mod trim;

use std::ops::ControlFlow;

use tenure_log::{
    Anchor, AppendAt, Base, Batch, Chain, Committed, DurabilityMark, Fault, Frame, FrameKind,
    FrameStamp, HEADER_BYTES, Lsn, OpenLog, Outcome, PayloadDigest, Recovered, Released, Room,
};

use crate::beginning::Beginning;
use crate::claim::Claim;
use crate::disk::{Disk, DiskFile};
use crate::index::{Entry, Shared};
use crate::options::{Durability, Options};
use crate::planted::{self, Bug};
use crate::reader::Reader;
use crate::recover::{self, Last, Tail};
use crate::segment::{self, FRAMES_FROM, PAGE_BYTES, SegmentHeader};
use crate::snapshot;
use crate::spare::Stock;

/// From this size on the checksums of a frame take longer than one more sync, and are worked out
/// while the disk is busy with it.
const LARGE_BYTES: usize = 1 << 20;

/// A log that is open for writing.
#[derive(Debug)]
pub struct Wal<D: Disk> {
    disk: D,
    options: Options,
    shared: Shared,
    segments: Vec<SegmentHeader>,
    /// The segment that is being written.
    file: D::File,
    segment: SegmentHeader,
    offset: u64,
    stock: Stock<D>,
    chain: Chain,
    /// The chain up to and including the frame of the last record.
    record_chain: Chain,
    epoch: u64,
    written: Lsn,
    /// When the oldest write that is not durable was made, by log time.
    unsynced_since_ms: Option<u64>,
    salts: u64,
    health: Health,
    /// The last to be dropped: the folder is not free for others while a spare is in the making.
    lock: D::Lock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Good,
    /// A write or sync failed: what the page cache says can no longer be believed.
    Broken,
}

impl<D: Disk> Wal<D> {
    /// Opens the log in a folder, or makes one. Every frame after the anchor is handed to `visit`
    /// in order. When this returns, all that was visited is durable.
    pub fn open(
        disk: &D,
        options: Options,
        anchor: Option<Anchor>,
        mut visit: impl FnMut(&Frame<'_>),
    ) -> Result<(Self, Recovered), Fault> {
        Claim::new(disk, options)?.open(&Base::after(anchor), &mut visit)
    }

    /// Opens the log in a folder whose lock this process holds.
    pub(crate) fn open_locked(
        disk: &D,
        lock: D::Lock,
        options: Options,
        anchor: Option<Anchor>,
        visit: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<(Self, Recovered), Fault> {
        let shared = Shared::default();
        let beginning = anchor.map_or(Beginning::First, Beginning::After);
        let end = recover::recover(disk, beginning, &shared, &mut |frame, _| {
            // The last word of a segment is none of the log's frames.
            if frame.header.kind != FrameKind::SegmentEnd {
                visit(frame);
            }
            ControlFlow::Continue(())
        })?;
        shared.note_older(&end.segments[..end.unread]);
        snapshot::remove_leftovers(disk)?;
        let mut stock = Stock::open(disk, options)?;
        let mut recovered = end.recovered;
        if end.segments.is_empty()
            && let Some(anchor) = anchor
        {
            (recovered.last_lsn, recovered.chain) = (anchor.lsn, anchor.chain);
            recovered.record_chain = anchor.chain;
        }
        let mut salts = options.salt_seed;
        // After a crash the end may be in the page cache only; after this it is not.
        if let Some(last) = &end.last
            && !planted::has(Bug::TailNotSynced)
        {
            last.make_durable()?;
        }
        let (file, segment, offset) = match end.last {
            Some(Last { file, header, offset, tail: Tail::Clean, .. }) => {
                let name = segment::file_name(header.number);
                disk.sync_folder().map_err(|e| Fault::io("sync the folder of", &name, e))?;
                (file, header, offset)
            }
            torn_or_none => {
                let before = torn_or_none.as_ref().map(|last| &last.header);
                let header = SegmentHeader {
                    log_id: before.map_or(options.new_log_id, |before| before.log_id),
                    number: before.map_or(1, |before| before.number + 1),
                    first_lsn: recovered.last_lsn.next(),
                    before: recovered.chain,
                    salt: next_salt(&mut salts),
                    file_bytes: options.segment_bytes,
                };
                stock.prepare()?;
                (stock.name(&header)?, header, FRAMES_FROM)
            }
        };
        let mut segments = end.segments;
        if segments.last().is_none_or(|last| last.number != segment.number) {
            segments.push(segment);
        }
        shared.set_durable(recovered.last_lsn);
        shared.set_released(recovered.last_lsn);
        let mut wal = Self {
            disk: disk.clone(),
            options,
            shared,
            segments,
            file,
            segment,
            offset,
            stock,
            chain: recovered.chain,
            record_chain: recovered.record_chain,
            epoch: recovered.epoch + 1,
            written: recovered.last_lsn,
            unsynced_since_ms: None,
            salts,
            health: Health::Good,
            lock,
        };
        wal.note_place();
        wal.stock.start();
        if options.durability != Durability::Sync {
            // From here on records may be told and get lost: the next start must know.
            wal.mark(recovered.at_ms)?;
        }
        Ok((wal, recovered))
    }

    /// Writes a batch as one frame. Its records get the numbers after the last written one, of
    /// which the last is given back. They are not durable until [`Wal::sync`].
    ///
    /// # Errors
    /// [`Fault::Full`] if there is no room: nothing was written and it may be tried again. Any
    /// other fault is the end of this log.
    pub fn append(&mut self, batch: &mut Batch, at_ms: u64) -> Result<Lsn, Fault> {
        self.write(FrameKind::Records, self.durability_mark(), batch, at_ms)?;
        Ok(self.written)
    }

    /// Writes a batch and does what the log's durability asks for. What is given back may be told.
    pub fn commit(&mut self, batch: &mut Batch, at_ms: u64) -> Result<Released, Fault> {
        self.append(batch, at_ms)?;
        if self.sync_due_ms().is_some_and(|due| due <= at_ms) {
            self.sync()?;
        }
        self.shared.set_released(self.written);
        Ok(Released::after_commit(self.written))
    }

    /// Commits a batch if the log ends where the sender expects it to, and gives the batch back.
    pub fn commit_at(&mut self, mut batch: Batch, at: AppendAt, at_ms: u64) -> Committed {
        let outcome = match at == (AppendAt { lsn: self.written.next(), epoch: self.epoch }) {
            true => match self.commit(&mut batch, at_ms) {
                Ok(released) => Outcome::Done { released, end: self.end() },
                Err(Fault::Full) => Outcome::Full,
                Err(fault) => Outcome::Failed(fault),
            },
            false => Outcome::Failed(Fault::Deposed { lsn: at.lsn, epoch: at.epoch }),
        };
        Committed { batch, outcome }
    }

    /// When [`Wal::sync`] must be called at the latest, by log time; never if nothing waits for it.
    #[must_use]
    pub fn sync_due_ms(&self) -> Option<u64> {
        match self.options.durability {
            Durability::Sync => self.unsynced_since_ms,
            Durability::IntervalMs(ms) => Some(self.unsynced_since_ms?.saturating_add(ms)),
            Durability::Os => None,
        }
    }

    /// Says on disk what is durable, so that a last frame that rots later is told apart from one
    /// that was torn. For a pause.
    pub fn mark(&mut self, at_ms: u64) -> Result<(), Fault> {
        self.write(FrameKind::Mark, self.durability_mark(), &mut Batch::default(), at_ms)?;
        self.sync().map(drop)
    }

    /// The orderly end: a mark that says that nothing is missing behind it.
    pub fn close(&mut self, at_ms: u64) -> Result<(), Fault> {
        self.write(FrameKind::Mark, DurabilityMark::Closed, &mut Batch::default(), at_ms)?;
        self.sync().map(drop)
    }

    /// Makes everything written durable.
    pub fn sync(&mut self) -> Result<Durable, Fault> {
        self.expect_good();
        if let Err(error) = planted::sync(&self.file) {
            return Err(self.broke("sync", error));
        }
        self.unsynced_since_ms = None;
        self.shared.set_durable(self.written);
        self.shared.set_released(self.written);
        Ok(Durable(self.written))
    }

    /// Where it is.
    #[must_use]
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// The last record written.
    #[must_use]
    pub fn written(&self) -> Lsn {
        self.written
    }

    /// The last record that is durable.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        self.shared.durable()
    }

    /// The chain up to and with the last frame written.
    #[must_use]
    pub fn chain(&self) -> Chain {
        self.chain
    }

    /// The last record and the chain with its frame, for a snapshot. Marks that follow are left out:
    /// a copy of the log ends with its last record.
    #[must_use]
    pub fn end(&self) -> Anchor {
        Anchor { lsn: self.written, chain: self.record_chain }
    }

    /// This writer's epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Which log this is.
    #[must_use]
    pub fn log_id(&self) -> u128 {
        self.segment.log_id
    }

    /// A reader that may run beside this writer, up to what is durable.
    #[must_use]
    pub fn reader(&self) -> Reader<D> {
        Reader::new(self.disk.clone(), self.shared.clone())
    }

    /// Makes the file for the next segment ready, or waits until it is, so that no append has to.
    /// "Disk full" happens here and not there: it is no end, and may be tried again.
    pub fn prepare(&mut self) -> Result<(), Fault> {
        self.expect_good();
        match self.stock.prepare() {
            Ok(()) => Ok(()),
            Err(Fault::Full) => Err(Fault::Full),
            Err(fault) => Err(self.broken(fault)),
        }
    }

    /// How much room there is for new work. Cheap: for about once a second. When room has come back,
    /// the log notices here, and makes ready what it could not make before.
    pub fn room(&mut self) -> Room {
        self.expect_good();
        self.stock.room()
    }

    fn write(
        &mut self,
        kind: FrameKind,
        durability: DurabilityMark,
        batch: &mut Batch,
        at_ms: u64,
    ) -> Result<(), Fault> {
        self.expect_good();
        self.check_folder()?;
        assert_eq!(
            batch.is_empty(),
            kind != FrameKind::Records,
            "a frame has records, and a mark has none"
        );
        let size = batch.frame_bytes();
        if self.start_of(kind) + size > segment::frames_until(self.segment.file_bytes) {
            // The next segment counts, which need not be as large as this one.
            let room = segment::frames_until(self.options.segment_bytes) - FRAMES_FROM;
            assert!(size <= room, "a frame of {size} bytes does not fit a segment with {room}");
            self.rotate(at_ms)?;
        }
        self.offset = self.start_of(kind);
        let stamp = FrameStamp { durability, ..self.stamp(kind, at_ms) };
        let one_at_a_time = self.options.durability == Durability::Sync;
        assert!(!one_at_a_time || self.unsynced_since_ms.is_none(), "one frame may be unsynced");
        self.note_place();
        let written = self.write_frame(&stamp, batch);
        let chain = written.map_err(|error| self.broke("write", error))?;
        self.offset += size;
        self.chain = chain;
        if kind == FrameKind::Records {
            self.record_chain = chain;
        }
        self.unsynced_since_ms.get_or_insert(at_ms);
        self.written = Lsn(self.written.0 + u64::from(batch.records()));
        Ok(())
    }

    /// A frame is for the folder that the name leads to now: behind another one, a second server may
    /// have started.
    fn check_folder(&mut self) -> Result<(), Fault> {
        match self.disk.is_held(&self.lock) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.broken(Fault::Replaced { folder: self.disk.name() })),
            Err(error) => Err(self.broke("look at the folder of", error)),
        }
    }

    fn write_frame(&self, stamp: &FrameStamp, batch: &mut Batch) -> std::io::Result<Chain> {
        let seed = self.segment.seed(self.offset);
        // A log that does not wait for its syncs has no use for an early one.
        let is_large = batch.payload_bytes() >= LARGE_BYTES;
        if !is_large || self.options.durability != Durability::Sync {
            let (bytes, chain) = batch.seal(stamp, seed);
            self.file.write_all_at(bytes, self.offset)?;
            return Ok(chain);
        }
        // The first page has the header and comes last; the rest is on its way meanwhile.
        let page_end = (self.offset + HEADER_BYTES as u64).next_multiple_of(PAGE_BYTES);
        let first = (page_end - self.offset) as usize;
        let mut digest = None;
        let rest = &batch.frame()[first..];
        self.file.write_beside(rest, page_end, &mut || {
            digest = Some(PayloadDigest::of(batch.payload(), seed));
        })?;
        let digest = digest.expect("what is done beside a write is done");
        let (bytes, chain) = batch.seal_with(stamp, seed, &digest);
        self.file.write_all_at(&bytes[..first], self.offset)?;
        Ok(chain)
    }

    /// Where the next frame begins: one without records with a page of its own, so that one bad
    /// page cannot take both the last records and the word for them.
    fn start_of(&self, kind: FrameKind) -> u64 {
        match kind {
            FrameKind::Records => self.offset,
            FrameKind::Mark | FrameKind::SegmentEnd => self.offset.next_multiple_of(PAGE_BYTES),
        }
    }

    fn stamp(&self, kind: FrameKind, at_ms: u64) -> FrameStamp {
        FrameStamp {
            kind,
            first_lsn: self.written.next(),
            epoch: self.epoch,
            durable: self.shared.durable(),
            at_ms,
            before: self.chain,
            durability: self.durability_mark(),
        }
    }

    /// What frames say about those behind them.
    fn durability_mark(&self) -> DurabilityMark {
        match self.options.durability {
            Durability::Sync => DurabilityMark::Durable,
            Durability::IntervalMs(_) | Durability::Os => DurabilityMark::AckedEarly,
        }
    }

    /// Goes on in a new segment.
    fn rotate(&mut self, at_ms: u64) -> Result<(), Fault> {
        self.prepare()?;
        // A segment that others follow must be durable as a whole, or its lost end would look
        // like corruption.
        if self.unsynced_since_ms.is_some() {
            self.sync()?;
        }
        let header = SegmentHeader {
            log_id: self.segment.log_id,
            number: self.segment.number + 1,
            first_lsn: self.written.next(),
            before: self.chain,
            salt: next_salt(&mut self.salts),
            file_bytes: self.options.segment_bytes,
        };
        if planted::has(Bug::GoesOnTooEarly) {
            self.say_it_goes_on(at_ms)?;
        }
        let file = self.stock.name(&header).map_err(|fault| self.broken(fault))?;
        // Not before the next segment is durable, or a crash would leave a promise without it; and
        // before anything is in that, or it could get lost unnoticed.
        if !planted::has(Bug::GoesOnTooEarly) {
            self.say_it_goes_on(at_ms)?;
        }
        (self.file, self.segment, self.offset) = (file, header, FRAMES_FROM);
        self.segments.push(header);
        self.stock.start();
        Ok(())
    }

    fn say_it_goes_on(&mut self, at_ms: u64) -> Result<(), Fault> {
        self.offset = self.start_of(FrameKind::SegmentEnd);
        let stamp = self.stamp(FrameKind::SegmentEnd, at_ms);
        let written = self.write_frame(&stamp, &mut Batch::default());
        written.map_err(|error| self.broke("write", error))?;
        self.file.sync().map_err(|error| self.broke("sync", error))
    }

    fn note_place(&self) {
        let (lsn, segment) = (self.written.next(), self.segment);
        self.shared.note(Entry { lsn, segment, offset: self.offset, before: self.chain });
    }

    fn expect_good(&self) {
        assert_eq!(self.health, Health::Good, "a log that failed once is never written again");
    }

    fn broke(&mut self, doing: &'static str, error: std::io::Error) -> Fault {
        self.broken(Fault::io(doing, &segment::file_name(self.segment.number), error))
    }

    fn broken(&mut self, fault: Fault) -> Fault {
        self.health = Health::Broken;
        fault
    }
}

/// Proof that a sync covers this record. Only a finished sync makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Durable(Lsn);

impl Durable {
    /// The last record that is durable.
    #[must_use]
    pub fn lsn(self) -> Lsn {
        self.0
    }
}

/// The next number of splitmix64: salts need only differ.
fn next_salt(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_segments_get_the_same_salt() {
        let mut state = 0;
        let mut salts: Vec<_> = (0..1_000).map(|_| next_salt(&mut state)).collect();
        salts.sort_unstable();
        salts.dedup();
        assert_eq!(salts.len(), 1_000);
    }
}
