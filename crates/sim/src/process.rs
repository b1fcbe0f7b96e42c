//! The coordinator's process: it starts from the disk, lives, and dies with or without the power.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tenure_coordinator::{Coordinator, Failure, Inbox, Reading, recover};
use tenure_log::SnapshotFooter;
use tenure_log::{Base, Fault, Frame, Lsn, Note, OpenLog, Recovered};
use tenure_record::time::Now;
use tenure_wal::disk::model::ModelDisk;
use tenure_wal::{Claim, Options, Spares, Wal};

use crate::config::SimConfig;
use crate::disk::SimDisk;
use crate::last_frames::LastFrames;
use crate::log::{SimLog, Slow, Tape};
use crate::random::Random;

/// Virtual time begins there, in milliseconds since 1970.
const WALL_AHEAD: u64 = 1_700_000_000_000;

const MILLION: i128 = 1_000_000;

/// The machine that the coordinator runs on.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) disk: SimDisk,
    pub(crate) clock: Rc<Cell<u64>>,
    /// How far the wall clock is ahead of virtual time.
    pub(crate) wall_ahead: u64,
    /// The furthest that it ever was.
    pub(crate) furthest: u64,
    pub(crate) tape: Tape,
    pub(crate) starts: u64,
    /// The snapshot that rotted since the last start.
    pub(crate) rotten: Option<Lsn>,
    /// How long syncs take for now, at most.
    pub(crate) slow: Slow,
    pub(crate) last_frames: Rc<RefCell<LastFrames>>,
}

/// A coordinator that lives.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) coordinator: Coordinator<SimLog>,
    pub(crate) inbox: Inbox,
    /// Which start it was.
    pub(crate) start: u64,
    /// When the next step is due, by virtual time.
    pub(crate) step_at: Option<u64>,
    /// It was told to end in order.
    pub(crate) is_stopping: bool,
    /// How long the machine may keep it from its work, at most.
    pub(crate) slow_ms: u64,
    /// The disk was full at its last step, as far as the log's calls tell.
    full_seen: u64,
    is_full: bool,
    /// When a frame last waited for room on the disk.
    pub(crate) held_at: u64,
    born_at: u64,
    wall_ahead: u64,
    drift_ppm: i64,
}

/// What a start found.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) life: Life,
    /// The last record of the snapshot that it started from.
    pub(crate) after: u64,
    /// All records that follow.
    pub(crate) records: Vec<Vec<u8>>,
    pub(crate) notes: Vec<Note>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self {
            disk: SimDisk::default(),
            clock: Rc::new(Cell::new(0)),
            wall_ahead: WALL_AHEAD,
            furthest: WALL_AHEAD,
            tape: Tape::default(),
            starts: 0,
            rotten: None,
            slow: Slow::default(),
            last_frames: Rc::default(),
        }
    }

    /// Starts a coordinator from what is on the disk.
    pub(crate) fn start(
        &mut self,
        config: &SimConfig,
        random: &mut Random,
    ) -> Result<Started, Failure> {
        self.starts += 1;
        let options = options(config, random.next());
        let (mut records, mut after) = (Vec::new(), 0);
        let claim = Claim::new(&self.disk.model, options)?;
        let log = Witness { claim, records: &mut records, after: &mut after };
        let mut recovery = recover(log, random.next(), |_| {})?;
        recovery.state = recovery.state.ending_at_most(config.end_items_max);
        let fork = random.fork();
        let notes = recovery.notes.clone();
        let recovery = recovery
            .map_log(|wal| Ok::<_, Failure>(SimLog::new(wal, fork, config.sync_ms, self)))?;
        let (born_at, wall_ahead) = (self.clock.get(), self.wall_ahead);
        let inbox = Inbox::default();
        let reading = Reading { monotonic_ms: 0, wall_ms: born_at + wall_ahead };
        let mut coordinator = Coordinator::new(recovery, inbox.clone(), reading, random.next())
            .with_upkeep(config.upkeep);
        coordinator.limit_records(config.record_bytes_max);
        let life = Life {
            coordinator,
            inbox,
            start: self.starts,
            step_at: Some(born_at),
            is_stopping: false,
            slow_ms: 2 * (config.longest_sync_ms() + config.wake_ms),
            full_seen: 0,
            is_full: false,
            held_at: 0,
            born_at,
            wall_ahead,
            drift_ppm: config.drift_ppm,
        };
        Ok(Started { life, after, records, notes })
    }
}

impl Machine {
    /// What a start from a copy of the disk reads, if it does not refuse: the last record of its
    /// snapshot, and those that follow. Whatever happens to the copy, the machine goes on.
    pub(crate) fn read_copy(
        &self,
        copy: &ModelDisk,
        config: &SimConfig,
        random: &mut Random,
    ) -> Option<(usize, Vec<Vec<u8>>)> {
        let (mut records, mut after) = (Vec::new(), 0);
        let claim = Claim::new(copy, options(config, random.next())).ok()?;
        let log = Witness { claim, records: &mut records, after: &mut after };
        recover(log, random.next(), |_| {}).ok()?;
        Some((after as usize, records))
    }
}

fn options(config: &SimConfig, salt_seed: u64) -> Options {
    Options {
        spares: Spares::Caller,
        segment_bytes: config.segment_bytes,
        // Two segments, as in the real one.
        low_water_bytes: 2 * config.segment_bytes,
        salt_seed,
        ..Options::new(7)
    }
}

/// The log, with a copy of all that is read.
struct Witness<'w> {
    claim: Claim<ModelDisk>,
    records: &'w mut Vec<Vec<u8>>,
    after: &'w mut u64,
}

impl OpenLog for Witness<'_> {
    type Log = Wal<ModelDisk>;

    fn snapshots(&mut self) -> Result<Vec<Lsn>, Fault> {
        self.claim.snapshots()
    }

    fn snapshot_name(&self, lsn: Lsn) -> String {
        self.claim.snapshot_name(lsn)
    }

    fn load(&mut self, lsn: Lsn, visit: &mut dyn FnMut(&[u8])) -> Result<SnapshotFooter, Fault> {
        self.claim.load(lsn, visit)
    }

    fn open(
        self,
        base: &Base,
        visit: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<(Self::Log, Recovered), Fault> {
        *self.after = base.anchor.map_or(0, |anchor| anchor.lsn.0);
        self.claim.open(base, &mut |frame| {
            self.records.extend(frame.records().map(|(_, bytes)| bytes.to_vec()));
            visit(frame);
        })
    }
}

impl Life {
    /// What the clocks say at a moment of virtual time.
    pub(crate) fn reading(&self, now: u64) -> Reading {
        let lived = i128::from(now - self.born_at);
        let monotonic_ms = (lived * (MILLION + i128::from(self.drift_ppm)) / MILLION) as u64;
        Reading { monotonic_ms, wall_ms: now + self.wall_ahead }
    }

    /// How long it takes until the steady clock is so far ahead, at the most.
    pub(crate) fn lasts(&self, ms: u64) -> u64 {
        let speed = (MILLION + i128::from(self.drift_ppm)).max(1);
        ((i128::from(ms) * MILLION + speed - 1) / speed).clamp(0, i128::from(u64::MAX / 2)) as u64
    }

    /// By what time this coordinator decides.
    pub(crate) fn now(&self, now: u64) -> Now {
        self.coordinator.now(self.reading(now))
    }

    /// Sets the wall clock.
    pub(crate) fn set_wall(&mut self, ahead: u64) {
        self.wall_ahead = ahead;
    }

    /// A step is due then, at the latest.
    pub(crate) fn step_by(&mut self, at: u64) {
        self.step_at = Some(self.step_at.map_or(at, |before| before.min(at)));
    }

    /// Notes whether the disk was full in the last step.
    pub(crate) fn note_full(&mut self, now: u64) {
        let full = self.coordinator.log().uses.full;
        // Whether it still waits for room is seen from outside only while it does not settle.
        self.is_full = full > self.full_seen || (self.is_full && !self.coordinator.is_settled());
        self.full_seen = full;
        if self.is_full {
            self.held_at = now;
        }
    }

    /// Whether a frame waits for room on the disk.
    pub(crate) fn is_held(&self) -> bool {
        self.is_full
    }
}
