//! Snapshots, off the writer's path: a view of the facts is taken between two frames, handed to the
//! log once its last record is durable, and written there while everything goes on. After that the
//! log before the older of two may go.

use std::io;
use std::ops::ControlFlow;

use tenure_core::command::Rest;
use tenure_core::state::snapshot::Encoder;
use tenure_core::state::{Facts, Hashing, StateHash};
use tenure_log::SnapshotFooter;
use tenure_log::{
    Extent, Fault, Keep, Log, Maintenance, SnapshotEnd, SnapshotSource, SnapshotSum, SnapshotWork,
    Trimmed,
};
use tenure_record::id::Lsn;
use tenure_record::time::{Now, Timestamp};

use crate::limits::{
    SNAPSHOT_CALLERS_MAX, SNAPSHOT_RETRY_MS, SNAPSHOT_STOP_BYTES, SNAPSHOT_WORTH_BYTES,
};
use crate::planted::{self, Bug};
use crate::refusal::Refusal;
use crate::request::{Responder, TakeSnapshot};
use crate::step::Coordinator;
use crate::upkeep::Upkeep;

/// A snapshot that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// The last record whose effect is in it.
    pub lsn: Lsn,
    /// The hash of the state.
    pub state_hash: StateHash,
    /// How many tasks are in it.
    pub tasks: u64,
    /// How long its file is.
    pub bytes: u64,
    /// How long it took; zero if an earlier process has taken it.
    pub took_ms: u64,
}

impl SnapshotInfo {
    pub(crate) fn of(footer: &SnapshotFooter, bytes: u64, took_ms: u64) -> Self {
        let (lsn, state_hash) = (Lsn(footer.lsn.0), StateHash(footer.state_hash));
        Self { lsn, state_hash, tasks: footer.items, bytes, took_ms }
    }
}

/// How snapshots and the log stand.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// The newest good snapshot.
    pub newest: Option<SnapshotInfo>,
    /// The one before it. The log goes back to it.
    pub older: Option<Lsn>,
    /// Log bytes since the newest.
    pub log_bytes: u64,
    /// What there is of the log, as of about a second ago.
    pub extent: Extent,
    /// Snapshots taken since the start.
    pub taken: u64,
    /// Snapshots that could not be written since the start.
    pub failed: u64,
    /// Snapshots that this start has found to be bad.
    pub bad: u64,
}

/// What the coordinator knows of its snapshots.
#[derive(Debug)]
pub(crate) struct Snapshots {
    pub(crate) upkeep: Upkeep,
    pub(crate) kept: Kept,
    stage: Stage,
    /// Callers that wait for the next one,
    asked: Vec<Responder<TakeSnapshot>>,
    /// and for the one under way.
    waiting: Vec<Responder<TakeSnapshot>>,
    /// When the newest was taken, or the process began.
    since: Timestamp,
    /// After a failure: not before this.
    retry_at: Timestamp,
    trim: Trim,
    last_failure: Option<Fault>,
}

/// Where the snapshot is that was begun last.
#[derive(Debug)]
enum Stage {
    Idle,
    /// The view is taken; its last record is not durable yet.
    Viewed(Timestamp, Box<Facts>),
    /// The log writes it.
    UnderWay(Begun),
}

/// A snapshot that was begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Timestamp,
    /// Log bytes that will be behind it.
    log_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trim {
    /// There is nothing to be forgotten before the next snapshot.
    Done,
    /// There may be.
    Due,
}

impl Snapshots {
    pub(crate) fn new(kept: Kept, now: Timestamp) -> Self {
        Self {
            upkeep: Upkeep::default(),
            kept,
            stage: Stage::Idle,
            asked: Vec::new(),
            waiting: Vec::new(),
            since: now,
            retry_at: Timestamp::ZERO,
            trim: Trim::Due,
            last_failure: None,
        }
    }

    /// So many bytes were written to the log.
    pub(crate) fn logged(&mut self, bytes: u64) {
        self.kept.log_bytes += bytes;
    }

    /// The responders of all callers that wait for one.
    pub(crate) fn drain_responders(
        &mut self,
    ) -> impl Iterator<Item = Responder<TakeSnapshot>> + '_ {
        self.asked.drain(..).chain(self.waiting.drain(..))
    }

    /// Whether one should be taken now.
    fn is_due(&self, now: Timestamp) -> bool {
        !self.asked.is_empty() || self.due_at().is_some_and(|at| at <= now)
    }

    /// When the next one is due without a request, if nothing more is written.
    fn due_at(&self) -> Option<Timestamp> {
        let written = self.kept.log_bytes;
        let newest_bytes = self.kept.newest.map_or(0, |newest| newest.bytes);
        if written >= self.upkeep.snapshot_log_bytes.max(newest_bytes) {
            return Some(self.retry_at);
        }
        let by_age = self.since.plus_ms(self.upkeep.snapshot_every_ms).max(self.retry_at);
        (written >= SNAPSHOT_WORTH_BYTES).then_some(by_age)
    }

    /// Whether the next start would be much faster with one.
    fn is_worth_a_stop(&self) -> bool {
        let newest_bytes = self.kept.newest.map_or(0, |newest| newest.bytes);
        let enough = SNAPSHOT_STOP_BYTES.min(self.upkeep.snapshot_log_bytes).max(newest_bytes / 4);
        self.kept.log_bytes >= enough && self.retry_at == Timestamp::ZERO
    }

    /// What has to be there for both snapshots; nothing may go before there are two.
    fn needed_from(&self) -> Option<tenure_log::Lsn> {
        self.kept.older.map(|older| tenure_log::Lsn(older.0).next())
    }

    /// Trims some of the log that neither the snapshots nor the policy need.
    pub(crate) fn trim(&mut self, log: &mut impl Maintenance, now: Now) -> Result<(), Fault> {
        if self.trim == Trim::Done || planted::has(Bug::TrimForgotten) {
            self.trim = Trim::Done;
            return Ok(());
        }
        let keep = self.upkeep.log_keep;
        let trimmed = match self.needed_from() {
            Some(before) if keep != Keep::All => log.trim(before, keep, now.log.0)?,
            Some(_) | None => Trimmed::Nothing,
        };
        self.kept.extent = log.extent();
        if trimmed == Trimmed::Nothing {
            self.trim = Trim::Done;
        }
        Ok(())
    }
}

impl<L: Log> Coordinator<L> {
    /// Looks after the log as told.
    #[must_use]
    pub fn with_upkeep(mut self, upkeep: Upkeep) -> Self {
        self.snapshots.upkeep = upkeep;
        self
    }

    /// How snapshots and the log stand.
    #[must_use]
    pub fn kept(&self) -> &Kept {
        &self.snapshots.kept
    }

    /// Why the last snapshot could not be written, if that was not reported yet.
    pub fn take_snapshot_failure(&mut self) -> Option<Fault> {
        self.snapshots.last_failure.take()
    }

    /// Whether all is done that an orderly end wants done first: the snapshot that is under way,
    /// and one more if that makes the next start much faster.
    pub fn may_close(&mut self, now: Now) -> Result<bool, Fault> {
        if !self.is_settled() {
            return Ok(false);
        }
        if matches!(self.snapshots.stage, Stage::Idle) && self.snapshots.is_worth_a_stop() {
            self.take_view(now);
            self.begin_snapshot()?;
        }
        Ok(matches!(self.snapshots.stage, Stage::Idle))
    }

    /// A caller asks for a snapshot.
    pub(crate) fn take_snapshot(&mut self, to: Responder<TakeSnapshot>) {
        if let Some(newest) = self.snapshots.kept.newest
            && newest.lsn == self.state.last_lsn()
        {
            return self.put(to, Ok(newest));
        }
        let waiting = self.snapshots.asked.len() + self.snapshots.waiting.len();
        if waiting >= SNAPSHOT_CALLERS_MAX {
            let (what, limit) = ("callers that wait for a snapshot", SNAPSHOT_CALLERS_MAX);
            return self.put(to, Err(Refusal::Overloaded { what, limit }));
        }
        self.snapshots.asked.push(to);
    }

    /// Hears what became of the snapshot under way.
    pub(crate) fn collect_snapshot(&mut self, now: Now) -> Result<(), Fault> {
        let Stage::UnderWay(begun) = self.snapshots.stage else { return Ok(()) };
        let Some(end) = self.commit.log.poll_snapshot() else { return Ok(()) };
        self.snapshots.stage = Stage::Idle;
        let outcome = match end {
            SnapshotEnd::Kept { footer, bytes } => {
                let took_ms = now.log.0 - begun.at.0;
                let info = SnapshotInfo::of(&footer, bytes, took_ms);
                let snapshots = &mut self.snapshots;
                // Two of one record are one file, and no older one to fall back to.
                let before = snapshots.kept.newest.map(|newest| newest.lsn);
                let before = before.filter(|before| *before < info.lsn);
                snapshots.kept.older = before.or(snapshots.kept.older);
                snapshots.kept.newest = Some(info);
                snapshots.kept.log_bytes -= begun.log_bytes;
                snapshots.kept.taken += 1;
                (snapshots.since, snapshots.retry_at) = (begun.at, Timestamp::ZERO);
                snapshots.trim = Trim::Due;
                Ok(info)
            }
            SnapshotEnd::GivenUp { lsn, fault } => {
                let why = format!("the snapshot at LSN {lsn} was not written: {fault}");
                self.snapshots.kept.failed += 1;
                self.snapshots.retry_at = now.log.plus_ms(SNAPSHOT_RETRY_MS);
                self.snapshots.last_failure = Some(fault);
                Err(Refusal::Unavailable(why.into()))
            }
            SnapshotEnd::Broken(fault) => return Err(fault),
        };
        for to in std::mem::take(&mut self.snapshots.waiting) {
            self.put(to, outcome.clone());
        }
        Ok(())
    }

    /// Begins a snapshot if it is time, and nothing is decided that no frame has yet.
    pub(crate) fn tend_snapshots(&mut self, now: Now) -> Result<(), Fault> {
        self.answer_from_newest();
        let is_time = matches!(self.snapshots.stage, Stage::Idle) && self.snapshots.is_due(now.log);
        if !is_time || !self.commit.batch.is_empty() {
            return Ok(());
        }
        self.take_view(now);
        match self.commit.is_logged() {
            true => self.begin_snapshot(),
            // The frame with its last record is under way.
            false => Ok(()),
        }
    }

    /// Answers requests that came while the newest was being written, if nothing was decided since.
    fn answer_from_newest(&mut self) {
        let Some(newest) = self.snapshots.kept.newest else { return };
        if newest.lsn == self.state.last_lsn() {
            for to in std::mem::take(&mut self.snapshots.asked) {
                self.put(to, Ok(newest));
            }
        }
    }

    fn take_view(&mut self, now: Now) {
        let view = Box::new(self.state.facts().clone());
        let snapshots = &mut self.snapshots;
        snapshots.waiting.append(&mut snapshots.asked);
        snapshots.stage = Stage::Viewed(now.log, view);
    }

    /// Hands the view to the log, once all that is in it is committed.
    pub(crate) fn begin_snapshot(&mut self) -> Result<(), Fault> {
        let anchor = self.commit.end;
        let stage = std::mem::replace(&mut self.snapshots.stage, Stage::Idle);
        let (at, mut view) = match stage {
            Stage::Viewed(at, view) if view.last_lsn().0 <= anchor.lsn.0 => (at, view),
            Stage::Idle | Stage::Viewed(..) | Stage::UnderWay(_) => {
                self.snapshots.stage = stage;
                return Ok(());
            }
        };
        if planted::has(Bug::SnapshotTooEarly) {
            *view = self.state.facts().clone();
        }
        // A snapshot must never know more than the log: where things are told before they are
        // durable, they become so here.
        let log = self.commit.log.maintenance().expect("a log is free behind a committed frame");
        if log.durable() < anchor.lsn {
            log.sync()?;
        }
        assert!(
            view.last_lsn().0 == anchor.lsn.0 || planted::has(Bug::SnapshotTooEarly),
            "a view is taken between two frames"
        );
        let begun = Begun { at, log_bytes: self.snapshots.kept.log_bytes };
        let source = Box::new(Source { encoder: Encoder::new(*view), hashing: Hashing::default() });
        self.commit.log.begin_snapshot(SnapshotWork { anchor, source });
        self.snapshots.stage = Stage::UnderWay(begun);
        Ok(())
    }

    /// Whether there is more to forget or to begin as soon as the log is free.
    pub(crate) fn has_upkeep(&self) -> bool {
        let is_idle = matches!(self.snapshots.stage, Stage::Idle);
        self.snapshots.trim == Trim::Due || (is_idle && !self.snapshots.asked.is_empty())
    }

    /// When a snapshot is due by its age.
    pub(crate) fn next_snapshot(&self) -> Option<Timestamp> {
        match self.snapshots.stage {
            // While a frame is under way it cannot be begun, and the log rings when it can.
            Stage::Idle if self.commit.is_logged() => self.snapshots.due_at(),
            Stage::Idle | Stage::Viewed(..) | Stage::UnderWay(_) => None,
        }
    }
}

/// The bytes of a view. It is dropped where it is written, not where it was taken.
#[derive(Debug)]
struct Source {
    encoder: Encoder,
    hashing: Hashing,
}

impl SnapshotSource for Source {
    fn next(&mut self, out: &mut Vec<u8>) -> io::Result<ControlFlow<()>> {
        Ok(match self.encoder.next_block(out)? {
            Rest::More => ControlFlow::Continue(()),
            Rest::Nothing => ControlFlow::Break(()),
        })
    }

    fn sum(&mut self) -> io::Result<ControlFlow<SnapshotSum>> {
        let facts = self.encoder.facts();
        Ok(match self.hashing.step(facts)? {
            Some(hash) => {
                ControlFlow::Break(SnapshotSum { state_hash: hash.0, items: facts.task_count() })
            }
            None => ControlFlow::Continue(()),
        })
    }
}
