//! Writing: one frame at a time, and only one that is not yet durable. The first write or sync
//! that fails is the end of this writer.

use std::ops::ControlFlow;
use std::thread::JoinHandle;

use crate::Lsn;
use crate::disk::{Disk, DiskFile};
use crate::fault::Fault;
use crate::frame::{Batch, Chain, Frame, FrameStamp, Kind, frame_bytes};
use crate::index::{Entry, Shared};
use crate::log::{Committed, Place};
use crate::planted::{self, Bug};
use crate::reader::Reader;
use crate::recover::{self, Anchor, Last, Recovered, Tail};
use crate::segment::{self, FRAMES_FROM, SegmentHeader};

/// When somebody may be told of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it is durable. Nothing that was told can be lost.
    #[default]
    Sync,
    /// When it is written; it is durable at most so many milliseconds later. A loss of power can
    /// take back what was told in that time.
    IntervalMs(u64),
    /// When it is written; it is durable when the system pleases. A loss of power can take back
    /// half a minute and more.
    Os,
}

/// Who makes the next segment ready, which takes as long as a thousand syncs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spares {
    /// A thread for each, as soon as the one before is in use.
    #[default]
    Background,
    /// Whoever calls [`Wal::prepare`]; for disks that must be called in a fixed order.
    Caller,
}

/// How a log is kept.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// When somebody may be told of a record.
    pub durability: Durability,
    /// Who makes the next segment ready.
    pub spares: Spares,
    /// Bytes of a segment. At least twice the largest frame, so that each holds some.
    pub segment_bytes: u64,
    /// Names a log that is made; never used for one that exists. Any number that no other log has.
    pub new_log_id: u128,
    /// Where the salts of new segments come from. Different at every start.
    pub salt_seed: u64,
}

impl Options {
    /// Bytes of a segment unless somebody wants another size.
    pub const SEGMENT_BYTES: u64 = 64 << 20;

    /// The usual. `entropy` is any number that no other start has.
    #[must_use]
    pub fn new(durability: Durability, entropy: u128) -> Self {
        Self {
            durability,
            spares: Spares::Background,
            segment_bytes: Self::SEGMENT_BYTES,
            new_log_id: entropy,
            salt_seed: (entropy >> 64) as u64 ^ entropy as u64,
        }
    }
}

/// A log that is open for writing.
#[derive(Debug)]
pub struct Wal<D: Disk> {
    disk: D,
    options: Options,
    _lock: D::Lock,
    shared: Shared,
    segments: Vec<SegmentHeader>,
    /// The segment that is being written.
    file: D::File,
    segment: SegmentHeader,
    offset: u64,
    spare: Spare<D::File>,
    chain: Chain,
    epoch: u64,
    written: Lsn,
    /// When the oldest write that is not durable was made, by log time.
    unsynced_since_ms: Option<u64>,
    salts: u64,
    health: Health,
}

/// The file that the next segment will be.
#[derive(Debug)]
enum Spare<F> {
    None,
    Making(JoinHandle<Result<F, Fault>>),
    Ready(F),
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
        let folder = || disk.name();
        let lock = disk.lock().map_err(|cause| Fault::NoFolder { folder: folder(), cause })?;
        let lock = lock.ok_or_else(|| Fault::InUse { folder: folder() })?;
        let shared = Shared::default();
        let end = recover::recover(disk, anchor, &shared, &mut |frame| {
            visit(frame);
            ControlFlow::Continue(())
        })?;
        recover::remove_leftovers(disk)?;
        let mut recovered = end.recovered;
        if end.segments.is_empty()
            && let Some(anchor) = anchor
        {
            (recovered.last_lsn, recovered.chain) = (anchor.lsn, anchor.chain);
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
                let file = segment::make_spare(disk, options.segment_bytes)?;
                segment::name_spare(disk, &file, &header)?;
                (file, header, FRAMES_FROM)
            }
        };
        let mut segments = end.segments;
        if segments.last().is_none_or(|last| last.number != segment.number) {
            segments.push(segment);
        }
        shared.set_durable(recovered.last_lsn);
        let mut wal = Self {
            disk: disk.clone(),
            options,
            _lock: lock,
            shared,
            segments,
            file,
            segment,
            offset,
            spare: Spare::None,
            chain: recovered.chain,
            epoch: recovered.epoch + 1,
            written: recovered.last_lsn,
            unsynced_since_ms: None,
            salts,
            health: Health::Good,
        };
        wal.note_place();
        wal.start_spare();
        Ok((wal, recovered))
    }

    /// Writes a batch as one frame. Its records get the numbers after the last written one, of
    /// which the last is given back. They are not durable until [`Wal::sync`].
    ///
    /// # Errors
    /// [`Fault::Full`] if there is no room: nothing was written and it may be tried again. Any
    /// other fault is the end of this log.
    pub fn append(&mut self, batch: &mut Batch, at_ms: u64) -> Result<Lsn, Fault> {
        self.write(Kind::Records, batch, at_ms)?;
        Ok(self.written)
    }

    /// Writes a batch and does what the log's durability asks for. What is given back may be told.
    pub fn commit(&mut self, batch: &mut Batch, at_ms: u64) -> Result<Released, Fault> {
        self.append(batch, at_ms)?;
        if self.sync_due_ms().is_some_and(|due| due <= at_ms) {
            self.sync()?;
        }
        Ok(Released(self.written))
    }

    /// Commits a batch where its sender believes the log to end, and gives it back.
    pub fn commit_at(&mut self, mut batch: Batch, place: Place, at_ms: u64) -> Committed {
        let end = Place { lsn: self.written.next(), epoch: self.epoch };
        let result = match place == end {
            true => self.commit(&mut batch, at_ms),
            false => Err(Fault::Deposed { lsn: place.lsn, epoch: place.epoch }),
        };
        Committed { batch, result }
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
    /// that was torn. For a pause, and for an orderly end.
    pub fn mark(&mut self, at_ms: u64) -> Result<(), Fault> {
        self.write(Kind::Mark, &mut Batch::default(), at_ms)?;
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

    /// This writer's time in office.
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
        let made = match std::mem::replace(&mut self.spare, Spare::None) {
            Spare::Ready(file) => Ok(file),
            Spare::Making(thread) => thread.join().expect("making a spare does not panic"),
            Spare::None => segment::make_spare(&self.disk, self.options.segment_bytes),
        };
        match made {
            Ok(file) => {
                self.spare = Spare::Ready(file);
                Ok(())
            }
            Err(Fault::Io { cause, .. }) if is_full(&cause) => {
                // Give back what was taken; there may be better use for it.
                match self.disk.remove(segment::SPARE) {
                    Ok(()) => Err(Fault::Full),
                    // There was not even room for its name.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Fault::Full),
                    Err(error) => Err(self.broken(Fault::io("remove", segment::SPARE, error))),
                }
            }
            Err(fault) => Err(self.broken(fault)),
        }
    }

    /// Forgets segments that have only records before this one; the one being written stays.
    pub fn trim(&mut self, before: Lsn) -> Result<(), Fault> {
        self.expect_good();
        while let [oldest, next, ..] = self.segments.as_slice()
            && next.first_lsn <= before
        {
            let name = segment::file_name(oldest.number);
            // Readers hear of it first: they must not look for a file that is gone.
            self.shared.forget_before(next.number);
            let removed = self.disk.remove(&name);
            removed.map_err(|e| self.broken(Fault::io("remove", &name, e)))?;
            self.segments.remove(0);
        }
        let synced = self.disk.sync_folder();
        synced.map_err(|e| self.broken(Fault::io("sync", &self.disk.name(), e)))
    }

    fn write(&mut self, kind: Kind, batch: &mut Batch, at_ms: u64) -> Result<(), Fault> {
        self.expect_good();
        assert_eq!(
            batch.is_empty(),
            kind == Kind::Mark,
            "a frame has records, and a mark has none"
        );
        let size = frame_bytes(batch.payload_bytes());
        if self.offset + size > self.segment.file_bytes {
            // The next segment counts, which need not be as large as this one.
            let room = self.options.segment_bytes - FRAMES_FROM;
            assert!(size <= room, "a frame of {size} bytes does not fit a segment with {room}");
            self.rotate()?;
        }
        let stamp = FrameStamp {
            kind,
            first_lsn: self.written.next(),
            epoch: self.epoch,
            durable: self.shared.durable(),
            at_ms,
            before: self.chain,
        };
        let one_at_a_time = self.options.durability == Durability::Sync;
        assert!(!one_at_a_time || self.unsynced_since_ms.is_none(), "one frame may be unsynced");
        self.note_place();
        let (bytes, chain) = batch.seal(&stamp, self.segment.place(self.offset));
        if let Err(error) = self.file.write_all_at(bytes, self.offset) {
            return Err(self.broke("write", error));
        }
        self.offset += size;
        self.chain = chain;
        self.unsynced_since_ms.get_or_insert(at_ms);
        self.written = Lsn(self.written.0 + u64::from(batch.records()));
        Ok(())
    }

    /// Goes on in a new segment.
    fn rotate(&mut self) -> Result<(), Fault> {
        self.prepare()?;
        // A segment that others follow must be durable as a whole, or its lost end would look
        // like corruption.
        if self.unsynced_since_ms.is_some() {
            self.sync()?;
        }
        let Spare::Ready(file) = std::mem::replace(&mut self.spare, Spare::None) else {
            unreachable!("it was prepared above");
        };
        let header = SegmentHeader {
            log_id: self.segment.log_id,
            number: self.segment.number + 1,
            first_lsn: self.written.next(),
            before: self.chain,
            salt: next_salt(&mut self.salts),
            file_bytes: self.options.segment_bytes,
        };
        segment::name_spare(&self.disk, &file, &header).map_err(|fault| self.broken(fault))?;
        (self.file, self.segment, self.offset) = (file, header, FRAMES_FROM);
        self.segments.push(header);
        self.start_spare();
        Ok(())
    }

    /// Begins to make the next spare beside everything else.
    fn start_spare(&mut self) {
        if self.options.spares == Spares::Background {
            let (disk, bytes) = (self.disk.clone(), self.options.segment_bytes);
            let thread = std::thread::Builder::new().name("spare segment".to_owned());
            // Without a thread it is made when it is needed.
            if let Ok(making) = thread.spawn(move || segment::make_spare(&disk, bytes)) {
                self.spare = Spare::Making(making);
            }
        }
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

impl<D: Disk> Drop for Wal<D> {
    fn drop(&mut self) {
        // The folder is not free for others while a thread still writes to it.
        if let Spare::Making(thread) = std::mem::replace(&mut self.spare, Spare::None) {
            let _ = thread.join();
        }
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

/// Proof that a record was committed as the log's durability asks: somebody may be told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Released(Lsn);

impl Released {
    /// The last record that may be told.
    #[must_use]
    pub fn lsn(self) -> Lsn {
        self.0
    }
}

fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// The next number of splitmix64: salts need only differ.
fn next_salt(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
