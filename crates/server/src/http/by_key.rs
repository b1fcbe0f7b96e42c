//! Runs by key: `/v1/workflows/{name}/runs/by-key/{key}` takes every verb of a run. The key is
//! resolved to the run's id here, once, and the request goes on to the routes of `/v1/runs/{id}`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Uri;
use axum::response::Response;
use axum::routing::any;
use tenure_api::{self as api, RunRef};
use tenure_coordinator::request::FindRun;
use tenure_core::command::SubmitOutcome;
use tenure_record::name::TaskKey;
use tower::ServiceExt;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::{OpenApi, RefOr, Required};

use super::classes::Classes;
use super::runs::signal_run;
use super::{Path, Whole, json};
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::show;

const RUN: &str = "/v1/runs/{id}";
const BY_KEY: &str = "/v1/workflows/{name}/runs/by-key/{key}";

/// Adds the addresses by key to the routes of runs.
pub(super) fn routes(routes: Router, app: &Arc<App>) -> Router {
    let inner = routes.clone();
    let app = Arc::clone(app);
    let forward = move |path: Path<Named>, request: Request| {
        forward(Arc::clone(&app), inner.clone(), path, request)
    };
    routes.route(BY_KEY, any(forward.clone())).route(&rest(), any(forward))
}

/// The address by key with everything that follows it.
fn rest() -> String {
    format!("{BY_KEY}/{{*rest}}")
}

/// Sets the admission class of the addresses by key.
pub(super) fn classify(classes: &mut Classes) {
    classes.set::<FindRun>(BY_KEY);
    classes.set::<FindRun>(&rest());
}

/// Whether a documented path is a route of its own.
#[cfg(test)]
pub(super) fn is_own(route: &str) -> bool {
    !route.starts_with(BY_KEY) || route == BY_KEY || route.contains("/signals/")
}

#[derive(serde::Deserialize)]
pub(super) struct Named {
    name: String,
    key: String,
}

async fn forward(
    app: Arc<App>,
    inner: Router,
    Path(Named { name, key }): Path<Named>,
    mut request: Request,
) -> Result<Response, Problem> {
    let find = FindRun { workflow: name.into(), key: TaskKey::parse(&key)? };
    let run_id = app.ask(find).await?;
    // What follows the key stays as it was sent: /v1/workflows/NAME/runs/by-key/KEY/...
    let rest = request.uri().path().splitn(8, '/').nth(7);
    let rest = rest.map(|rest| format!("/{rest}")).unwrap_or_default();
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    let address: Uri = format!("/v1/runs/{run_id}{rest}{query}")
        .parse()
        .map_err(|_| Problem::invalid("the address cannot be read; encode its parts"))?;
    *request.uri_mut() = address;
    // The parts of the address by key would count as parts of the run's address.
    request.extensions_mut().clear();
    match inner.oneshot(request).await {
        Ok(response) => Ok(response),
        Err(never) => match never {},
    }
}

/// A signal by key can begin the run, so it is one command and not forwarded.
#[utoipa::path(post, path = "/v1/workflows/{name}/runs/by-key/{key}/signals/{signal}", tag = "runs", summary = "News from outside for the run that holds a key; with `start` it begins the run if there is none", params(("name" = String, Path), ("key" = String, Path), ("signal" = String, Path)), request_body = Option<api::Signal>, responses((status = 201, description = "It began the run", body = api::Signaled), (status = 200, description = "What became of it", body = api::Signaled), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn signal(
    State(app): State<Arc<App>>,
    Path((name, key, signal)): Path<(String, String, String)>,
    Whole(body): Whole,
) -> Result<(axum::http::StatusCode, Response), Problem> {
    let run = RunRef::Key { workflow: name, key };
    let signaled = signal_run(&app, run, &signal, parse::parse(&body)?).await?;
    let status = match signaled.outcome {
        SubmitOutcome::Created => axum::http::StatusCode::CREATED,
        SubmitOutcome::Existed => axum::http::StatusCode::OK,
    };
    Ok((status, json(&show::run::signaled(signal, signaled))))
}

/// Documents the addresses by key: those of a run, with the name and the key in the place of the id.
pub(super) fn document(openapi: &mut OpenApi) {
    let of_runs = openapi.paths.paths.iter().filter(|(path, _)| path.starts_with(RUN));
    let by_key: Vec<_> = of_runs
        .map(|(path, item)| (path.replacen(RUN, BY_KEY, 1), of_key(item.clone())))
        .filter(|(path, _)| !openapi.paths.paths.contains_key(path))
        .filter(|(path, _)| !path.contains("/signals/"))
        .collect();
    openapi.paths.paths.extend(by_key);
}

fn of_key(mut item: PathItem) -> PathItem {
    let operations =
        [&mut item.get, &mut item.post, &mut item.put, &mut item.delete, &mut item.patch];
    for operation in operations.into_iter().flatten() {
        let Operation { operation_id, parameters, .. } = operation;
        if let Some(id) = operation_id {
            id.push_str("_by_key");
        }
        let others = parameters.take().unwrap_or_default();
        let is_id = |parameter: &RefOr<Parameter>| match parameter {
            RefOr::T(parameter) => parameter.name == "id",
            RefOr::Ref(_) => false,
        };
        let others = others.into_iter().filter(|parameter| !is_id(parameter));
        let named = ["name", "key"].into_iter().map(|name| RefOr::T(text(name)));
        *parameters = Some(named.chain(others).collect());
    }
    item
}

fn text(name: &str) -> Parameter {
    let schema = utoipa::openapi::ObjectBuilder::new().schema_type(utoipa::openapi::Type::String);
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(RefOr::T(schema.build().into())))
        .build()
}
