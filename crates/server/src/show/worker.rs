//! Workers, the leases that they are granted, and the outcomes of their reports.

use tenure_api as api;
use tenure_coordinator::{Grant, WorkerInfo};
use tenure_core::command::{Extended, Reported};

use super::{bytes, tags, text, time};
use crate::show::task;

/// A lease as its worker sees it.
pub(crate) fn lease(grant: Grant) -> api::Lease {
    api::Lease {
        task_id: grant.task_id.0,
        lease_id: grant.lease_id.0,
        attempt: grant.attempt,
        queue: grant.queue.to_string(),
        name: text(grant.name.as_ref()),
        payload: bytes(grant.payload).into(),
        payload_encoding: api::Encoding::Json,
        tags: tags(&grant.tags),
        checkpoint: task::checkpoint(grant.checkpoint.as_ref()),
        checkpoint_encoding: api::Encoding::Json,
        expires_at: time(grant.wall_expires_at),
        run: grant.run.as_ref().map(task::of_run),
        traceparent: grant.traceparent.map(|text| text.to_string()),
    }
}

/// The outcome of a heartbeat.
pub(crate) fn extension(extended: Extended) -> api::Extension {
    api::Extension {
        expires_at: time(extended.wall_expires_at),
        cancel_requested: extended.cancel_requested,
    }
}

/// The outcome of a report.
pub(crate) fn result(reported: &Reported) -> api::ReportResult {
    let (accepted, refused) = (reported.result.as_ref().ok(), reported.result.as_ref().err());
    let extended = accepted.and_then(|accepted| accepted.extended).map(extension);
    api::ReportResult {
        task_id: reported.task_id.0,
        ok: accepted.is_some(),
        state: accepted.map(|accepted| task::state(accepted.state)),
        code: refused.map(|rejection| rejection.code().to_string()),
        message: refused.map(ToString::to_string),
        expires_at: extended.map(|extension| extension.expires_at),
        cancel_requested: extended.map(|extension| extension.cancel_requested),
    }
}

/// A worker.
pub(crate) fn worker(worker: &WorkerInfo) -> api::Worker {
    let registered = worker.registration.as_ref();
    let name = registered.and_then(|registered| registered.display_name.as_ref());
    let queues = registered.into_iter().flat_map(|registered| &registered.queues);
    let labels = registered.into_iter().flat_map(|registered| registered.labels.as_slice());
    api::Worker {
        id: worker.name.to_string(),
        name: name.map_or(&*worker.name, |name| name.as_str()).to_owned(),
        connected: !worker.is_dead,
        dead: worker.is_dead,
        last_seen_at: time(worker.seen_at),
        active_leases: worker.leases,
        queues: queues.map(|queue| queue.as_str().to_owned()).collect(),
        slots: registered.map(|registered| registered.slots),
        labels: labels
            .map(|(key, value)| (key.as_str().to_owned(), value.as_str().to_owned()))
            .collect(),
        draining: registered.is_some_and(|registered| registered.draining),
    }
}
