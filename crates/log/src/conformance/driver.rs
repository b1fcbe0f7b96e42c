//! A writer that keeps the rules of the interface, and what it wrote.

use std::collections::VecDeque;

use super::Harness;
use crate::batch::Batch;
use crate::fault::Fault;
use crate::frame::{Chain, FrameKind};
use crate::interface::{AppendAt, Committed, Log, Maintenance, OpenLog, Outcome, Read, ReadLog};
use crate::lsn::Lsn;
use crate::recovered::{Anchor, Base, Recovered};

/// How often a law waits before it calls the log stuck.
const WAITS_MAX: usize = 10_000;

/// Waits for a log, and notices when it is stuck.
#[derive(Default)]
pub(super) struct Waits(usize);

impl Waits {
    pub(super) fn wait<H: Harness>(&mut self, harness: &mut H) {
        harness.wait();
        self.0 += 1;
        assert!(self.0 < WAITS_MAX, "a log with something under way is not stuck");
    }
}

/// The content of a record follows from its number.
pub(super) fn record(lsn: Lsn) -> Vec<u8> {
    let size = (lsn.0 * 37 % 500) as usize;
    (0..size).map(|at| (lsn.0 as usize * 31 + at * 7) as u8).collect()
}

pub(super) fn batch(first: Lsn, records: u64) -> Batch {
    let mut batch = Batch::default();
    for lsn in first.0..first.0 + records {
        batch.push(|out| out.extend_from_slice(&record(Lsn(lsn))));
    }
    batch
}

/// A frame with records as it was read: its first record, its records, its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadFrame {
    pub(super) first: Lsn,
    pub(super) records: Vec<Vec<u8>>,
    pub(super) chain: Chain,
}

impl ReadFrame {
    pub(super) fn last(&self) -> Lsn {
        Lsn(self.first.0 + self.records.len() as u64 - 1)
    }
}

/// An open log and its frames after the base.
pub(super) struct Opened<L> {
    pub(super) writer: Writer<L>,
    pub(super) recovered: Recovered,
    pub(super) frames: Vec<ReadFrame>,
}

pub(super) fn open<H: Harness>(harness: &mut H) -> Opened<H::Log> {
    try_open(harness, &Base::default()).expect("a sound log opens")
}

pub(super) fn try_open<H: Harness>(harness: &mut H, base: &Base) -> Result<Opened<H::Log>, Fault> {
    let mut frames = Vec::new();
    let (log, recovered) = harness.claim()?.open(base, &mut |frame| {
        if frame.header.kind == FrameKind::Records {
            let records = frame.records().map(|(_, bytes)| bytes.to_vec()).collect();
            let (first, chain) = (frame.header.first_lsn, frame.header.chain);
            frames.push(ReadFrame { first, records, chain });
        }
    })?;
    let writer = Writer::new(harness.start(log));
    Ok(Opened { writer, recovered, frames })
}

/// A writer: it sends frames and follows the rules for their outcomes.
pub(super) struct Writer<L> {
    pub(super) log: L,
    /// The record after the last that was sent.
    pub(super) next: Lsn,
    pub(super) under_way: VecDeque<AppendAt>,
    /// Anchors of the frames that are done.
    pub(super) done: Vec<Anchor>,
    pub(super) unknown: u64,
    at_ms: u64,
}

impl<L: Log> Writer<L> {
    fn new(log: L) -> Self {
        let next = log.end().lsn.next();
        let (under_way, done) = (VecDeque::new(), Vec::new());
        Self { log, next, under_way, done, unknown: 0, at_ms: next.0 * 1_000 }
    }

    pub(super) fn at_ms(&mut self) -> u64 {
        self.at_ms += 1;
        self.at_ms
    }

    /// Commits a frame and waits for it.
    pub(super) fn commit<H: Harness<Log = L>>(&mut self, harness: &mut H, records: u64) -> Anchor {
        let at = AppendAt { lsn: self.next, epoch: self.log.epoch() };
        let at_ms = self.at_ms();
        self.under_way.push_back(at);
        self.next = Lsn(self.next.0 + records);
        let committed = self.log.commit(batch(at.lsn, records), at, at_ms);
        if self.settle(committed).is_none() {
            self.finish(harness);
        }
        *self.done.last().expect("the frame is done")
    }

    /// Sends a frame.
    pub(super) fn begin(&mut self, records: u64) {
        let at = AppendAt { lsn: self.next, epoch: self.log.epoch() };
        let at_ms = self.at_ms();
        self.under_way.push_back(at);
        self.next = Lsn(self.next.0 + records);
        self.log.begin(batch(at.lsn, records), at, at_ms);
    }

    /// Takes one outcome, if there is one, and resolves it if it is unknown.
    pub(super) fn poll(&mut self) -> Option<Anchor> {
        let committed = self.log.poll()?;
        self.settle(committed)
    }

    /// Waits until nothing is under way.
    pub(super) fn finish<H: Harness<Log = L>>(&mut self, harness: &mut H) {
        let mut waits = Waits::default();
        while !self.under_way.is_empty() {
            if self.poll().is_none() {
                waits.wait(harness);
            }
        }
    }

    /// Sends frames, as many at once as the log takes, and waits for all of them.
    pub(super) fn write<H: Harness<Log = L>>(&mut self, harness: &mut H, frames: &[u64]) {
        for (nth, records) in frames.iter().enumerate() {
            if nth % 3 == 0 && self.log.depth() == 1 {
                self.commit(harness, *records);
                continue;
            }
            let mut waits = Waits::default();
            while self.under_way.len() >= self.log.depth() {
                if self.poll().is_none() {
                    waits.wait(harness);
                }
            }
            self.begin(*records);
            if self.log.depth() == 1 {
                self.finish(harness);
            }
        }
        self.finish(harness);
    }

    /// What the log says about the frame that was sent first, and what follows from it.
    fn settle(&mut self, committed: Committed) -> Option<Anchor> {
        let at = *self.under_way.front().expect("only frames under way come back");
        let Committed { batch, outcome } = committed;
        match outcome {
            Outcome::Done { released, end } => {
                let last = Lsn(at.lsn.0 + u64::from(batch.records())).before();
                assert_eq!(released.lsn(), last, "a frame is released up to its last record");
                assert_eq!(end.lsn, last, "a frame ends with its last record");
                let is_same = batch.records_from(at.lsn).all(|(lsn, bytes)| bytes == record(lsn));
                assert!(is_same, "a batch comes back as it was sent");
                self.under_way.pop_front();
                self.done.push(end);
                Some(end)
            }
            Outcome::Unknown => {
                self.unknown += 1;
                let at_ms = self.at_ms();
                assert!(self.log.poll().is_none(), "nothing passes an unknown outcome");
                self.log.resolve(batch, at, at_ms);
                None
            }
            Outcome::Full => unreachable!("the log has room"),
            Outcome::Failed(fault) => unreachable!("the log does not fail: {fault}"),
        }
    }
}

/// Upkeep of a log with nothing under way.
pub(super) fn maintenance<L: Log>(log: &mut L) -> &mut L::Maintenance {
    log.maintenance().expect("a log with nothing under way is free")
}

/// Everything that a reader shows from a record on.
pub(super) fn read_from<R: ReadLog>(reader: &mut R, from: Lsn) -> Vec<ReadFrame> {
    reader.seek(from);
    let mut frames = Vec::new();
    loop {
        match reader.read().expect("a sound log can be read") {
            Read::Frame(frame) => {
                let records = frame.records().map(|(_, bytes)| bytes.to_vec()).collect();
                let (first, chain) = (frame.header.first_lsn, frame.header.chain);
                frames.push(ReadFrame { first, records, chain });
            }
            Read::UpToDate => return frames,
            Read::Trimmed(oldest) => unreachable!("{from} is there, the oldest is {oldest}"),
        }
    }
}

/// Frames must hold these records, without a gap.
pub(super) fn check_records(frames: &[ReadFrame], first: Lsn, last: Lsn) {
    let mut next = first;
    for frame in frames {
        assert_eq!(frame.first, next, "frames follow each other");
        for bytes in &frame.records {
            assert_eq!(*bytes, record(next), "record {next} is what was written");
            next = next.next();
        }
    }
    assert_eq!(next, last.next(), "all records up to the last are there");
}

/// Writes a mark, and says whether the log took it.
pub(super) fn mark<L: Log>(writer: &mut Writer<L>) {
    let at_ms = writer.at_ms();
    maintenance(&mut writer.log).mark(at_ms).expect("there is room for a mark");
}
