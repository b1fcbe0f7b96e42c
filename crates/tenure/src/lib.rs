//! Durable tasks and workflows inside a Rust program.
//!
//! Tenure is a task scheduler and workflow engine. This crate is the whole engine as a library: a
//! program opens a folder, and has queues, leases, retries, timers and workflows that survive a crash,
//! with no server to run and nothing to install.
//!
//! ```
//! # let folder = std::env::temp_dir().join(format!("tenure-doc-{}", std::process::id()));
//! use std::time::Duration;
//! use tenure::{LeaseRequest, NewTask, TaskState, Tenure};
//!
//! let tenure = Tenure::open(&folder)?;
//! let id = tenure.submit(NewTask::new("mail").payload("ada@example.org")).wait()?.task_id;
//!
//! // Elsewhere: a worker leases the task, does the work, and completes it.
//! for grant in tenure.lease(LeaseRequest::new("worker-1", ["mail"])).wait()? {
//!     assert_eq!(&*grant.payload.read()?, b"ada@example.org");
//!     tenure.complete(grant.lease(), "sent").wait()?;
//! }
//! let task = tenure.wait(id, Duration::from_secs(10)).wait()?;
//! assert_eq!(task.state, TaskState::Completed);
//! tenure.close()?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What holds
//!
//! - **What a call returns is durable.** The process may be killed at any moment; the process that
//!   opens the folder next continues where it ended. [`Builder::durability`] trades this for speed.
//! - **One process has the folder.** A second one gets an error that says so.
//! - **A task may run more than once, and is completed at most once.** A worker whose lease is lost
//!   gets `lease_lost` and changes nothing. The [`LeaseId`] is a fencing token.
//! - **A call without an outcome happened entirely or not at all.** A task with a key
//!   ([`NewTask::key`]) can be submitted again: the second submit returns the first task.
//! - **The library never ends the process.** Faults of the disk are errors with the code
//!   `unavailable`; after one, the folder has to be opened again.
//!
//! # Calls: async and blocking
//!
//! Every verb returns a [`Call`]: a future for any async runtime, with [`Call::wait`] for threads. The
//! request is sent when the method is called; calls that are sent together are written together.
//!
//! ```
//! # let folder = std::env::temp_dir().join(format!("tenure-doc-async-{}", std::process::id()));
//! # let tenure = tenure::Tenure::open(&folder)?;
//! use tenure::NewTask;
//!
//! async fn welcome(tenure: &tenure::Tenure) -> Result<(), tenure::Error> {
//!     let first = tenure.submit(NewTask::new("mail").payload("ada"));
//!     let second = tenure.submit(NewTask::new("mail").payload("grace"));
//!     (first.await?, second.await?);
//!     Ok(())
//! }
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(welcome(&tenure))?;
//! # tenure.close()?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Workers
//!
//! [`Tenure::worker`] leases tasks in a loop, runs handlers on threads or in an async task, extends
//! leases while handlers run, and drains on shutdown. See [`Worker`].
//!
//! # Typed payloads
//!
//! With the feature `json`, which is on by default, payloads and outputs are types of serde:
//!
//! ```
//! # let folder = std::env::temp_dir().join(format!("tenure-doc-json-{}", std::process::id()));
//! # let tenure = tenure::Tenure::open(&folder)?;
//! use serde::{Deserialize, Serialize};
//! use tenure::{NewTask, Output};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Mail { to: String }
//!
//! let mail = Mail { to: "ada@example.org".to_owned() };
//! # let id =
//! tenure.submit(NewTask::new("mail").json(&mail)?).wait()?
//! # .task_id
//! ;
//! let worker = tenure.worker("mailer").handle("mail", |task| {
//!     let mail: Mail = task.payload()?;
//!     Output::json(&format!("sent to {}", mail.to))
//! });
//! # let drain = worker.drain();
//! # let running = std::thread::spawn(move || worker.run());
//! # let task = tenure.wait(id, std::time::Duration::from_secs(30)).wait()?;
//! # assert_eq!(&*task.output.read()?, b"\"sent to ada@example.org\"");
//! # drain.start();
//! # running.join().unwrap()?;
//! # tenure.close()?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Workflows
//!
//! A workflow is a graph of nodes, written as YAML or JSON. Its tasks are leased and reported on like
//! all others.
//!
//! ```
//! # let folder = std::env::temp_dir().join(format!("tenure-doc-runs-{}", std::process::id()));
//! # let tenure = tenure::Tenure::open(&folder)?;
//! use std::time::Duration;
//! use tenure::NewRun;
//!
//! let definition = "workflow: hello\ninitial_node: greet\nnodes:\n  - {ref: greet, kind: pass}\n";
//! tenure.workflows().put_yaml(definition).wait()?;
//! let run = tenure.runs().start(NewRun::of("hello").input(r#"{"name": "Ada"}"#)).wait()?.run;
//! let run = tenure.runs().wait(run.id, Duration::from_secs(10)).wait()?;
//! assert_eq!(run.state, "COMPLETED");
//! # tenure.close()?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
mod call;
mod error;
mod handle;
mod new_run;
mod new_task;
mod outcome;
mod queues;
mod reports;
mod runs;
mod tasks;
mod terms;
mod watch;
mod worker;
mod workflows;

pub use builder::Builder;
pub use call::Call;
pub use error::Error;
pub use handle::{BackupInfo, Tenure, restore};
pub use new_run::{NewRun, Signal};
pub use new_task::{Backoff, NewTask};
pub use outcome::{Failure, Output};
pub use queues::{QueueUpdate, Queues};
pub use reports::{Heartbeat, Release, Reports};
pub use runs::{RunQuery, Runs};
pub use tasks::{LeaseRequest, TaskQuery};
pub use watch::{Change, RunChange, Subject, TaskChange, Watch};
pub use worker::{Drain, LeasedTask, Stop, Worker};
pub use workflows::Workflows;

pub use tenure_code::Code;
pub use tenure_coordinator::request::{SignaledRun, StartedRun};
pub use tenure_coordinator::{
    ArtifactInfo, ClockJump, Durability, EndingInfo, Explained, Fault, Grant, History, Keep, Kept,
    Note, ParkedInfo, Position, Progress, ProgressInfo, RUN_STATES, RecoveryInfo, Registration,
    Restoration, RunHistory, RunInfo, RunPage, RunStep, Since, SnapshotInfo, Status, Step,
    TaskInfo, TaskOfRun, TaskPage, TokenInfo, TokenPage, Warning, Work, WorkerInfo, WorkflowInfo,
};
pub use tenure_core::Rejection;
pub use tenure_core::command::{
    Accepted, Extended, LeaseRef, Registered, Reported, Signaled, Started, SubmitOutcome, Submitted,
};
pub use tenure_core::state::{
    Eligibility, Halted, LeaseView, Phase, QueuePosition, QueueView, SharedBytes, StateBytes,
    StateCounts, StateHash, TaskError,
};
pub use tenure_record::event::{QueueSettings, RunState};
pub use tenure_record::id::{GroupId, LeaseId, Lsn, RunId, TaskId, TokenId};
pub use tenure_record::state::TaskState;
pub use tenure_record::terms::Priority;
pub use tenure_record::time::Timestamp;
pub use tenure_value::Value;

/// A value of a run, such as its input or output, as a type of serde.
///
/// # Errors
/// The value does not fit the type.
#[cfg(feature = "json")]
pub fn from_value<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, Error> {
    serde_json::from_str(&value.to_json()).map_err(|error| {
        let message = format!("the value is not as expected: {error}");
        Error::with_source(Code::InvalidRequest, message, error)
    })
}
