//! Tasks: submit, look at, list, cancel, retry.

use tenure_coordinator::TaskInfo;
use tenure_coordinator::limits::HISTORY_BYTES;
use tenure_coordinator::request::{ExplainTask, GetTask, ListTasks, RetryTask, SubmitTask};
use tenure_core::command::SubmitOutcome;
use tenure_proto::v1;
use tenure_record::id::TaskId;
use tonic::{Request, Response, Status, Streaming};

use super::submit::{Acknowledged, acknowledge};
use super::{Door, Outcome, parse, show};
use crate::admission::response_budget;
use crate::fetch::fetched;
use crate::observe::explain::Explanation;
use crate::problem::Problem;
use crate::wire::list;
use crate::wire::page::{cut, of_history};

#[tonic::async_trait]
impl v1::tasks_server::Tasks for Door {
    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Outcome<v1::SubmitResponse> {
        let Some(task) = request.into_inner().task else {
            return Err(Problem::invalid("task is missing; give one").into());
        };
        let submitted = self.app.ask(SubmitTask(parse::new_task(task)?)).await?;
        let existed = submitted.outcome == SubmitOutcome::Existed;
        let task = Some(show::task(*submitted.task));
        Ok(Response::new(v1::SubmitResponse { task, existed }))
    }

    async fn submit_batch(
        &self,
        request: Request<v1::SubmitBatchRequest>,
    ) -> Outcome<v1::SubmitBatchResponse> {
        let tasks = self.app.ask(parse::batch(request.into_inner().tasks)?).await?;
        let ids = tasks.iter().map(|task| task.task_id.0).collect();
        Ok(Response::new(v1::SubmitBatchResponse { ids }))
    }

    type SubmitStreamStream = Acknowledged;

    async fn submit_stream(
        &self,
        request: Request<Streaming<v1::SubmitStreamRequest>>,
    ) -> Outcome<Self::SubmitStreamStream> {
        Ok(Response::new(acknowledge(self.clone(), request.into_inner())))
    }

    async fn get(&self, request: Request<v1::GetTaskRequest>) -> Outcome<v1::Task> {
        let v1::GetTaskRequest { task_id, wait_ms } = request.into_inner();
        let (task_id, wait_ms) = (TaskId(task_id), parse::wait(wait_ms)?);
        self.one_task(GetTask { task_id, wait_ms }).await
    }

    async fn list(&self, request: Request<v1::ListTasksRequest>) -> Outcome<v1::ListTasksResponse> {
        let filter = parse::filter(&request.into_inner())?;
        let page = cut(self.app.ask(ListTasks(filter)).await?);
        let next_cursor = page.next.map_or_else(String::new, |id| id.to_string());
        let tasks = fetched(page.tasks).await?.into_iter().map(show::task).collect();
        Ok(Response::new(v1::ListTasksResponse { tasks, next_cursor }))
    }

    async fn cancel(&self, request: Request<v1::CancelTaskRequest>) -> Outcome<v1::Task> {
        self.one_task(parse::cancel(request.into_inner())?).await
    }

    async fn retry(&self, request: Request<v1::RetryTaskRequest>) -> Outcome<v1::Task> {
        self.one_task(RetryTask(TaskId(request.into_inner().task_id))).await
    }

    async fn explain(
        &self,
        request: Request<v1::ExplainTaskRequest>,
    ) -> Outcome<v1::TaskExplanation> {
        let explain = ExplainTask(TaskId(request.into_inner().task_id));
        let explained = self.app.ask(explain).await?;
        Ok(Response::new(show::explanation(Explanation::of(&explained))))
    }

    async fn history(
        &self,
        request: Request<v1::TaskHistoryRequest>,
    ) -> Outcome<v1::TaskHistoryResponse> {
        let v1::TaskHistoryRequest { task_id, limit, cursor } = request.into_inner();
        let task_id = TaskId(task_id);
        let limit = list::limit(limit.map(|limit| limit as usize))?;
        let tenure = self.app.tenure.clone();
        response_budget::reserve(HISTORY_BYTES).await?;
        // It reads files.
        let history = tokio::task::spawn_blocking(move || tenure.history(task_id)).await;
        let history = history.map_err(|_| Problem::stopping())?.map_err(Problem::from)?;
        let (steps, next) =
            of_history(&history.steps, |step| step.lsn.0, parse::given(&cursor), limit)?;
        Ok(Response::new(v1::TaskHistoryResponse {
            steps: steps.iter().cloned().map(show::step).collect(),
            truncated_before: history.truncated_before.map(|lsn| lsn.0),
            next_cursor: next.unwrap_or_default(),
        }))
    }
}

impl Door {
    /// Serves a request whose response is a task.
    pub(super) async fn one_task<R>(&self, request: R) -> Result<Response<v1::Task>, Status>
    where
        R: tenure_coordinator::Request<Response = Box<TaskInfo>>,
    {
        Ok(Response::new(show::task(*self.app.ask(request).await?)))
    }
}
