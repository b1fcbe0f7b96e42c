//! Tasks: submit, look at, list, cancel, retry.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tenure_api as api;
use tenure_coordinator::request::{
    ExplainTask, GetTask, ListTasks, RetryTask, SubmitTask, SubmitTasks,
};
use tenure_coordinator::{Request, TaskInfo};
use tenure_core::command::SubmitOutcome;
use tenure_record::id::TaskId;

use super::{Nothing, Path, WaitQuery, Whole, WholeBatch, json, number};
use crate::app::App;
use crate::fetch::fetched;
use crate::json as parse;
use crate::observe::explain;
use crate::problem::Problem;
use crate::show;
use crate::wire::page::cut;
use crate::wire::{request, terms};

type Outcome = Result<Response, Problem>;

#[utoipa::path(post, path = "/v1/tasks", tag = "tasks", summary = "Submit a task", params(("Idempotency-Key" = Option<String>, Header, description = "Means `key`"), ("traceparent" = Option<String>, Header, description = "W3C trace context, for the worker")), request_body = api::NewTask, responses((status = 201, description = "It was taken", body = api::Task), (status = 200, description = "A task with this key and body was there", body = api::Task), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn submit(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Whole(body): Whole,
) -> Outcome {
    let task = request::with_headers(parse::parse(&body)?, &headers)?;
    let submitted = app.ask(SubmitTask(request::new_task(task)?)).await?;
    let status = match submitted.outcome {
        SubmitOutcome::Created => StatusCode::CREATED,
        SubmitOutcome::Existed => StatusCode::OK,
    };
    Ok((status, json(&show::task::task(&submitted.task))).into_response())
}

#[utoipa::path(post, path = "/v1/tasks/batch", tag = "tasks", summary = "Submit many tasks, all or none", request_body = api::NewTasks, responses((status = 201, description = "They were taken", body = api::Ids), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn submit_batch(State(app): State<Arc<App>>, body: WholeBatch) -> Outcome {
    let submit = parse_batch(&body)?;
    drop(body);
    let tasks = app.ask(submit).await?;
    let ids = tasks.iter().map(|task| task.task_id.0).collect();
    Ok((StatusCode::CREATED, json(&api::Ids { ids })).into_response())
}

fn parse_batch(WholeBatch(body): &WholeBatch) -> Result<SubmitTasks, Problem> {
    let api::NewTasks { tasks } = parse::parse(body)?;
    request::new_tasks(tasks.into_iter())
}

#[utoipa::path(get, path = "/v1/tasks/{id}", tag = "tasks", summary = "A task, at once or when it has ended", params(("id" = u64, Path), WaitQuery), responses((status = 200, description = "The task as it is", body = api::Task), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn get(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let WaitQuery { wait_ms } = parse::query(query.as_deref())?;
    let (task_id, wait_ms) = (TaskId(number(&id)?), terms::wait(wait_ms)?);
    one_task(&app, GetTask { task_id, wait_ms }).await
}

/// Serves a request whose response is a task.
pub(super) async fn one_task<R>(app: &App, request: R) -> Outcome
where
    R: Request<Response = Box<TaskInfo>>,
{
    Ok(json(&show::task::task(&*app.ask(request).await?)))
}

#[utoipa::path(get, path = "/v1/tasks", tag = "tasks", summary = "Tasks, newest first", params(api::TaskFilter), responses((status = 200, description = "A page", body = api::Page<api::Task>), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Outcome {
    let filter = request::filter(parse::query(query.as_deref())?)?;
    let page = cut(app.ask(ListTasks(filter)).await?);
    let items = fetched(page.tasks).await?.iter().map(show::task::task).collect();
    Ok(json(&api::Page { items, next_cursor: page.next.map(|id| id.to_string()) }))
}

#[utoipa::path(post, path = "/v1/tasks/{id}/cancel", tag = "tasks", summary = "Ask a task to stop", params(("id" = u64, Path)), request_body = Option<api::CancelTask>, responses((status = 200, description = "The task", body = api::Task), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let cancel = request::cancel(number(&id)?, &parse::parse(&body)?)?;
    one_task(&app, cancel).await
}

#[utoipa::path(post, path = "/v1/tasks/{id}/retry", tag = "tasks", summary = "Give an ended task another round", params(("id" = u64, Path)), responses((status = 200, description = "The task", body = api::Task), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn retry(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let task_id = TaskId(number(&id)?);
    let Nothing {} = parse::parse(&body)?;
    one_task(&app, RetryTask(task_id)).await
}

#[utoipa::path(get, path = "/v1/tasks/{id}/explain", tag = "tasks", summary = "Why a task is not done yet", params(("id" = u64, Path)), responses((status = 200, description = "What it waits for, or how it ended", body = api::Explanation), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn explain(State(app): State<Arc<App>>, Path(id): Path<String>) -> Outcome {
    let explained = app.ask(ExplainTask(TaskId(number(&id)?))).await?;
    Ok(json(&explain::explanation(&explained)))
}

#[utoipa::path(get, path = "/v1/tasks/{id}/history", tag = "tasks", summary = "What happened to a task", params(("id" = u64, Path), api::PageQuery), responses((status = 200, description = "Oldest first", body = api::History<api::TaskStep>), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn history(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let page = parse::query(query.as_deref())?;
    Ok(json(&show::task::read_history(&app, TaskId(number(&id)?), page).await?))
}
