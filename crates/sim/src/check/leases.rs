//! At most one valid lease per task. Lease ids only grow. No lease is given before the earlier one
//! ended, and one that is over changes nothing.

use tenure_coordinator::Grant;
use tenure_core::Rejection;
use tenure_core::command::{Extended, LeaseRef, ReportTasks, Reported};
use tenure_record::event::{ExpiryCause, Record};
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::state::TaskState;
use tenure_record::time::Timestamp;

use super::endings::EndingLaw;
use super::{LawResult, hold};
use crate::item::{End, Item};
use crate::ledger::TaskLedger;
use crate::model::Model;
use crate::request::{AnyRequest, AnyResponse};

const GROW: &str = "lease ids only grow";
const ONE: &str = "at most one valid lease per task";
const STALE: &str = "a lease that is over changes nothing";
const TOLD: &str = "a grant that is told is in the log";
const LOST: &str = "a lease that holds is not called lost";

pub(super) fn item(
    ledger: &TaskLedger,
    endings: &EndingLaw,
    record: &Record<'_>,
    item: Item<'_>,
) -> LawResult {
    let lsn = record.lsn;
    match item {
        Item::Granted { item, .. } => {
            let (task_id, lease_id) = (item.about.task_id, item.lease_id);
            let last = ledger.leases.keys().next_back().copied().unwrap_or_default();
            hold(GROW, lease_id > last, || format!("record {lsn}: {lease_id} after {last}"))?;
            let open = ledger.open_lease(task_id).map(|(open, _)| open);
            hold(ONE, open.is_none(), || {
                format!("record {lsn}: task {task_id} is given by {lease_id}, held by {open:?}")
            })?;
            let state = ledger.task(task_id).map(|task| task.state);
            hold(ONE, state == Some(TaskState::Waiting), || {
                format!("record {lsn}: task {task_id} is given and is {state:?}")
            })?;
            hold(ONE, item.expires_at > record.at, || {
                format!("record {lsn}: lease {lease_id} is over before it begins")
            })
        }
        Item::Extended(item) => holds(ledger, record, item.task_id, item.lease_id),
        Item::AskedToStop { about, lease_id, .. } => {
            is_open(ledger, record, about.task_id, lease_id)
        }
        Item::Ended { about, lease_id, by, .. } => {
            is_open(ledger, record, about.task_id, lease_id)?;
            ended(ledger, record, about.task_id, lease_id, by)
        }
        Item::Stale { about, lease_id, state } => {
            let now = ledger.task(about.task_id).map(|task| task.state);
            hold(STALE, now == Some(state), || {
                format!("record {lsn}: task {} was {now:?} and is {state}", about.task_id)
            })?;
            let open = ledger.open_lease(about.task_id);
            let is_over =
                open.is_none_or(|(id, lease)| id != lease_id || lease.expires_at() <= record.at);
            let is_late = is_over || endings.is_task_ending(ledger, about.task_id);
            hold(LOST, is_late, || format!("record {lsn}: lease {lease_id} holds"))
        }
        Item::EndedWaiting { about, .. } => {
            let state = ledger.task(about.task_id).map(|task| task.state);
            hold(ONE, state == Some(TaskState::Waiting), || {
                format!("record {lsn}: task {} ends as waiting, and is {state:?}", about.task_id)
            })
        }
        Item::Retried { about } => {
            let state = ledger.task(about.task_id).map(|task| task.state);
            let can =
                matches!(state, Some(TaskState::Failed | TaskState::Dead | TaskState::Canceled));
            hold(ONE, can, || {
                format!("record {lsn}: task {} is retried and is {state:?}", about.task_id)
            })
        }
        Item::Purged(id) => {
            let ended = ledger.task(id).is_some_and(|task| task.state.is_terminal());
            hold(ONE, ended, || format!("record {lsn}: task {id} is purged and has not ended"))
        }
        Item::Stopped(stopped) => match stopped.from == TaskState::Leased {
            true => is_open(ledger, record, stopped.task_id, stopped.lease_id),
            false => {
                let state = ledger.task(stopped.task_id).map(|task| task.state);
                hold(ONE, state == Some(stopped.from), || {
                    format!("record {lsn}: task {} ends as {state:?}", stopped.task_id)
                })
            }
        },
        Item::Created(_)
        | Item::Copied { .. }
        | Item::Checkpoint(..)
        | Item::Registered { .. }
        | Item::Began(_)
        | Item::Decided(..)
        | Item::Finished(..)
        | Item::PurgedRun(_)
        | Item::Configured => Ok(()),
    }
}

/// How a lease may end, and when.
fn ended(
    ledger: &TaskLedger,
    record: &Record<'_>,
    task_id: TaskId,
    lease_id: LeaseId,
    by: End<'_>,
) -> LawResult {
    let expires_at =
        ledger.leases.get(&lease_id).map(|lease| lease.expires_at()).unwrap_or_default();
    let lsn = record.lsn;
    match by {
        End::Expired(ExpiryCause::RanOut | ExpiryCause::Revoked | ExpiryCause::AttemptTimedOut) => {
            hold(ONE, expires_at <= record.at, || {
                format!(
                    "record {lsn}: lease {lease_id} expires at {:?}, promised until {expires_at:?}",
                    record.at
                )
            })
        }
        End::Deadline(deadline_at) => hold(ONE, deadline_at <= record.at, || {
            format!("record {lsn}: the deadline of task {task_id} passes early")
        }),
        End::Completed { .. } | End::Failed | End::Released => {
            holds(ledger, record, task_id, lease_id)
        }
        End::Expired(ExpiryCause::Disconnected) | End::Canceled => Ok(()),
    }
}

/// The lease is the task's, and is not over.
fn holds(
    ledger: &TaskLedger,
    record: &Record<'_>,
    task_id: TaskId,
    lease_id: LeaseId,
) -> LawResult {
    is_open(ledger, record, task_id, lease_id)?;
    let lease = ledger.leases.get(&lease_id);
    hold(STALE, lease.is_some_and(|lease| record.at < lease.expires_at()), || {
        format!(
            "record {}: lease {lease_id} of task {task_id} ran out before {:?}",
            record.lsn, record.at
        )
    })
}

fn is_open(
    ledger: &TaskLedger,
    record: &Record<'_>,
    task_id: TaskId,
    lease_id: LeaseId,
) -> LawResult {
    let open = ledger.open_lease(task_id).map(|(open, _)| open);
    hold(STALE, open == Some(lease_id), || {
        format!("record {}: lease {lease_id} acts on task {task_id}, held by {open:?}", record.lsn)
    })
}

pub(super) fn told(
    ledger: &TaskLedger,
    model: &mut Model,
    ask: &AnyRequest,
    answer: &AnyResponse,
) -> LawResult {
    if let (AnyRequest::Lease(sent), AnyResponse::Lease(grants)) = (ask, answer) {
        return granted(ledger, model, sent.request.worker.as_str(), grants);
    }
    if let (AnyRequest::Heartbeat(sent), AnyResponse::Heartbeat(extended)) = (ask, answer) {
        return extends(ledger, sent.lease, *extended);
    }
    if let (AnyRequest::ReportTasks(sent), AnyResponse::ReportTasks(reports)) = (ask, answer) {
        return reported(ledger, sent, reports);
    }
    Ok(())
}

fn granted(ledger: &TaskLedger, model: &mut Model, worker: &str, grants: &[Grant]) -> LawResult {
    for grant in grants {
        let lease = ledger.leases.get(&grant.lease_id);
        let task = ledger.tasks.get(&grant.task_id);
        let is_so = lease.is_some_and(|lease| {
            (lease.task_id, lease.attempt) == (grant.task_id, grant.attempt)
                && lease.worker == worker
                && lease.ends.contains(&grant.expires_at)
                && lease.checkpoint == *grant.checkpoint.as_deref().unwrap_or_default()
        }) && task.is_some_and(|task| {
            task.payload == *grant.payload.read().expect("the simulation has no shelf")
        });
        hold(TOLD, is_so, || format!("{grant:?} for {worker}; the log says {lease:?}"))?;
        hold(ONE, model.granted.insert(grant.lease_id), || {
            format!("lease {} was given twice", grant.lease_id)
        })?;
    }
    Ok(())
}

fn reported(ledger: &TaskLedger, sent: &ReportTasks, reports: &[Reported]) -> LawResult {
    for (sent, report) in sent.heartbeats.iter().zip(reports) {
        if let Ok(accepted) = &report.result
            && let Some(extended) = accepted.extended
        {
            extends(ledger, sent.lease, extended)?;
        }
    }
    Ok(())
}

fn extends(ledger: &TaskLedger, lease: LeaseRef, extended: Extended) -> LawResult {
    let known = ledger.leases.get(&lease.lease_id);
    let is_so = known.is_some_and(|known| {
        known.task_id == lease.task_id && known.ends.contains(&extended.expires_at)
    });
    hold(STALE, is_so, || {
        format!(
            "{lease:?} was told to go on until {:?}; the log says {known:?}",
            extended.expires_at
        )
    })
}

/// Late is lost even before the record that says so, and what is ending is late.
pub(super) fn rejected(
    ledger: &TaskLedger,
    endings: &EndingLaw,
    rejection: &Rejection,
    now: Timestamp,
) -> LawResult {
    let Rejection::LeaseLost { task_id, lease_id } = rejection else { return Ok(()) };
    if endings.is_task_ending(ledger, *task_id) {
        return Ok(());
    }
    let open = ledger.open_lease(*task_id).filter(|(_, lease)| now < lease.expires_at());
    hold(LOST, open.is_none_or(|(open, _)| open != *lease_id), || {
        format!("lease {lease_id} of task {task_id} is open at {now:?}: {open:?}")
    })
}
