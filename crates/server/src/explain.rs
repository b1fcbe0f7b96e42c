//! Why a task is not done yet, in words. Both doors say the same.

use tenure_coordinator::{Explained, TaskInfo};
use tenure_core::limits::PLACE_SCAN_MAX;
use tenure_core::state::{Place, StateName};
use tenure_core::time::Timestamp;

use crate::wire::shown::moment;

/// Why a task is not done yet.
#[derive(Debug)]
pub(crate) struct Explanation {
    pub(crate) state: StateName,
    /// 1 for the next in line.
    pub(crate) position: Option<u64>,
    pub(crate) reasons: Vec<Reason>,
    pub(crate) earliest_start_at: Option<Timestamp>,
}

/// One thing that it waits for.
#[derive(Debug)]
pub(crate) struct Reason {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) until: Option<Timestamp>,
    pub(crate) worker: Option<String>,
}

impl Reason {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), until: None, worker: None }
    }
}

impl Explanation {
    pub(crate) fn of(explained: &Explained) -> Self {
        let task = &explained.task;
        let position = match explained.place {
            Place::Behind(others) => Some(others as u64 + 1),
            Place::Nowhere | Place::FarBehind => None,
        };
        let mut reasons = Vec::new();
        let mut earliest_start_at = None;
        match task.state {
            StateName::Waiting => {
                if explained.place == Place::Nowhere {
                    let until = task.not_before.filter(|at| *at != Timestamp::ZERO);
                    earliest_start_at = until.filter(|_| !explained.is_paused);
                    reasons.push(too_early(task, until));
                }
                reasons.extend(in_its_way(explained));
            }
            StateName::Leased => reasons.push(leased(task)),
            StateName::Completed | StateName::Failed | StateName::Dead | StateName::Canceled => {
                reasons.push(ended(task));
            }
        }
        if task.cancel_requested && !task.state.is_terminal() {
            let message = "somebody wants it to stop, and its worker is told so";
            reasons.push(Reason::new("cancel_requested", message));
        }
        Self { state: task.state, position, reasons, earliest_start_at }
    }
}

fn too_early(task: &TaskInfo, until: Option<Timestamp>) -> Reason {
    let when = until.map_or_else(|| "in a moment".to_owned(), |at| format!("at {}", moment(at)));
    let (code, why) = match task.failures {
        0 => ("delayed", "it is delayed".to_owned()),
        1 => ("backing_off", "it failed once".to_owned()),
        times => ("backing_off", format!("it failed {times} times")),
    };
    Reason { until, ..Reason::new(code, format!("{why} and may start {when}")) }
}

/// What is in the way of a task that waits.
fn in_its_way(explained: &Explained) -> Vec<Reason> {
    let queue = &explained.task.queue;
    let mut reasons = Vec::new();
    if explained.is_paused {
        let message = format!("the queue {queue} is paused: resume it, and leases are given again");
        reasons.push(Reason::new("queue_paused", message));
    }
    let ahead = match explained.place {
        Place::Nowhere => None,
        Place::Behind(0) => Some(format!("it is the next in line of the queue {queue}")),
        Place::Behind(1) => Some(format!("one task of the queue {queue} goes before it")),
        Place::Behind(others) => Some(format!("{others} tasks of the queue {queue} go before it")),
        Place::FarBehind => {
            Some(format!("more than {PLACE_SCAN_MAX} tasks of the queue {queue} go before it"))
        }
    };
    reasons.extend(ahead.map(|message| Reason::new("in_line", message)));
    let workers = match explained.workers {
        0 => Reason::new(
            "no_workers",
            format!(
                "no connected worker has said that it takes from the queue {queue}: start one; \
                 those that only ask for leases are not counted"
            ),
        ),
        1 => Reason::new("workers", format!("one connected worker takes from the queue {queue}")),
        many => {
            Reason::new("workers", format!("{many} connected workers take from the queue {queue}"))
        }
    };
    reasons.push(workers);
    reasons
}

fn leased(task: &TaskInfo) -> Reason {
    let Some(lease) = &task.lease else {
        return Reason::new("leased", "a worker holds it");
    };
    let until = moment(lease.expires_at);
    let message = format!("{} holds it until {until}, and longer with heartbeats", lease.worker);
    let worker = Some(lease.worker.to_string());
    Reason { until: Some(lease.expires_at), worker, ..Reason::new("leased", message) }
}

fn ended(task: &TaskInfo) -> Reason {
    let error = task.errors.last().map(|error| &*error.message);
    let message = match (task.state, error) {
        (StateName::Completed, _) => "it is done".to_owned(),
        (state, Some(error)) => format!("it is {}: {error}; it can be retried", state.as_str()),
        (state, None) => format!("it is {}; it can be retried", state.as_str()),
    };
    Reason::new("ended", message)
}
