//! Runs: look at, list, cancel, unpark, signal; their tokens and their history.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use tenure_api as api;
use tenure_coordinator::request::{CancelRun, GetRun, ListRuns, SignaledRun, UnparkRun};
use tenure_coordinator::{Request, RunInfo};
use tenure_core::command::SubmitOutcome;
use tenure_record::id::RunId;

use super::{Nothing, Path, WaitQuery, Whole, json, number};
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::show;
use crate::wire::flow::{self, SignalCommand};
use crate::wire::{page, terms};

type Outcome = Result<Response, Problem>;

#[utoipa::path(get, path = "/v1/runs/{id}", tag = "runs", summary = "A run, at once or when it is over", params(("id" = u64, Path), WaitQuery), responses((status = 200, description = "The run as it is", body = api::Run), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn get(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let WaitQuery { wait_ms } = parse::query(query.as_deref())?;
    let (run_id, wait_ms) = (RunId(number(&id)?), terms::wait(wait_ms)?);
    one_run(&app, GetRun { run_id, wait_ms }).await
}

/// Serves a request whose response is a run.
async fn one_run<R>(app: &App, request: R) -> Outcome
where
    R: Request<Response = Box<RunInfo>>,
{
    Ok(json(&show::run::run(&*app.ask(request).await?)))
}

#[utoipa::path(get, path = "/v1/runs", tag = "runs", summary = "Runs, newest first", params(api::RunFilter), responses((status = 200, description = "A page", body = api::Page<api::Run>), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Outcome {
    let filter = flow::filter(parse::query(query.as_deref())?)?;
    let runs = page::cut_runs(app.ask(ListRuns(filter)).await?);
    let items = runs.runs.iter().map(show::run::run).collect();
    Ok(json(&api::Page { items, next_cursor: runs.next.map(|id| id.to_string()) }))
}

#[utoipa::path(get, path = "/v1/runs/{id}/tokens", tag = "runs", summary = "Where a run stands and has stood: its tokens, by number", params(("id" = u64, Path), api::PageQuery), responses((status = 200, description = "A page", body = api::Page<api::Token>), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn tokens(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let page = parse::query(query.as_deref())?;
    Ok(json(&show::run::tokens(&app, RunId(number(&id)?), page).await?))
}

#[utoipa::path(get, path = "/v1/runs/{id}/history", tag = "runs", summary = "What was decided about a run, and why", params(("id" = u64, Path), api::PageQuery), responses((status = 200, description = "Oldest first", body = api::History<api::RunStep>), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn history(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let page = parse::query(query.as_deref())?;
    Ok(json(&show::run::read_history(&app, RunId(number(&id)?), page).await?))
}

#[utoipa::path(post, path = "/v1/runs/{id}/cancel", tag = "runs", summary = "End a run and all that is live in it", params(("id" = u64, Path)), responses((status = 200, description = "The run", body = api::Run), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let run_id = RunId(number(&id)?);
    let Nothing {} = parse::parse(&body)?;
    one_run(&app, CancelRun(run_id)).await
}

#[utoipa::path(post, path = "/v1/runs/{id}/unpark", tag = "runs", summary = "Let a parked run go on where it stood", params(("id" = u64, Path)), responses((status = 200, description = "The run", body = api::Run), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn unpark(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let run_id = RunId(number(&id)?);
    let Nothing {} = parse::parse(&body)?;
    one_run(&app, UnparkRun(run_id)).await
}

#[utoipa::path(post, path = "/v1/runs/{id}/signals/{name}", tag = "runs", summary = "News from outside for a run", params(("id" = u64, Path), ("name" = String, Path)), request_body = Option<api::Signal>, responses((status = 200, description = "What became of it", body = api::Signaled), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn signal(
    State(app): State<Arc<App>>,
    Path((id, name)): Path<(String, String)>,
    Whole(body): Whole,
) -> Outcome {
    let run = api::RunRef::Id(number(&id)?);
    let signaled = signal_run(&app, run, &name, parse::parse(&body)?).await?;
    Ok(json(&show::run::signaled(name, signaled)))
}

/// Sends a signal to a run, or to the run that holds a key.
pub(super) async fn signal_run(
    app: &App,
    run: api::RunRef,
    name: &str,
    signal: api::Signal,
) -> Result<SignaledRun, Problem> {
    match flow::signal(run, name, signal)? {
        SignalCommand::ByKey(signal) => app.ask(signal).await,
        SignalCommand::Run(signal) => {
            let (run_id, outcome) = (signal.run_id, SubmitOutcome::Existed);
            Ok(SignaledRun { run_id, outcome, signaled: app.ask(signal).await? })
        }
    }
}
