//! Is it there, is it ready, how does it stand.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tenure_api as api;
use tenure_code::Code;
use tenure_coordinator::Status;
use tenure_coordinator::request::GetStatus;

use super::json;
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::show;

type Outcome = Result<Response, Problem>;

#[utoipa::path(get, path = "/healthz", tag = "operate", summary = "Is it alive", responses((status = 200, description = "It is", body = String), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// The engine answers: the log was replayed and its thread is alive.
#[utoipa::path(get, path = "/readyz", tag = "operate", summary = "Does it serve", responses((status = 200, description = "It does", body = String), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
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

#[utoipa::path(get, path = "/v1/status", tag = "operate", summary = "How things stand", params(StatusQuery), responses((status = 200, description = "So", body = api::Status), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn status(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Outcome {
    let StatusQuery { hash } = parse::query(query.as_deref())?;
    Ok(json(&show::status::status(&app, hash).await?))
}

#[utoipa::path(get, path = "/metrics", tag = "operate", summary = "For Prometheus", responses((status = 200, description = "All metrics", body = String, content_type = "application/openmetrics-text"), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Outcome {
    let status = read_status(&app).await?;
    let uptime_s = app.started.elapsed().as_secs_f64();
    let text = app.metrics.show(&status, uptime_s, &app);
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, media_type)], text).into_response())
}
