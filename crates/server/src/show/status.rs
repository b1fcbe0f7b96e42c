//! The status of the server, and snapshots.

use std::sync::atomic::Ordering;

use tenure_api as api;
use tenure_coordinator::request::{GetFacts, GetStatus};
use tenure_coordinator::{Memory, RUN_STATES, SnapshotInfo};
use tenure_record::state::TaskState;

use super::time;
use crate::app::App;
use crate::archive::ArchiveNews;
use crate::problem::Problem;

/// The status of the server, with the hash of the whole state if it is asked for.
pub(crate) async fn status(app: &App, hash: bool) -> Result<api::Status, Problem> {
    let status = app.ask(GetStatus).await?;
    let state_hash = match hash {
        true => Some(state_hash(app).await?),
        false => None,
    };
    let count = |state: TaskState| (state.as_str().to_owned(), status.tasks.of(state));
    Ok(api::Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        role: "leader".to_owned(),
        lsn: status.lsn.0,
        durable_lsn: status.released.0,
        epoch: status.epoch,
        state_hash,
        tasks: TaskState::ALL.into_iter().map(count).collect(),
        runs: RUN_STATES.into_iter().map(str::to_owned).zip(status.runs).collect(),
        ending_runs: status.ending_runs,
        parked_runs: status.parked_runs,
        workflows: status.workflows as u64,
        parked_leases: status.parked_leases as u64,
        parked_readers: status.parked_readers as u64,
        snapshot_lsn: status.kept.newest.map(|newest| newest.lsn.0),
        log_oldest_lsn: status.kept.extent.oldest.0,
        log_bytes: status.kept.extent.bytes,
        archive: app.archive.as_deref().map(archive),
        log_time_ahead_ms: status.log_time_ahead_ms,
        memory: memory(app.tenure.memory()),
        uptime_ms: app.started.elapsed().as_millis() as u64,
        now: time(status.wall),
    })
}

/// The hash of the whole state. It reads everything, so it works on a view, on a thread of its own.
async fn state_hash(app: &App) -> Result<String, Problem> {
    let facts = app.ask(GetFacts).await?;
    let hash = tokio::task::spawn_blocking(move || facts.hash().to_string()).await;
    hash.map_err(|_| Problem::stopping())
}

fn archive(archive: &ArchiveNews) -> api::ArchiveStatus {
    let failing = archive.failing();
    api::ArchiveStatus {
        folder: archive.folder.clone(),
        archived: archive.archived.load(Ordering::Relaxed),
        bytes: archive.bytes.load(Ordering::Relaxed),
        failing_ms: failing.as_ref().map_or(0, |it| it.since.elapsed().as_millis() as u64),
        failing: failing.map(|it| it.why),
    }
}

fn memory(memory: &Memory) -> api::MemoryStatus {
    let pools = memory.pools().iter().map(|pool| (pool.name().to_owned(), pool.used()));
    api::MemoryStatus {
        used_bytes: memory.used(),
        max_bytes: memory.max(),
        full: memory.is_full(),
        pools: pools.collect(),
    }
}

/// A snapshot.
pub(crate) fn snapshot(taken: &SnapshotInfo) -> api::Snapshot {
    api::Snapshot {
        lsn: taken.lsn.0,
        state_hash: taken.state_hash.to_string(),
        tasks: taken.tasks,
        bytes: taken.bytes,
        took_ms: taken.took_ms,
    }
}
