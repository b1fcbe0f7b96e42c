//! What today's rules would decide about a run, beside what was decided.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde::Deserialize;
use tenure_api as api;
use tenure_record::id::{Lsn, RunId};

use super::{Path, json, number};
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::redecide::redecide;
use crate::show;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RedecideQuery {
    /// A record of the run's history.
    lsn: Option<u64>,
}

/// Rebuilds the state before that record from the log, and decides what was asked then again. One
/// at a time; nothing is written.
#[utoipa::path(get, path = "/v1/runs/{id}/redecide", tag = "runs", summary = "Decide a record of a run again", params(("id" = u64, Path), RedecideQuery), responses((status = 200, description = "What was decided, and what would be now", body = api::Redecided), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let run = RunId(number(&id)?);
    let query: RedecideQuery = parse::query(query.as_deref())?;
    let lsn = query.lsn.ok_or_else(|| {
        Problem::invalid("lsn is missing; give the LSN of a record of the run's history")
    })?;
    let found = redecide(&app, run, Lsn(lsn)).await?;
    Ok(json(&show::run::redecided(run, &found)))
}
