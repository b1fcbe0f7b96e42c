//! A record taken apart: what it says about each task, in the order in which it says so.

use tenure_core::event::{
    About, Created, Event, ExpiryCause, Granted, LeaseExtended, Record, Report,
};
use tenure_core::id::{LeaseId, TaskId};
use tenure_core::state::StateName;
use tenure_core::time::Timestamp;

/// What a record says about one task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item<'r> {
    Created(&'r Created<'r>),
    Granted {
        worker: &'r str,
        item: &'r Granted<'r>,
    },
    Extended(&'r LeaseExtended),
    /// A lease is over, and its task goes on to that state.
    Ended {
        about: &'r About<'r>,
        lease_id: LeaseId,
        to: StateName,
        by: End<'r>,
    },
    /// A report under a lease that was over; nothing changes.
    Stale {
        about: &'r About<'r>,
        lease_id: LeaseId,
        state: StateName,
    },
    /// The worker is asked to stop, and its lease may end sooner.
    AskedToStop {
        about: &'r About<'r>,
        lease_id: LeaseId,
        expires_at: Timestamp,
    },
    /// A task that waited is canceled.
    Canceled {
        about: &'r About<'r>,
    },
    Retried {
        about: &'r About<'r>,
    },
    Purged(TaskId),
    Configured,
}

/// How a lease ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End<'r> {
    Expired(ExpiryCause),
    Released,
    Completed { output: &'r [u8] },
    Failed,
    Canceled,
    Deadline(Timestamp),
}

/// Takes a record apart.
pub(crate) fn items<'r>(record: &'r Record<'r>) -> Vec<Item<'r>> {
    match &record.event {
        Event::TaskCreated(event) => event.tasks.iter().map(Item::Created).collect(),
        Event::LeaseGranted(event) => {
            let worker = event.worker.as_str();
            event.grants.iter().map(|item| Item::Granted { worker, item }).collect()
        }
        Event::LeaseExtended(item) => vec![Item::Extended(item)],
        Event::LeaseExpired(event) => {
            let expired = event.leases.iter();
            expired.map(|x| ended(&x.about, x.lease_id, x.to, End::Expired(x.cause))).collect()
        }
        Event::LeaseReleased(x) => vec![ended(&x.about, x.lease_id, x.to, End::Released)],
        Event::TaskCompleted(x) => vec![ended(
            &x.about,
            x.lease_id,
            StateName::Completed,
            End::Completed { output: x.output },
        )],
        Event::TaskFailed(x) => vec![ended(&x.about, x.lease_id, x.to, End::Failed)],
        Event::TaskCancelled(x) => {
            vec![Item::Stale { about: &x.about, lease_id: x.lease_id, state: x.state }]
        }
        Event::ReportsApplied(event) => event.reports.iter().map(report).collect(),
        Event::CancelRequested(x) => vec![match (x.from, x.to) {
            (_, StateName::Leased) => Item::AskedToStop {
                about: &x.about,
                lease_id: x.lease_id,
                expires_at: x.expires_at,
            },
            (StateName::Leased, to) => ended(&x.about, x.lease_id, to, End::Canceled),
            _ => Item::Canceled { about: &x.about },
        }],
        Event::TaskRetried(x) => vec![Item::Retried { about: &x.about }],
        Event::TimerFired(event) => {
            let passed = event.deadlines.iter().map(|x| match x.from {
                StateName::Leased => {
                    let by = End::Deadline(x.deadline_at);
                    ended(&x.about, x.lease_id, StateName::Canceled, by)
                }
                StateName::Waiting
                | StateName::Completed
                | StateName::Failed
                | StateName::Dead
                | StateName::Canceled => Item::Canceled { about: &x.about },
            });
            passed.collect()
        }
        Event::QueueConfigured(_) => vec![Item::Configured],
        // The book is about tasks; nothing here starts a run yet.
        Event::IdsSkipped(_)
        | Event::WorkflowRegistered(_)
        | Event::RunStarted(_)
        | Event::SignalReceived(_)
        | Event::RunCancelRequested(_)
        | Event::DispatchContinued(_) => Vec::new(),
        Event::TasksPurged(event) => event.tasks.iter().map(|id| Item::Purged(*id)).collect(),
    }
}

fn report<'r>(report: &'r Report<'r>) -> Item<'r> {
    match report {
        Report::LeaseExtended(item) => Item::Extended(item),
        Report::TaskCompleted(x) => {
            let by = End::Completed { output: x.output };
            ended(&x.about, x.lease_id, StateName::Completed, by)
        }
        Report::TaskFailed(x) => ended(&x.about, x.lease_id, x.to, End::Failed),
        Report::LeaseReleased(x) => ended(&x.about, x.lease_id, x.to, End::Released),
        Report::TaskCancelled(x) => {
            Item::Stale { about: &x.about, lease_id: x.lease_id, state: x.state }
        }
    }
}

fn ended<'r>(about: &'r About<'r>, lease_id: LeaseId, to: StateName, by: End<'r>) -> Item<'r> {
    Item::Ended { about, lease_id, to, by }
}
