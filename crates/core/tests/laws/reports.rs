//! What a worker's word does, in the model: heartbeat, complete, fail, release, one or many.

use tenure_core::Rejection;
use tenure_core::command::{
    Accepted, CompleteTask, Extended, FailTask, Heartbeat, LeaseRef, ReleaseTask, Reply,
    ReportTasks, Reported, Rest, Retry,
};
use tenure_record::id::TaskId;
use tenure_record::name::WorkerName;
use tenure_record::state::TaskState;
use tenure_record::terms::BackoffKind;
use tenure_record::time::{Now, Timestamp};

use crate::model::{Drawn, Model, Step, check_size};

/// How a worker ends its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Complete,
    Fail,
    Release,
}

/// What a worker's word is worth.
enum Standing {
    /// Its lease holds.
    Holds,
    /// It said so before, and was heard.
    SaidBefore(TaskState),
}

impl Model {
    /// A report that came alone: if it leaves a trace, its refusal is an answer.
    pub(crate) fn alone(
        &mut self,
        lease: LeaseRef,
        verb: Verb,
        report: impl FnOnce(&mut Self) -> Result<TaskState, Rejection>,
    ) -> Result<Reply, Rejection> {
        match report(self) {
            Ok(state) => Ok(Reply::Task(lease.task_id, state)),
            Err(refusal) if self.has_written() => {
                assert_ne!(verb, Verb::Release, "only a lost result is worth a record");
                Ok(Reply::LeaseLost(refusal))
            }
            Err(refusal) => Err(refusal),
        }
    }

    pub(crate) fn reports(&mut self, reports: &ReportTasks, now: Now) -> Result<Reply, Rejection> {
        let ReportTasks { heartbeats, completes, fails, releases, .. } = reports;
        check_size(heartbeats.len() + completes.len() + fails.len() + releases.len())?;
        let mut answer = Vec::new();
        let mut note = |task_id: TaskId, result| answer.push(Reported { task_id, result });
        for report in heartbeats {
            let extended = self.heartbeat(report, now);
            note(
                report.lease.task_id,
                extended.map(|extended| Accepted {
                    state: TaskState::Leased,
                    extended: Some(extended),
                }),
            );
        }
        for report in completes {
            note(report.lease.task_id, self.complete(report, now).map(Accepted::now));
        }
        for report in fails {
            note(report.lease.task_id, self.fail(report, now).map(Accepted::now));
        }
        for report in releases {
            note(report.lease.task_id, self.release(report, now).map(Accepted::now));
        }
        Ok(Reply::Reported { reports: answer, rest: Rest::Nothing })
    }

    pub(crate) fn heartbeat(
        &mut self,
        report: &Heartbeat,
        now: Now,
    ) -> Result<Extended, Rejection> {
        let id = self.holds(report.lease, now)?;
        let task = self.task(id);
        let held = task.lease.as_mut().expect("it holds");
        let bounds = [task.deadline_at, task.revoke_at, held.attempt_deadline];
        let bound = bounds.into_iter().flatten().min().unwrap_or(u64::MAX);
        let span = report.lease_ms.map_or(held.lease_ms, |ms| ms.get().into());
        let end = (now.log.0 + span).min(bound);
        let moved = end != held.expires_at;
        held.expires_at = end;
        let expires_at = Timestamp(held.expires_at);
        let cancel_requested = task.cancel_requested;
        let before = task.checkpoint.clone();
        task.keep_checkpoint(report.checkpoint.as_ref());
        if moved || task.checkpoint != before {
            self.write_quietly();
        }
        let wall_expires_at = Timestamp(expires_at.0 - now.log.0 + now.wall.0);
        Ok(Extended { expires_at, wall_expires_at, cancel_requested })
    }

    pub(crate) fn complete(
        &mut self,
        report: &CompleteTask,
        now: Now,
    ) -> Result<TaskState, Rejection> {
        if let Standing::SaidBefore(state) =
            self.standing(report.lease, Verb::Complete, report.worker.as_ref(), now)?
        {
            return Ok(state);
        }
        let id = report.lease.task_id.0;
        let task = self.task(id);
        task.output = report.output.as_bytes().to_vec();
        task.checkpoint = None;
        task.errors.clear();
        Ok(self.end(id, Verb::Complete, TaskState::Completed, now, None))
    }

    pub(crate) fn fail(&mut self, report: &FailTask, now: Now) -> Result<TaskState, Rejection> {
        if let Standing::SaidBefore(state) =
            self.standing(report.lease, Verb::Fail, report.worker.as_ref(), now)?
        {
            return Ok(state);
        }
        let id = report.lease.task_id.0;
        let code = report.code.as_ref().map_or("TASK_FAILED", |code| code.as_str());
        let error = (code.to_owned(), report.reason.as_str().to_owned());
        let task = self.task(id);
        task.failures += 1;
        task.keep_error(&error.0, &error.1);
        task.keep_checkpoint(report.checkpoint.as_ref());
        let spent = task.is_spent();
        let to = if task.cancel_requested {
            TaskState::Canceled
        } else if spent || report.retry == Retry::Never {
            TaskState::Failed
        } else {
            TaskState::Waiting
        };
        let (least, most) = match report.retry {
            Retry::After(ms) => (ms.get(), ms.get()),
            Retry::WithBackoff | Retry::Never => self.wait_band(id),
        };
        self.end(id, Verb::Fail, to, now, Some(error));
        if to == TaskState::Waiting {
            let (from, to) = (now.log.0 + least, now.log.0 + most);
            self.task(id).not_before = from;
            self.drawn.push(Drawn { task: id, from, to });
        }
        Ok(to)
    }

    pub(crate) fn release(
        &mut self,
        report: &ReleaseTask,
        now: Now,
    ) -> Result<TaskState, Rejection> {
        let standing = self.standing(report.lease, Verb::Release, None, now)?;
        if let Standing::SaidBefore(state) = standing {
            return Ok(state);
        }
        let id = report.lease.task_id.0;
        let task = self.task(id);
        task.keep_checkpoint(report.checkpoint.as_ref());
        let to = if task.cancel_requested { TaskState::Canceled } else { TaskState::Waiting };
        if to == TaskState::Waiting {
            // An observer is told the new priority.
            task.priority = report.priority.unwrap_or(task.priority);
        }
        self.end(id, Verb::Release, to, now, None);
        if to == TaskState::Waiting && report.delay_ms.get() > 0 {
            self.task(id).not_before = now.log.0 + report.delay_ms.get();
        }
        Ok(to)
    }

    fn end(
        &mut self,
        id: u64,
        verb: Verb,
        to: TaskState,
        now: Now,
        error: Option<(String, String)>,
    ) -> TaskState {
        let task = self.task(id);
        let worker = task.lease.as_ref().map(|lease| lease.worker.clone());
        let lease = Some(task.last_lease);
        task.end_lease(to, now);
        task.ended_by = Some(verb);
        let event = match verb {
            Verb::Complete => "TaskCompleted",
            Verb::Fail => "TaskFailed",
            Verb::Release => "LeaseReleased",
        };
        let (code, reason) = error.unzip();
        let from = Some(TaskState::Leased);
        let step = self.step(event, id);
        self.tell(id, Step { from, worker, lease, code, reason, ..step });
        self.leave_copy(id, now);
        to
    }

    /// Judges a word that ends a lease. A result that comes too late is put on record, once.
    fn standing(
        &mut self,
        lease: LeaseRef,
        verb: Verb,
        worker: Option<&WorkerName>,
        now: Now,
    ) -> Result<Standing, Rejection> {
        let lost = match self.holds(lease, now) {
            Ok(_) => return Ok(Standing::Holds),
            Err(lost @ Rejection::LeaseLost { .. }) => lost,
            Err(refusal) => return Err(refusal),
        };
        let (id, lease) = (lease.task_id.0, lease.lease_id.0);
        let task = self.task(id);
        if task.last_lease == lease && task.ended_by == Some(verb) {
            return Ok(Standing::SaidBefore(task.state));
        }
        let was_given = lease <= task.last_lease;
        if verb != Verb::Release && was_given && lease > task.stale_lease {
            task.stale_lease = lease;
            let from = Some(task.state);
            let code = Some("lease_lost".to_owned());
            let step = self.step("StaleReportRejected", id);
            let worker = worker.map(|name| name.as_str().to_owned());
            self.tell(id, Step { from, worker, lease: Some(lease), code, ..step });
        }
        Err(lost)
    }

    /// Late is lost, whether a sweep has noticed or not.
    pub(crate) fn holds(&self, lease: LeaseRef, now: Now) -> Result<u64, Rejection> {
        let LeaseRef { task_id, lease_id } = lease;
        let task = self.tasks.get(&task_id.0).ok_or(Rejection::TaskNotFound { task_id })?;
        match &task.lease {
            Some(held) if task.last_lease == lease_id.0 && now.log.0 < held.expires_at => {
                Ok(task_id.0)
            }
            _ => Err(Rejection::LeaseLost { task_id, lease_id }),
        }
    }

    /// The shortest and the longest wait that the task's backoff allows after its last failure.
    pub(crate) fn wait_band(&self, id: u64) -> (u64, u64) {
        let task = &self.tasks[&id];
        let backoff = task.backoff();
        let failures = u32::from(task.failures);
        let wait = match backoff.kind {
            Some(BackoffKind::Fixed) => backoff.initial_ms,
            Some(BackoffKind::Linear) => backoff.initial_ms * u64::from(failures),
            Some(BackoffKind::Exponential) | None => backoff.initial_ms * 2_u64.pow(failures - 1),
        };
        let wait = wait.min(backoff.max_ms);
        let stray = wait * u64::from(backoff.jitter_permille) / 1_000;
        (wait - stray, (wait + stray).min(backoff.max_ms))
    }
}
