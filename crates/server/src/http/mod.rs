//! HTTP: one file per noun. A handler parses, asks, and shows; it decides nothing.

pub(crate) mod events;
mod leases;
mod operate;
mod page;
mod queues;
mod tasks;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use tenure_coordinator::{Answer, Ask};

use crate::app::App;
use crate::limits::{BATCH_BODY_BYTES_MAX, BODY_BYTES_MAX, BODY_TIMEOUT};
use crate::problem::Problem;

/// All that HTTP offers.
pub(crate) fn routes(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(page::page))
        .route("/healthz", get(operate::healthz))
        .route("/readyz", get(operate::readyz))
        .route("/metrics", get(operate::metrics))
        .route("/v1/status", get(operate::status))
        .route("/v1/tasks", post(tasks::submit).get(tasks::list))
        .route("/v1/tasks/batch", post(tasks::submit_batch))
        .route("/v1/tasks/{id}", get(tasks::get))
        .route("/v1/tasks/{id}/cancel", post(tasks::cancel))
        .route("/v1/tasks/{id}/retry", post(tasks::retry))
        .route("/v1/tasks/{id}/history", get(tasks::history))
        .route("/v1/tasks/{id}/heartbeat", post(leases::heartbeat))
        .route("/v1/tasks/{id}/complete", post(leases::complete))
        .route("/v1/tasks/{id}/fail", post(leases::fail))
        .route("/v1/tasks/{id}/release", post(leases::release))
        .route("/v1/leases", post(leases::lease))
        .route("/v1/reports", post(leases::report))
        .route("/v1/workers", get(workers::list))
        .route("/v1/workers/{id}", put(workers::register).delete(workers::sign_off))
        .route("/v1/queues", get(queues::list))
        .route("/v1/queues/{name}", get(queues::get).put(queues::configure))
        .route("/v1/queues/{name}/pause", post(queues::pause))
        .route("/v1/queues/{name}/resume", post(queues::resume))
        .route("/v1/events", get(events::events))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

async fn unknown(request: Request) -> Problem {
    let detail = format!("there is nothing at {}; see /openapi.json", request.uri().path());
    Problem::new("not_found", detail)
}

async fn wrong_method(request: Request) -> Problem {
    let (method, path) = (request.method(), request.uri().path());
    Problem::new("method_not_allowed", format!("{path} does not take {method}; see /openapi.json"))
}

/// A body that arrived whole, in time and within bounds.
pub(crate) struct Whole(pub Bytes);

/// The same for a batch, which may be larger.
pub(crate) struct WholeBatch(pub Bytes);

impl<S: Sync> FromRequest<S> for Whole {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        read(request.into_body(), BODY_BYTES_MAX).await.map(Self)
    }
}

impl<S: Sync> FromRequest<S> for WholeBatch {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        read(request.into_body(), BATCH_BODY_BYTES_MAX).await.map(Self)
    }
}

async fn read(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let whole = Limited::new(body, limit).collect();
    match tokio::time::timeout(BODY_TIMEOUT, whole).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::new(
            "payload_too_large",
            format!("the body has more than {limit} bytes; send less, or in several requests"),
        )),
        Ok(Err(error)) => Err(Problem::invalid(format!("the body could not be read: {error}"))),
        Err(_) => Err(slow(BODY_TIMEOUT)),
    }
}

fn slow(limit: Duration) -> Problem {
    let detail = format!("the body did not arrive within {} s", limit.as_secs());
    Problem::new("request_timeout", detail)
}

/// Asks, and waits for the outcome.
async fn ask(app: &App, ask: Ask) -> Result<Answer, Problem> {
    Ok(app.tenure.ask(ask).await?)
}

/// An answer of another kind than the ask has.
fn unexpected<T>() -> Result<T, Problem> {
    unreachable!("every ask has its own kind of answer")
}

/// A number from the path.
fn number(text: &str) -> Result<u64, Problem> {
    text.parse()
        .map_err(|_| Problem::new("not_found", format!("{text:?} is no id; ids are numbers")))
}

/// Shows something as JSON.
fn json(value: &impl Serialize) -> Response {
    let text = serde_json::to_vec(value).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// A list as it is shown.
#[derive(Serialize)]
struct List<T> {
    items: Vec<T>,
    next_cursor: Option<String>,
}

fn all<T: Serialize>(items: Vec<T>) -> Response {
    json(&List { items, next_cursor: None })
}
