//! Queues.

use tenure_api as api;
use tenure_code::{Code, Echo};
use tenure_core::state::QueueView;
use tenure_record::state::TaskState;

use super::{text, time};
use crate::problem::Problem;

/// The queue that was asked for by its name, if there is one.
pub(crate) fn found(name: &str, queue: Option<&QueueView>) -> Result<api::Queue, Problem> {
    queue.map(self::queue).ok_or_else(|| {
        let name = Echo(name);
        let detail = format!("there is no queue {name}; it comes with its first task or setting");
        Problem::new(Code::NotFound, detail)
    })
}

/// A queue.
pub(crate) fn queue(queue: &QueueView) -> api::Queue {
    api::Queue {
        name: queue.name.to_string(),
        depth: queue.counts.of(TaskState::Waiting),
        leased: queue.counts.of(TaskState::Leased),
        completed: queue.counts.of(TaskState::Completed),
        failed: queue.counts.of(TaskState::Failed),
        dead: queue.counts.of(TaskState::Dead),
        canceled: queue.counts.of(TaskState::Canceled),
        paused: !queue.eligibility.is_open(),
        paused_until: queue.eligibility.opens_at().map(time),
        retention_ms: queue.settings.retention_ms,
        dead_letter_queue: text(queue.settings.dead_letter_queue.as_ref()),
        oldest_waiting_at: queue.oldest_waiting_at.map(time),
    }
}
