//! Leases: taking work, and reporting on it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use tenure_api as api;
use tenure_coordinator::request::Lease;

use super::tasks::one_task;
use super::{Path, Whole, WholeBatch, json, number};
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::show;
use crate::wire::report::{self, About};
use crate::wire::{artifact, request};

type Outcome = Result<Response, Problem>;

#[utoipa::path(post, path = "/v1/leases", tag = "workers", summary = "Take work, and wait for it", request_body = api::LeaseRequest, responses((status = 200, description = "Leases, none if nothing came", body = api::Leases), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn lease(State(app): State<Arc<App>>, Whole(body): Whole) -> Outcome {
    let (request, wait_ms) = request::lease(&parse::parse(&body)?)?;
    let grants = app.ask(Lease { request, wait_ms }).await?;
    Ok(json(&api::Leases { leases: grants.into_iter().map(show::worker::lease).collect() }))
}

#[utoipa::path(post, path = "/v1/tasks/{id}/heartbeat", tag = "workers", summary = "Still at it: the lease is extended", params(("id" = u64, Path)), request_body = api::HeartbeatReport, responses((status = 200, description = "How long it goes on", body = api::Extension), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn heartbeat(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let report = report::heartbeat(About::Address(number(&id)?), &parse::parse(&body)?)?;
    let (task_id, progress) = (report.lease.task_id, report.progress.clone());
    let extended = app.ask(report).await?;
    app.scribe.progress(task_id.0, progress.as_deref());
    Ok(json(&show::worker::extension(extended)))
}

#[utoipa::path(post, path = "/v1/tasks/{id}/complete", tag = "workers", summary = "It is done", params(("id" = u64, Path)), request_body = api::CompleteReport, responses((status = 200, description = "The task", body = api::Task), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn complete(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let about = About::Address(number(&id)?);
    let (mut report, handed) = report::complete(about, parse::parse(&body)?)?;
    report.artifacts = artifact::keep(&app, handed).await?;
    one_task(&app, report).await
}

#[utoipa::path(post, path = "/v1/tasks/{id}/fail", tag = "workers", summary = "The attempt failed", params(("id" = u64, Path)), request_body = api::FailReport, responses((status = 200, description = "The task", body = api::Task), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn fail(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let report = report::fail(About::Address(number(&id)?), &parse::parse(&body)?)?;
    one_task(&app, report).await
}

#[utoipa::path(post, path = "/v1/tasks/{id}/release", tag = "workers", summary = "Give the lease back", params(("id" = u64, Path)), request_body = api::ReleaseReport, responses((status = 200, description = "The task", body = api::Task), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn release(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let report = report::release(About::Address(number(&id)?), &parse::parse(&body)?)?;
    one_task(&app, report).await
}

#[utoipa::path(post, path = "/v1/reports", tag = "workers", summary = "Many reports at once, each for itself", request_body = api::Reports, responses((status = 200, description = "What became of each", body = api::ReportResults), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn report(State(app): State<Arc<App>>, body: WholeBatch) -> Outcome {
    let (mut reports, handed) = report::batch(parse::parse(&body.0)?)?;
    drop(body);
    artifact::keep_each(&app, &mut reports, handed).await?;
    let reported = app.ask(reports).await?;
    Ok(json(&api::ReportResults { results: reported.iter().map(show::worker::result).collect() }))
}
