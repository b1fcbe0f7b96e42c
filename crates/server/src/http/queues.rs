//! Queues: how full they are, and their settings.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tenure_code::{Code, Echo};
use tenure_coordinator::request::{DeleteQueue, GetQueue, ListQueues, ResumeQueue};
use tenure_core::state::QueueView;
use tenure_record::name::QueueName;

use super::{List, PageQuery, Path, Whole, json};
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::wire::request::{PauseBody, QueueBody};
use crate::wire::shown::ShownQueue;

type Outcome = Result<Response, Problem>;

#[utoipa::path(get, path = "/v1/queues", tag = "queues", summary = "Queues, by name", params(PageQuery), responses((status = 200, description = "A page", body = super::List<ShownQueue<'_>>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Outcome {
    let range = parse::query::<PageQuery>(query.as_deref())?.names()?;
    let page = app.ask(ListQueues(range)).await?;
    let items = page.items.iter().map(ShownQueue::of).collect();
    Ok(json(&List { items, next_cursor: page.next.map(|name| name.to_string()) }))
}

#[utoipa::path(get, path = "/v1/queues/{name}", tag = "queues", summary = "A queue", params(("name" = String, Path)), responses((status = 200, description = "The queue", body = ShownQueue<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn get(State(app): State<Arc<App>>, Path(name): Path<String>) -> Outcome {
    show(&name, app.ask(GetQueue(QueueName::parse(&name)?)).await?.as_deref())
}

#[utoipa::path(put, path = "/v1/queues/{name}", tag = "queues", summary = "Settings of a queue; null clears one", params(("name" = String, Path)), request_body = QueueBody, responses((status = 200, description = "The queue", body = ShownQueue<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn configure(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let configure = parse::parse::<QueueBody>(&body)?.parse(QueueName::parse(&name)?)?;
    show(&name, app.ask(configure).await?.as_deref())
}

#[utoipa::path(post, path = "/v1/queues/{name}/pause", tag = "queues", summary = "Give no more leases from a queue", params(("name" = String, Path)), request_body = Option<PauseBody>, responses((status = 200, description = "The queue", body = ShownQueue<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn pause(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Whole(body): Whole,
) -> Outcome {
    let pause = parse::parse::<PauseBody>(&body)?.parse(QueueName::parse(&name)?)?;
    show(&name, app.ask(pause).await?.as_deref())
}

#[utoipa::path(delete, path = "/v1/queues/{name}", tag = "queues", summary = "Delete a queue that has no tasks, with its settings", params(("name" = String, Path)), responses((status = 204, description = "It is gone"), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn delete(State(app): State<Arc<App>>, Path(name): Path<String>) -> Outcome {
    app.ask(DeleteQueue(QueueName::parse(&name)?)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[utoipa::path(post, path = "/v1/queues/{name}/resume", tag = "queues", summary = "Give leases from a queue again", params(("name" = String, Path)), responses((status = 200, description = "The queue", body = ShownQueue<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn resume(State(app): State<Arc<App>>, Path(name): Path<String>) -> Outcome {
    show(&name, app.ask(ResumeQueue(QueueName::parse(&name)?)).await?.as_deref())
}

fn show(name: &str, queue: Option<&QueueView>) -> Outcome {
    let queue = queue.ok_or_else(|| {
        let detail =
            format!("there is no queue {}; it comes with its first task or setting", Echo(name));
        Problem::new(Code::NotFound, detail)
    })?;
    Ok(json(&ShownQueue::of(queue)))
}
