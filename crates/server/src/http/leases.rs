//! Leases: taking work, and reporting on it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use tenure_coordinator::request::Lease;
use tenure_core::command::Reported;

use super::tasks::show;
use super::{Path, Whole, WholeBatch, json, number};
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::wire::artifact;
use crate::wire::report::{CompleteBody, FailBody, HeartbeatBody, ReleaseBody, ReportsBody};
use crate::wire::request::LeaseBody;
use crate::wire::shown::{ShownGrant, moment};

type Outcome = Result<Response, Problem>;

#[derive(Serialize, utoipa::ToSchema)]
struct Leases<'a> {
    leases: Vec<ShownGrant<'a>>,
}

#[utoipa::path(post, path = "/v1/leases", tag = "workers", summary = "Take work, and wait for it", request_body = LeaseBody, responses((status = 200, description = "Leases, none if nothing came", body = Leases<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn lease(State(app): State<Arc<App>>, Whole(body): Whole) -> Outcome {
    let (request, wait_ms) = parse::parse::<LeaseBody>(&body)?.parse()?;
    let grants = app.ask(Lease { request, wait_ms }).await?;
    Ok(json(&Leases { leases: grants.iter().map(ShownGrant::of).collect() }))
}

#[derive(Serialize, utoipa::ToSchema)]
struct ShownExtension {
    expires_at: String,
    cancel_requested: bool,
}

#[utoipa::path(post, path = "/v1/tasks/{id}/heartbeat", tag = "workers", summary = "Still at it: the lease is extended", params(("id" = u64, Path)), request_body = HeartbeatBody<'_>, responses((status = 200, description = "How long it goes on", body = ShownExtension), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn heartbeat(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let report = parse::parse::<HeartbeatBody<'_>>(&body)?.parse(number(&id)?)?;
    let (task_id, progress) = (report.lease.task_id, report.progress.clone());
    let extended = app.ask(report).await?;
    app.scribe.progress(task_id.0, progress.as_deref());
    Ok(json(&ShownExtension {
        expires_at: moment(extended.wall_expires_at),
        cancel_requested: extended.cancel_requested,
    }))
}

#[utoipa::path(post, path = "/v1/tasks/{id}/complete", tag = "workers", summary = "It is done", params(("id" = u64, Path)), request_body = CompleteBody<'_>, responses((status = 200, description = "The task", body = crate::wire::shown::ShownTask<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn complete(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let (mut report, handed) = parse::parse::<CompleteBody<'_>>(&body)?.parse(number(&id)?)?;
    report.artifacts = artifact::keep(&app, handed).await?;
    show(&app, report).await
}

#[utoipa::path(post, path = "/v1/tasks/{id}/fail", tag = "workers", summary = "The attempt failed", params(("id" = u64, Path)), request_body = FailBody<'_>, responses((status = 200, description = "The task", body = crate::wire::shown::ShownTask<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn fail(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let report = parse::parse::<FailBody<'_>>(&body)?.parse(number(&id)?)?;
    show(&app, report).await
}

#[utoipa::path(post, path = "/v1/tasks/{id}/release", tag = "workers", summary = "Give the lease back", params(("id" = u64, Path)), request_body = ReleaseBody<'_>, responses((status = 200, description = "The task", body = crate::wire::shown::ShownTask<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn release(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let report = parse::parse::<ReleaseBody<'_>>(&body)?.parse(number(&id)?)?;
    show(&app, report).await
}

#[derive(Serialize, utoipa::ToSchema)]
struct Results {
    results: Vec<ShownResult>,
}

#[derive(Serialize, utoipa::ToSchema)]
struct ShownResult {
    task_id: u64,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_requested: Option<bool>,
}

impl ShownResult {
    fn of(reported: &Reported) -> Self {
        let accepted = reported.result.as_ref().ok();
        let extended = accepted.and_then(|accepted| accepted.extended);
        Self {
            task_id: reported.task_id.0,
            ok: accepted.is_some(),
            state: accepted.map(|accepted| accepted.state.as_str()),
            code: reported.result.as_ref().err().map(|refusal| refusal.code().as_str()),
            expires_at: extended.map(|extended| moment(extended.wall_expires_at)),
            cancel_requested: extended.map(|extended| extended.cancel_requested),
        }
    }
}

#[utoipa::path(post, path = "/v1/reports", tag = "workers", summary = "Many reports at once, each for itself", request_body = ReportsBody<'_>, responses((status = 200, description = "What became of each", body = Results), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn report(State(app): State<Arc<App>>, body: WholeBatch) -> Outcome {
    let (mut reports, handed) = parse::parse::<ReportsBody<'_>>(&body.0)?.parse()?;
    drop(body);
    artifact::keep_each(&app, &mut reports, handed).await?;
    let reported = app.ask(reports).await?;
    Ok(json(&Results { results: reported.iter().map(ShownResult::of).collect() }))
}
