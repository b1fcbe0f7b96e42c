//! The outward model of Tenure: every request and response of the contract, declared once.
//!
//! The HTTP API, `tenure … -o json` and the archive serialize these types with serde; the SDK
//! returns them; `tenure-proto` converts them to and from gRPC messages. Conventions:
//!
//! - Ids are `u64` and JSON numbers.
//! - Times are [`Timestamp`]s: RFC 3339 in JSON, in UTC, with milliseconds. Durations are integers
//!   whose names end in `_ms`.
//! - A [`Payload`] is JSON text, kept byte for byte. Bytes that are not JSON are base64 in JSON text,
//!   and a field next to them, such as `payload_encoding`, says so.
//! - Enums are text. A text that this version does not know is kept in the variant `Other`, so that
//!   a client reads the responses of a newer server.
//! - Unknown fields are an error in requests and ignored in responses.
//!
//! Types of requests check the shape of their fields only. The server checks what the values mean.

mod archive;
mod event;
mod explain;
mod new_task;
mod page;
mod payload;
mod problem;
mod queue;
mod report;
mod run;
mod status;
mod tags;
mod task;
mod text;
mod time;
mod token;
mod worker;
mod workflow;

pub use archive::{Archived, ArchivedHistory, ArchivedRun, ArchivedTask};
pub use event::{Event, EventFilter, RunEvent, TaskEvent};
pub use explain::{Explanation, Reason};
pub use new_task::{Backoff, BackoffKind, NewTask, NewTasks};
pub use page::{History, Ids, Page, PageQuery};
pub use payload::{Binary, Encoding, Payload};
pub use problem::Problem;
pub use queue::{PauseQueue, Queue, QueueSettings, Setting};
pub use report::{
    Blob, CompleteReport, Extension, FailReport, HeartbeatReport, NewArtifact, ReleaseReport,
    ReportResult, ReportResults, Reports,
};
pub use run::{
    Artifact, ArtifactState, DecisionPair, Ending, NewRun, NewRuns, Parent, Parking, Redecided,
    Refusal, Run, RunFilter, RunRef, RunState, RunStep, Signal, SignalOutcome, SignalStart,
    Signaled,
};
pub use status::{ArchiveStatus, MemoryStatus, Snapshot, Status};
pub use task::{
    CancelTask, HeldLease, Phase, Progress, Task, TaskError, TaskFilter, TaskLink, TaskOfRun,
    TaskState, TaskStep,
};
pub use time::{InvalidTimestamp, Timestamp};
pub use token::{SignalWait, Token, TokenState};
pub use worker::{Lease, LeaseRequest, Leases, Registration, SignedOff, Worker};
pub use workflow::{Definition, DefinitionFormat, Fault, Registered, Workflow};
