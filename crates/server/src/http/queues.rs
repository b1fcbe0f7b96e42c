//! Queues: how full they are, and their settings.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use tenure_code::{Code, Echo};
use tenure_coordinator::{Answer, Ask, Query};
use tenure_core::command::Command;
use tenure_record::name::QueueName;

use super::{Path, Whole, all, ask, json, unexpected};
use crate::app::App;
use crate::json as parse;
use crate::problem::Problem;
use crate::wire::request::QueueBody;
use crate::wire::shown::ShownQueue;

type Outcome = Result<Response, Problem>;

#[utoipa::path(get, path = "/v1/queues", tag = "queues", summary = "All queues", responses((status = 200, description = "By name", body = super::List<ShownQueue<'_>>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn list(State(app): State<Arc<App>>) -> Outcome {
    let Answer::Queues(queues) = ask(&app, Ask::Query(Query::Queues)).await? else {
        return unexpected();
    };
    Ok(all(queues.iter().map(ShownQueue::of).collect()))
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

#[utoipa::path(post, path = "/v1/queues/{name}/pause", tag = "queues", summary = "Give no more leases from a queue", params(("name" = String, Path)), responses((status = 200, description = "The queue", body = ShownQueue<'_>), (status = "default", description = "A refusal", body = crate::problem::Body<'_>, content_type = "application/problem+json")))]
pub(super) async fn pause(State(app): State<Arc<App>>, Path(name): Path<String>) -> Outcome {
    let queue = QueueName::parse(&name)?;
    change(&app, queue.clone(), Command::PauseQueue(queue)).await
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
