//! Queues: how full they are, and their settings.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tenure_code::{Code, Echo};
use tenure_coordinator::{Answer, Ask, Query};
use tenure_core::command::Command;
use tenure_record::name::QueueName;

use super::{List, PageQuery, Path, Whole, ask, json, unexpected};
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::wire::request::{PauseBody, QueueBody};
use crate::wire::shown::ShownQueue;

type Outcome = Result<Response, Problem>;

#[utoipa::path(get, path = "/v1/queues", tag = "queues", summary = "Queues, by name", params(PageQuery), responses((status = 200, description = "A page", body = super::List<ShownQueue<'_>>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Outcome {
    let range = parse::query::<PageQuery>(query.as_deref())?.names()?;
    let Answer::Queues(page) = ask(&app, Ask::Query(Query::Queues(range))).await? else {
        return unexpected();
    };
    let items = page.items.iter().map(ShownQueue::of).collect();
    Ok(json(&List { items, next_cursor: page.next.map(|name| name.to_string()) }))
}

#[utoipa::path(get, path = "/v1/queues/{name}", tag = "queues", summary = "A queue", params(("name" = String, Path)), responses((status = 200, description = "The queue", body = ShownQueue<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn get(State(app): State<Arc<App>>, Path(name): Path<String>) -> Outcome {
    show(&app, QueueName::parse(&name)?).await
}

#[utoipa::path(put, path = "/v1/queues/{name}", tag = "queues", summary = "Settings of a queue; null clears one", params(("name" = String, Path)), request_body = QueueBody, responses((status = 200, description = "The queue", body = ShownQueue<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn configure(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let queue = QueueName::parse(&name)?;
    let command = parse::parse::<QueueBody>(&body)?.parse(queue.clone())?;
    change(&app, queue, command).await
}

#[utoipa::path(post, path = "/v1/queues/{name}/pause", tag = "queues", summary = "Give no more leases from a queue", params(("name" = String, Path)), request_body = Option<PauseBody>, responses((status = 200, description = "The queue", body = ShownQueue<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn pause(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let queue = QueueName::parse(&name)?;
    let command = parse::parse::<PauseBody>(&body)?.parse(queue.clone())?;
    change(&app, queue, command).await
}

#[utoipa::path(delete, path = "/v1/queues/{name}", tag = "queues", summary = "Delete a queue that has no tasks, with its settings", params(("name" = String, Path)), responses((status = 204, description = "It is gone"), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn delete(State(app): State<Arc<App>>, Path(name): Path<String>) -> Outcome {
    ask(&app, Ask::Command(Command::DeleteQueue(QueueName::parse(&name)?))).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[utoipa::path(post, path = "/v1/queues/{name}/resume", tag = "queues", summary = "Give leases from a queue again", params(("name" = String, Path)), responses((status = 200, description = "The queue", body = ShownQueue<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn resume(State(app): State<Arc<App>>, Path(name): Path<String>) -> Outcome {
    let queue = QueueName::parse(&name)?;
    change(&app, queue.clone(), Command::ResumeQueue(queue)).await
}

async fn change(app: &App, queue: QueueName, command: Command) -> Outcome {
    ask(app, Ask::Command(command)).await?;
    show(app, queue).await
}

async fn show(app: &App, queue: QueueName) -> Outcome {
    let name = queue.as_str().to_owned();
    let Answer::Queue(queue) = ask(app, Ask::Query(Query::Queue(queue))).await? else {
        return unexpected();
    };
    let queue = queue.ok_or_else(|| {
        let detail =
            format!("there is no queue {}; it comes with its first task or setting", Echo(&name));
        Problem::new(Code::NotFound, detail)
    })?;
    Ok(json(&ShownQueue::of(&queue)))
}
