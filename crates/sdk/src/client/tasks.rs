//! Tasks of a server: submit, read, wait for, cancel, retry.

use std::time::Duration;

use tenure_api::{Explanation, History, Page, PageQuery, Task, TaskFilter, TaskState, TaskStep};
use tenure_proto::v1;
use v1::tasks_client::TasksClient;

use super::retry::Idempotency::{self, Idempotent, NotIdempotent};
use super::{PAGE_ITEMS_MAX, WAIT_MAX, send};
use crate::connection::Connection;
use crate::error::Error;
use crate::new_task::NewTask;

/// The tasks of a server; see [`Client::tasks`](crate::Client::tasks).
#[derive(Clone, Debug)]
pub struct Tasks {
    rpc: TasksClient<Connection>,
}

impl Tasks {
    pub(super) fn new(connection: Connection) -> Self {
        Self { rpc: TasksClient::new(connection).max_decoding_message_size(usize::MAX) }
    }

    /// Submits a task. Submitting an equal task under the same key returns the existing task.
    pub async fn submit(&self, task: impl Into<NewTask>) -> Result<Task, Error> {
        let task = task.into().into_wire()?;
        let idempotency = Idempotency::of_key(task.key.as_deref());
        let request = v1::SubmitRequest { task: Some(task) };
        let response = send!(idempotency, self.rpc, submit(request))?;
        let task = response.task.ok_or_else(|| Error::incomplete("a submit without the task"))?;
        Ok(task.into())
    }

    /// Submits tasks, all or none, and returns their ids in the same order.
    pub async fn submit_batch<T: Into<NewTask>>(
        &self,
        tasks: impl IntoIterator<Item = T>,
    ) -> Result<Vec<u64>, Error> {
        let tasks = tasks.into_iter().map(|task| task.into().into_wire());
        let request = v1::SubmitBatchRequest { tasks: tasks.collect::<Result<_, _>>()? };
        let idempotency = match request.tasks.iter().all(|task| task.key.is_some()) {
            true => Idempotent,
            false => NotIdempotent,
        };
        Ok(send!(idempotency, self.rpc, submit_batch(request))?.ids)
    }

    /// A task.
    pub async fn get(&self, task_id: u64) -> Result<Task, Error> {
        self.get_within(task_id, Duration::ZERO).await
    }

    /// Waits for the end of a task, at most for this time, and returns the task.
    pub async fn wait(&self, task_id: u64, timeout: Duration) -> Result<Task, Error> {
        let until = tokio::time::Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let task = self.get_within(task_id, left.min(WAIT_MAX)).await?;
            if task.finished_at.is_some() || left <= WAIT_MAX {
                return Ok(task);
            }
        }
    }

    async fn get_within(&self, task_id: u64, wait: Duration) -> Result<Task, Error> {
        let request = v1::GetTaskRequest { task_id, wait_ms: wait.as_millis() as u64 };
        send!(Idempotent, self.rpc, get(request)).map(Task::from)
    }

    /// A page of tasks, newest first.
    pub async fn list(&self, filter: TaskFilter) -> Result<Page<Task>, Error> {
        if let Some(TaskState::Other(state)) = &filter.state {
            return Err(Error::unknown("state", state));
        }
        let request = v1::ListTasksRequest::from(filter);
        send!(Idempotent, self.rpc, list(request)).map(Page::from)
    }

    /// Cancels a task. With a grace, the lease of a running task is revoked when the grace is over.
    pub async fn cancel(&self, task_id: u64, grace: Option<Duration>) -> Result<Task, Error> {
        let grace_ms = grace.map(|grace| grace.as_millis() as u64);
        let request = v1::CancelTaskRequest { task_id, grace_ms };
        send!(Idempotent, self.rpc, cancel(request)).map(Task::from)
    }

    /// Retries a FAILED, DEAD or CANCELED task: it waits again, with all its budgets.
    pub async fn retry(&self, task_id: u64) -> Result<Task, Error> {
        let request = v1::RetryTaskRequest { task_id };
        send!(NotIdempotent, self.rpc, retry(request)).map(Task::from)
    }

    /// Why a task is not done yet.
    pub async fn explain(&self, task_id: u64) -> Result<Explanation, Error> {
        let request = v1::ExplainTaskRequest { task_id };
        send!(Idempotent, self.rpc, explain(request)).map(Explanation::from)
    }

    /// The history of a task, oldest first, as far back as the server has it.
    pub async fn history(&self, task_id: u64) -> Result<History<TaskStep>, Error> {
        let mut page = PageQuery { limit: Some(PAGE_ITEMS_MAX), cursor: None };
        let mut history = self.history_page(task_id, page.clone()).await?;
        while let Some(cursor) = history.next_cursor.take() {
            page.cursor = Some(cursor);
            let next = self.history_page(task_id, page.clone()).await?;
            history.items.extend(next.items);
            history.next_cursor = next.next_cursor;
        }
        Ok(history)
    }

    /// A page of the history of a task.
    pub async fn history_page(
        &self,
        task_id: u64,
        page: PageQuery,
    ) -> Result<History<TaskStep>, Error> {
        let cursor = page.cursor.unwrap_or_default();
        let request = v1::TaskHistoryRequest { task_id, limit: page.limit, cursor };
        send!(Idempotent, self.rpc, history(request)).map(History::from)
    }
}
