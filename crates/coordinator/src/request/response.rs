//! Responses: how much one weighs in the outbox, and which leases it carries.

use std::fmt;

use tenure_core::command::{
    Extended, LeaseRef, Registered, Reported, Signaled, Started, SubmitOutcome, Submitted, Swept,
};
use tenure_core::state::{Facts, QueueView};
use tenure_record::id::RunId;

use crate::artifact_info::ArtifactInfo;
use crate::due::{DueItems, RunTasks};
use crate::info::{Explained, Grant, Status, TaskInfo, TaskPage};
use crate::names::NamePage;
use crate::run_info::{RunInfo, RunPage, TokenPage, WorkflowInfo, WorkflowPage};
use crate::snapshot::SnapshotInfo;

/// What a caller gets unless its request is refused.
pub trait Response: Clone + fmt::Debug + Send + 'static {
    /// How many items it holds beside itself, about.
    fn weight(&self) -> usize {
        0
    }

    /// Leases that it grants. They are released if no caller takes the response.
    fn leases(&self) -> Vec<LeaseRef> {
        Vec::new()
    }
}

/// A task that was submitted, or existed under its key, as it is now.
#[derive(Clone, Debug)]
pub struct SubmittedTask {
    /// Whether the submit made it.
    pub outcome: SubmitOutcome,
    /// The task.
    pub task: Box<TaskInfo>,
}

/// A run that began, or existed under its key, as it is now.
#[derive(Clone, Debug)]
pub struct StartedRun {
    /// Whether the start made it.
    pub outcome: SubmitOutcome,
    /// The run.
    pub run: Box<RunInfo>,
}

/// What became of a signal by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignaledRun {
    /// The run that holds the key.
    pub run_id: RunId,
    /// Whether the signal began the run.
    pub outcome: SubmitOutcome,
    /// What became of the signal.
    pub signaled: Signaled,
}

impl Response for Vec<Grant> {
    fn weight(&self) -> usize {
        self.len()
    }

    fn leases(&self) -> Vec<LeaseRef> {
        self.iter().map(Grant::lease).collect()
    }
}

/// Responses that hold nothing beside themselves, and those whose weight is a count of items.
macro_rules! responses {
    ($($plain:ty),*; $($list:ty: |$it:ident| $weight:expr;)*) => {
        $(impl Response for $plain {})*
        $(impl Response for $list {
            fn weight(&self) -> usize {
                let $it = self;
                $weight
            }
        })*
    };
}

responses! {
    (), usize, RunId, Extended, Swept, Registered, Signaled, SignaledRun, SubmittedTask, StartedRun,
    SnapshotInfo, Option<Box<QueueView>>, Box<TaskInfo>, Box<Explained>, Box<RunInfo>,
    Box<WorkflowInfo>, Box<Status>, Box<Facts>;
    Vec<Submitted>: |it| it.len() / 8;
    Vec<Started>: |it| it.len() / 8;
    Vec<Reported>: |it| it.len() / 4;
    Vec<ArtifactInfo>: |it| it.len() / 4;
    TaskPage: |it| it.tasks.len();
    RunTasks: |it| it.tasks.len();
    Box<DueItems>: |it| it.tasks.len() + it.runs.len();
    RunPage: |it| it.runs.len();
    TokenPage: |it| it.tokens.len();
    WorkflowPage: |it| it.workflows.len();
}

impl<T: Clone + fmt::Debug + Send + 'static> Response for NamePage<T> {
    fn weight(&self) -> usize {
        self.items.len()
    }
}
