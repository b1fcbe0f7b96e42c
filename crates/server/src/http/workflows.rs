//! Workflows: definitions, by name and version; and runs of them.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tenure_api as api;
use tenure_coordinator::request::{GetWorkflow, ListWorkflows};
use tenure_core::command::{DeleteWorkflow, SubmitOutcome};

use super::{Path, Whole, WholeBatch, json};
use crate::app::App;
use crate::auth::media;
use crate::json as parse;
use crate::problem::Problem;
use crate::show;
use crate::wire::{flow, list};

type Outcome = Result<Response, Problem>;

#[utoipa::path(put, path = "/v1/workflows/{name}", tag = "workflows", summary = "Take a definition: a new version each time it differs", params(("name" = String, Path)), request_body(content((serde_json::Value = "application/json"), (String = "application/yaml"))), responses((status = 201, description = "A new version", body = api::Registered), (status = 200, description = "The newest version says the same", body = api::Registered), (status = "default", description = "A refusal, with all faults of the definition", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn put(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    Whole(body): Whole,
) -> Outcome {
    // The guard has checked the headers.
    let format = match media::says_yaml(&headers) {
        true => api::DefinitionFormat::Yaml,
        false => api::DefinitionFormat::Json,
    };
    let definition = api::Definition { name: Some(name), text: body, format };
    let registered = app.ask(flow::compiled(definition).await?).await?;
    let shown = json(&show::workflow::registered(&registered));
    Ok((status(registered.outcome), shown).into_response())
}

fn status(outcome: SubmitOutcome) -> StatusCode {
    match outcome {
        SubmitOutcome::Created => StatusCode::CREATED,
        SubmitOutcome::Existed => StatusCode::OK,
    }
}

#[utoipa::path(get, path = "/v1/workflows", tag = "workflows", summary = "The newest version of each workflow, by name", params(api::PageQuery), responses((status = 200, description = "A page", body = api::Page<api::Workflow>), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Outcome {
    let range = list::names(parse::query(query.as_deref())?)?;
    let page = app.ask(ListWorkflows(range)).await?;
    let items = page.workflows.iter().map(show::workflow::listed).collect();
    Ok(json(&api::Page { items, next_cursor: page.next.map(|name| name.to_string()) }))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct VersionQuery {
    /// The newest if not given.
    #[param(minimum = 1)]
    version: Option<u32>,
}

#[utoipa::path(get, path = "/v1/workflows/{name}", tag = "workflows", summary = "A workflow with its definition", params(("name" = String, Path), VersionQuery), responses((status = 200, description = "That version, or the newest", body = api::Workflow), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn get(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let VersionQuery { version } = parse::query(query.as_deref())?;
    let (name, version) = (name.into(), flow::version(version)?);
    let workflow = app.ask(GetWorkflow { name, version }).await?;
    Ok(json(&show::workflow::workflow(&workflow)))
}

#[utoipa::path(delete, path = "/v1/workflows/{name}", tag = "workflows", summary = "Delete a workflow that no run and no other definition needs: one version, or all of them", params(("name" = String, Path), VersionQuery), responses((status = 204, description = "It is gone"), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let VersionQuery { version } = parse::query(query.as_deref())?;
    let delete = DeleteWorkflow { name: name.into(), version: flow::version(version)? };
    app.ask(delete).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[utoipa::path(post, path = "/v1/workflows/{name}/runs/batch", tag = "workflows", summary = "Begin many runs, all or none", params(("name" = String, Path)), request_body = api::NewRuns, responses((status = 201, description = "They began; a known key gives the run that holds it", body = api::Ids), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn start_batch(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    WholeBatch(body): WholeBatch,
) -> Outcome {
    let api::NewRuns { runs } = parse::parse(&body)?;
    drop(body);
    let started = app.ask(flow::start_batch(&name, runs.into_iter())?).await?;
    let ids = started.iter().map(|started| started.run_id.0).collect();
    Ok((StatusCode::CREATED, json(&api::Ids { ids })).into_response())
}

#[utoipa::path(post, path = "/v1/workflows/{name}/runs", tag = "workflows", summary = "Begin a run", params(("name" = String, Path)), request_body = Option<api::NewRun>, responses((status = 201, description = "It began", body = api::Run), (status = 200, description = "A run with this key was there", body = api::Run), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn start(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let started = app.ask(flow::start(&name, parse::parse(&body)?)?).await?;
    Ok((status(started.outcome), json(&show::run::run(&started.run))).into_response())
}
