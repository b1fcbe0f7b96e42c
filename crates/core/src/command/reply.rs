//! The replies of commands that were not refused.

use std::sync::Arc;

use tenure_record::event::{IdsSkipped, QueueSettings, RunState};
use tenure_record::id::{LeaseId, RunId, TaskId, TokenId};
use tenure_record::state::TaskState;
use tenure_record::time::Timestamp;

use crate::rejection::Rejection;

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The tasks, in the order in which they were given.
    Submitted(Vec<Submitted>),
    /// The leases, in the order in which they were given.
    Leased(Vec<Leased>),
    /// The lease's new end, and whether the task should stop.
    Extended(Extended),
    /// The task's state after the report, cancel or retry.
    Task(TaskId, TaskState),
    /// The report came too late; it is on record, and nothing changed.
    LeaseLost(Rejection),
    /// What became of the reports, in the order heartbeats, completes, fails, releases.
    Reported {
        /// Of those that were decided.
        reports: Vec<Reported>,
        /// Whether the others wait for another record.
        rest: Rest,
    },
    /// How many leases, deadlines or finished tasks were dealt with.
    Swept(Swept),
    /// The queue's settings.
    Queue(QueueSettings),
    /// The ids that come next.
    Skipped(IdsSkipped),
    /// The workflow's version, and whether it is new.
    Registered(Registered),
    /// The run, and whether it is new.
    Started(Started),
    /// The runs, in the order in which they were given.
    StartedMany(Vec<Started>),
    /// What was to be deleted is gone.
    Deleted,
    /// The run's state after a cancel.
    Run(RunId, RunState),
    /// What became of a signal.
    Signaled(Signaled),
    /// What became of a signal by key.
    SignaledByKey {
        /// The run that holds the key.
        run_id: RunId,
        /// Whether the signal began it.
        outcome: SubmitOutcome,
        /// What became of the signal.
        signaled: Signaled,
    },
}

/// A definition that was taken, or was there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The workflow's name.
    pub name: Arc<str>,
    /// Its version.
    pub version: u32,
    /// New, or the same as the newest.
    pub outcome: SubmitOutcome,
}

/// A run that began, or was there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its number.
    pub run_id: RunId,
    /// New, or known by its key.
    pub outcome: SubmitOutcome,
}

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signaled {
    /// A token got it.
    Given(TokenId),
    /// It is kept for the next that waits for it.
    Kept,
    /// It came before.
    Known,
}

/// A task that was taken, or was there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Its number.
    pub task_id: TaskId,
    /// New, or known by its key.
    pub outcome: SubmitOutcome,
}

/// Whether a submit made a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// It did.
    Created,
    /// A task with this key and this body existed.
    Existed,
}

/// A lease that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leased {
    /// The task.
    pub task_id: TaskId,
    /// The lease.
    pub lease_id: LeaseId,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// A lease that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    /// When it ends now, by log time.
    pub expires_at: Timestamp,
    /// When it ends now, by the wall clock as it stands.
    pub wall_expires_at: Timestamp,
    /// Somebody wants the task to stop.
    pub cancel_requested: bool,
}

/// What became of one of several reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The task.
    pub task_id: TaskId,
    /// What the report did, or why it did nothing.
    pub result: Result<Accepted, Rejection>,
}

/// What a report did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The task's state after it.
    pub state: TaskState,
    /// For a heartbeat: how long the lease goes on.
    pub extended: Option<Extended>,
}

impl Accepted {
    /// The task is now in that state.
    #[must_use]
    pub fn now(state: TaskState) -> Self {
        Self { state, extended: None }
    }
}

/// How much a sweep did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// Dealt with in this record.
    pub items: usize,
    /// Whether there is more to do at once.
    pub rest: Rest,
}

/// Whether a sweep has to be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rest {
    /// Everything due is done.
    Nothing,
    /// One record was not enough.
    More,
}
