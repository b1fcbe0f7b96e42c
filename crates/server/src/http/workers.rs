//! Workers: who is there.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tenure_coordinator::request::{ListWorkers, RegisterWorker, SignOff};
use tenure_record::name::WorkerName;

use super::{List, PageQuery, Path, Whole, json};
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::wire::page::cut_workers;
use crate::wire::request::WorkerBody;
use crate::wire::shown::ShownWorker;

type Outcome = Result<Response, Problem>;

#[utoipa::path(put, path = "/v1/workers/{id}", tag = "workers", summary = "Say who you are", params(("id" = String, Path)), request_body = WorkerBody, responses((status = 204, description = "It is known"), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn register(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let registration = parse::parse::<WorkerBody>(&body)?.parse(&id)?;
    app.ask(RegisterWorker(registration)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[utoipa::path(get, path = "/v1/workers", tag = "workers", summary = "Who was heard lately, by name", params(PageQuery), responses((status = 200, description = "A page", body = super::List<ShownWorker<'_>>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Outcome {
    let range = parse::query::<PageQuery>(query.as_deref())?.names()?;
    let page = cut_workers(app.ask(ListWorkers(range)).await?);
    let items = page.items.iter().map(ShownWorker::of).collect();
    Ok(json(&List { items, next_cursor: page.next.map(|name| name.to_string()) }))
}

#[derive(Serialize, utoipa::ToSchema)]
struct SignedOff {
    released: usize,
}

#[utoipa::path(delete, path = "/v1/workers/{id}", tag = "workers", summary = "Leave, and give all leases back", params(("id" = String, Path)), responses((status = 200, description = "How many were given back", body = SignedOff), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn sign_off(State(app): State<Arc<App>>, Path(id): Path<String>) -> Outcome {
    let released = app.ask(SignOff(WorkerName::parse(&id)?)).await?;
    Ok(json(&SignedOff { released }))
}
