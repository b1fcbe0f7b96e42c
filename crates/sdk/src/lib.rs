//! Client and worker runtime for Tenure, a durable task scheduler and workflow engine.
//!
//! A client submits a task and waits for its end:
//!
//! ```no_run
//! # async fn example() -> Result<(), tenure_sdk::Error> {
//! use std::time::Duration;
//! use tenure_sdk::{Client, NewTask, TaskState};
//!
//! #[derive(serde::Serialize)]
//! struct Letter {
//!     to: String,
//! }
//!
//! let client = Client::connect("http://127.0.0.1:7070").await?;
//! let letter = Letter { to: "ada@example.org".to_owned() };
//! let task = client.tasks().submit(NewTask::json("mail", &letter)?).await?;
//! let task = client.tasks().wait(task.id, Duration::from_secs(60)).await?;
//! assert_eq!(task.state, TaskState::Completed);
//! # Ok(())
//! # }
//! ```
//!
//! A worker executes the tasks of a queue:
//!
//! ```no_run
//! # async fn example() -> Result<(), tenure_sdk::Error> {
//! use tenure_sdk::{Client, Failure, LeasedTask, Output, Worker};
//!
//! #[derive(serde::Deserialize)]
//! struct Letter {
//!     to: String,
//! }
//!
//! async fn send(task: LeasedTask) -> Result<Output, Failure> {
//!     let letter: Letter = task.payload()?;
//!     if !letter.to.contains('@') {
//!         return Err(Failure::permanent("the address has no @").code("bad_address"));
//!     }
//!     Output::json(&"sent")
//! }
//!
//! let client = Client::connect("http://127.0.0.1:7070").await?;
//! Worker::new(client).handle("mail", send).slots(8).drain_on_ctrl_c().run().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A client registers a workflow, starts a run of it and waits for its end. The tasks of a run are
//! ordinary tasks, which any worker executes:
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
//! client.workflows().put(Definition::yaml(definition)).await?;
//! let run = client.runs().start(NewRun::of("greeting").input(r#"{"to":"ada"}"#)).await?;
//! let run = client.runs().wait(run.id, Duration::from_secs(60)).await?;
//! assert_eq!(run.state, RunState::Completed);
//! # Ok(())
//! # }
//! ```
//!
//! A handler may run more than once for one task, as workers and connections fail; at most one
//! completion is recorded. [`LeasedTask::lease_id`] is a fencing token, by which a database can reject
//! a worker whose lease is over. A W3C trace context goes from [`NewTask::traceparent`] to
//! [`LeasedTask::traceparent`].
//!
//! The types of requests and responses are those of the [outward model](api), which the HTTP API
//! shows as JSON.
//!
//! # Features
//!
//! All of them are on by default.
//!
//! - `client`: the verbs of a client: tasks, runs, workflows, queues, workers, events, operations.
//! - `worker`: the worker runtime.
//! - `json`: payloads, outputs and checkpoints as serde values.

#[cfg(not(any(feature = "client", feature = "worker")))]
compile_error!("tenure-sdk needs the feature `client` or the feature `worker`");

#[cfg(feature = "client")]
mod backup;
mod client;
mod connection;
mod delays;
mod error;
#[cfg(all(feature = "client", feature = "json"))]
mod json;
#[cfg(feature = "client")]
mod new_run;
#[cfg(feature = "client")]
mod new_task;
#[cfg(feature = "client")]
mod watch;
#[cfg(feature = "worker")]
mod worker;

pub use client::Client;
pub use connection::ConnectOptions;
pub use error::{Error, ErrorCode};

#[cfg(feature = "client")]
pub use backup::{Backup, BackupContents, BackupFile, BackupPart, BackupScope};
#[cfg(feature = "client")]
pub use client::{Backups, Queues, Runs, Snapshots, Tasks, Workers, Workflows};
#[cfg(feature = "client")]
pub use new_run::{Definition, NewRun, Signal};
#[cfg(feature = "client")]
pub use new_task::NewTask;
#[cfg(feature = "client")]
pub use watch::Watch;
#[cfg(feature = "worker")]
pub use worker::{Drain, Failure, LeasedTask, Output, Stop, Worker};

/// The stable error codes.
pub use tenure_code::Code;

/// The outward model: every request and response of the contract.
pub use tenure_api as api;

pub use tenure_api::{
    Backoff, BackoffKind, Event, EventFilter, Explanation, Fault, HeldLease, History, Lease,
    LeaseRequest, Page, PageQuery, PauseQueue, Payload, Phase, Progress, Queue, QueueSettings,
    Reason, Redecided, Registered, Reports, Run, RunEvent, RunFilter, RunRef, RunState, RunStep,
    Setting, SignalOutcome, Signaled, Snapshot, Status, Task, TaskError, TaskEvent, TaskFilter,
    TaskState, TaskStep, Timestamp, Token, TokenState, Worker as WorkerInfo, Workflow,
};
