//! An audit that begins in the middle of a log: what was before is taken from a state, as a snapshot
//! has it, and what follows is judged as ever.

use super::Audit;
use super::names::{NameRef, Names};
use super::run::Runs;
use super::table::{Rare, Row};
use crate::id::TaskId;
use crate::state::{Cold, Facts, StateName, Task, TaskState};
use crate::time::{Clock, Timestamp};

impl Audit {
    /// An audit of the records that follow these facts.
    #[must_use]
    pub fn after(facts: &Facts) -> Self {
        let mut audit = Self::new();
        (audit.lsn, audit.at) = (facts.last_lsn, facts.last_at);
        (audit.next_task, audit.next_lease) = (facts.next_task_id, facts.next_lease_id);
        audit.summary.after = facts.last_lsn;
        audit.runs = Runs::of(facts);
        for (_, queue) in facts.queues.iter() {
            if queue.configured {
                let at = audit.queues.hold(&queue.name);
                audit.queues.pause(at, queue.settings.paused);
            }
        }
        for (id, task) in facts.tasks.iter() {
            audit.know(facts, TaskId(id), task);
        }
        audit
    }

    fn know(&mut self, facts: &Facts, id: TaskId, task: &Task) {
        let queue = self.queues.hold(facts.queue_name(task.queue));
        let (moment, worker, by_wall_clock) = parts(facts, &mut self.workers, task);
        self.summary.known += 1;
        self.summary.leased += u64::from(task.name() == StateName::Leased);
        self.tasks.put(
            id,
            Row {
                lease: task.lease_id,
                moment,
                last_lsn: task.last_lsn,
                attempt: task.attempt,
                lease_ms: task.granted_ms,
                failures: task.failures,
                expiries: task.expiries,
                max_attempts: task.max_attempts,
                max_expiries: task.max_expiries,
                queue,
                worker,
                priority: task.priority,
                state: task.name(),
                cancel_requested: task.cancel_requested,
                by_wall_clock,
            },
        );
        let Some(cold) = facts.cold_of(task) else { return };
        let rare = rare(cold);
        if let Some(key) = &rare.key {
            self.keys.insert((queue, key.clone()), id);
        }
        if rare != Rare::default() {
            *self.tasks.rare_mut(id) = rare;
        }
    }
}

fn parts(facts: &Facts, workers: &mut Names, task: &Task) -> (Timestamp, NameRef, bool) {
    match task.state {
        TaskState::Waiting { not_before, clock } => {
            (not_before, NameRef::default(), clock == Clock::Wall)
        }
        TaskState::Leased { worker, expires_at } => {
            (expires_at, workers.hold(facts.worker_name(worker)), false)
        }
        TaskState::Completed { .. }
        | TaskState::Failed { .. }
        | TaskState::Dead { .. }
        | TaskState::Canceled { .. } => (Timestamp::ZERO, NameRef::default(), false),
    }
}

fn rare(cold: &Cold) -> Rare {
    Rare {
        key: cold.key.as_ref().map(|key| key.text.clone()),
        timeout_ms: cold.timeout_ms,
        deadline_at: cold.deadline_at,
        revoke_at: cold.revoke_at,
        stale_lease: cold.stale_lease,
    }
}
