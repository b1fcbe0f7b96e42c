//! Queues: how full they are, and their settings.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tenure_api as api;
use tenure_coordinator::Request;
use tenure_coordinator::request::{DeleteQueue, GetQueue, ListQueues, ResumeQueue};
use tenure_core::state::QueueView;
use tenure_record::name::QueueName;

use super::{Path, Whole, json};
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::show;
use crate::wire::{list, request};

type Outcome = Result<Response, Problem>;

#[utoipa::path(get, path = "/v1/queues", tag = "queues", summary = "Queues, by name", params(api::PageQuery), responses((status = 200, description = "A page", body = api::Page<api::Queue>), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Outcome {
    let range = list::names(parse::query(query.as_deref())?)?;
    let page = app.ask(ListQueues(range)).await?;
    let items = page.items.iter().map(show::queue::queue).collect();
    Ok(json(&api::Page { items, next_cursor: page.next.map(|name| name.to_string()) }))
}

#[utoipa::path(get, path = "/v1/queues/{name}", tag = "queues", summary = "A queue", params(("name" = String, Path)), responses((status = 200, description = "The queue", body = api::Queue), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn get(State(app): State<Arc<App>>, Path(name): Path<String>) -> Outcome {
    one_queue(&app, &name, GetQueue(QueueName::parse(&name)?)).await
}

#[utoipa::path(put, path = "/v1/queues/{name}", tag = "queues", summary = "Settings of a queue; null clears one", params(("name" = String, Path)), request_body = api::QueueSettings, responses((status = 200, description = "The queue", body = api::Queue), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn configure(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let configure = request::configure(&name, parse::parse(&body)?)?;
    one_queue(&app, &name, configure).await
}

#[utoipa::path(post, path = "/v1/queues/{name}/pause", tag = "queues", summary = "Give no more leases from a queue", params(("name" = String, Path)), request_body = Option<api::PauseQueue>, responses((status = 200, description = "The queue", body = api::Queue), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn pause(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let pause = request::pause(&name, &parse::parse(&body)?)?;
    one_queue(&app, &name, pause).await
}

#[utoipa::path(delete, path = "/v1/queues/{name}", tag = "queues", summary = "Delete a queue that has no tasks, with its settings", params(("name" = String, Path)), responses((status = 204, description = "It is gone"), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn delete(State(app): State<Arc<App>>, Path(name): Path<String>) -> Outcome {
    app.ask(DeleteQueue(QueueName::parse(&name)?)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[utoipa::path(post, path = "/v1/queues/{name}/resume", tag = "queues", summary = "Give leases from a queue again", params(("name" = String, Path)), responses((status = 200, description = "The queue", body = api::Queue), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn resume(State(app): State<Arc<App>>, Path(name): Path<String>) -> Outcome {
    one_queue(&app, &name, ResumeQueue(QueueName::parse(&name)?)).await
}

/// Serves a request whose response is a queue.
async fn one_queue<R>(app: &App, name: &str, request: R) -> Outcome
where
    R: Request<Response = Option<Box<QueueView>>>,
{
    Ok(json(&show::queue::found(name, app.ask(request).await?.as_deref())?))
}
