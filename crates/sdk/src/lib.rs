//! The other side of the wire: a client of Tenure, and a runtime for workers.
//!
//! Somebody submits a task and waits for its end:
//!
//! ```no_run
//! # async fn example() -> Result<(), tenure_sdk::Error> {
//! use std::time::Duration;
//! use tenure_sdk::{Client, NewTask, TaskState};
//!
//! let client = Client::connect("http://127.0.0.1:7070").await?;
//! let task = client.submit(NewTask::new("mail", r#"{"to":"ada@example.org"}"#)).await?;
//! let task = client.wait(task.id, Duration::from_secs(60)).await?;
//! assert_eq!(task.state(), TaskState::Completed);
//! # Ok(())
//! # }
//! ```
//!
//! Somebody else does it:
//!
//! ```no_run
//! # async fn example() -> Result<(), tenure_sdk::Error> {
//! use tenure_sdk::{Client, Failure, Output, Task, Worker};
//!
//! async fn send(task: Task) -> Result<Output, Failure> {
//!     println!("attempt {} of task {}", task.attempt(), task.id());
//!     Ok(Output::from(r#""sent""#))
//! }
//!
//! let client = Client::connect("http://127.0.0.1:7070").await?;
//! Worker::new(client).queue("mail", send).slots(8).drain_on_ctrl_c().run().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A handler may run more than once for the same task, as workers and connections fail; at most one
//! completion is recorded. [`Task::lease_id`] only grows, so a database can refuse an older one.
//!
//! A W3C trace context goes from [`NewTask::traceparent`] to [`Task::traceparent`] in the task's
//! tag `traceparent`.

mod client;
mod error;
mod new_task;
mod retry;
mod watch;
mod worker;

pub use client::{ApiKey, Client, ConnectOptions, Connection};
pub use error::Error;
pub use new_task::{Backoff, NewTask};
pub use watch::{Watch, WatchFrom};
pub use worker::{Drain, Failure, Output, Stop, Task, Worker};

/// What comes in on a stream.
pub use tonic::Streaming as Incoming;

/// The messages as they go over the wire.
pub use tenure_proto::v1 as wire;
pub use wire::{
    ConfigureQueueRequest as QueueSettings, Event, HeldLease, ListTasksRequest as TaskFilter,
    ListTasksResponse as TaskPage, Queue, ServerStatus, Step, Task as TaskInfo,
    TaskExplanation as Explanation, TaskHistoryResponse as History, TaskState,
    Worker as WorkerInfo,
};
