//! Tasks: submit, look at, list, cancel, retry.

use tenure_api::Page;
use tenure_coordinator::TaskInfo;
use tenure_coordinator::request::{ExplainTask, GetTask, ListTasks, RetryTask, SubmitTask};
use tenure_core::command::SubmitOutcome;
use tenure_proto::v1;
use tenure_record::id::TaskId;
use tonic::{Request, Response, Status, Streaming};

use super::runs::query;
use super::submit::{Acknowledged, acknowledge};
use super::{Door, Outcome};
use crate::fetch::fetched;
use crate::observe::explain;
use crate::problem::Problem;
use crate::show;
use crate::wire::page::cut;
use crate::wire::{request, terms};

#[tonic::async_trait]
impl v1::tasks_server::Tasks for Door {
    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Outcome<v1::SubmitResponse> {
        let Some(task) = request.into_inner().task else {
            return Err(Problem::invalid("task is missing; give one").into());
        };
        let submitted = self.app.ask(SubmitTask(request::new_task(task.into())?)).await?;
        let existed = submitted.outcome == SubmitOutcome::Existed;
        let task = Some(show::task::task(&submitted.task).into());
        Ok(Response::new(v1::SubmitResponse { task, existed }))
    }

    async fn submit_batch(
        &self,
        request: Request<v1::SubmitBatchRequest>,
    ) -> Outcome<v1::SubmitBatchResponse> {
        let tasks = request.into_inner().tasks.into_iter().map(Into::into);
        let tasks = self.app.ask(request::new_tasks(tasks)?).await?;
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
        let (task_id, wait_ms) = (TaskId(task_id), terms::wait(Some(wait_ms))?);
        self.one_task(GetTask { task_id, wait_ms }).await
    }

    async fn list(&self, request: Request<v1::ListTasksRequest>) -> Outcome<v1::ListTasksResponse> {
        let filter = request::filter(request.into_inner().into())?;
        let page = cut(self.app.ask(ListTasks(filter)).await?);
        let next_cursor = page.next.map(|id| id.to_string());
        let items = fetched(page.tasks).await?.iter().map(show::task::task).collect();
        Ok(Response::new(Page { items, next_cursor }.into()))
    }

    async fn cancel(&self, request: Request<v1::CancelTaskRequest>) -> Outcome<v1::Task> {
        let (task_id, cancel) = request.into_inner().into();
        self.one_task(request::cancel(task_id, &cancel)?).await
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
        Ok(Response::new(explain::explanation(&explained).into()))
    }

    async fn history(
        &self,
        request: Request<v1::TaskHistoryRequest>,
    ) -> Outcome<v1::TaskHistoryResponse> {
        let v1::TaskHistoryRequest { task_id, limit, cursor } = request.into_inner();
        let page = query(limit, cursor);
        let history = show::task::read_history(&self.app, TaskId(task_id), page).await?;
        Ok(Response::new(history.into()))
    }
}

impl Door {
    /// Serves a request whose response is a task.
    pub(super) async fn one_task<R>(&self, request: R) -> Result<Response<v1::Task>, Status>
    where
        R: tenure_coordinator::Request<Response = Box<TaskInfo>>,
    {
        Ok(Response::new(show::task::task(&*self.app.ask(request).await?).into()))
    }
}
