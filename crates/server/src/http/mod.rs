//! HTTP: one file per noun. A handler parses, asks, and shows; it decides nothing.

mod artifacts;
mod by_key;
mod classes;
mod events;
mod graph;
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
use tenure_coordinator::request::{
    CancelRun, CancelTask, CompleteTask, ConfigureQueue, DeleteQueue, DeleteWorkflow, ExplainTask,
    FailTask, GetQueue, GetRun, GetStatus, GetTask, GetWorkflow, Heartbeat, Lease, ListArtifacts,
    ListQueues, ListRuns, ListTasks, ListTokens, ListWorkers, ListWorkflows, PauseQueue,
    RegisterWorker, RegisterWorkflow, ReleaseTask, ReportTasks, ResumeQueue, RetryTask, SignOff,
    SignalByKey, SignalRun, StartRun, StartRuns, SubmitTask, SubmitTasks, TakeSnapshot, UnparkRun,
};
use utoipa::OpenApi;
use utoipa_axum::routes;

use self::classes::ClassedRouter;
pub(crate) use self::classes::Classes;
pub(crate) use self::events::EventText;
use crate::app::App;
use crate::limits::{BATCH_BODY_BYTES_MAX, BODY_BYTES_MAX};
use crate::problem::Problem;
use crate::wire::list::decimal;

/// All that HTTP offers, with the admission class of each route.
pub(crate) fn routes(app: Arc<App>) -> (Router, Classes) {
    let (router, mut openapi, classes) = classed().finish();
    by_key::document(&mut openapi);
    let openapi: Arc<str> = openapi.to_json().unwrap_or_default().into();
    let router = router
        // Names may have folders in them.
        .route(ARTIFACT, get(artifacts::get))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .with_state(Arc::clone(&app));
    let router = by_key::routes(router, &app)
        .route("/", get(page::page).with_state(app))
        .route("/openapi.json", get(move || show_document(Arc::clone(&openapi))))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method);
    (router, classes)
}

const ARTIFACT: &str = "/v1/runs/{id}/artifacts/{*name}";

fn classed() -> ClassedRouter {
    let mut router = ClassedRouter::new(Document::openapi())
        .open(routes!(operate::healthz))
        .open(routes!(operate::readyz))
        .open(routes!(operate::metrics))
        .serve::<GetStatus>(routes!(operate::status))
        .serve::<TakeSnapshot>(routes!(snapshots::take))
        .serve::<SubmitTask>(routes!(tasks::submit))
        .serve::<ListTasks>(routes!(tasks::list))
        .serve::<SubmitTasks>(routes!(tasks::submit_batch))
        .serve::<GetTask>(routes!(tasks::get))
        .serve::<CancelTask>(routes!(tasks::cancel))
        .serve::<RetryTask>(routes!(tasks::retry))
        .serve::<ExplainTask>(routes!(tasks::explain))
        .files(routes!(tasks::history))
        .serve::<Heartbeat>(routes!(leases::heartbeat))
        .serve::<CompleteTask>(routes!(leases::complete))
        .serve::<FailTask>(routes!(leases::fail))
        .serve::<ReleaseTask>(routes!(leases::release))
        .serve::<Lease>(routes!(leases::lease))
        .serve::<ReportTasks>(routes!(leases::report))
        .serve::<ListWorkers>(routes!(workers::list))
        .serve::<RegisterWorker>(routes!(workers::register))
        .serve::<SignOff>(routes!(workers::sign_off))
        .serve::<ListQueues>(routes!(queues::list))
        .serve::<GetQueue>(routes!(queues::get))
        .serve::<ConfigureQueue>(routes!(queues::configure))
        .serve::<DeleteQueue>(routes!(queues::delete))
        .serve::<PauseQueue>(routes!(queues::pause))
        .serve::<ResumeQueue>(routes!(queues::resume))
        .files(routes!(redecide::show))
        .serve::<ListWorkflows>(routes!(workflows::list))
        .serve::<GetWorkflow>(routes!(workflows::get))
        .serve::<RegisterWorkflow>(routes!(workflows::put))
        .serve::<DeleteWorkflow>(routes!(workflows::delete))
        .serve::<StartRun>(routes!(workflows::start))
        .serve::<StartRuns>(routes!(workflows::start_batch))
        .serve::<SignalByKey>(routes!(by_key::signal))
        .serve::<ListRuns>(routes!(runs::list))
        .serve::<GetRun>(routes!(runs::get))
        .serve::<ListTokens>(routes!(runs::tokens))
        .serve::<ListTokens>(routes!(graph::get))
        .files(routes!(runs::history))
        .serve::<CancelRun>(routes!(runs::cancel))
        .serve::<UnparkRun>(routes!(runs::unpark))
        .serve::<SignalRun>(routes!(runs::signal))
        .serve::<ListArtifacts>(routes!(artifacts::list))
        .files(routes!(artifacts::put))
        .files(routes!(events::events));
    router.classes.set::<ListArtifacts>(ARTIFACT);
    by_key::classify(&mut router.classes);
    router
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

/// The body of a batch, which may be larger than other bodies.
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
    wait_ms: Option<u64>,
}

/// Shows something as JSON.
fn json(value: &impl Serialize) -> Response {
    let text = serde_json::to_vec(value).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::Method;
    use tenure_coordinator::RequestClass::{Other, Report, Submit};

    use super::*;

    #[test]
    fn every_route_of_the_interface_has_an_admission_class() {
        let (_, mut openapi, classes) = classed().finish();
        by_key::document(&mut openapi);
        let routes = openapi.paths.paths.keys().map(|route| match route.as_str() {
            "/v1/runs/{id}/artifacts/{name}" => ARTIFACT,
            route => route,
        });
        // Paths below a key are one route.
        let routes = routes.filter(|route| by_key::is_own(route));
        for route in routes {
            let is_open = !route.starts_with("/v1/");
            assert_eq!(classes.of(&Method::GET, route).is_none(), is_open, "{route}");
        }
    }

    #[test]
    fn reports_of_workers_are_the_last_requests_to_be_refused() {
        let (.., classes) = classed().finish();
        let class = |method: Method, route| classes.of(&method, route);
        assert_eq!(class(Method::POST, "/v1/tasks"), Some(Submit));
        assert_eq!(class(Method::GET, "/v1/tasks"), Some(Other));
        assert_eq!(class(Method::HEAD, "/v1/tasks"), Some(Other));
        assert_eq!(class(Method::POST, "/v1/tasks/{id}/complete"), Some(Report));
        assert_eq!(class(Method::DELETE, "/v1/workers/{id}"), Some(Report));
        assert_eq!(class(Method::PUT, "/v1/workflows/{name}"), Some(Submit));
        assert_eq!(class(Method::POST, "/v1/workflows/{name}/runs"), Some(Submit));
        assert_eq!(class(Method::POST, "/v1/workflows/{name}/runs/batch"), Some(Submit));
        assert_eq!(class(Method::GET, "/v1/runs/{id}"), Some(Other));
        assert_eq!(class(Method::GET, "/healthz"), None);
        assert!(Report < Other && Other < Submit);
    }
}
