//! What a waiting task waits for: derived, never stored.

use tenure_record::id::TaskId;

use crate::state::State;
use crate::state::facts::task::{Task, TaskPhase};

/// What a WAITING task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A worker: it may be leased now.
    Ready,
    /// Its time, which a submit or a release set.
    Delayed,
    /// The end of its backoff, after a failure or an expired lease.
    Retrying,
    /// Its queue to be resumed, or its run to be unparked.
    Paused,
}

impl Phase {
    /// As it is told outside.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Ready => "ready",
            Phase::Delayed => "delayed",
            Phase::Retrying => "retrying",
            Phase::Paused => "paused",
        }
    }
}

impl State {
    /// What a task waits for; nothing if it is not WAITING. As of the moment up to which the clocks
    /// were followed.
    #[must_use]
    pub fn phase(&self, id: TaskId) -> Option<Phase> {
        let task = self.task_slot(id)?;
        let TaskPhase::Waiting { .. } = task.state else { return None };
        Some(match self.is_ahead(id, task) {
            _ if !self.eligibility(task.queue).is_open() => Phase::Paused,
            true if task.failures > 0 || task.expiries > 0 => Phase::Retrying,
            true => Phase::Delayed,
            false if self.live().is_ready(task.queue, task.priority, id) => Phase::Ready,
            false => Phase::Paused,
        })
    }

    /// Whether a WAITING task waits for a moment that has not come.
    #[must_use]
    pub fn is_delayed(&self, id: TaskId) -> bool {
        self.task_slot(id).is_some_and(|task| self.is_ahead(id, task))
    }

    /// Whether a task waits for the end of its backoff, in a paused queue too.
    pub(in crate::state) fn is_retrying(&self, id: TaskId) -> bool {
        self.task_slot(id)
            .is_some_and(|task| (task.failures > 0 || task.expiries > 0) && self.is_ahead(id, task))
    }

    /// Whether the moment that a task waits for has not come.
    fn is_ahead(&self, id: TaskId, task: &Task) -> bool {
        let TaskPhase::Waiting { not_before, clock } = task.state else { return false };
        self.live().is_ahead(clock, not_before, id)
    }
}
