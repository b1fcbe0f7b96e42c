//! What a log adds up to.

use tenure_record::event::Record;
use tenure_record::id::Lsn;
use tenure_record::state::TaskState;
use tenure_record::time::Timestamp;

/// The whole log in a few numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The record after which it begins; none if that is the first of the log.
    pub after: Lsn,
    /// Tasks that were there by then,
    pub known: u64,
    /// and how many of them were leased.
    pub leased: u64,
    /// Records that were read.
    pub records: u64,
    /// The wall clock of the first and of the last record.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Tasks created.
    pub created: u64,
    /// Tasks purged since.
    pub purged: u64,
    /// Tasks that are there at the end, in the order of [`TaskState::ALL`].
    pub by_state: [u64; 6],
    /// Leases given.
    pub grants: u64,
    /// How they ended.
    pub ends: Ends,
    /// Heartbeats that moved a lease's end.
    pub heartbeats: u64,
    /// Reports that came too late and are on record.
    pub stale_reports: u64,
}

/// How leases ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Its worker was done.
    pub completed: u64,
    /// Its worker said that the attempt failed.
    pub failed: u64,
    /// Its worker gave it back.
    pub released: u64,
    /// Its time was up.
    pub ran_out: u64,
    /// Its worker's stream closed.
    pub disconnected: u64,
    /// A cancel's grace was up.
    pub revoked: u64,
    /// A client canceled the task and gave no grace.
    pub canceled: u64,
    /// The task's deadline passed.
    pub timed_out: u64,
    /// The attempt took longer than its task allows.
    pub attempt_timed_out: u64,
}

impl Ends {
    /// Each way and how often, by the name that it has outside.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("completed", self.completed),
            ("failed", self.failed),
            ("released", self.released),
            ("ran_out", self.ran_out),
            ("disconnected", self.disconnected),
            ("revoked", self.revoked),
            ("canceled", self.canceled),
            ("timed_out", self.timed_out),
            ("attempt_timed_out", self.attempt_timed_out),
        ]
    }

    /// All ends.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }
}

impl Summary {
    /// Leases that are open at the end: a task has at most one.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.by_state[TaskState::Leased as usize - 1]
    }

    /// Tasks that are there at the end.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.by_state.iter().sum()
    }

    pub(super) fn note(&mut self, record: &Record<'_>) {
        self.records += 1;
        let first = self.times.map_or(record.wall, |(first, _)| first);
        self.times = Some((first, record.wall));
    }

    pub(super) fn count(&mut self, state: TaskState) {
        self.by_state[state as usize - 1] += 1;
    }
}
