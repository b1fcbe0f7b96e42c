//! Changes of tasks and runs, from the log and as they happen.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_core::Stream;
use tenure_coordinator::{Followed, Follower, Position, ReadLog, Refusal, Step};
use tenure_record::event::{Record, RunState};
use tenure_record::id::{Lsn, RunId, TaskId};
use tenure_record::time::Timestamp;
use tenure_record::transition::{RunTransition, Told};

use crate::error::Error;

/// A change of a task or of a run, with its position in the log. A subscriber that continues after the
/// position sees no change twice and misses none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The position of the change.
    pub position: Position,
    /// What changed.
    pub subject: Subject,
}

/// What a change is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A task.
    Task(TaskChange),
    /// A run.
    Run(RunChange),
}

impl Change {
    /// The change of a task, if it is one.
    #[must_use]
    pub fn task(&self) -> Option<&TaskChange> {
        match &self.subject {
            Subject::Task(change) => Some(change),
            Subject::Run(_) => None,
        }
    }

    /// The change of a run, if it is one.
    #[must_use]
    pub fn run(&self) -> Option<&RunChange> {
        match &self.subject {
            Subject::Run(change) => Some(change),
            Subject::Task(_) => None,
        }
    }
}

/// A change of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskChange {
    /// The task.
    pub task_id: TaskId,
    /// The queue of the task.
    pub queue: String,
    /// The run that the task belongs to.
    pub run_id: Option<RunId>,
    /// What happened.
    pub step: Step,
}

/// A change of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunChange {
    /// The run.
    pub run_id: RunId,
    /// The record of the change.
    pub lsn: Lsn,
    /// The time of the change, by the wall clock.
    pub at: Timestamp,
    /// What happened, such as `RunStarted`, `SignalReceived` or `RunFinished`.
    pub event: &'static str,
    /// The workflow, if the run started.
    pub workflow: Option<String>,
    /// The run that it is a child of, if the run started.
    pub parent: Option<RunId>,
    /// The state after the change, if it changed.
    pub to: Option<RunState>,
    /// The name of the signal that was received.
    pub signal: Option<String>,
    /// The code of the error, if the run could not continue.
    pub code: Option<String>,
}

impl RunChange {
    fn of(record: &Record<'_>, step: &RunTransition<'_>) -> Self {
        Self {
            run_id: step.run_id,
            lsn: record.lsn,
            at: record.wall,
            event: step.event,
            workflow: step.workflow.map(str::to_owned),
            parent: step.parent,
            to: step.to,
            signal: step.signal.map(str::to_owned),
            code: step.code.map(str::to_owned),
        }
    }
}

/// A subscription to changes; see [`Tenure::watch`](crate::Tenure::watch).
///
/// Threads call [`Watch::next`]; async code uses it as a [`Stream`], which ends when the engine is
/// closed. Recent changes come from memory; older ones are read from the log where the subscription is
/// polled.
#[derive(Debug)]
pub struct Watch {
    follower: Follower<Box<dyn ReadLog>>,
    ready: VecDeque<Change>,
}

/// What a subscription finds without waiting.
enum Found {
    Change(Box<Change>),
    UpToDate,
    Closed,
}

impl Watch {
    pub(crate) fn new(follower: Follower<Box<dyn ReadLog>>) -> Self {
        Self { follower, ready: VecDeque::new() }
    }

    /// The next change. None if there is none within the timeout, or if the engine was closed.
    ///
    /// # Errors
    /// `log_trimmed`: the next change is no longer in the log. Read the state and watch from
    /// [`Tenure::position`](crate::Tenure::position).
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Change>, Error> {
        let start = Instant::now();
        loop {
            match self.find()? {
                Found::Change(change) => return Ok(Some(*change)),
                Found::Closed => return Ok(None),
                Found::UpToDate => {
                    let left = timeout.saturating_sub(start.elapsed());
                    if left.is_zero() || !self.follower.wait(left) {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn find(&mut self) -> Result<Found, Error> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Ok(Found::Change(Box::new(change)));
            }
            let ready = &mut self.ready;
            let found = self.follower.next_told(|record, told| {
                let position = Position { lsn: record.lsn, index: Some(told.index()) };
                let subject = match told {
                    Told::Task(step) => Subject::Task(TaskChange {
                        task_id: step.task_id,
                        queue: step.queue.to_owned(),
                        run_id: step.run_id,
                        step: Step::of(record, step),
                    }),
                    Told::Run(step) => Subject::Run(RunChange::of(record, step)),
                };
                ready.push_back(Change { position, subject });
            })?;
            match found {
                Followed::Frame => {}
                Followed::Closed => return Ok(Found::Closed),
                Followed::Trimmed(oldest) => return Err(Refusal::Trimmed { oldest }.into()),
                Followed::UpToDate => return Ok(Found::UpToDate),
            }
        }
    }
}

impl Stream for Watch {
    type Item = Result<Change, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match self.find() {
                Ok(Found::Change(change)) => return Poll::Ready(Some(Ok(*change))),
                Ok(Found::Closed) => return Poll::Ready(None),
                Ok(Found::UpToDate) if self.follower.is_ready(context.waker()) => {}
                Ok(Found::UpToDate) => return Poll::Pending,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}
