//! Messages of the hot path, `Lease`, `Work` and `Report`: written straight from the types of the
//! engine, without the outward model in between. The tests hold both ways together.

use tenure_coordinator::Grant;
use tenure_core::command::{ReportTasks, Reported};
use tenure_proto::v1;
use tenure_record::name::WorkerName;
use tenure_record::state::TaskState;

use crate::problem::Problem;
use crate::show;
use crate::wire::artifact::Handed;
use crate::wire::report;

/// A lease as its worker sees it.
pub(super) fn lease(grant: Grant) -> v1::Lease {
    v1::Lease {
        task_id: grant.task_id.0,
        lease_id: grant.lease_id.0,
        attempt: grant.attempt,
        queue: grant.queue.to_string(),
        payload: show::bytes(grant.payload),
        tags: show::tags(&grant.tags),
        expires_at: grant.wall_expires_at.0,
        log_expires_at: grant.expires_at.0,
        run: grant.run.map(|run| v1::TaskOfRun {
            run_id: run.run_id.0,
            node: run.node.to_string(),
            token: run.token.0,
        }),
        name: grant.name.map(|name| name.to_string()),
        traceparent: grant.traceparent.map(|text| text.to_string()),
        checkpoint: grant.checkpoint.map(|bytes| bytes.to_vec()).unwrap_or_default(),
    }
}

/// The outcome of a report.
pub(super) fn result(reported: &Reported) -> v1::ReportResult {
    let task_id = reported.task_id.0;
    match &reported.result {
        Ok(accepted) => v1::ReportResult {
            task_id,
            state: state(accepted.state).into(),
            expires_at: accepted.extended.map_or(0, |extended| extended.wall_expires_at.0),
            log_expires_at: accepted.extended.map_or(0, |extended| extended.expires_at.0),
            cancel_requested: accepted.extended.is_some_and(|extended| extended.cancel_requested),
            ..v1::ReportResult::default()
        },
        Err(rejection) => v1::ReportResult {
            task_id,
            code: rejection.code().to_string(),
            message: rejection.to_string(),
            ..v1::ReportResult::default()
        },
    }
}

fn state(state: TaskState) -> v1::TaskState {
    match state {
        TaskState::Waiting => v1::TaskState::Waiting,
        TaskState::Leased => v1::TaskState::Leased,
        TaskState::Completed => v1::TaskState::Completed,
        TaskState::Failed => v1::TaskState::Failed,
        TaskState::Dead => v1::TaskState::Dead,
        TaskState::Canceled => v1::TaskState::Canceled,
    }
}

/// Many reports at once, and for each completion the files whose bytes are still to be kept. `worker`
/// is the one that a stream belongs to, for reports that do not name theirs.
pub(crate) fn reports(
    reports: v1::Reports,
    worker: Option<&WorkerName>,
) -> Result<(ReportTasks, Vec<Vec<Handed>>), Problem> {
    let v1::Reports { sequence: _, heartbeats, completes, fails, releases } = reports;
    let (mut parsed, handed) = report::reports(
        heartbeats.into_iter().map(Into::into),
        completes.into_iter().map(Into::into),
        fails.into_iter().map(Into::into),
        releases.into_iter().map(Into::into),
    )?;
    let completes = parsed.completes.iter_mut().map(|report| &mut report.worker);
    let fails = parsed.fails.iter_mut().map(|report| &mut report.worker);
    for named in completes.chain(fails).filter(|named| named.is_none()) {
        *named = worker.cloned();
    }
    Ok((parsed, handed))
}

#[cfg(test)]
mod tests;
