//! The laws of tasks: how they begin, are told to stop, begin again and are forgotten.

use std::sync::Arc;

use tenure_record::event::{
    CancelRequested, Created, DeadlinePassed, QueueConfigured, QueueDeleted, TaskRetried,
};
use tenure_record::id::{ID_MAX, LeaseId, TaskId};
use tenure_record::name::Text;
use tenure_record::state::TaskState;
use tenure_record::time::{Clock, Timestamp};

use super::Audit;
use super::law::{Law, Violation, broken, hold};
use super::lease::{goes_to, is_open};
use super::table::{Rare, Row};

impl Audit {
    pub(super) fn created(&mut self, item: &Created<'_>) -> Result<(), Violation> {
        let id = item.task_id;
        hold(Law::IdsOnlyGrow, id == self.next_task && id.0 <= ID_MAX, || {
            format!("task {id} is created where {} comes next", self.next_task)
        })?;
        self.has_deadline(id, item.total_timeout_ms, item.deadline_at)?;
        // Each kind of end is bounded, by a budget of its own or by that of all attempts.
        let is_bounded = item.max_attempts.is_some()
            || (item.max_failures.is_some() && item.max_expiries.is_some());
        hold(Law::OnlyLegalSteps, is_bounded, || format!("task {id} is created without a budget"))?;
        hold(Law::KeysAreUnique, item.key.is_some() == item.submit_hash.is_some(), || {
            format!("task {id} has a key and no hash of its submit, or the other way round")
        })?;
        let queue = self.queues.hold(item.queue.as_str());
        let rare = Rare {
            key: item.key.as_ref().map(|key| Arc::from(key.as_str())),
            total_timeout_ms: item.total_timeout_ms,
            deadline_at: item.deadline_at,
            max_attempts: item.max_attempts,
            attempt_timeout_ms: item.attempt_timeout_ms,
            key_free_at: item.key_free_at,
            ..Rare::default()
        };
        let holder = match &rare.key {
            Some(key) => self.keys.insert((queue, Arc::clone(key)), id),
            None => None,
        };
        self.takes_key(item, holder.unwrap_or_default())?;
        if rare != Rare::default() {
            *self.tasks.rare_mut(id) = rare;
        }
        self.next_task = id.next();
        self.summary.created += 1;
        self.tasks.put(
            id,
            Row {
                max_failures: item.max_failures,
                max_expiries: item.max_expiries,
                moment: item.not_before,
                by_wall_clock: item.clock == Clock::Wall,
                ..Row::new(queue, item.priority, self.lsn)
            },
        );
        Ok(())
    }

    /// Whether the key of a new task was free. The task that held it, if there is one, holds it no more.
    fn takes_key(&mut self, item: &Created<'_>, holder: TaskId) -> Result<(), Violation> {
        let id = item.task_id;
        let free_at = self.tasks.rare(holder).map(|rare| rare.key_free_at).unwrap_or_default();
        let is_free = holder == TaskId::NONE || (free_at > Timestamp::ZERO && free_at <= self.at);
        hold(Law::KeysAreUnique, is_free && item.key_from == holder, || {
            let (key, from) = (&item.key, item.key_from);
            format!("task {id} takes the key {key:?} from task {from}; task {holder} holds it")
        })?;
        let lasts = item.key_free_at > self.at && item.key.is_some();
        hold(Law::KeysAreUnique, item.key_free_at == Timestamp::ZERO || lasts, || {
            format!("task {id} holds its key until {:?}", item.key_free_at)
        })?;
        if holder.is_some() {
            self.tasks.rare_mut(holder).key_is_lost = true;
        }
        Ok(())
    }

    pub(super) fn cancel_requested(&mut self, item: &CancelRequested<'_>) -> Result<(), Violation> {
        let id = item.about.task_id;
        let mut row = self.known(&item.about, 0)?;
        goes_to(id, item.from, row.state)?;
        self.is_live(id, &row, item.lease_id, &item.worker)?;
        if item.to != TaskState::Leased {
            goes_to(id, item.to, TaskState::Canceled)?;
            let moves = item.expires_at.0 == 0 && item.revoke_at.0 == 0;
            hold(Law::CancelsOnlyTighten, moves, || {
                format!("task {id} is canceled at once, and its lease is to end later")
            })?;
            self.summary.ends.canceled += u64::from(row.state == TaskState::Leased);
            row.cancel_requested = true;
            self.end(id, row, TaskState::Canceled, Timestamp::ZERO);
            return Ok(());
        }
        goes_to(id, TaskState::Leased, row.state)?;
        let known = self.tasks.rare(id).map(|rare| rare.revoke_at).unwrap_or_default();
        let revoke_at = item.revoke_at;
        let tightens = match revoke_at == Timestamp::ZERO {
            true => !row.cancel_requested && item.expires_at == row.moment,
            false => {
                revoke_at > self.at
                    && (known == Timestamp::ZERO || revoke_at < known)
                    && item.expires_at == row.moment.min(revoke_at)
            }
        };
        hold(Law::CancelsOnlyTighten, tightens, || {
            format!(
                "the lease of task {id} ends at {:?} and may be revoked at {known:?}; a cancel \
                 moves that to {:?} and {revoke_at:?}",
                row.moment, item.expires_at
            )
        })?;
        row.cancel_requested = true;
        row.moment = item.expires_at;
        row.last_lsn = self.lsn;
        if revoke_at > Timestamp::ZERO {
            self.tasks.rare_mut(id).revoke_at = revoke_at;
        }
        self.tasks.put(id, row);
        Ok(())
    }

    pub(super) fn retried(&mut self, item: &TaskRetried<'_>) -> Result<(), Violation> {
        let id = item.about.task_id;
        let mut row = self.known(&item.about, 0)?;
        goes_to(id, item.from, row.state)?;
        let may = matches!(row.state, TaskState::Failed | TaskState::Dead | TaskState::Canceled);
        hold(Law::OnlyLegalSteps, may, || format!("task {id} is {} and is retried", row.state))?;
        let not_before = self.at.max(Timestamp(1));
        hold(Law::OnlyLegalSteps, item.not_before == not_before, || {
            format!("task {id} is retried at {not_before:?} for {:?}", item.not_before)
        })?;
        let total_timeout_ms = self.tasks.rare(id).and_then(|rare| rare.total_timeout_ms);
        self.has_deadline(id, total_timeout_ms, item.deadline_at)?;
        if total_timeout_ms.is_some() {
            self.tasks.rare_mut(id).deadline_at = item.deadline_at;
        }
        (row.failures, row.expiries, row.cancel_requested) = (0, 0, false);
        self.end(id, row, TaskState::Waiting, not_before);
        Ok(())
    }

    pub(super) fn deadline_passed(&mut self, item: &DeadlinePassed<'_>) -> Result<(), Violation> {
        let id = item.about.task_id;
        let row = self.known(&item.about, 0)?;
        goes_to(id, item.from, row.state)?;
        self.is_live(id, &row, item.lease_id, &item.worker)?;
        let deadline_at = self.tasks.rare(id).map(|rare| rare.deadline_at).unwrap_or_default();
        let is_due = deadline_at > Timestamp::ZERO && deadline_at <= self.at;
        hold(Law::DeadlinesHold, is_due && item.deadline_at == deadline_at, || {
            let (said, at) = (item.deadline_at, self.at);
            format!("the deadline of task {id} is {deadline_at:?}, and fires as {said:?} at {at:?}")
        })?;
        let to = if row.cancel_requested { TaskState::Canceled } else { TaskState::Failed };
        goes_to(id, item.to, to)?;
        self.summary.ends.timed_out += u64::from(row.state == TaskState::Leased);
        self.end(id, row, to, Timestamp::ZERO);
        self.leaves(&item.about, row, to, item.dead_letter.as_deref())
    }

    pub(super) fn purged(&mut self, id: TaskId) -> Result<(), Violation> {
        let row = self.exists(id)?;
        hold(Law::OnlyTheEndedIsPurged, row.state.is_terminal(), || {
            format!("task {id} is {} and is purged", row.state)
        })?;
        let rare = self.tasks.remove(id);
        if let Some(key) = rare.filter(|rare| !rare.key_is_lost).and_then(|rare| rare.key) {
            self.keys.remove(&(row.queue, key));
        }
        self.queues.let_go(row.queue);
        self.summary.purged += 1;
        Ok(())
    }

    /// A queue with settings stays until it is deleted.
    pub(super) fn configured(&mut self, item: &QueueConfigured<'_>) -> Result<(), Violation> {
        let name = item.queue.as_str();
        let is_own = item.settings.dead_letter_queue.as_deref() == Some(name);
        hold(Law::DeadLettersFollowSettings, !is_own, || {
            format!("queue {name:?} is its own dead letter queue")
        })?;
        self.queues.configure(name, &item.settings);
        Ok(())
    }

    /// Only a queue that exists and has no tasks is deleted.
    pub(super) fn queue_deleted(&mut self, item: &QueueDeleted<'_>) -> Result<(), Violation> {
        let name = item.queue.as_str();
        hold(Law::OnlyTheUnusedIsDeleted, self.queues.delete(name), || {
            format!(
                "queue {name:?} is deleted, and has tasks, is a dead letter queue or does not exist"
            )
        })
    }

    /// Whether it waits, and no lease is named, or is leased, and its lease and holder are.
    fn is_live(
        &self,
        id: TaskId,
        row: &Row,
        lease: LeaseId,
        worker: &Text<'_>,
    ) -> Result<(), Violation> {
        match row.state {
            TaskState::Leased => {
                is_open(id, row, lease)?;
                self.is_holder(id, row, worker)
            }
            TaskState::Waiting => {
                let none = lease == LeaseId::NONE && worker.as_str().is_empty();
                hold(Law::OnlyTheOpenLeaseCounts, none, || {
                    format!("task {id} is WAITING, and lease {lease} of {worker:?} is ended")
                })
            }
            TaskState::Completed | TaskState::Failed | TaskState::Dead | TaskState::Canceled => {
                let found = format!("task {id} is {} already, and is to stop", row.state);
                Err(broken(Law::OnlyLegalSteps, found))
            }
        }
    }

    fn has_deadline(
        &self,
        id: TaskId,
        total_timeout_ms: Option<u64>,
        deadline_at: Timestamp,
    ) -> Result<(), Violation> {
        let right = total_timeout_ms.map_or(Timestamp::ZERO, |ms| self.at.plus_ms(ms));
        hold(Law::DeadlinesHold, deadline_at == right, || {
            format!("the deadline of task {id} is {deadline_at:?}, and should be {right:?}")
        })
    }
}
