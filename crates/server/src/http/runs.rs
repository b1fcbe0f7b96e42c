//! Runs: look at, list, cancel, unpark, signal; their tokens and their history.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tenure_coordinator::limits::HISTORY_BYTES;
use tenure_coordinator::request::{CancelRun, GetRun, ListRuns, ListTokens, UnparkRun};
use tenure_coordinator::{Request, RunInfo};
use tenure_record::id::{RunId, TokenId};

use super::{List, Nothing, PageQuery, Path, WaitQuery, Whole, json, number};
use crate::admission::response_budget;
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::wire::flow::SaidRuns;
use crate::wire::run_request::SignalBody;
use crate::wire::run_shown::{ShownRun, ShownRunStep, ShownSignal, ShownToken};
use crate::wire::{list, page, terms};

type Outcome = Result<Response, Problem>;

#[utoipa::path(get, path = "/v1/runs/{id}", tag = "runs", summary = "A run, at once or when it is over", params(("id" = u64, Path), WaitQuery), responses((status = 200, description = "The run as it is", body = ShownRun<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn get(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let WaitQuery { wait_ms } = parse::query(query.as_deref())?;
    let (run_id, wait_ms) = (RunId(number(&id)?), terms::wait(wait_ms.map(i128::from))?);
    show(&app, GetRun { run_id, wait_ms }).await
}

/// Serves a request whose response is a run.
async fn show<R>(app: &App, request: R) -> Outcome
where
    R: Request<Response = Box<RunInfo>>,
{
    Ok(json(&ShownRun::of(&*app.ask(request).await?)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunsQuery {
    workflow: Option<String>,
    state: Option<String>,
    tag: Option<String>,
    /// With this key; keys belong to a workflow.
    key: Option<String>,
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[utoipa::path(get, path = "/v1/runs", tag = "runs", summary = "Runs, newest first", params(RunsQuery), responses((status = 200, description = "A page", body = List<ShownRun<'_>>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Outcome {
    let query: RunsQuery = parse::query(query.as_deref())?;
    let filter = SaidRuns {
        workflow: query.workflow.as_deref(),
        state: query.state.as_deref(),
        tag: query.tag.as_deref(),
        key: query.key.as_deref(),
        limit: query.limit,
        cursor: query.cursor.as_deref(),
    };
    let runs = page::cut_runs(app.ask(ListRuns(filter.parse()?)).await?);
    let items = runs.runs.iter().map(ShownRun::of).collect();
    Ok(json(&List { items, next_cursor: runs.next.map(|id| id.to_string()) }))
}

#[utoipa::path(get, path = "/v1/runs/{id}/tokens", tag = "runs", summary = "Where a run stands and has stood: its tokens, by number", params(("id" = u64, Path), PageQuery), responses((status = 200, description = "A page", body = List<ShownToken<'_>>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn tokens(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let PageQuery { limit, cursor } = parse::query(query.as_deref())?;
    let run_id = RunId(number(&id)?);
    let after = list::cursor(cursor.as_deref())?.map_or(TokenId::NONE, TokenId);
    let request = ListTokens { run_id, after, limit: list::limit(limit)? };
    let tokens = page::cut_tokens(app.ask(request).await?);
    let items = tokens.tokens.iter().map(ShownToken::of).collect();
    Ok(json(&List { items, next_cursor: tokens.next.map(|id| id.to_string()) }))
}

#[derive(Serialize, utoipa::ToSchema)]
struct ShownRunHistory<'a> {
    items: Vec<ShownRunStep<'a>>,
    next_cursor: Option<String>,
    truncated_before: Option<u64>,
}

#[utoipa::path(get, path = "/v1/runs/{id}/history", tag = "runs", summary = "What was decided about a run, and why", params(("id" = u64, Path), PageQuery), responses((status = 200, description = "Oldest first", body = ShownRunHistory<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn history(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let PageQuery { limit, cursor } = parse::query(query.as_deref())?;
    let (run_id, limit) = (RunId(number(&id)?), list::limit(limit)?);
    let tenure = app.tenure.clone();
    response_budget::reserve(HISTORY_BYTES).await?;
    // It reads files.
    let history = tokio::task::spawn_blocking(move || tenure.run_history(run_id)).await;
    let history = history.map_err(|_| Problem::stopping())??;
    let (steps, next_cursor) =
        page::of_history(&history.steps, |step| step.lsn.0, cursor.as_deref(), limit)?;
    let items = steps.iter().map(ShownRunStep::of).collect();
    let truncated_before = history.truncated_before.map(|lsn| lsn.0);
    Ok(json(&ShownRunHistory { items, next_cursor, truncated_before }))
}

#[utoipa::path(post, path = "/v1/runs/{id}/cancel", tag = "runs", summary = "End a run and all that is live in it", params(("id" = u64, Path)), responses((status = 200, description = "The run", body = ShownRun<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let run_id = RunId(number(&id)?);
    let Nothing {} = parse::parse(&body)?;
    show(&app, CancelRun(run_id)).await
}

#[utoipa::path(post, path = "/v1/runs/{id}/unpark", tag = "runs", summary = "Let a parked run go on where it stood", params(("id" = u64, Path)), responses((status = 200, description = "The run", body = ShownRun<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn unpark(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let run_id = RunId(number(&id)?);
    let Nothing {} = parse::parse(&body)?;
    show(&app, UnparkRun(run_id)).await
}

#[utoipa::path(post, path = "/v1/runs/{id}/signals/{name}", tag = "runs", summary = "News from outside for a run", params(("id" = u64, Path), ("name" = String, Path)), request_body = Option<SignalBody<'_>>, responses((status = 200, description = "What became of it", body = ShownSignal<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn signal(
    State(app): State<Arc<App>>,
    Path((id, name)): Path<(String, String)>,
    Whole(body): Whole,
) -> Outcome {
    let id = number(&id)?;
    let signal = parse::parse::<SignalBody<'_>>(&body)?.parse(id, name)?;
    let name = Arc::clone(&signal.name);
    let signaled = app.ask(signal).await?;
    Ok(json(&ShownSignal::of(id, &name, signaled)))
}
