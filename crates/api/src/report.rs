//! Reports of workers on the leases that they hold.

use serde::{Deserialize, Serialize};

use crate::{Binary, Payload, TaskState, Timestamp, payload};

/// A heartbeat: the worker is still executing the task, and its lease is extended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HeartbeatReport {
    /// The task's id. A batch needs it; the address of a single report has it already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<u64>,
    /// The lease's id.
    pub lease_id: u64,
    /// The part of the work that is done, from 0 to 1. It is shown with the task until the attempt
    /// ends.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// A message for people about the progress, at most 1,024 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Where the next attempt continues, at most 64 KiB. The task keeps its checkpoint if none is
    /// given.
    #[serde(default, skip_serializing_if = "Payload::is_empty")]
    pub checkpoint: Payload,
    /// The lease expires this long from now, instead of after its full duration.
    #[cfg_attr(feature = "openapi", schema(minimum = 50, maximum = 86_400_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u32>,
    /// The worker that reports. It authorizes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// The outcome of a heartbeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Extension {
    /// When the lease expires now.
    pub expires_at: Timestamp,
    /// Whether a client asked the task to stop.
    pub cancel_requested: bool,
}

/// A task is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CompleteReport {
    /// The task's id. A batch needs it; the address of a single report has it already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<u64>,
    /// The lease's id.
    pub lease_id: u64,
    /// The result: any JSON of at most 1 MiB, kept byte for byte; `null` if not given.
    #[serde(
        default = "Payload::null",
        deserialize_with = "payload::with_null",
        skip_serializing_if = "Payload::is_empty"
    )]
    pub output: Payload,
    /// Files that the task produced, at most 100; only for tasks of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<NewArtifact>>,
    /// The worker that reports. It is recorded with a stale report and authorizes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// A file that a completion hands in. Exactly one of `data` and `blob` is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewArtifact {
    /// A relative path, such as `report.pdf`.
    #[cfg_attr(feature = "openapi", schema(max_length = 200, min_length = 1))]
    pub name: String,
    /// The media type; `application/octet-stream` if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The bytes themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Binary>,
    /// The SHA-256 in hexadecimal of a file that was uploaded with `PUT /v1/blobs/{sha256}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

/// An uploaded file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Blob {
    /// The SHA-256 in hexadecimal.
    pub sha256: String,
    /// The size.
    pub bytes: u64,
}

/// An attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FailReport {
    /// The task's id. A batch needs it; the address of a single report has it already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<u64>,
    /// The lease's id.
    pub lease_id: u64,
    /// Why the attempt failed, for people.
    pub reason: String,
    /// Why the attempt failed, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Whether another attempt can succeed; `true` if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The wait before the next attempt, instead of the task's backoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Where the next attempt continues, at most 64 KiB. The task keeps its checkpoint if none is
    /// given.
    #[serde(default, skip_serializing_if = "Payload::is_empty")]
    pub checkpoint: Payload,
    /// The worker that reports. It is recorded with a stale report and authorizes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// A worker returns its lease. Neither failures nor expiries are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReleaseReport {
    /// The task's id. A batch needs it; the address of a single report has it already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<u64>,
    /// The lease's id.
    pub lease_id: u64,
    /// The delay until the task can be leased again; 0 if not given.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The task's new priority; the task keeps its own if not given.
    #[cfg_attr(feature = "openapi", schema(minimum = -100, maximum = 100))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Where the next attempt continues, at most 64 KiB. The task keeps its checkpoint if none is
    /// given.
    #[serde(default, skip_serializing_if = "Payload::is_empty")]
    pub checkpoint: Payload,
    /// The worker that reports. It authorizes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// Many reports in one request, processed in this order. Each succeeds or fails by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Reports {
    /// Heartbeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heartbeat: Vec<HeartbeatReport>,
    /// Completed tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub complete: Vec<CompleteReport>,
    /// Failed attempts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fail: Vec<FailReport>,
    /// Returned leases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub release: Vec<ReleaseReport>,
}

/// The outcomes of many reports, in the order heartbeats, completions, failures, releases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReportResults {
    /// One outcome for each report.
    pub results: Vec<ReportResult>,
}

/// The outcome of one report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReportResult {
    /// The task's id.
    pub task_id: u64,
    /// Whether the report was accepted.
    pub ok: bool,
    /// After an accepted report: the task's state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// After a refused report: the stable error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// After a refused report: what is wrong and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// After a heartbeat: when the lease expires now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// After a heartbeat: whether a client asked the task to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<bool>,
}
