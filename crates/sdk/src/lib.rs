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
//! use tenure_sdk::{Client, Failure, LeasedTask, Output, Worker};
//!
//! async fn send(task: LeasedTask) -> Result<Output, Failure> {
//!     println!("attempt {} of task {}", task.attempt(), task.id());
//!     Ok(Output::from(r#""sent""#))
//! }
//!
//! let client = Client::connect("http://127.0.0.1:7070").await?;
//! Worker::new(client).handle("mail", send).slots(8).drain_on_ctrl_c().run().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A workflow is registered, and a run of it is begun and waited for; its tasks are ordinary tasks,
//! and any worker may do them:
//!
//! ```no_run
//! # async fn example() -> Result<(), tenure_sdk::Error> {
//! use std::time::Duration;
//! use tenure_sdk::{Client, Definition, NewRun, RunState};
//!
//! let client = Client::connect("http://127.0.0.1:7070").await?;
//! let definition = "
//! workflow: greeting
//! initial_node: greet
//! nodes:
//!   - {ref: greet, kind: task, task: {queue: mail}, input_mapping: {to: input.to}}
//! output_mapping: {answer: outputs.greet}
//! ";
//! client.put_workflow(Definition::yaml(definition)).await?;
//! let run = client.start_run(NewRun::of("greeting").input(r#"{"to":"ada"}"#)).await?;
//! let run = client.wait_for_run(run.id, Duration::from_secs(60)).await?;
//! assert_eq!(run.state(), RunState::Completed);
//! # Ok(())
//! # }
//! ```
//!
//! A handler may run more than once for the same task, as workers and connections fail; at most one
//! completion is recorded. [`LeasedTask::lease_id`] only grows, so a database can refuse an older one.
//!
//! A W3C trace context goes from [`NewTask::traceparent`] to [`LeasedTask::traceparent`].

mod backup;
mod client;
mod connection;
mod error;
mod new_run;
mod new_task;
mod retry;
mod runs;
mod watch;
mod worker;

pub use backup::{Backup, BackupContents, BackupFile, BackupPart, BackupScope};
pub use client::Client;
pub use connection::ConnectOptions;
pub use error::{Error, ErrorCode};
pub use new_run::{Definition, NewRun, RunRef, Signal};
pub use new_task::{Backoff, NewTask};
pub use watch::{Watch, WatchFrom};
pub use worker::{Drain, Failure, LeasedTask, Output, Stop, Worker};

/// The stable error codes.
pub use tenure_code::Code;

/// The messages as they go over the wire.
pub use tenure_proto::v1 as wire;
pub use wire::{
    ConfigureQueueRequest as QueueSettings, EndingOfRun, Event, Fault, HeldLease,
    ListQueuesRequest as QueueFilter, ListRunsRequest as RunFilter, ListRunsResponse as RunPage,
    ListTasksRequest as TaskFilter, ListTasksResponse as TaskPage,
    ListTokensRequest as TokenFilter, ListTokensResponse as TokenPage,
    ListWorkersRequest as WorkerFilter, ListWorkflowsRequest as WorkflowFilter,
    ListWorkflowsResponse as WorkflowPage, MemoryStatus, ParkingOfRun,
    PauseQueueRequest as PauseQueue, PutWorkflowResponse as Registered, Queue,
    RedecideResponse as Redecided, Run, RunHistoryResponse as RunHistory, RunState, RunStep,
    ServerStatus, SignalOutcome, SignalResponse as Signaled, Step, Task as TaskInfo,
    TaskExplanation as Explanation, TaskHistoryResponse as History, TaskState, Token,
    Worker as WorkerInfo, Workflow,
};
