//! What time, clients and operators do, in the model: expiry, deadlines, cancel, retry, purge.

use tenure_core::Rejection;
use tenure_core::command::{Archived, CancelTask, LeaseRef, Reply, Rest, Retention, Swept};
use tenure_core::limits::DUE_ITEMS_MAX;
use tenure_record::id::TaskId;
use tenure_record::state::TaskState;
use tenure_record::time::{Clock, Now};

use crate::model::{Drawn, Model, Step, Task, check_size};

/// What is due, in the order in which it fires at one moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Task,
    Lease,
}

impl Model {
    /// By moment; at one moment deadlines first, because a lease that one cut short is no fault of its
    /// worker. A record has deadlines or leases, and ends where the other kind is next.
    pub(crate) fn fire_timers(&mut self, now: Now) -> Reply {
        let live = || self.tasks.iter().filter(|(_, task)| !task.state.is_terminal());
        let deadlines =
            live().filter_map(|(id, task)| Some((task.deadline_at?, Due::Task, *id, *id)));
        let leases = live().filter_map(|(id, task)| {
            Some((task.lease.as_ref()?.expires_at, Due::Lease, task.last_lease, *id))
        });
        let mut due: Vec<_> = deadlines.chain(leases).filter(|due| due.0 <= now.log.0).collect();
        due.sort_unstable();
        let (mut items, mut rest) = (0, Rest::Nothing);
        for (_, kind, _, id) in &due {
            let is_over = match kind {
                Due::Task => self.tasks[id].state.is_terminal(),
                Due::Lease => self.tasks[id].lease.is_none(),
            };
            if is_over {
                continue;
            }
            if items == DUE_ITEMS_MAX || *kind != due[0].1 {
                rest = Rest::More;
                break;
            }
            items += 1;
            match kind {
                Due::Task => self.pass_deadline(*id, now),
                Due::Lease => self.end_lease(*id, now),
            }
        }
        Reply::Swept(Swept { items, rest })
    }

    /// Whichever came first took the lease away, however late the sweep.
    fn end_lease(&mut self, id: u64, now: Now) {
        let task = &self.tasks[&id];
        let end = task.lease.as_ref().map(|lease| lease.expires_at);
        let attempt_deadline = task.lease.as_ref().and_then(|lease| lease.attempt_deadline);
        if task.revoke_at == end {
            self.expire_one(id, "revoked", now);
        } else if attempt_deadline == end {
            self.time_out_attempt(id, now);
        } else {
            self.expire_one(id, "ran_out", now);
        }
    }

    /// Leases that do not hold are passed over: what is over is the sweep's.
    pub(crate) fn drop_leases(
        &mut self,
        leases: &[LeaseRef],
        now: Now,
    ) -> Result<Reply, Rejection> {
        check_size(leases.len())?;
        let mut items = 0;
        for lease in leases {
            if let Ok(id) = self.holds(*lease, now) {
                self.expire_one(id, "disconnected", now);
                items += 1;
            }
        }
        Ok(Reply::Swept(Swept { items, rest: Rest::Nothing }))
    }

    fn expire_one(&mut self, id: u64, cause: &str, now: Now) {
        let task = self.task(id);
        let (worker, lease) = (task.lease.as_ref().map(|l| l.worker.clone()), task.last_lease);
        // A revocation is not the worker's fault.
        task.expiries += u16::from(cause != "revoked");
        let to = if task.cancel_requested {
            TaskState::Canceled
        } else if task.is_spent() {
            TaskState::Dead
        } else {
            TaskState::Waiting
        };
        task.end_lease(to, now);
        let from = Some(TaskState::Leased);
        let code = Some(cause.to_owned());
        let step = self.step("LeaseExpired", id);
        self.tell(id, Step { from, worker, lease: Some(lease), code, ..step });
        self.leave_copy(id, now);
    }

    /// An attempt that takes too long is a failure of the task, and the worker is not asked.
    fn time_out_attempt(&mut self, id: u64, now: Now) {
        let task = self.task(id);
        let (worker, lease) = (task.lease.as_ref().map(|l| l.worker.clone()), task.last_lease);
        let (code, reason) = ("ATTEMPT_TIMEOUT", "the attempt did not end in its time");
        task.failures += 1;
        task.keep_error(code, reason);
        let to = if task.cancel_requested {
            TaskState::Canceled
        } else if task.is_spent() {
            TaskState::Failed
        } else {
            TaskState::Waiting
        };
        let (least, most) = self.wait_band(id);
        self.task(id).end_lease(to, now);
        let (from, code, reason) = (Some(TaskState::Leased), Some(code), Some(reason));
        let (code, reason) = (code.map(str::to_owned), reason.map(str::to_owned));
        let step = self.step("TaskFailed", id);
        self.tell(id, Step { from, worker, lease: Some(lease), code, reason, ..step });
        self.leave_copy(id, now);
        if to == TaskState::Waiting {
            let (from, to) = (now.log.0 + least, now.log.0 + most);
            self.task(id).not_before = from;
            self.drawn.push(Drawn { task: id, from, to });
        }
    }

    fn pass_deadline(&mut self, id: u64, now: Now) {
        let task = self.task(id);
        let from = Some(task.state);
        let worker = task.lease.as_ref().map(|lease| lease.worker.clone());
        let lease = task.lease.as_ref().map(|_| task.last_lease);
        // A client that asked it to stop hears that it did.
        let asked_to_stop = task.cancel_requested;
        task.end_lease(if asked_to_stop { TaskState::Canceled } else { TaskState::Failed }, now);
        task.keep_error("TIMEOUT", "the task did not end before its deadline");
        let code = Some("TIMEOUT".to_owned());
        let step = self.step("TimerFired", id);
        self.tell(id, Step { from, worker, lease, code, ..step });
        self.leave_copy(id, now);
    }

    pub(crate) fn cancel(&mut self, command: CancelTask, now: Now) -> Result<Reply, Rejection> {
        let CancelTask { task_id, grace_ms } = command;
        let id = task_id.0;
        let task = self.tasks.get_mut(&id).ok_or(Rejection::TaskNotFound { task_id })?;
        let from = Some(task.state);
        let (mut worker, mut lease) = (None, None);
        match task.state {
            TaskState::Waiting => {
                task.cancel_requested = true;
                task.end_lease(TaskState::Canceled, now);
            }
            TaskState::Leased => {
                let held = task.lease.as_mut().expect("it is LEASED");
                worker = Some(held.worker.clone());
                lease = Some(task.last_lease);
                let revoke_at = grace_ms.map(|ms| now.log.0 + ms.get());
                let nearer = revoke_at.into_iter().chain(task.revoke_at).min();
                if revoke_at == Some(now.log.0) {
                    // No grace at all.
                    task.cancel_requested = true;
                    task.end_lease(TaskState::Canceled, now);
                } else if task.cancel_requested && nearer == task.revoke_at {
                    return Ok(Reply::Task(task_id, task.state));
                } else {
                    task.cancel_requested = true;
                    task.revoke_at = nearer;
                    held.expires_at = held.expires_at.min(nearer.unwrap_or(u64::MAX));
                }
            }
            // The same wish again.
            TaskState::Canceled => return Ok(Reply::Task(task_id, task.state)),
            TaskState::Completed | TaskState::Failed | TaskState::Dead => {
                return Err(Rejection::TaskTerminal { task_id, state: task.state });
            }
        }
        let step = self.step("CancelRequested", id);
        let to = step.to;
        self.tell(id, Step { from, worker, lease, ..step });
        Ok(Reply::Task(task_id, to))
    }

    pub(crate) fn retry(&mut self, task_id: TaskId, now: Now) -> Result<Reply, Rejection> {
        let id = task_id.0;
        let task = self.tasks.get_mut(&id).ok_or(Rejection::TaskNotFound { task_id })?;
        let state = task.state;
        match state {
            TaskState::Failed | TaskState::Dead | TaskState::Canceled => {}
            TaskState::Waiting | TaskState::Leased | TaskState::Completed => {
                return Err(Rejection::NotRetryable { task_id, state });
            }
        }
        task.state = TaskState::Waiting;
        (task.not_before, task.clock) = (now.log.0, Clock::Log);
        (task.finished_at, task.finished_wall_at) = (None, None);
        task.cancel_requested = false;
        (task.failures, task.expiries) = (0, 0);
        task.errors.clear();
        task.deadline_at = task.terms.total_timeout_ms.map(|ms| now.log.0 + ms.get());
        let from = Some(state);
        let step = self.step("TaskRetried", id);
        self.tell(id, Step { from, ..step });
        Ok(Reply::Task(task_id, TaskState::Waiting))
    }

    /// Forgets what is too old, then what is too much, the nearest to its end first.
    pub(crate) fn purge(&mut self, retention: Retention, now: Now) -> Reply {
        let mut finished: Vec<(u128, u64)> = self
            .tasks
            .iter()
            .filter_map(|(id, task)| {
                let own = self.settings(task.terms.queue.as_str()).retention_ms;
                let kept_ms = own.unwrap_or(retention.age_ms);
                Some((u128::from(task.finished_at?) + u128::from(kept_ms), *id))
            })
            .collect();
        finished.sort_unstable();
        let too_old = finished.iter().filter(|(until, _)| *until <= now.log.0.into()).count();
        let too_many = finished.len().saturating_sub(retention.tasks_max as usize);
        finished.truncate(too_old.max(too_many));
        let rest = cut(&mut finished);
        for (_, id) in &finished {
            self.tasks.remove(id);
            self.purged.push(*id);
            self.write_quietly();
        }
        Reply::Swept(Swept { items: finished.len(), rest })
    }

    /// Forgets those of the named that have ended, if nothing happened to them after the record.
    pub(crate) fn purge_archived(&mut self, archived: &Archived) -> Reply {
        let mut named: Vec<u64> = archived.tasks.iter().map(|id| id.0).collect();
        named.sort_unstable();
        named.dedup();
        let before = self.tasks.len();
        for id in named {
            let task = self.tasks.get(&id);
            if task.is_some_and(|it| it.finished_at.is_some() && it.last_lsn <= archived.as_of.0) {
                self.tasks.remove(&id);
                self.purged.push(id);
                self.write_quietly();
            }
        }
        Reply::Swept(Swept { items: before - self.tasks.len(), rest: Rest::Nothing })
    }

    /// Moments at which something is due by log time, the nearest first.
    pub(crate) fn moments(&self) -> Vec<u64> {
        let mut moments: Vec<u64> = self
            .tasks
            .values()
            .flat_map(|task| {
                let end = task.lease.as_ref().map(|lease| lease.expires_at);
                let deadline = task.deadline_at.filter(|_| !task.state.is_terminal());
                let own = self.settings(task.terms.queue.as_str()).retention_ms;
                let purge = task.finished_at.zip(own).map(|(at, ms)| at + ms);
                let start = self.start(task, Clock::Log);
                [end, deadline, task.revoke_at, purge, start]
            })
            .flatten()
            .collect();
        moments.sort_unstable();
        moments
    }

    /// Appointments by the wall clock, the nearest first.
    pub(crate) fn appointments(&self) -> Vec<u64> {
        let tasks = self.tasks.values();
        let mut moments: Vec<u64> =
            tasks.filter_map(|task| self.start(task, Clock::Wall)).collect();
        moments.sort_unstable();
        moments
    }

    /// When a task that has to wait may run, if that is on this clock.
    pub(crate) fn start(&self, task: &Task, clock: Clock) -> Option<u64> {
        let waits = task.state == TaskState::Waiting && task.clock == clock;
        let is_due = task.not_before <= self.clocks.on(clock).0;
        (waits && !is_due).then_some(task.not_before)
    }
}

/// One record deals with so many; whether there are more.
fn cut<T>(due: &mut Vec<T>) -> Rest {
    let rest = if due.len() > DUE_ITEMS_MAX { Rest::More } else { Rest::Nothing };
    due.truncate(DUE_ITEMS_MAX);
    rest
}
