//! What today's rules would decide about a run, beside what was decided.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tenure_record::id::{Lsn, RunId};

use super::{Path, json, number};
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::redecide::{Redecided, redecide};
use crate::wire::shown::moment;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RedecideQuery {
    /// A record of the run's history.
    lsn: Option<u64>,
}

#[derive(Serialize, utoipa::ToSchema)]
struct ShownRedecided {
    run_id: u64,
    lsn: u64,
    at: String,
    /// Today's rules decide the same.
    same: bool,
    /// What happened.
    #[schema(value_type = Object)]
    cause: Box<RawValue>,
    /// The decisions about the run, in order.
    decisions: Vec<ShownPair>,
    /// Why nothing would be decided now.
    refused: Option<ShownRefusal>,
}

#[derive(Serialize, utoipa::ToSchema)]
struct ShownPair {
    same: bool,
    /// As it was recorded; null if it would be new.
    #[schema(value_type = Option<serde_json::Value>)]
    recorded: Option<Box<RawValue>>,
    /// By today's rules; null if it would not be taken.
    #[schema(value_type = Option<serde_json::Value>)]
    decided: Option<Box<RawValue>>,
}

#[derive(Serialize, utoipa::ToSchema)]
struct ShownRefusal {
    code: &'static str,
    detail: String,
}

/// Rebuilds the state before that record from the log, and decides what was asked then again. One
/// at a time; nothing is written.
#[utoipa::path(get, path = "/v1/runs/{id}/redecide", tag = "runs", summary = "Decide a record of a run again", params(("id" = u64, Path), RedecideQuery), responses((status = 200, description = "What was decided, and what would be now", body = ShownRedecided), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
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
    Ok(json(&ShownRedecided::of(run, &found)))
}

impl ShownRedecided {
    fn of(run: RunId, found: &Redecided) -> Self {
        let pair = |pair: &tenure_core::redecide::Pair| ShownPair {
            same: pair.is_same,
            recorded: pair.recorded.as_ref().and_then(|it| raw(it.to_json())),
            decided: pair.decided.as_ref().and_then(|it| raw(it.to_json())),
        };
        Self {
            run_id: run.0,
            lsn: found.lsn.0,
            at: moment(found.at),
            same: found.is_same(),
            cause: raw(found.cause.to_json()).unwrap_or_default(),
            decisions: found.pairs.iter().map(pair).collect(),
            refused: found.refused.as_ref().map(|rejection| ShownRefusal {
                code: rejection.code().as_str(),
                detail: rejection.to_string(),
            }),
        }
    }
}

fn raw(text: String) -> Option<Box<RawValue>> {
    RawValue::from_string(text).ok()
}
