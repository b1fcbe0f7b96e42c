//! What is kept stays within bounds that follow from the policy: bytes on the disk, and tasks and
//! runs in memory.

use super::{LawResult, hold};
use crate::config::SimConfig;
use crate::ledger::TaskLedger;
use crate::process::Life;
use tenure_coordinator::Keep;

const DISK: &str = "the disk has no more than the policy allows";
const KEPT: &str = "no more is remembered than the policy allows";

/// Segments beside those that are needed: the one being written, one that is ready, and four that
/// wait to be used again; and one because only whole segments go.
const SEGMENTS_BESIDE: u64 = 7;
/// Two snapshots are kept, one is written, and one that has rotted is set aside.
const SNAPSHOTS_MAX: u64 = 4;
/// The longest that a snapshot may be.
const SNAPSHOT_BYTES_MAX: u64 = 2 << 20;
/// Ended things that wait until somebody has time to forget them.
const LATE_MAX: u64 = 100;
/// Tasks in memory, ended or not.
const TASKS_MAX: u64 = 4_000;
/// How many samples a run gives.
const SAMPLES: u64 = 28;

/// What was kept at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was, in virtual milliseconds.
    pub at_ms: u64,
    /// Bytes on the disk.
    pub disk_bytes: u64,
    /// What it could have been at that moment.
    pub bound_bytes: u64,
    /// Tasks in memory.
    pub tasks: u64,
    /// Runs in memory.
    pub runs: u64,
}

/// What is kept.
#[derive(Debug)]
pub(crate) struct DiskLaw {
    policy: Option<Policy>,
    /// The longest snapshot so far.
    snapshot_bytes: u64,
    /// The newest snapshots and the number of the start before each was there: since the older one
    /// every start may have begun a segment.
    starts: [(u64, u64); 2],
    /// Snapshots that rotted: the log goes back by one more for each, until two good ones followed.
    fell_back: u64,
    followed: u64,
    sample_every_ms: u64,
    /// After that, all that is left is done at once, faster than anybody forgets.
    steady_until: u64,
    pub(crate) curve: Vec<Sample>,
}

#[derive(Clone, Copy, Debug)]
struct Policy {
    keep_bytes: u64,
    snapshot_log_bytes: u64,
    segment_bytes: u64,
    kept_max: u64,
}

impl DiskLaw {
    pub(super) fn new(config: &SimConfig) -> Self {
        let policy = match config.upkeep.log_keep {
            Keep::Bytes(keep_bytes) if config.is_bounded => Some(Policy {
                keep_bytes,
                snapshot_log_bytes: config.upkeep.snapshot_log_bytes,
                segment_bytes: config.segment_bytes,
                kept_max: config.upkeep.retention.tasks_max,
            }),
            Keep::All | Keep::Ms(_) | Keep::Bytes(_) => None,
        };
        Self {
            policy,
            snapshot_bytes: 0,
            starts: [(0, 1); 2],
            fell_back: 0,
            followed: 0,
            steady_until: config.trouble_for_ms,
            sample_every_ms: config.trouble_for_ms.div_ceil(SAMPLES),
            curve: Vec::new(),
        }
    }

    /// After a step: how much is there.
    pub(crate) fn stepped(
        &mut self,
        life: &Life,
        ledger: &TaskLedger,
        now: u64,
        disk_bytes: u64,
    ) -> LawResult {
        let Some(policy) = self.policy else { return Ok(()) };
        self.note_snapshot(life);
        let bound_bytes = self.bound(policy, life.start);
        let facts = life.coordinator.state().facts();
        let (tasks, runs) = (facts.task_count(), facts.run_count());
        let is_due = self.curve.last().is_none_or(|last| now >= last.at_ms + self.sample_every_ms);
        if is_due {
            self.curve.push(Sample { at_ms: now, disk_bytes, bound_bytes, tasks, runs });
        }
        hold(DISK, disk_bytes <= bound_bytes, || {
            format!("{disk_bytes} bytes, and {bound_bytes} at the most, with {tasks} tasks")
        })?;
        let longest = self.snapshot_bytes;
        hold(DISK, longest <= SNAPSHOT_BYTES_MAX, || format!("a snapshot of {longest} bytes"))?;
        hold(KEPT, tasks <= TASKS_MAX, || format!("{tasks} tasks are in memory"))?;
        let ended = ledger.ended_beside_runs;
        let may_wait = life.is_held() || now >= self.steady_until;
        hold(KEPT, ended <= policy.kept_max + LATE_MAX || may_wait, || {
            format!("{ended} ended tasks are in memory, and {} are to be kept", policy.kept_max)
        })
    }

    fn note_snapshot(&mut self, life: &Life) {
        let newest = life.coordinator.kept().newest;
        let lsn = newest.map_or(0, |newest| newest.lsn.0);
        let [(_, before), (last, _)] = self.starts;
        if lsn > last {
            self.starts = [self.starts[1], (lsn, life.start)];
            self.followed += 1;
            if self.followed >= 2 {
                self.fell_back = 0;
            }
        } else if lsn < last {
            self.starts = [(lsn, before); 2];
            (self.fell_back, self.followed) = (self.fell_back + 1, 0);
        }
        self.snapshot_bytes = self.snapshot_bytes.max(newest.map_or(0, |newest| newest.bytes));
    }

    /// The log goes back to the older snapshot or as far as it is to be kept, whichever is more.
    fn bound(&self, policy: Policy, start: u64) -> u64 {
        let between = policy.snapshot_log_bytes.max(self.snapshot_bytes) + policy.segment_bytes;
        let begun = start - self.starts[0].1;
        let beside = SEGMENTS_BESIDE + begun;
        policy.keep_bytes.max((2 + self.fell_back) * between)
            + beside * policy.segment_bytes
            + SNAPSHOTS_MAX * self.snapshot_bytes.max(policy.segment_bytes)
    }
}
