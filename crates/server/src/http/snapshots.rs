//! Snapshots, on demand.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use tenure_coordinator::request::TakeSnapshot;

use super::json;
use crate::app::App;
use crate::problem::Problem;

#[derive(Serialize, utoipa::ToSchema)]
struct ShownSnapshot {
    /// The last record whose effect is in it.
    lsn: u64,
    state_hash: String,
    tasks: u64,
    bytes: u64,
    took_ms: u64,
}

/// Answers when it is on disk. If nothing has changed since the last one, that is the answer.
#[utoipa::path(post, path = "/v1/snapshots", tag = "operate", summary = "Take a snapshot", responses((status = 200, description = "It is on disk", body = ShownSnapshot), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn take(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let taken = app.ask(TakeSnapshot).await?;
    Ok(json(&ShownSnapshot {
        lsn: taken.lsn.0,
        state_hash: taken.state_hash.to_string(),
        tasks: taken.tasks,
        bytes: taken.bytes,
        took_ms: taken.took_ms,
    }))
}
