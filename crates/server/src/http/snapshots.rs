//! Snapshots, on demand.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use tenure_api as api;
use tenure_coordinator::request::TakeSnapshot;

use super::json;
use crate::app::App;
use crate::problem::Problem;
use crate::show;

/// Answers when it is on disk. If nothing has changed since the last one, that is the answer.
#[utoipa::path(post, path = "/v1/snapshots", tag = "operate", summary = "Take a snapshot", responses((status = 200, description = "It is on disk", body = api::Snapshot), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn take(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let taken = app.ask(TakeSnapshot).await?;
    Ok(json(&show::status::snapshot(&taken)))
}
