//! Workflows: definitions, by name and version; and runs of them.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tenure_coordinator::request::{GetWorkflow, ListWorkflows};
use tenure_core::command::{DeleteWorkflow, RegisterWorkflow, StartRuns, SubmitOutcome};

use super::{List, PageQuery, Path, Whole, WholeBatch, json};
use crate::app::App;
use crate::auth::media;
use crate::json as parse;
use crate::problem::Problem;
use crate::wire::flow::{self, Text};
use crate::wire::run_request::{StartBatchBody, StartBody};
use crate::wire::run_shown::{ShownDefinition, ShownRun, ShownVersion, ShownWorkflow};

type Outcome = Result<Response, Problem>;

#[utoipa::path(put, path = "/v1/workflows/{name}", tag = "workflows", summary = "Take a definition: a new version each time it differs", params(("name" = String, Path)), request_body(content((serde_json::Value = "application/json"), (String = "application/yaml"))), responses((status = 201, description = "A new version", body = ShownVersion<'_>), (status = 200, description = "The newest version says the same", body = ShownVersion<'_>), (status = "default", description = "A refusal, with all faults of the definition", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn put(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    Whole(body): Whole,
) -> Outcome {
    let registered = app.ask(compile(name, Written::of(&headers), body).await?).await?;
    Ok((status(registered.outcome), json(&ShownVersion::of(&registered))).into_response())
}

/// How a definition is written.
#[derive(Clone, Copy, Debug)]
enum Written {
    Json,
    Yaml,
}

impl Written {
    /// As the headers say, which the guard has checked.
    fn of(headers: &HeaderMap) -> Self {
        if media::says_yaml(headers) { Written::Yaml } else { Written::Json }
    }
}

/// A large definition takes its time, so it is compiled beside the others.
async fn compile(name: String, written: Written, body: Bytes) -> Result<RegisterWorkflow, Problem> {
    let compiled = tokio::task::spawn_blocking(move || {
        let text = match written {
            Written::Json => Text::Json(&body),
            Written::Yaml => Text::Yaml(&body),
        };
        flow::definition(Some(&name), text)
    });
    compiled.await.map_err(|_| Problem::stopping())?
}

fn status(outcome: SubmitOutcome) -> StatusCode {
    match outcome {
        SubmitOutcome::Created => StatusCode::CREATED,
        SubmitOutcome::Existed => StatusCode::OK,
    }
}

#[utoipa::path(get, path = "/v1/workflows", tag = "workflows", summary = "The newest version of each workflow, by name", params(PageQuery), responses((status = 200, description = "A page", body = List<ShownWorkflow<'_>>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Outcome {
    let range = parse::query::<PageQuery>(query.as_deref())?.names()?;
    let page = app.ask(ListWorkflows(range)).await?;
    let items = page.workflows.iter().map(ShownWorkflow::of).collect();
    Ok(json(&List { items, next_cursor: page.next.map(|name| name.to_string()) }))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct VersionQuery {
    /// The newest if not given.
    #[param(minimum = 1)]
    version: Option<i64>,
}

#[utoipa::path(get, path = "/v1/workflows/{name}", tag = "workflows", summary = "A workflow with its definition", params(("name" = String, Path), VersionQuery), responses((status = 200, description = "That version, or the newest", body = ShownDefinition<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn get(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let VersionQuery { version } = parse::query(query.as_deref())?;
    let (name, version) = (name.into(), flow::version(version)?);
    let workflow = app.ask(GetWorkflow { name, version }).await?;
    Ok(json(&ShownDefinition::of(&workflow)))
}

#[utoipa::path(delete, path = "/v1/workflows/{name}", tag = "workflows", summary = "Delete a workflow that no run and no other definition needs: one version, or all of them", params(("name" = String, Path), VersionQuery), responses((status = 204, description = "It is gone"), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
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

#[utoipa::path(post, path = "/v1/workflows/{name}/runs/batch", tag = "workflows", summary = "Begin many runs, all or none", params(("name" = String, Path)), request_body = StartBatchBody<'_>, responses((status = 201, description = "They began; a known key gives the run that holds it", body = super::Ids), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn start_batch(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    WholeBatch(body): WholeBatch,
) -> Outcome {
    let runs = parse::parse::<StartBatchBody<'_>>(&body)?.parse(&name)?;
    drop(body);
    let started = app.ask(StartRuns { runs }).await?;
    let ids = started.iter().map(|started| started.run_id.0).collect();
    Ok((StatusCode::CREATED, json(&super::Ids { ids })).into_response())
}

#[utoipa::path(post, path = "/v1/workflows/{name}/runs", tag = "workflows", summary = "Begin a run", params(("name" = String, Path)), request_body = Option<StartBody<'_>>, responses((status = 201, description = "It began", body = ShownRun<'_>), (status = 200, description = "A run with this key was there", body = ShownRun<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn start(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let start = parse::parse::<StartBody<'_>>(&body)?.parse(name)?;
    let started = app.ask(start).await?;
    Ok((status(started.outcome), json(&ShownRun::of(&started.run))).into_response())
}
