//! Leases: taking work, and reporting on it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use tenure_coordinator::{Answer, Ask};
use tenure_core::command::{Command, Reported};
use tenure_record::id::TaskId;

use super::tasks::show;
use super::{Path, Whole, WholeBatch, ask, json, number, unexpected};
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::wire::artifact;
use crate::wire::request::{
    CompleteBody, FailBody, HeartbeatBody, LeaseBody, LeaseOnlyBody, ReportsBody,
};
use crate::wire::shown::{ShownGrant, moment};

type Outcome = Result<Response, Problem>;

#[derive(Serialize, utoipa::ToSchema)]
struct Leases<'a> {
    leases: Vec<ShownGrant<'a>>,
}

#[utoipa::path(post, path = "/v1/leases", tag = "workers", summary = "Take work, and wait for it", request_body = LeaseBody, responses((status = 200, description = "Leases, none if nothing came", body = Leases<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn lease(State(app): State<Arc<App>>, Whole(body): Whole) -> Outcome {
    let (request, wait_ms) = parse::parse::<LeaseBody>(&body)?.parse()?;
    let Answer::Leased(grants) = ask(&app, Ask::Lease { request, wait_ms }).await? else {
        return unexpected();
    };
    Ok(json(&Leases { leases: grants.iter().map(ShownGrant::of).collect() }))
}

#[derive(Serialize, utoipa::ToSchema)]
struct ShownExtension {
    expires_at: String,
    cancel_requested: bool,
}

#[utoipa::path(post, path = "/v1/tasks/{id}/heartbeat", tag = "workers", summary = "Still at it: the lease is extended", params(("id" = u64, Path)), request_body = HeartbeatBody, responses((status = 200, description = "How long it goes on", body = ShownExtension), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn heartbeat(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let body = parse::parse::<HeartbeatBody>(&body)?;
    let lease = body.parse(number(&id)?)?;
    let Answer::Extended(extended) = ask(&app, Ask::Command(Command::Heartbeat(lease))).await?
    else {
        return unexpected();
    };
    app.scribe.progress(lease.task_id.0, body.progress, body.message.as_deref());
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
    let id = number(&id)?;
    let (mut report, handed) = parse::parse::<CompleteBody<'_>>(&body)?.parse(id)?;
    report.artifacts = artifact::keep(&app, handed).await?;
    change(&app, id, Command::CompleteTask(report)).await
}

#[utoipa::path(post, path = "/v1/tasks/{id}/fail", tag = "workers", summary = "The attempt failed", params(("id" = u64, Path)), request_body = FailBody, responses((status = 200, description = "The task", body = crate::wire::shown::ShownTask<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn fail(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let id = number(&id)?;
    let report = parse::parse::<FailBody>(&body)?.parse(id)?;
    change(&app, id, Command::FailTask(report)).await
}

#[utoipa::path(post, path = "/v1/tasks/{id}/release", tag = "workers", summary = "Give the lease back", params(("id" = u64, Path)), request_body = LeaseOnlyBody, responses((status = 200, description = "The task", body = crate::wire::shown::ShownTask<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn release(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let id = number(&id)?;
    let lease = parse::parse::<LeaseOnlyBody>(&body)?.parse(id)?;
    change(&app, id, Command::ReleaseTask(lease)).await
}

async fn change(app: &App, id: u64, command: Command) -> Outcome {
    show(ask(app, Ask::Change { command, task_id: TaskId(id) }).await?)
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
    let asked = Ask::Command(Command::ReportTasks(reports));
    let Answer::Reported(reported) = ask(&app, asked).await? else {
        return unexpected();
    };
    Ok(json(&Results { results: reported.iter().map(ShownResult::of).collect() }))
}
