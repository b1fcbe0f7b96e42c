//! The laws of leases: who may report, until when, and how each ends.

use tenure_record::event::{
    Expired, ExpiryCause, Granted, LeaseExtended, LeaseReleased, StaleReportRejected,
    TaskCompleted, TaskFailed,
};
use tenure_record::id::{ID_MAX, LeaseId, TaskId};
use tenure_record::name::Text;
use tenure_record::state::TaskState;
use tenure_record::time::Timestamp;

use super::Audit;
use super::law::{Law, Violation, broken, hold};
use super::table::{Rare, Row, checkpoint_hash};

impl Audit {
    pub(super) fn granted(
        &mut self,
        worker: &Text<'_>,
        item: &Granted<'_>,
    ) -> Result<(), Violation> {
        let (id, lease) = (item.about.task_id, item.lease_id);
        let mut row = self.known(&item.about, 1)?;
        hold(Law::LeasesNeverOverlap, row.state == TaskState::Waiting, || {
            let (state, last) = (row.state, row.lease);
            format!("task {id} gets lease {lease} and is {state}, with {last} as its last lease")
        })?;
        hold(Law::IdsOnlyGrow, lease == self.next_lease && lease.0 <= ID_MAX, || {
            format!("lease {lease} is given where {} comes next", self.next_lease)
        })?;
        let now = if row.by_wall_clock { self.wall } else { self.at };
        let is_due = row.moment <= now;
        hold(Law::OnlyReadyTasksAreLeased, is_due, || {
            format!("task {id} is leased at {now:?} and not before {:?}", row.moment)
        })?;
        hold(Law::OnlyReadyTasksAreLeased, !self.queues.is_paused(row.queue, self.wall), || {
            format!("task {id} is leased out of queue {:?}, which is paused", item.about.queue)
        })?;
        hold(Law::ItemsKnowTheirTask, !worker.as_str().is_empty(), || {
            format!("lease {lease} of task {id} is given to nobody")
        })?;
        row.lease_ms = item.lease_ms;
        self.begins(id, item.attempt_deadline_at)?;
        self.lasts(id, row.lease_ms, item.expires_at)?;
        self.next_lease = lease.next();
        row.state = TaskState::Leased;
        row.lease = lease;
        row.moment = item.expires_at;
        row.attempt = item.about.attempt;
        row.worker = self.workers.hold(worker.as_str());
        row.last_lsn = self.lsn;
        self.summary.grants += 1;
        self.tasks.put(id, row);
        Ok(())
    }

    pub(super) fn extended(&mut self, item: &LeaseExtended<'_>) -> Result<(), Violation> {
        let id = item.task_id;
        let mut row = self.exists(id)?;
        self.holds(id, &row, item.lease_id)?;
        let span = if item.lease_ms == 0 { row.lease_ms } else { item.lease_ms };
        self.lasts(id, span, item.expires_at)?;
        let says_something = item.expires_at != row.moment || !item.checkpoint.is_empty();
        hold(Law::LeasesLastAsGiven, says_something, || {
            format!("a heartbeat of task {id} is on record and moves nothing")
        })?;
        row.moment = item.expires_at;
        self.summary.heartbeats += 1;
        self.tasks.put(id, row);
        self.keep_checkpoint(id, item.checkpoint);
        Ok(())
    }

    pub(super) fn completed(&mut self, item: &TaskCompleted<'_>) -> Result<(), Violation> {
        let id = item.about.task_id;
        let row = self.known(&item.about, 0)?;
        self.holds(id, &row, item.lease_id)?;
        self.is_holder(id, &row, &item.worker)?;
        self.summary.ends.completed += 1;
        self.end(id, row, TaskState::Completed, Timestamp::ZERO);
        if self.tasks.rare(id).is_some_and(|rare| rare.checkpoint != 0) {
            self.tasks.rare_mut(id).checkpoint = 0;
        }
        Ok(())
    }

    pub(super) fn failed(&mut self, item: &TaskFailed<'_>) -> Result<(), Violation> {
        let id = item.about.task_id;
        let mut row = self.known(&item.about, 0)?;
        self.holds(id, &row, item.lease_id)?;
        self.is_holder(id, &row, &item.worker)?;
        counts(id, "failures", item.failures, row.failures, 1)?;
        row.failures = item.failures;
        let may_go_on = self.tasks.allow(id, &row);
        // A worker may say that another attempt is of no use.
        let legal = match item.to {
            TaskState::Waiting => may_go_on && !row.cancel_requested,
            TaskState::Failed => !row.cancel_requested,
            TaskState::Canceled => row.cancel_requested,
            TaskState::Leased | TaskState::Completed | TaskState::Dead => false,
        };
        hold(Law::OnlyLegalSteps, legal, || {
            let (failures, budget) = (row.failures, row.max_failures);
            format!("task {id} becomes {} at failure {failures} of {budget:?}", item.to)
        })?;
        let waits = item.to == TaskState::Waiting;
        let in_order = if waits { item.not_before >= self.at } else { item.not_before.0 == 0 };
        hold(Law::OnlyLegalSteps, in_order, || {
            format!("task {id} becomes {}, and not before {:?}", item.to, item.not_before)
        })?;
        self.summary.ends.failed += 1;
        self.end(id, row, item.to, item.not_before);
        self.keep_checkpoint(id, item.checkpoint);
        self.leaves(&item.about, row, item.to, item.dead_letter.as_deref())
    }

    pub(super) fn released(&mut self, item: &LeaseReleased<'_>) -> Result<(), Violation> {
        let id = item.about.task_id;
        let mut row = self.known(&item.about, 0)?;
        self.holds(id, &row, item.lease_id)?;
        self.is_holder(id, &row, &item.worker)?;
        let to = if row.cancel_requested { TaskState::Canceled } else { TaskState::Waiting };
        goes_to(id, item.to, to)?;
        let in_order = match to == TaskState::Waiting {
            true => item.not_before.0 == 0 || item.not_before > self.at,
            false => item.not_before.0 == 0 && item.priority.is_none(),
        };
        hold(Law::OnlyLegalSteps, in_order, || {
            let (at, priority) = (item.not_before, item.priority);
            format!("task {id} becomes {to}, not before {at:?} and with priority {priority:?}")
        })?;
        row.priority = item.priority.unwrap_or(row.priority);
        self.summary.ends.released += 1;
        self.end(id, row, to, item.not_before);
        self.keep_checkpoint(id, item.checkpoint);
        Ok(())
    }

    /// Leases that end at their own moments end in the order of (end, lease).
    pub(super) fn ends_in_order(
        &self,
        item: &Expired<'_>,
        last: &mut Option<(Timestamp, LeaseId)>,
    ) -> Result<(), Violation> {
        if item.cause == ExpiryCause::Disconnected {
            return Ok(());
        }
        let this = (self.exists(item.about.task_id)?.moment, item.lease_id);
        let before = last.replace(this);
        hold(Law::TimersFireInOrder, before.is_none_or(|before| before < this), || {
            format!("lease {} ends after one that was to end later", item.lease_id)
        })
    }

    pub(super) fn expired(&mut self, item: &Expired<'_>) -> Result<(), Violation> {
        let id = item.about.task_id;
        let mut row = self.known(&item.about, 0)?;
        is_open(id, &row, item.lease_id)?;
        self.is_holder(id, &row, &item.worker)?;
        let is_over = row.moment <= self.at;
        let rare = self.tasks.rare(id);
        let is_revoked = rare.is_some_and(|rare| rare.revoke_at == row.moment);
        let is_timed_out = rare.is_some_and(|rare| rare.attempt_deadline_at == row.moment);
        let fits = match item.cause {
            ExpiryCause::RanOut => is_over && !is_revoked && !is_timed_out,
            ExpiryCause::Disconnected => !is_over,
            ExpiryCause::Revoked => is_over && is_revoked,
            ExpiryCause::AttemptTimedOut => is_over && is_timed_out && !is_revoked,
        };
        hold(Law::LeasesRunOutInTime, fits, || {
            let (cause, end, at) = (item.cause.as_str(), row.moment, self.at);
            format!("lease {} of task {id} ends at {end:?} and is {cause} at {at:?}", row.lease)
        })?;
        let (ends, counted) = match item.cause {
            ExpiryCause::RanOut => (&mut self.summary.ends.ran_out, 1),
            ExpiryCause::Disconnected => (&mut self.summary.ends.disconnected, 1),
            ExpiryCause::Revoked => (&mut self.summary.ends.revoked, 0),
            ExpiryCause::AttemptTimedOut => (&mut self.summary.ends.attempt_timed_out, 0),
        };
        *ends += 1;
        counts(id, "expiries", item.expiries, row.expiries, counted)?;
        row.expiries = item.expiries;
        let has_failed = item.cause == ExpiryCause::AttemptTimedOut;
        if has_failed {
            counts(id, "failures", item.failures, row.failures, 1)?;
            row.failures = item.failures;
        }
        let may_go_on = self.tasks.allow(id, &row);
        // A node of a run may say that such a failure is final.
        let is_final = has_failed && item.about.run_id.is_some() && item.to == TaskState::Failed;
        let to = match row.cancel_requested {
            true => TaskState::Canceled,
            false if may_go_on && !is_final => TaskState::Waiting,
            false if has_failed => TaskState::Failed,
            false => TaskState::Dead,
        };
        goes_to(id, item.to, to)?;
        let in_order = match has_failed && to == TaskState::Waiting {
            true => item.not_before >= self.at,
            false => item.not_before == Timestamp::ZERO,
        };
        hold(Law::OnlyLegalSteps, in_order && (has_failed || item.failures == 0), || {
            let (failures, not_before) = (item.failures, item.not_before);
            format!("task {id} becomes {to} at failure {failures}, and not before {not_before:?}")
        })?;
        self.end(id, row, to, item.not_before);
        self.leaves(&item.about, row, to, item.dead_letter.as_deref())
    }

    pub(super) fn reported_late(
        &mut self,
        item: &StaleReportRejected<'_>,
    ) -> Result<(), Violation> {
        let (id, lease) = (item.about.task_id, item.lease_id);
        let mut row = self.known(&item.about, 0)?;
        let holds = row.state == TaskState::Leased && lease == row.lease && self.at < row.moment;
        let is_ending = self.may_be_ending(item.about.run_id);
        hold(Law::StaleReportsComeOnce, !holds || is_ending, || {
            format!("lease {lease} of task {id} holds, and a report under it is called stale")
        })?;
        hold(Law::StaleReportsComeOnce, lease.is_some() && lease <= row.lease, || {
            format!("a stale report of task {id} names lease {lease}, which it never had")
        })?;
        let known = self.tasks.rare(id).map(|rare| rare.stale_lease).unwrap_or_default();
        hold(Law::StaleReportsComeOnce, lease > known, || {
            format!("a stale report of task {id} names lease {lease}; {known} is on record already")
        })?;
        goes_to(id, item.state, row.state)?;
        row.last_lsn = self.lsn;
        self.summary.stale_reports += 1;
        self.tasks.rare_mut(id).stale_lease = lease;
        self.tasks.put(id, row);
        Ok(())
    }

    fn keep_checkpoint(&mut self, id: TaskId, checkpoint: &[u8]) {
        if !checkpoint.is_empty() {
            self.tasks.rare_mut(id).checkpoint = checkpoint_hash(checkpoint);
        }
    }

    /// The lease is over and the task goes on, or ends.
    pub(super) fn end(&mut self, id: TaskId, mut row: Row, to: TaskState, moment: Timestamp) {
        if row.state == TaskState::Leased {
            self.workers.let_go(row.worker);
        }
        row.state = to;
        row.moment = moment;
        row.by_wall_clock = false;
        row.last_lsn = self.lsn;
        self.tasks.put(id, row);
        let bounds = |rare: &Rare| rare.revoke_at.max(rare.attempt_deadline_at);
        if self.tasks.rare(id).is_some_and(|rare| bounds(rare) > Timestamp::ZERO) {
            let rare = self.tasks.rare_mut(id);
            (rare.revoke_at, rare.attempt_deadline_at) = (Timestamp::ZERO, Timestamp::ZERO);
        }
    }

    pub(super) fn is_holder(
        &self,
        id: TaskId,
        row: &Row,
        worker: &Text<'_>,
    ) -> Result<(), Violation> {
        let holder = self.workers.text(row.worker);
        hold(Law::ItemsKnowTheirTask, worker.as_str() == holder, || {
            format!(
                "lease {} of task {id} is {holder:?}'s, and is said to be {worker:?}'s",
                row.lease
            )
        })
    }

    /// Whether a report under this lease is to be heard.
    fn holds(&self, id: TaskId, row: &Row, lease: LeaseId) -> Result<(), Violation> {
        is_open(id, row, lease)?;
        hold(Law::LateIsLost, self.at < row.moment, || {
            let (end, at) = (row.moment, self.at);
            format!("lease {lease} of task {id} ended at {end:?} and is reported under at {at:?}")
        })
    }

    /// An attempt begins, and has the deadline that its task gives it.
    fn begins(&mut self, id: TaskId, deadline_at: Timestamp) -> Result<(), Violation> {
        let timeout_ms = self.tasks.rare(id).and_then(|rare| rare.attempt_timeout_ms);
        let right = timeout_ms.map_or(Timestamp::ZERO, |ms| self.at.plus_ms(ms));
        hold(Law::DeadlinesHold, deadline_at == right, || {
            format!("an attempt of task {id} is to end by {deadline_at:?}, and should by {right:?}")
        })?;
        if deadline_at > Timestamp::ZERO {
            self.tasks.rare_mut(id).attempt_deadline_at = deadline_at;
        }
        Ok(())
    }

    /// Whether a lease that begins or is extended now ends when it should.
    fn lasts(&self, id: TaskId, span: u32, expires_at: Timestamp) -> Result<(), Violation> {
        let mut end = self.at.plus_ms(span.into());
        if let Some(rare) = self.tasks.rare(id) {
            let bounds = [rare.deadline_at, rare.revoke_at, rare.attempt_deadline_at].into_iter();
            end = bounds.filter(|at| *at > Timestamp::ZERO).fold(end, Timestamp::min);
        }
        hold(Law::LeasesLastAsGiven, expires_at == end && end > self.at, || {
            format!("a lease of task {id} is to end at {expires_at:?}, and should at {end:?}")
        })
    }
}

/// Whether that is the task's open lease.
pub(super) fn is_open(id: TaskId, row: &Row, lease: LeaseId) -> Result<(), Violation> {
    if row.state == TaskState::Leased && lease == row.lease {
        return Ok(());
    }
    let found = match row.state == TaskState::Leased {
        true => format!("lease {lease} of task {id} is not its open one, {}", row.lease),
        false => format!("lease {lease} of task {id} is not open: the task is {}", row.state),
    };
    Err(broken(Law::OnlyTheOpenLeaseCounts, found))
}

pub(super) fn goes_to(id: TaskId, found: TaskState, right: TaskState) -> Result<(), Violation> {
    hold(Law::OnlyLegalSteps, found == right, || {
        format!("task {id} is said to be {found}, and should be {right}")
    })
}

fn counts(id: TaskId, what: &str, now: u16, before: u16, more: u32) -> Result<(), Violation> {
    hold(Law::CountersFollowFacts, u32::from(now) == u32::from(before) + more, || {
        format!("task {id} had {before} {what}, {more} came, and now it has {now}")
    })
}
