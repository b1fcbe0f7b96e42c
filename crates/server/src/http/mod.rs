//! HTTP: one file per noun. A handler parses, asks, and shows; it decides nothing.

mod artifacts;
mod by_key;
mod events;
mod leases;
mod operate;
mod page;
mod queues;
mod redecide;
mod runs;
mod snapshots;
mod tasks;
mod workers;
mod workflows;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenure_code::{Code, Echo};
use tenure_coordinator::{Answer, Ask, NameRange};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::events::EventText;
use crate::app::App;
use crate::limits::{BATCH_BODY_BYTES_MAX, BODY_BYTES_MAX};
use crate::problem::Problem;
use crate::wire::list::{self, decimal};

/// All that HTTP offers.
pub(crate) fn routes(app: Arc<App>) -> Router {
    let (router, mut openapi) = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(operate::healthz))
        .routes(routes!(operate::readyz))
        .routes(routes!(operate::metrics))
        .routes(routes!(operate::status))
        .routes(routes!(snapshots::take))
        .routes(routes!(tasks::submit, tasks::list))
        .routes(routes!(tasks::submit_batch))
        .routes(routes!(tasks::get))
        .routes(routes!(tasks::cancel))
        .routes(routes!(tasks::retry))
        .routes(routes!(tasks::explain))
        .routes(routes!(tasks::history))
        .routes(routes!(leases::heartbeat))
        .routes(routes!(leases::complete))
        .routes(routes!(leases::fail))
        .routes(routes!(leases::release))
        .routes(routes!(leases::lease))
        .routes(routes!(leases::report))
        .routes(routes!(workers::list))
        .routes(routes!(workers::register, workers::sign_off))
        .routes(routes!(queues::list))
        .routes(routes!(queues::get, queues::configure, queues::delete))
        .routes(routes!(queues::pause))
        .routes(routes!(queues::resume))
        .routes(routes!(redecide::show))
        .routes(routes!(workflows::list))
        .routes(routes!(workflows::get, workflows::put, workflows::delete))
        .routes(routes!(workflows::start))
        .routes(routes!(workflows::start_batch))
        .routes(routes!(by_key::signal))
        .routes(routes!(runs::list))
        .routes(routes!(runs::get))
        .routes(routes!(runs::tokens))
        .routes(routes!(runs::history))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::unpark))
        .routes(routes!(runs::signal))
        .routes(routes!(artifacts::list))
        .routes(routes!(artifacts::put))
        .routes(routes!(events::events))
        .split_for_parts();
    by_key::document(&mut openapi);
    let openapi: Arc<str> = openapi.to_json().unwrap_or_default().into();
    let router = router
        // Names may have folders in them.
        .route("/v1/runs/{id}/artifacts/{*name}", get(artifacts::get))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .with_state(Arc::clone(&app));
    by_key::routes(router, &app)
        .route("/", get(page::page).with_state(app))
        .route("/openapi.json", get(move || show_document(Arc::clone(&openapi))))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
}

/// What the whole interface is called.
#[derive(OpenApi)]
#[openapi(
    paths(artifacts::get),
    info(
        title = "Tenure",
        description = "A durable task scheduler and workflow engine: tasks are held by lease, and nothing is true until it is written.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    )
)]
struct Document;

async fn show_document(openapi: Arc<str>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi.to_string()).into_response()
}

async fn unknown(request: Request) -> Problem {
    let path = Echo(request.uri().path());
    let detail = format!("there is nothing at {path}; see /openapi.json");
    Problem::new(Code::NotFound, detail)
}

async fn wrong_method(request: Request) -> Problem {
    let (method, path) = (Echo(request.method().as_str()), Echo(request.uri().path()));
    Problem::new(
        Code::MethodNotAllowed,
        format!("{path} does not take {method}; see /openapi.json"),
    )
}

/// A body that arrived whole, in time and within bounds.
pub(crate) struct Whole(pub Bytes);

/// The same for a batch, which may be larger.
pub(crate) struct WholeBatch(pub Bytes);

impl FromRequest<Arc<App>> for Whole {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        app.bodies.read(request.into_body(), BODY_BYTES_MAX).await.map(Self)
    }
}

impl FromRequest<Arc<App>> for WholeBatch {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        app.bodies.read(request.into_body(), BATCH_BODY_BYTES_MAX).await.map(Self)
    }
}

/// Asks, and waits for the outcome.
async fn ask(app: &App, ask: Ask) -> Result<Answer, Problem> {
    app.ask(ask).await
}

/// An answer of another kind than the ask has.
fn unexpected<T>() -> Result<T, Problem> {
    unreachable!("every ask has its own kind of answer")
}

/// An id from the path. It has one spelling, so that one thing has one address.
fn number(text: &str) -> Result<u64, Problem> {
    decimal(text).ok_or_else(|| {
        let detail = format!(
            "{} is no id; ids are whole numbers, written without a sign or leading zeros",
            Echo(text)
        );
        Problem::new(Code::NotFound, detail)
    })
}

/// The variable parts of a path, as text.
pub(crate) struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = axum::extract::Path::from_request_parts(parts, state).await;
        path.map(|axum::extract::Path(path)| Self(path)).map_err(|_| {
            let path = Echo(parts.uri.path());
            Problem::invalid(format!(
                "{path} is not UTF-8 once it is decoded; encode the name as UTF-8"
            ))
        })
    }
}

/// A body with nothing in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct WaitQuery {
    /// How long to wait for its end.
    #[param(minimum = 0, maximum = 60_000)]
    wait_ms: Option<i64>,
}

/// Shows something as JSON.
fn json(value: &impl Serialize) -> Response {
    let text = serde_json::to_vec(value).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// What a batch made, in the order in which it was asked for.
#[derive(Serialize, utoipa::ToSchema)]
struct Ids {
    ids: Vec<u64>,
}

/// A list as it is shown.
#[derive(Serialize, utoipa::ToSchema)]
struct List<T> {
    items: Vec<T>,
    next_cursor: Option<String>,
}

/// Which page of a list.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PageQuery {
    /// At most so many; 100 if not given.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

impl PageQuery {
    /// A page of a list that goes by name.
    fn names(self) -> Result<NameRange, Problem> {
        Ok(NameRange { after: self.cursor.map(Arc::from), limit: list::limit(self.limit)? })
    }
}
