//! An audit that begins in the middle of a log: earlier facts come from the items of a snapshot, and
//! the records that follow are checked as always.

use std::sync::Arc;

use tenure_record::codec::Malformed;
use tenure_record::snapshot::{ColdItem, Counters, Item, QueueItem, TaskItem};
use tenure_record::state::TaskState;
use tenure_record::time::{Clock, Timestamp};

use super::Audit;
use super::names::NameRef;
use super::table::{Rare, Row, checkpoint_hash};

/// Builds an audit from the items of a snapshot. Also used to compare a state with an audit: the
/// state is written as items, and both audits must agree.
#[derive(Debug, Default)]
pub struct Seed {
    audit: Audit,
    /// Names by their position in their sections.
    queues: Vec<Arc<str>>,
    workers: Vec<Arc<str>>,
}

impl Seed {
    /// Begins without any item.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over the next item.
    pub fn item(&mut self, item: &Item<'_>) -> Result<(), Malformed> {
        match item {
            Item::Counters(item) => {
                let Counters { next_task_id, next_lease_id, last_lsn, last_at, next_run_id } =
                    *item;
                let audit = &mut self.audit;
                (audit.lsn, audit.at) = (last_lsn, last_at);
                (audit.next_task, audit.next_lease) = (next_task_id, next_lease_id);
                audit.runs.next = next_run_id;
                audit.summary.after = last_lsn;
            }
            Item::Queue(item) => self.queue(item),
            Item::Worker(item) => self.workers.push(item.name.as_str().into()),
            Item::Task(item) => return self.task(item),
            Item::Workflow(item) => self.audit.runs.know_workflow(item),
            Item::RunPart(part) => return self.audit.runs.know_part(part),
            Item::Totals(_) => {}
        }
        Ok(())
    }

    /// An audit of the records that follow the snapshot.
    #[must_use]
    pub fn finish(self) -> Audit {
        self.audit
    }

    fn queue(&mut self, item: &QueueItem<'_>) {
        let name = item.name.as_str();
        self.queues.push(name.into());
        if item.configured {
            self.audit.queues.configure(name, &item.settings);
        }
    }

    fn task(&mut self, item: &TaskItem<'_>) -> Result<(), Malformed> {
        let lost = |what| Malformed::new(format!("task {} has no {what}", item.id));
        let queue = self.queues.get(item.queue as usize).ok_or_else(|| lost("queue"))?;
        let audit = &mut self.audit;
        let queue = audit.queues.hold(queue);
        let (moment, worker) = match item.state {
            TaskState::Waiting => (item.moment, NameRef::default()),
            TaskState::Leased => {
                let worker = self.workers.get(item.worker as usize);
                let worker = worker.ok_or_else(|| lost("worker"))?;
                audit.summary.leased += 1;
                (item.moment, audit.workers.hold(worker))
            }
            TaskState::Completed | TaskState::Failed | TaskState::Dead | TaskState::Canceled => {
                (Timestamp::ZERO, NameRef::default())
            }
        };
        audit.summary.known += 1;
        audit.tasks.put(
            item.id,
            Row {
                lease: item.lease_id,
                moment,
                last_lsn: item.last_lsn,
                attempt: item.attempt,
                lease_ms: span(item),
                failures: item.failures,
                expiries: item.expiries,
                max_failures: item.max_failures,
                max_expiries: item.max_expiries,
                queue,
                worker,
                priority: item.priority,
                state: item.state,
                cancel_requested: item.cancel_requested,
                by_wall_clock: item.state == TaskState::Waiting && item.clock == Clock::Wall,
            },
        );
        let Some(cold) = &item.cold else { return Ok(()) };
        let rare = rare(cold);
        if let Some(key) = rare.key.as_ref().filter(|_| !rare.key_is_lost) {
            audit.keys.insert((queue, Arc::clone(key)), item.id);
        }
        if rare != Rare::default() {
            *audit.tasks.rare_mut(item.id) = rare;
        }
        Ok(())
    }
}

/// How long a task's latest lease lasts.
fn span(item: &TaskItem<'_>) -> u32 {
    let granted_ms = item.cold.as_ref().map_or(0, |cold| cold.granted_ms);
    if granted_ms == 0 { item.lease_ms } else { granted_ms }
}

fn rare(item: &ColdItem<'_>) -> Rare {
    Rare {
        key: item.key.as_ref().map(|key| Arc::from(key.as_str())),
        total_timeout_ms: item.total_timeout_ms,
        deadline_at: item.deadline_at,
        revoke_at: item.revoke_at,
        stale_lease: item.stale_lease,
        max_attempts: item.max_attempts,
        attempt_timeout_ms: item.attempt_timeout_ms,
        attempt_deadline_at: item.attempt_deadline_at,
        key_free_at: item.key_free_at,
        key_is_lost: item.key_is_lost,
        checkpoint: checkpoint_hash(item.checkpoint),
        dead_letter: item.dead_letter,
        dead_letter_of: item.dead_letter_of,
    }
}
