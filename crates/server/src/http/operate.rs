//! Is it there, is it ready, how does it stand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::{RawQuery, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tenure_code::Code;
use tenure_coordinator::request::{GetFacts, GetStatus};
use tenure_coordinator::{Memory, RUN_STATES, Status};
use tenure_record::state::TaskState;

use super::json;
use crate::app::App;
use crate::archive::ArchiveNews;
use crate::json as parse;
use crate::problem::Problem;

type Outcome = Result<Response, Problem>;

#[utoipa::path(get, path = "/healthz", tag = "operate", summary = "Is it alive", responses((status = 200, description = "It is", body = String), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// The engine answers: the log was replayed and its thread is alive.
#[utoipa::path(get, path = "/readyz", tag = "operate", summary = "Does it serve", responses((status = 200, description = "It does", body = String), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    if app.is_stopping() {
        return Err(Problem::new(
            Code::Unavailable,
            "the server is stopping; try again when it is back",
        ));
    }
    read_status(&app).await?;
    Ok("ok\n")
}

async fn read_status(app: &App) -> Result<Box<Status>, Problem> {
    app.ask(GetStatus).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct StatusQuery {
    #[serde(default)]
    hash: bool,
}

#[derive(Serialize, utoipa::ToSchema)]
struct ShownStatus {
    version: &'static str,
    role: &'static str,
    lsn: u64,
    durable_lsn: u64,
    epoch: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_hash: Option<String>,
    tasks: BTreeMap<&'static str, u64>,
    runs: BTreeMap<&'static str, u64>,
    /// Runs that are ending over several records, or have branches that are.
    ending_runs: u64,
    /// Runs that are parked.
    parked_runs: u64,
    workflows: usize,
    parked_leases: usize,
    parked_readers: usize,
    snapshot_lsn: Option<u64>,
    log_oldest_lsn: u64,
    log_bytes: u64,
    archive: Option<ShownArchive>,
    /// How far log time is ahead of the wall clock; zero if it is not.
    log_time_ahead_ms: u64,
    memory: ShownMemory,
    uptime_ms: u64,
}

/// The memory budget.
#[derive(Serialize, utoipa::ToSchema)]
struct ShownMemory {
    /// Bytes that all pools hold, about.
    used_bytes: u64,
    /// Bytes that the process may take.
    max_bytes: u64,
    /// New work is refused for lack of memory.
    full: bool,
    /// Bytes that each pool holds, about.
    pools: BTreeMap<&'static str, u64>,
}

impl ShownMemory {
    fn of(memory: &Memory) -> Self {
        Self {
            used_bytes: memory.used(),
            max_bytes: memory.max(),
            full: memory.is_full(),
            pools: memory.pools().iter().map(|pool| (pool.name(), pool.used())).collect(),
        }
    }
}

/// Where finished tasks and runs go before they are forgotten.
#[derive(Serialize, utoipa::ToSchema)]
struct ShownArchive {
    folder: String,
    /// Tasks and runs since the start.
    archived: u64,
    bytes: u64,
    /// Why nothing can be archived just now. Until it can, nothing is forgotten.
    failing: Option<String>,
    failing_ms: u64,
}

impl ShownArchive {
    fn of(archive: &ArchiveNews) -> Self {
        let failing = archive.failing();
        Self {
            folder: archive.folder.clone(),
            archived: archive.archived.load(Ordering::Relaxed),
            bytes: archive.bytes.load(Ordering::Relaxed),
            failing_ms: failing.as_ref().map_or(0, |it| it.since.elapsed().as_millis() as u64),
            failing: failing.map(|it| it.why),
        }
    }
}

#[utoipa::path(get, path = "/v1/status", tag = "operate", summary = "How things stand", params(StatusQuery), responses((status = 200, description = "So", body = ShownStatus), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn status(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Outcome {
    let StatusQuery { hash } = parse::query(query.as_deref())?;
    let status = read_status(&app).await?;
    let state_hash = match hash {
        true => Some(state_hash(&app).await?),
        false => None,
    };
    let tasks = TaskState::ALL.iter().map(|state| (state.as_str(), status.tasks.of(*state)));
    Ok(json(&ShownStatus {
        version: env!("CARGO_PKG_VERSION"),
        role: "leader",
        lsn: status.lsn.0,
        durable_lsn: status.released.0,
        epoch: status.epoch,
        state_hash,
        tasks: tasks.collect(),
        runs: RUN_STATES.into_iter().zip(status.runs).collect(),
        ending_runs: status.ending_runs,
        parked_runs: status.parked_runs,
        workflows: status.workflows,
        parked_leases: status.parked_leases,
        parked_readers: status.parked_readers,
        snapshot_lsn: status.kept.newest.map(|newest| newest.lsn.0),
        log_oldest_lsn: status.kept.extent.oldest.0,
        log_bytes: status.kept.extent.bytes,
        archive: app.archive.as_deref().map(ShownArchive::of),
        log_time_ahead_ms: status.log_time_ahead_ms,
        memory: ShownMemory::of(app.tenure.memory()),
        uptime_ms: app.started.elapsed().as_millis() as u64,
    }))
}

/// Reads everything, so it works on a view and beside the others.
async fn state_hash(app: &App) -> Result<String, Problem> {
    let facts = app.ask(GetFacts).await?;
    let hash = tokio::task::spawn_blocking(move || facts.hash().to_string()).await;
    hash.map_err(|_| Problem::stopping())
}

#[utoipa::path(get, path = "/metrics", tag = "operate", summary = "For Prometheus", responses((status = 200, description = "All metrics", body = String, content_type = "application/openmetrics-text"), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Outcome {
    let status = read_status(&app).await?;
    let uptime_s = app.started.elapsed().as_secs_f64();
    let text = app.metrics.show(&status, uptime_s, &app);
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, media_type)], text).into_response())
}
