//! Workers: who is there.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tenure_api as api;
use tenure_coordinator::request::{ListWorkers, RegisterWorker, SignOff};
use tenure_record::name::WorkerName;

use super::{Path, Whole, json};
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::show;
use crate::wire::page::cut_workers;
use crate::wire::{list, request};

type Outcome = Result<Response, Problem>;

#[utoipa::path(put, path = "/v1/workers/{id}", tag = "workers", summary = "Say who you are", params(("id" = String, Path)), request_body = api::Registration, responses((status = 204, description = "It is known"), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn register(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let registration = request::registration(&id, parse::parse(&body)?)?;
    app.ask(RegisterWorker(registration)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[utoipa::path(get, path = "/v1/workers", tag = "workers", summary = "Who was heard lately, by name", params(api::PageQuery), responses((status = 200, description = "A page", body = api::Page<api::Worker>), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Outcome {
    let range = list::names(parse::query(query.as_deref())?)?;
    let page = cut_workers(app.ask(ListWorkers(range)).await?);
    let items = page.items.iter().map(show::worker::worker).collect();
    Ok(json(&api::Page { items, next_cursor: page.next.map(|name| name.to_string()) }))
}

#[utoipa::path(delete, path = "/v1/workers/{id}", tag = "workers", summary = "Leave, and give all leases back", params(("id" = String, Path)), responses((status = 200, description = "How many were given back", body = api::SignedOff), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn sign_off(State(app): State<Arc<App>>, Path(id): Path<String>) -> Outcome {
    let released = app.ask(SignOff(WorkerName::parse(&id)?)).await?;
    Ok(json(&api::SignedOff { released: released as u64 }))
}
