//! The laws of a log, by name.

use std::fmt;

/// What every log keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// Each record's LSN is one more than that of the record before.
    NoGapInLsns,
    /// Log time never goes back.
    TimeNeverGoesBack,
    /// A record is written in one way only, and those are its bytes.
    BytesAreTheRecord,
    /// A record that has items has at least one.
    RecordsSaySomething,
    /// Task and lease ids are given one after the other, jump only ahead, and stay below 2^43.
    IdsOnlyGrow,
    /// Only a task that exists is spoken of.
    TasksExist,
    /// An item names its task's queue and priority, and its lease's worker.
    ItemsKnowTheirTask,
    /// An item names the record before it in its task's history.
    HistoryIsAChain,
    /// No two leases of a task overlap: only a waiting task is leased.
    LeasesNeverOverlap,
    /// No task is leased before its moment, nor out of a paused queue.
    OnlyReadyTasksAreLeased,
    /// A lease lasts for its span, cut short only by its task's deadline or a revocation.
    LeasesLastAsGiven,
    /// Only the lease that is open is reported under, extended or ended.
    OnlyTheOpenLeaseCounts,
    /// A report is accepted only before its lease's end.
    LateIsLost,
    /// A lease runs out at its end and no sooner; a disconnect ends it before that.
    LeasesRunOutInTime,
    /// Every grant ends once, or is still open.
    EveryGrantEndsOnce,
    /// Attempts, failures and expiries count the grants, failures and expiries in the log.
    CountersFollowFacts,
    /// A task goes only where its state, its budgets and a cancel let it.
    OnlyLegalSteps,
    /// A report that came too late is on record once per lease, and changes nothing.
    StaleReportsComeOnce,
    /// A cancel is on record only where it changes something, and only brings an end nearer.
    CancelsOnlyTighten,
    /// A deadline is the task's span from its submit or retry, and fires when it has passed.
    DeadlinesHold,
    /// Timers that fire in one record fire in the order of their moments, and those of one moment in the
    /// order of their ids.
    TimersFireInOrder,
    /// No two tasks of a queue hold the same key.
    KeysAreUnique,
    /// Only a task that has ended is purged.
    OnlyTheEndedIsPurged,
    /// Only a queue without tasks that no queue names as its dead letter queue, or a workflow without
    /// runs, is deleted.
    OnlyTheUnusedIsDeleted,
    /// A task that ends FAILED or DEAD leaves a copy in its queue's dead letter queue, unless it is a copy
    /// itself; nothing else leaves one.
    DeadLettersFollowSettings,
    /// A run, a token and a group begin once, one after the other, in a run that is live.
    RunsGrowInOrder,
    /// A token that has ended never changes, and a run that is over has none that is live.
    TheEndedStaysEnded,
    /// A group closes once, and its branches are never more than there are.
    GroupsCloseOnce,
    /// What is ending only ends, each part once.
    WhatEndsOnlyEnds,
    /// Applying the records gives what the records say.
    StateFollowsLog,
}

impl Law {
    /// All of them, in the order in which they are explained.
    pub const ALL: [Self; 30] = [
        Self::NoGapInLsns,
        Self::TimeNeverGoesBack,
        Self::BytesAreTheRecord,
        Self::RecordsSaySomething,
        Self::IdsOnlyGrow,
        Self::TasksExist,
        Self::ItemsKnowTheirTask,
        Self::HistoryIsAChain,
        Self::LeasesNeverOverlap,
        Self::OnlyReadyTasksAreLeased,
        Self::LeasesLastAsGiven,
        Self::OnlyTheOpenLeaseCounts,
        Self::LateIsLost,
        Self::LeasesRunOutInTime,
        Self::EveryGrantEndsOnce,
        Self::CountersFollowFacts,
        Self::OnlyLegalSteps,
        Self::StaleReportsComeOnce,
        Self::CancelsOnlyTighten,
        Self::DeadlinesHold,
        Self::TimersFireInOrder,
        Self::KeysAreUnique,
        Self::OnlyTheEndedIsPurged,
        Self::OnlyTheUnusedIsDeleted,
        Self::DeadLettersFollowSettings,
        Self::RunsGrowInOrder,
        Self::TheEndedStaysEnded,
        Self::GroupsCloseOnce,
        Self::WhatEndsOnlyEnds,
        Self::StateFollowsLog,
    ];
}

/// A law that was broken, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which law.
    pub law: Law,
    /// What was found, in one sentence.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.law, self.found)
    }
}

impl std::error::Error for Violation {}

pub(super) fn broken(law: Law, found: String) -> Violation {
    Violation { law, found }
}

/// Says that a law is broken unless it holds.
#[inline]
pub(super) fn hold(law: Law, holds: bool, found: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(broken(law, found())) }
}
