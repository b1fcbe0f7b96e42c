//! The laws of the conformance suite notice a log that breaks them: a log in memory with one bug at
//! a time, put in from outside.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tenure_log::conformance::{self, Harness, Support, Takeover};
use tenure_log::{
    Anchor, AppendAt, Base, Batch, Committed, Extent, Fault, Frame, Keep, Log, Lsn, Maintenance,
    MemoryClaim, MemoryLog, MemoryOptions, MemoryReader, MemoryStorage, OpenLog, Outcome,
    Recovered, Room, SnapshotEnd, SnapshotFooter, SnapshotWork, Trimmed,
};

/// A bug that a log could have, and the law that must notice it.
type Case = (Bug, fn(&mut Storage));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// A batch that is meant for another place is put where the log ends.
    Rebased,
    /// Outcomes of two frames change places.
    OutOfOrder,
    /// An unknown outcome is never reported.
    UnknownSwallowed,
    /// A frame that found no room is given back, and those behind it are not.
    FullSwallowed,
    /// Every opening has the epoch of the one before.
    SameEpoch,
    /// Frames before the anchor are handed over too.
    AnchorIgnored,
    /// A snapshot's chain is believed whatever the log says.
    AnchorBelieved,
    /// Snapshots are listed oldest first.
    OldestFirst,
    /// A bad snapshot stays listed.
    BadKept,
    /// Trimming goes up to the end of the log.
    TrimmedTooFar,
    /// The policy of what to keep is not asked.
    KeepIgnored,
    /// A frame is not handed over when the log is opened again.
    FrameSkipped,
    /// A mark moves the end of the log.
    MarkCounted,
}

const CASES: [Case; 13] = [
    (Bug::Rebased, conformance::an_append_elsewhere_is_refused),
    (Bug::OutOfOrder, conformance::outcomes_come_back_in_the_order_of_the_frames),
    (Bug::UnknownSwallowed, conformance::unknown_outcomes_are_resolved),
    (Bug::FullSwallowed, conformance::a_full_log_gives_frames_back_and_takes_them_later),
    (Bug::SameEpoch, conformance::an_append_elsewhere_is_refused),
    (Bug::AnchorIgnored, conformance::opening_starts_behind_an_anchor),
    (Bug::AnchorBelieved, conformance::opening_starts_behind_an_anchor),
    (Bug::OldestFirst, conformance::snapshots_are_listed_newest_first_and_are_whole),
    (Bug::BadKept, conformance::a_damaged_snapshot_is_refused_and_the_older_one_is_good),
    (Bug::TrimmedTooFar, conformance::trimmed_records_are_gone_and_the_rest_is_there),
    (Bug::KeepIgnored, conformance::trimmed_records_are_gone_and_the_rest_is_there),
    (Bug::FrameSkipped, conformance::reopening_gives_the_same_frames_and_chain),
    (Bug::MarkCounted, conformance::a_close_and_marks_lose_nothing),
];

#[test]
fn every_bug_is_noticed_and_a_sound_log_is_not() {
    for (bug, law) in CASES {
        let run = |bug| catch_unwind(AssertUnwindSafe(|| law(&mut Storage::new(bug))));
        assert!(run(None).is_ok(), "a sound log keeps the law of {bug:?}");
        assert!(run(Some(bug)).is_err(), "{bug:?} is not noticed");
    }
}

struct Storage {
    memory: MemoryStorage,
    bug: Option<Bug>,
}

impl Storage {
    fn new(bug: Option<Bug>) -> Self {
        Self { memory: MemoryStorage::new(3), bug }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}

impl Harness for Storage {
    type Claim = Claim;
    type Log = IllLog;

    fn claim(&mut self) -> Result<Claim, Fault> {
        let lost_permille = if self.has(Bug::UnknownSwallowed) { 300 } else { 0 };
        let options = MemoryOptions { depth: 4, lost_permille, delay_polls_max: 2, seed: 5 };
        Ok(Claim { claim: self.memory.claim(options), bug: self.bug })
    }

    fn start(&mut self, log: IllLog) -> IllLog {
        log
    }

    fn takeover(&self) -> Takeover {
        Takeover::Fenced
    }

    fn wait(&mut self) {}

    fn fill(&mut self) -> Support {
        self.memory.limit_bytes(Some(self.memory.bytes() + 9_000));
        Support::Done
    }

    fn make_room(&mut self) {
        self.memory.limit_bytes(None);
    }

    fn damage_snapshot(&mut self, lsn: Lsn) {
        self.memory.damage_snapshot(lsn);
    }
}

struct Claim {
    claim: MemoryClaim,
    bug: Option<Bug>,
}

impl OpenLog for Claim {
    type Log = IllLog;

    fn snapshots(&mut self) -> Result<Vec<Lsn>, Fault> {
        let mut found = self.claim.snapshots()?;
        if self.bug == Some(Bug::OldestFirst) {
            found.reverse();
        }
        Ok(found)
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
    ) -> Result<(IllLog, Recovered), Fault> {
        let Self { claim, bug } = self;
        let mut base = base.clone();
        match bug {
            Some(Bug::AnchorIgnored) => base.anchor = None,
            Some(Bug::AnchorBelieved) => {
                // Only an anchor that the log cannot have is looked at.
                base.anchor = base.anchor.filter(|anchor| anchor.chain.0 != [7; 32]);
            }
            Some(Bug::BadKept) => base.bad.clear(),
            Some(_) | None => {}
        }
        let mut frames = 0;
        let (log, recovered) = claim.open(&base, &mut |frame| {
            frames += 1;
            if frames != 5 || bug != Some(Bug::FrameSkipped) {
                visit(frame);
            }
        })?;
        let next = recovered.last_lsn.next();
        let (polled, late, marks) = (VecDeque::new(), None, 0);
        Ok((IllLog { log, bug, next, polled, late, marks }, recovered))
    }
}

/// A log with a bug.
struct IllLog {
    log: MemoryLog,
    bug: Option<Bug>,
    next: Lsn,
    polled: VecDeque<Committed>,
    /// An outcome that is reported late.
    late: Option<Committed>,
    marks: u64,
}

impl IllLog {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}

impl Log for IllLog {
    type Reader = MemoryReader;
    type Maintenance = Self;

    fn epoch(&self) -> u64 {
        if self.has(Bug::SameEpoch) { 1 } else { self.log.epoch() }
    }

    fn depth(&self) -> usize {
        self.log.depth()
    }

    fn end(&self) -> Anchor {
        let end = self.log.end();
        Anchor { lsn: Lsn(end.lsn.0 + self.marks), ..end }
    }

    fn commit(&mut self, batch: Batch, at: AppendAt, at_ms: u64) -> Committed {
        self.log.commit(batch, at, at_ms)
    }

    fn begin(&mut self, batch: Batch, at: AppendAt, at_ms: u64) {
        let end = Lsn(self.next.0 + u64::from(batch.records()));
        let at = match self.has(Bug::Rebased) {
            true => AppendAt { lsn: self.next, epoch: self.log.epoch() },
            false => AppendAt { epoch: at.epoch + self.log.epoch() - self.epoch(), ..at },
        };
        self.next = end;
        self.log.begin(batch, at, at_ms);
    }

    fn poll(&mut self) -> Option<Committed> {
        if let Some(committed) = self.polled.pop_front() {
            return Some(committed);
        }
        let committed = self.log.poll()?;
        let is_full = matches!(committed.outcome, Outcome::Full);
        if self.has(Bug::OutOfOrder) && self.late.is_none() {
            self.late = Some(committed);
            return None;
        }
        if self.has(Bug::FullSwallowed) && is_full {
            // Those behind it are swallowed.
            while self.log.poll().is_some() {}
        }
        if self.has(Bug::UnknownSwallowed) && matches!(committed.outcome, Outcome::Unknown) {
            self.late = Some(committed);
            return None;
        }
        self.polled.extend(self.late.take());
        Some(committed)
    }

    fn resolve(&mut self, batch: Batch, at: AppendAt, at_ms: u64) {
        self.log.resolve(batch, at, at_ms);
    }

    fn maintenance(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    fn reader(&self) -> MemoryReader {
        self.log.reader()
    }

    fn begin_snapshot(&mut self, work: SnapshotWork) {
        self.log.begin_snapshot(work);
    }

    fn poll_snapshot(&mut self) -> Option<SnapshotEnd> {
        self.log.poll_snapshot()
    }
}

impl Maintenance for IllLog {
    fn sync_due_ms(&self) -> Option<u64> {
        self.log.sync_due_ms()
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.log.sync()
    }

    fn mark(&mut self, at_ms: u64) -> Result<u64, Fault> {
        self.marks += u64::from(self.has(Bug::MarkCounted));
        self.log.mark(at_ms)
    }

    fn close(&mut self, at_ms: u64) -> Result<(), Fault> {
        self.log.close(at_ms)
    }

    fn room(&mut self) -> Room {
        self.log.room()
    }

    fn durable(&self) -> Lsn {
        self.log.durable()
    }

    fn trim(&mut self, before: Lsn, keep: Keep, at_ms: u64) -> Result<Trimmed, Fault> {
        let before = if self.has(Bug::TrimmedTooFar) { self.next } else { before };
        let keep = if self.has(Bug::KeepIgnored) { Keep::Ms(0) } else { keep };
        self.log.trim(before, keep, at_ms)
    }

    fn extent(&self) -> Extent {
        self.log.extent()
    }
}
