//! A client: every verb, with a typed error. What is safe to try again is tried again.

use std::time::Duration;

use tenure_code::Code;
use tenure_proto::v1;
use v1::events_client::EventsClient;
use v1::queues_client::QueuesClient;
use v1::runs_client::RunsClient;
use v1::status_client::StatusClient;
use v1::tasks_client::TasksClient;
use v1::workers_client::WorkersClient;
use v1::workflows_client::WorkflowsClient;

use crate::backup::{Backup, BackupScope};
use crate::connection::{ConnectOptions, Connection, Server};
use crate::error::Error;
use crate::new_task::NewTask;
use crate::retry::{Idempotency, retry};
use crate::watch::{Watch, WatchFrom};

/// What a server puts on one page at most.
pub(crate) const PAGE_ITEMS_MAX: u32 = 1_000;
/// The longest that a server lets somebody wait.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);

/// A client. Clones share their connection, which comes back by itself.
#[derive(Clone, Debug)]
pub struct Client {
    connection: Connection,
    pub(crate) server: Server,
}

impl Client {
    pub(crate) fn new(connection: Connection, server: Server) -> Self {
        Self { connection, server }
    }

    /// Connects to an address such as `http://127.0.0.1:7070`. [`ConnectOptions`] has more.
    pub async fn connect(address: impl Into<String>) -> Result<Self, Error> {
        ConnectOptions::new(address).connect().await
    }

    pub(crate) fn tasks_rpc(&self) -> TasksClient<Connection> {
        TasksClient::new(self.connection.clone()).max_decoding_message_size(usize::MAX)
    }

    pub(crate) fn workers_rpc(&self) -> WorkersClient<Connection> {
        WorkersClient::new(self.connection.clone()).max_decoding_message_size(usize::MAX)
    }

    pub(crate) fn queues_rpc(&self) -> QueuesClient<Connection> {
        QueuesClient::new(self.connection.clone()).max_decoding_message_size(usize::MAX)
    }

    pub(crate) fn workflows_rpc(&self) -> WorkflowsClient<Connection> {
        WorkflowsClient::new(self.connection.clone()).max_decoding_message_size(usize::MAX)
    }

    pub(crate) fn runs_rpc(&self) -> RunsClient<Connection> {
        RunsClient::new(self.connection.clone()).max_decoding_message_size(usize::MAX)
    }

    pub(crate) fn events_rpc(&self) -> EventsClient<Connection> {
        EventsClient::new(self.connection.clone())
    }

    /// Submits a task. With a key, the same task again gives the one that is there.
    pub async fn submit(&self, task: NewTask) -> Result<v1::Task, Error> {
        let idempotency = Idempotency::of_key(task.wire.key.as_deref());
        let submit = || {
            let task = Some(task.wire.clone());
            let mut tasks = self.tasks_rpc();
            async move { tasks.submit(v1::SubmitRequest { task }).await }
        };
        let answer = retry(idempotency, submit).await?.into_inner();
        answer.task.ok_or_else(|| Error::new(Code::Unavailable, "the server's answer has no task"))
    }

    /// Submits tasks, all or none; their ids come in the same order.
    pub async fn submit_batch(
        &self,
        tasks: impl IntoIterator<Item = NewTask>,
    ) -> Result<Vec<u64>, Error> {
        let tasks: Vec<_> = tasks.into_iter().collect();
        let has_keys = tasks.iter().all(|task| task.wire.key.is_some());
        let idempotency =
            if has_keys { Idempotency::Idempotent } else { Idempotency::NotIdempotent };
        let tasks: Vec<_> = tasks.into_iter().map(|task| task.wire).collect();
        let submit = || {
            let tasks = tasks.clone();
            let mut client = self.tasks_rpc();
            async move { client.submit_batch(v1::SubmitBatchRequest { tasks }).await }
        };
        Ok(retry(idempotency, submit).await?.into_inner().ids)
    }

    /// A task as it is.
    pub async fn get(&self, task_id: u64) -> Result<v1::Task, Error> {
        self.get_within(task_id, Duration::ZERO).await
    }

    /// A task once it has ended, or as it is when the time is up.
    pub async fn wait(&self, task_id: u64, timeout: Duration) -> Result<v1::Task, Error> {
        let until = tokio::time::Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let task = self.get_within(task_id, left.min(WAIT_MAX)).await?;
            if task.finished_at.is_some() || left <= WAIT_MAX {
                return Ok(task);
            }
        }
    }

    async fn get_within(&self, task_id: u64, wait: Duration) -> Result<v1::Task, Error> {
        let wait_ms = wait.as_millis() as u64;
        let get = || {
            let mut tasks = self.tasks_rpc();
            async move { tasks.get(v1::GetTaskRequest { task_id, wait_ms }).await }
        };
        Ok(retry(Idempotency::Idempotent, get).await?.into_inner())
    }

    /// Tasks, newest first. A page may be short while there is a next one.
    pub async fn list(&self, filter: v1::ListTasksRequest) -> Result<v1::ListTasksResponse, Error> {
        let list = || {
            let (filter, mut tasks) = (filter.clone(), self.tasks_rpc());
            async move { tasks.list(filter).await }
        };
        Ok(retry(Idempotency::Idempotent, list).await?.into_inner())
    }

    /// Asks a task to stop. With a grace, its lease is revoked when that is over.
    pub async fn cancel(&self, task_id: u64, grace: Option<Duration>) -> Result<v1::Task, Error> {
        let grace_ms = grace.map(|grace| grace.as_millis() as u64);
        let cancel = || {
            let mut tasks = self.tasks_rpc();
            async move { tasks.cancel(v1::CancelTaskRequest { task_id, grace_ms }).await }
        };
        Ok(retry(Idempotency::Idempotent, cancel).await?.into_inner())
    }

    /// Gives a FAILED, DEAD or CANCELED task another round.
    pub async fn retry(&self, task_id: u64) -> Result<v1::Task, Error> {
        let request = || {
            let mut tasks = self.tasks_rpc();
            async move { tasks.retry(v1::RetryTaskRequest { task_id }).await }
        };
        Ok(retry(Idempotency::NotIdempotent, request).await?.into_inner())
    }

    /// Why a task is not done yet.
    pub async fn explain(&self, task_id: u64) -> Result<v1::TaskExplanation, Error> {
        let explain = || {
            let mut tasks = self.tasks_rpc();
            async move { tasks.explain(v1::ExplainTaskRequest { task_id }).await }
        };
        Ok(retry(Idempotency::Idempotent, explain).await?.into_inner())
    }

    /// What happened to a task, oldest first: all of it that the server still tells.
    pub async fn history(&self, task_id: u64) -> Result<v1::TaskHistoryResponse, Error> {
        let limit = Some(PAGE_ITEMS_MAX);
        let mut page = v1::TaskHistoryRequest { task_id, limit, cursor: String::new() };
        let mut whole = self.history_page(page.clone()).await?;
        while !whole.next_cursor.is_empty() {
            page.cursor = std::mem::take(&mut whole.next_cursor);
            let next = self.history_page(page.clone()).await?;
            whole.steps.extend(next.steps);
            whole.next_cursor = next.next_cursor;
        }
        Ok(whole)
    }

    /// What happened to a task, page by page.
    pub async fn history_page(
        &self,
        page: v1::TaskHistoryRequest,
    ) -> Result<v1::TaskHistoryResponse, Error> {
        let history = || {
            let (page, mut tasks) = (page.clone(), self.tasks_rpc());
            async move { tasks.history(page).await }
        };
        Ok(retry(Idempotency::Idempotent, history).await?.into_inner())
    }

    /// A page of queues, by name.
    pub async fn list_queues(
        &self,
        page: v1::ListQueuesRequest,
    ) -> Result<v1::ListQueuesResponse, Error> {
        let list = || {
            let (page, mut queues) = (page.clone(), self.queues_rpc());
            async move { queues.list(page).await }
        };
        Ok(retry(Idempotency::Idempotent, list).await?.into_inner())
    }

    /// Deletes a queue that has no tasks, finished ones included. Its settings go with it.
    pub async fn delete_queue(&self, queue: &str) -> Result<(), Error> {
        let delete = || {
            let (queue, mut queues) = (queue.to_owned(), self.queues_rpc());
            async move { queues.delete(v1::QueueRequest { queue }).await }
        };
        retry(Idempotency::NotIdempotent, delete).await?;
        Ok(())
    }

    /// Changes settings of a queue, which is made if it is not there yet. What is neither given
    /// nor named in `clear` stays as it is.
    pub async fn configure_queue(
        &self,
        settings: v1::ConfigureQueueRequest,
    ) -> Result<v1::Queue, Error> {
        let configure = || {
            let (settings, mut queues) = (settings.clone(), self.queues_rpc());
            async move { queues.configure(settings).await }
        };
        Ok(retry(Idempotency::Idempotent, configure).await?.into_inner())
    }

    /// Gives no more leases from a queue, until it is resumed.
    pub async fn pause(&self, queue: &str) -> Result<v1::Queue, Error> {
        self.pause_until(v1::PauseQueueRequest { queue: queue.to_owned(), ..Default::default() })
            .await
    }

    /// Gives no more leases from a queue, until a moment of the server's wall clock or for a span.
    pub async fn pause_until(&self, pause: v1::PauseQueueRequest) -> Result<v1::Queue, Error> {
        let pause = || {
            let (pause, mut queues) = (pause.clone(), self.queues_rpc());
            async move { queues.pause(pause).await }
        };
        Ok(retry(Idempotency::Idempotent, pause).await?.into_inner())
    }

    /// Gives leases from a queue again.
    pub async fn resume(&self, queue: &str) -> Result<v1::Queue, Error> {
        let resume = || {
            let (queue, mut queues) = (queue.to_owned(), self.queues_rpc());
            async move { queues.resume(v1::QueueRequest { queue }).await }
        };
        Ok(retry(Idempotency::Idempotent, resume).await?.into_inner())
    }

    /// A page of workers that were heard of lately, by name.
    pub async fn list_workers(
        &self,
        page: v1::ListWorkersRequest,
    ) -> Result<v1::ListWorkersResponse, Error> {
        let list = || {
            let (page, mut workers) = (page.clone(), self.workers_rpc());
            async move { workers.list_workers(page).await }
        };
        Ok(retry(Idempotency::Idempotent, list).await?.into_inner())
    }

    /// How the server stands.
    pub async fn status(&self) -> Result<v1::ServerStatus, Error> {
        self.status_of(v1::GetStatusRequest { hash: false }).await
    }

    /// How the server stands, with the hash of everything, which takes it a while to work out.
    pub async fn status_with_hash(&self) -> Result<v1::ServerStatus, Error> {
        self.status_of(v1::GetStatusRequest { hash: true }).await
    }

    async fn status_of(&self, request: v1::GetStatusRequest) -> Result<v1::ServerStatus, Error> {
        let status = || {
            let mut status = StatusClient::new(self.connection.clone());
            async move { status.get(request).await }
        };
        Ok(retry(Idempotency::Idempotent, status).await?.into_inner())
    }

    /// Takes a snapshot of all that was acknowledged before, and waits until it is on disk.
    pub async fn take_snapshot(&self) -> Result<v1::Snapshot, Error> {
        let take = || {
            let mut status = StatusClient::new(self.connection.clone());
            async move { status.take_snapshot(v1::TakeSnapshotRequest {}).await }
        };
        Ok(retry(Idempotency::Idempotent, take).await?.into_inner())
    }

    /// Begins a backup of everything that was acknowledged before.
    pub async fn back_up(&self, scope: BackupScope) -> Result<Backup, Error> {
        let mut status = StatusClient::new(self.connection.clone());
        let request = v1::BackupRequest { whole: scope == BackupScope::WholeLog };
        let parts = status.backup(request).await.map_err(Error::from_status)?;
        Backup::begin(parts.into_inner()).await
    }

    /// Follows what happens. It comes back by itself after a cut, at its last position.
    pub async fn watch(&self, from: WatchFrom) -> Result<Watch, Error> {
        Watch::begin(self.clone(), from).await
    }
}
