//! What an observer is told: the transitions in a record, worked out from the record alone.

use crate::event::{
    About, CancelRequested, Created, DeadlinePassed, Event, Expired, Granted, LeaseReleased,
    Record, Report, TaskCancelled, TaskCompleted, TaskFailed, TaskRetried,
};
use crate::id::{LeaseId, Lsn, TaskId};
use crate::name::Text;
use crate::state::StateName;
use crate::terms::Priority;

/// One task's step, as it is streamed, logged and kept in its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition<'a> {
    /// Its place among the transitions of its record: with the LSN, its name.
    pub index: usize,
    /// What happened.
    pub event: &'static str,
    /// To which task.
    pub task_id: TaskId,
    /// In which queue.
    pub queue: &'a str,
    /// The state before; none for a new task.
    pub from: Option<StateName>,
    /// The state after. The same as before for a stale report, and for a cancel that waits for
    /// the worker.
    pub to: StateName,
    /// Whose doing it was, or whose lease it ended.
    pub worker: Option<&'a str>,
    /// The lease it is about.
    pub lease_id: Option<LeaseId>,
    /// The task's grants so far.
    pub attempt: u32,
    /// How urgent the task is.
    pub priority: Priority,
    /// Why, for programs.
    pub code: Option<&'a str>,
    /// Why, for people.
    pub reason: Option<&'a str>,
    /// The record before this one in the task's history.
    pub previous: Lsn,
}

/// The transitions of a record, in the order in which they happened.
#[must_use]
pub fn transitions<'a>(record: &'a Record<'_>) -> Vec<Transition<'a>> {
    let mut told: Vec<_> = match &record.event {
        Event::TaskCreated(event) => event.tasks.iter().map(created).collect(),
        Event::LeaseGranted(event) => {
            event.grants.iter().map(|item| granted(item, &event.worker)).collect()
        }
        Event::LeaseExpired(event) => event.leases.iter().map(expired).collect(),
        Event::LeaseReleased(item) => vec![released(item)],
        Event::TaskCompleted(item) => vec![completed(item)],
        Event::TaskFailed(item) => vec![failed(item)],
        Event::TaskCancelled(item) => vec![reported_late(item)],
        Event::ReportsApplied(event) => event.reports.iter().filter_map(report).collect(),
        Event::CancelRequested(item) => vec![cancel_requested(item)],
        Event::TaskRetried(item) => vec![retried(item)],
        Event::TimerFired(event) => event.deadlines.iter().map(deadline_passed).collect(),
        // A heartbeat, a setting, a purge and a jump of the counters change no task's state.
        Event::LeaseExtended(_)
        | Event::QueueConfigured(_)
        | Event::TasksPurged(_)
        | Event::IdsSkipped(_) => Vec::new(),
    };
    for (index, transition) in told.iter_mut().enumerate() {
        transition.index = index;
    }
    told
}

fn report<'a>(report: &'a Report<'_>) -> Option<Transition<'a>> {
    match report {
        Report::LeaseExtended(_) => None,
        Report::TaskCompleted(item) => Some(completed(item)),
        Report::TaskFailed(item) => Some(failed(item)),
        Report::LeaseReleased(item) => Some(released(item)),
        Report::TaskCancelled(item) => Some(reported_late(item)),
    }
}

fn step<'a>(
    event: &'static str,
    about: &'a About<'_>,
    from: StateName,
    to: StateName,
) -> Transition<'a> {
    Transition {
        index: 0,
        event,
        task_id: about.task_id,
        queue: about.queue.as_str(),
        from: Some(from),
        to,
        worker: None,
        lease_id: None,
        attempt: about.attempt,
        priority: about.priority,
        code: None,
        reason: None,
        previous: about.previous,
    }
}

impl<'a> Transition<'a> {
    fn under(self, lease_id: LeaseId, worker: &'a Text<'_>) -> Self {
        let worker = Some(worker.as_str()).filter(|name| !name.is_empty());
        let lease_id = Some(lease_id).filter(|lease| lease.is_some());
        Self { worker, lease_id, ..self }
    }
}

fn created<'a>(item: &'a Created<'_>) -> Transition<'a> {
    Transition {
        index: 0,
        event: "TaskCreated",
        task_id: item.task_id,
        queue: item.queue.as_str(),
        from: None,
        to: StateName::Waiting,
        worker: None,
        lease_id: None,
        attempt: 0,
        priority: item.priority,
        code: None,
        reason: None,
        previous: Lsn::NONE,
    }
}

fn granted<'a>(item: &'a Granted<'_>, worker: &'a Text<'_>) -> Transition<'a> {
    step("LeaseGranted", &item.about, StateName::Waiting, StateName::Leased)
        .under(item.lease_id, worker)
}

fn expired<'a>(item: &'a Expired<'_>) -> Transition<'a> {
    let step = step("LeaseExpired", &item.about, StateName::Leased, item.to);
    Transition { code: Some(item.cause.as_str()), ..step.under(item.lease_id, &item.worker) }
}

fn released<'a>(item: &'a LeaseReleased<'_>) -> Transition<'a> {
    step("LeaseReleased", &item.about, StateName::Leased, item.to)
        .under(item.lease_id, &item.worker)
}

fn completed<'a>(item: &'a TaskCompleted<'_>) -> Transition<'a> {
    step("TaskCompleted", &item.about, StateName::Leased, StateName::Completed)
        .under(item.lease_id, &item.worker)
}

fn failed<'a>(item: &'a TaskFailed<'_>) -> Transition<'a> {
    let step = step("TaskFailed", &item.about, StateName::Leased, item.to);
    let (code, reason) = (Some(item.code.as_str()), Some(item.reason.as_str()));
    Transition { code, reason, ..step.under(item.lease_id, &item.worker) }
}

fn reported_late<'a>(item: &'a TaskCancelled<'_>) -> Transition<'a> {
    let step = step("TaskCancelled", &item.about, item.state, item.state);
    let lease_id = Some(item.lease_id);
    Transition { lease_id, code: Some("lease_lost"), ..step }
}

fn cancel_requested<'a>(item: &'a CancelRequested<'_>) -> Transition<'a> {
    step("CancelRequested", &item.about, item.from, item.to).under(item.lease_id, &item.worker)
}

fn retried<'a>(item: &'a TaskRetried<'_>) -> Transition<'a> {
    step("TaskRetried", &item.about, item.from, StateName::Waiting)
}

fn deadline_passed<'a>(item: &'a DeadlinePassed<'_>) -> Transition<'a> {
    let step = step("TimerFired", &item.about, item.from, StateName::Canceled);
    let code = Some(crate::apply::task::TIMEOUT_CODE);
    Transition { code, ..step.under(item.lease_id, &item.worker) }
}
