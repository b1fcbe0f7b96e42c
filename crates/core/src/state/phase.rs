//! What a waiting task waits for: derived, never stored.

use tenure_record::id::TaskId;
use tenure_record::time::Timestamp;

use super::State;
use super::task::{Task, TaskPhase};

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
        let queue = self.facts.queues.get(task.queue);
        Some(match self.delay(id, task) {
            _ if queue.is_some_and(|queue| queue.settings.paused) => Phase::Paused,
            Some(_) if task.failures > 0 || task.expiries > 0 => Phase::Retrying,
            Some(_) => Phase::Delayed,
            None if self.live().is_ready(task.queue, task.priority, id) => Phase::Ready,
            None => Phase::Paused,
        })
    }

    /// When a WAITING task may run next, if that is later than now.
    #[must_use]
    pub fn next_attempt_at(&self, id: TaskId) -> Option<Timestamp> {
        self.delay(id, self.task_slot(id)?)
    }

    /// Whether a task waits for the end of its backoff, in a paused queue too.
    pub(super) fn is_retrying(&self, id: TaskId) -> bool {
        self.task_slot(id).is_some_and(|task| {
            (task.failures > 0 || task.expiries > 0) && self.delay(id, task).is_some()
        })
    }

    /// The moment that a task waits for, unless it has come.
    fn delay(&self, id: TaskId, task: &Task) -> Option<Timestamp> {
        let TaskPhase::Waiting { not_before, clock } = task.state else { return None };
        self.live().is_ahead(clock, not_before, id).then_some(not_before)
    }
}
