//! Tasks: submit, look at, list, cancel, retry.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tenure_code::Echo;
use tenure_coordinator::limits::HISTORY_BYTES;
use tenure_coordinator::request::{
    ExplainTask, GetTask, ListTasks, RetryTask, SubmitTask, SubmitTasks,
};
use tenure_coordinator::{Request, TaskFilter, TaskInfo};
use tenure_core::command::SubmitOutcome;
use tenure_record::id::{RunId, TaskId};
use tenure_record::name::{QueueName, TaskName, WorkerName};
use tenure_record::state::TaskState;

use super::{Ids, List, Nothing, PageQuery, Path, WaitQuery, Whole, WholeBatch, json, number};
use crate::admission::response_budget;
use crate::app::App;
use crate::fetch::fetched;
use crate::json as parse;
use crate::observe::explain::Explanation;
use crate::problem::Problem;
use crate::wire::page::{cut, of_history};
use crate::wire::request::{BatchBody, CancelBody, NewTaskBody, Said};
use crate::wire::shown::{ShownExplanation, ShownStep, ShownTask};
use crate::wire::{list, terms};

type Outcome = Result<Response, Problem>;

#[utoipa::path(post, path = "/v1/tasks", tag = "tasks", summary = "Submit a task", params(("Idempotency-Key" = Option<String>, Header, description = "Means `key`"), ("traceparent" = Option<String>, Header, description = "W3C trace context, for the worker")), request_body = NewTaskBody<'_>, responses((status = 201, description = "It was taken", body = ShownTask<'_>), (status = 200, description = "A task with this key and body was there", body = ShownTask<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn submit(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Whole(body): Whole,
) -> Outcome {
    let said = Said::read(&headers)?;
    let task = parse::parse::<NewTaskBody<'_>>(&body)?.parse_with(said)?;
    let submitted = app.ask(SubmitTask(task)).await?;
    let status = match submitted.outcome {
        SubmitOutcome::Created => StatusCode::CREATED,
        SubmitOutcome::Existed => StatusCode::OK,
    };
    Ok((status, json(&ShownTask::of(&submitted.task))).into_response())
}

#[utoipa::path(post, path = "/v1/tasks/batch", tag = "tasks", summary = "Submit many tasks, all or none", request_body = BatchBody<'_>, responses((status = 201, description = "They were taken", body = Ids), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn submit_batch(State(app): State<Arc<App>>, body: WholeBatch) -> Outcome {
    let submit = parse_batch(&body)?;
    drop(body);
    let tasks = app.ask(submit).await?;
    let ids = tasks.iter().map(|task| task.task_id.0).collect();
    Ok((StatusCode::CREATED, json(&Ids { ids })).into_response())
}

fn parse_batch(WholeBatch(body): &WholeBatch) -> Result<SubmitTasks, Problem> {
    let batch = parse::parse::<BatchBody<'_>>(body)?;
    let mut tasks = Vec::with_capacity(batch.tasks.len());
    for (index, task) in batch.tasks.into_iter().enumerate() {
        tasks.push(task.parse().map_err(|problem| Problem {
            detail: format!("tasks[{index}]: {}", problem.detail),
            ..problem
        })?);
    }
    Ok(SubmitTasks { tasks })
}

#[utoipa::path(get, path = "/v1/tasks/{id}", tag = "tasks", summary = "A task, at once or when it has ended", params(("id" = u64, Path), WaitQuery), responses((status = 200, description = "The task as it is", body = ShownTask<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn get(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let WaitQuery { wait_ms } = parse::query(query.as_deref())?;
    let (task_id, wait_ms) = (TaskId(number(&id)?), terms::wait(wait_ms.map(i128::from))?);
    show(&app, GetTask { task_id, wait_ms }).await
}

/// Serves a request whose response is a task.
pub(super) async fn show<R>(app: &App, request: R) -> Outcome
where
    R: Request<Response = Box<TaskInfo>>,
{
    Ok(json(&ShownTask::of(&*app.ask(request).await?)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    queue: Option<String>,
    state: Option<String>,
    /// With this name.
    name: Option<String>,
    tag: Option<String>,
    worker: Option<String>,
    /// Of this run.
    run: Option<u64>,
    /// Whose last failure has this code.
    code: Option<String>,
    /// `true`: those that wait for the end of their backoff. `false`: those that do not.
    retrying: Option<bool>,
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
    cursor: Option<String>,
}

impl ListQuery {
    fn parse(self) -> Result<TaskFilter, Problem> {
        let state = |name: String| {
            TaskState::ALL.into_iter().find(|state| state.as_str() == name).ok_or_else(|| {
                let names: Vec<_> = TaskState::ALL.iter().map(|state| state.as_str()).collect();
                let (name, names) = (Echo(&name), names.join(", "));
                Problem::invalid(format!("state is {name}; it must be one of {names}"))
            })
        };
        Ok(TaskFilter {
            queue: self.queue.as_deref().map(QueueName::parse).transpose()?,
            state: self.state.map(state).transpose()?,
            name: self.name.as_deref().map(TaskName::parse).transpose()?,
            tag: list::tag(self.tag.as_deref())?,
            worker: self.worker.as_deref().map(WorkerName::parse).transpose()?,
            run: self.run.map(RunId),
            code: self.code,
            retrying: self.retrying,
            before: list::cursor(self.cursor.as_deref())?.map(TaskId),
            limit: list::limit(self.limit)?,
        })
    }
}

#[utoipa::path(get, path = "/v1/tasks", tag = "tasks", summary = "Tasks, newest first", params(ListQuery), responses((status = 200, description = "A page", body = List<ShownTask<'_>>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Outcome {
    let filter = parse::query::<ListQuery>(query.as_deref())?.parse()?;
    let page = cut(app.ask(ListTasks(filter)).await?);
    let tasks = fetched(page.tasks).await?;
    let items = tasks.iter().map(ShownTask::of).collect();
    Ok(json(&List { items, next_cursor: page.next.map(|id| id.to_string()) }))
}

#[utoipa::path(post, path = "/v1/tasks/{id}/cancel", tag = "tasks", summary = "Ask a task to stop", params(("id" = u64, Path)), request_body = Option<CancelBody>, responses((status = 200, description = "The task", body = ShownTask<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let id = number(&id)?;
    let cancel = parse::parse::<CancelBody>(&body)?.parse(id)?;
    show(&app, cancel).await
}

#[utoipa::path(post, path = "/v1/tasks/{id}/retry", tag = "tasks", summary = "Give an ended task another round", params(("id" = u64, Path)), responses((status = 200, description = "The task", body = ShownTask<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn retry(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let task_id = TaskId(number(&id)?);
    let Nothing {} = parse::parse(&body)?;
    show(&app, RetryTask(task_id)).await
}

#[utoipa::path(get, path = "/v1/tasks/{id}/explain", tag = "tasks", summary = "Why a task is not done yet", params(("id" = u64, Path)), responses((status = 200, description = "What it waits for, or how it ended", body = ShownExplanation<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn explain(State(app): State<Arc<App>>, Path(id): Path<String>) -> Outcome {
    let explained = app.ask(ExplainTask(TaskId(number(&id)?))).await?;
    Ok(json(&ShownExplanation::of(&Explanation::of(&explained))))
}

#[derive(Serialize, utoipa::ToSchema)]
struct ShownHistory<'a> {
    items: Vec<ShownStep<'a>>,
    next_cursor: Option<String>,
    truncated_before: Option<u64>,
}

#[utoipa::path(get, path = "/v1/tasks/{id}/history", tag = "tasks", summary = "What happened to a task", params(("id" = u64, Path), PageQuery), responses((status = 200, description = "Oldest first", body = ShownHistory<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn history(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let PageQuery { limit, cursor } = parse::query(query.as_deref())?;
    let (task_id, limit) = (TaskId(number(&id)?), list::limit(limit)?);
    let tenure = app.tenure.clone();
    response_budget::reserve(HISTORY_BYTES).await?;
    // It reads files.
    let history = tokio::task::spawn_blocking(move || tenure.history(task_id)).await;
    let history = history.map_err(|_| Problem::stopping())??;
    let (steps, next_cursor) =
        of_history(&history.steps, |step| step.lsn.0, cursor.as_deref(), limit)?;
    let items = steps.iter().map(ShownStep::of).collect();
    let truncated_before = history.truncated_before.map(|lsn| lsn.0);
    Ok(json(&ShownHistory { items, next_cursor, truncated_before }))
}
