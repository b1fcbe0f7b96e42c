//! What happened. An event holds all that `apply` needs and all that an observer is told; nothing
//! about it is worked out again on replay.

mod decision;
mod items;
mod json;
mod names;
mod rows;
mod run;

pub use decision::{
    ActivateFanInToken, ApplyNodeOutput, ArtifactItem, BranchValue, CancelTokens, CloseScope,
    Committed, CreateFanInToken, CreateTokens, Decision, Dispatched, DropBranches, EndScope,
    FinishRun, LoopCount, MarkForDispatch, MergeBranches, MergeInto, NewToken, OpenGroup,
    PromoteArtifacts, RunBegun, SetContext, SetTimer, SettleBranch, Spawned, StageArtifact,
    StartChild, Step, StoppedTasks, TakeSignal, TokenUpdate, UpdateTokenStates, Write,
};
pub use json::Json;
pub use names::{
    BranchOutcome, GroupState, MergeConflict, MergeMissing, MergeMode, MergeStrategy, RunState,
    TimerKind, TokenState,
};
pub use rows::{Stopped, StoppedRows, TokenRows};
pub use run::{
    DispatchContinued, EndContinued, JoinTimedOut, RunCancelRequested, RunDeadlinePassed, RunLink,
    RunParked, RunStarted, RunStartedBySignal, RunUnparked, RunsStarted, SignalReceived, TokenDue,
    WorkflowDeleted, WorkflowRegistered,
};

pub use items::{
    About, CancelRequested, Created, DeadLetter, DeadlinePassed, Expired, ExpiryCause, Granted,
    IdsSkipped, LeaseExpired, LeaseExtended, LeaseGranted, LeaseReleased, QueueConfigured,
    QueueDeleted, QueueSettings, Report, ReportsApplied, StaleReportRejected, SubmitHash, Tag,
    TaskCompleted, TaskCreated, TaskFailed, TaskRetried, TasksPurged, TimerFired,
};

use crate::codec::one_of;
use crate::id::Lsn;
use crate::time::{Now, Timestamp};

one_of! {
    /// One accepted command, in the past tense.
    pub enum Event<'a> {
        /// Tasks were submitted, one or many.
        5 => TaskCreated(TaskCreated<'a>),
        /// A worker got one or more leases.
        6 => LeaseGranted(LeaseGranted<'a>),
        /// Workers reported: heartbeats, results, failures and releases, one or many.
        7 => ReportsApplied(ReportsApplied<'a>),
        /// Leases ended because their time, or their worker's connection, did.
        8 => LeaseExpired(LeaseExpired<'a>),
        /// A client wants a task to stop.
        9 => CancelRequested(CancelRequested<'a>),
        /// An operator gave an ended task another round.
        10 => TaskRetried(TaskRetried<'a>),
        /// Deadlines passed.
        11 => TimerFired(TimerFired<'a>),
        /// A run began.
        12 => RunStarted(Box<RunStarted<'a>>),
        /// News from outside for a run.
        13 => SignalReceived(Box<SignalReceived<'a>>),
        /// A client wanted a run to stop.
        14 => RunCancelRequested(RunCancelRequested<'a>),
        /// More branches of wide groups began.
        15 => DispatchContinued(DispatchContinued<'a>),
        /// More of what is ending ended.
        16 => EndContinued(EndContinued<'a>),
        /// A queue's settings are now these.
        17 => QueueConfigured(QueueConfigured<'a>),
        /// Finished tasks were forgotten.
        18 => TasksPurged(TasksPurged),
        /// The counters jumped ahead, past every id that a lost tail may have given out.
        19 => IdsSkipped(IdsSkipped),
        /// A workflow's definition, in a new version.
        20 => WorkflowRegistered(WorkflowRegistered<'a>),
        /// A run cannot go on by itself.
        21 => RunParked(RunParked<'a>),
        /// An operator lets a parked run go on.
        22 => RunUnparked(RunUnparked),
        /// A queue without tasks was deleted.
        23 => QueueDeleted(QueueDeleted<'a>),
        /// A definition was deleted.
        24 => WorkflowDeleted(WorkflowDeleted<'a>),
        /// Runs began together.
        25 => RunsStarted(RunsStarted<'a>),
        /// A signal began the run that it was for.
        26 => RunStartedBySignal(Box<RunStartedBySignal<'a>>),
    }
}

/// An event in its place in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number: one more than the record before.
    pub lsn: Lsn,
    /// Log time when it was decided.
    pub at: Timestamp,
    /// The wall clock when it was decided: what calendar moments were compared with, and the time
    /// that is shown. Written only where it differs from `at`.
    pub wall: Timestamp,
    /// What happened.
    pub event: Event<'a>,
}

impl Record<'_> {
    /// What both clocks said when it was decided.
    #[must_use]
    pub fn now(&self) -> Now {
        Now { log: self.at, wall: self.wall }
    }
}

impl<'a> Event<'a> {
    /// Hands every cascade that is not empty to `take`, in order.
    pub fn each_cascade(&self, mut take: impl FnMut(&[Decision<'a>])) {
        let mut take = |cascade: &Vec<Decision<'a>>| {
            if !cascade.is_empty() {
                take(cascade);
            }
        };
        match self {
            Event::LeaseExpired(event) => event.leases.iter().for_each(|it| take(&it.cascade)),
            Event::CancelRequested(item) => take(&item.cascade),
            Event::ReportsApplied(event) => event.reports.iter().for_each(|report| match report {
                Report::TaskCompleted(item) => take(&item.cascade),
                Report::TaskFailed(item) => take(&item.cascade),
                Report::LeaseReleased(item) => take(&item.cascade),
                Report::LeaseExtended(_) | Report::StaleReportRejected(_) => {}
            }),
            Event::TimerFired(event) => {
                event.deadlines.iter().for_each(|item| take(&item.cascade));
                event.runs.iter().for_each(|item| take(&item.cascade));
                event.joins.iter().for_each(|item| take(&item.cascade));
                event.nodes.iter().chain(&event.timers).for_each(|item| take(&item.cascade));
            }
            Event::RunStarted(event) => take(&event.cascade),
            Event::RunsStarted(event) => event.runs.iter().for_each(|run| take(&run.cascade)),
            Event::RunStartedBySignal(event) => {
                take(&event.start.cascade);
                take(&event.signal.cascade);
            }
            Event::SignalReceived(item) => take(&item.cascade),
            Event::RunCancelRequested(event) => take(&event.cascade),
            Event::DispatchContinued(event) => take(&event.cascade),
            Event::EndContinued(event) => take(&event.cascade),
            Event::TaskCreated(_)
            | Event::LeaseGranted(_)
            | Event::TaskRetried(_)
            | Event::QueueConfigured(_)
            | Event::TasksPurged(_)
            | Event::IdsSkipped(_)
            | Event::WorkflowRegistered(_)
            | Event::RunParked(_)
            | Event::RunUnparked(_)
            | Event::QueueDeleted(_)
            | Event::WorkflowDeleted(_) => {}
        }
    }
}
