//! Reports of workers as they come over HTTP: field names and defaults of the contract.

use serde::Deserialize;
use serde_json::value::RawValue;
use tenure_core::command::{CompleteTask, FailTask, Heartbeat, LeaseRef, ReleaseTask, ReportTasks};
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::name::{FailureCode, Reason, WorkerName};
use tenure_record::progress::{Checkpoint, Progress};
use tenure_record::terms::{LeaseMs, Priority, SpanMs};
use utoipa::ToSchema;

use super::artifact::{self, ArtifactBody, Handed};
use super::request::payload;
use super::terms;
use crate::problem::Problem;

/// A heartbeat, with word of how far the work is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeartbeatBody<'a> {
    lease_id: u64,
    /// The part of the work that is done. It is shown with the task until the attempt ends.
    #[schema(minimum = 0, maximum = 1)]
    progress: Option<f64>,
    /// How far the work is, in words, at most 1,024 bytes.
    message: Option<String>,
    /// Where the next attempt goes on: any JSON of at most 64 KiB. The task keeps the one that it
    /// has if this is null or missing.
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    checkpoint: Option<&'a RawValue>,
    /// Ends the lease this long from now, instead of after the lease's own span.
    #[schema(minimum = 50, maximum = 86_400_000)]
    lease_ms: Option<i64>,
    /// The worker that reports. It is recorded with a stale report and authorizes nothing.
    worker: Option<String>,
}

/// A lease that is given back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseBody<'a> {
    lease_id: u64,
    /// How long the task waits before it may run again; 0 if not given.
    #[schema(minimum = 0)]
    delay_ms: Option<i64>,
    /// The task's new priority; it keeps its own if not given.
    #[schema(minimum = -100, maximum = 100)]
    priority: Option<i64>,
    /// Where the next attempt goes on: any JSON of at most 64 KiB. The task keeps the one that it
    /// has if this is null or missing.
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    checkpoint: Option<&'a RawValue>,
    /// The worker that reports. It is recorded with a stale report and authorizes nothing.
    worker: Option<String>,
}

/// A task done.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompleteBody<'a> {
    lease_id: u64,
    /// Any JSON; kept as it is.
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    output: Option<&'a RawValue>,
    /// Files that came out, at most 100; only for tasks of a run.
    artifacts: Option<Vec<ArtifactBody>>,
    /// The worker that reports. It is recorded with a stale report and authorizes nothing.
    worker: Option<String>,
}

/// A failed attempt.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailBody<'a> {
    lease_id: u64,
    reason: String,
    code: Option<String>,
    retryable: Option<bool>,
    retry_after_ms: Option<i64>,
    /// Where the next attempt goes on: any JSON of at most 64 KiB. The task keeps the one that it
    /// has if this is null or missing.
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    checkpoint: Option<&'a RawValue>,
    /// The worker that reports. It is recorded with a stale report and authorizes nothing.
    worker: Option<String>,
}

fn lease(task_id: u64, lease_id: u64) -> LeaseRef {
    LeaseRef { task_id: TaskId(task_id), lease_id: LeaseId(lease_id) }
}

/// The worker that a report names.
fn worker(name: Option<&str>) -> Result<Option<WorkerName>, Problem> {
    Ok(name.map(WorkerName::parse).transpose()?)
}

fn checkpoint(json: Option<&RawValue>) -> Result<Option<Checkpoint>, Problem> {
    terms::checkpoint(json.map_or("", RawValue::get).as_bytes())
}

impl HeartbeatBody<'_> {
    /// The report that is meant. The worker is checked and dropped: nothing is recorded of a stale
    /// heartbeat.
    pub(crate) fn parse(self, task_id: u64) -> Result<Heartbeat, Problem> {
        worker(self.worker.as_deref())?;
        let progress = Progress::parse(self.progress, self.message.as_deref())?;
        Ok(Heartbeat {
            lease: lease(task_id, self.lease_id),
            lease_ms: self.lease_ms.map(LeaseMs::parse).transpose()?,
            checkpoint: checkpoint(self.checkpoint)?,
            progress: progress.map(Box::new),
        })
    }
}

impl ReleaseBody<'_> {
    /// The report that is meant. The worker is checked and dropped: nothing is recorded of a stale
    /// release.
    pub(crate) fn parse(self, task_id: u64) -> Result<ReleaseTask, Problem> {
        worker(self.worker.as_deref())?;
        Ok(ReleaseTask {
            lease: lease(task_id, self.lease_id),
            delay_ms: SpanMs::parse("delay_ms", self.delay_ms.unwrap_or(0))?,
            priority: self.priority.map(Priority::parse).transpose()?,
            checkpoint: checkpoint(self.checkpoint)?,
        })
    }
}

impl CompleteBody<'_> {
    /// The report that is meant, and the files whose bytes are still to be kept.
    pub(crate) fn parse(self, task_id: u64) -> Result<(CompleteTask, Vec<Handed>), Problem> {
        let output = payload("output", self.output)?;
        let handed = artifact::parse(self.artifacts)?;
        let lease = lease(task_id, self.lease_id);
        let worker = worker(self.worker.as_deref())?;
        Ok((CompleteTask { lease, output, artifacts: Vec::new(), worker }, handed))
    }
}

impl FailBody<'_> {
    /// The report that is meant.
    pub(crate) fn parse(self, task_id: u64) -> Result<FailTask, Problem> {
        Ok(FailTask {
            lease: lease(task_id, self.lease_id),
            reason: Reason::keep_end(&self.reason),
            code: self.code.as_deref().map(FailureCode::parse).transpose()?,
            retry: terms::retry(self.retryable, self.retry_after_ms.map(i128::from))?,
            checkpoint: checkpoint(self.checkpoint)?,
            worker: worker(self.worker.as_deref())?,
        })
    }
}

/// Many reports at once.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReportsBody<'a> {
    #[serde(default, borrow)]
    heartbeat: Vec<HeartbeatItem<'a>>,
    #[serde(default, borrow)]
    complete: Vec<CompleteItem<'a>>,
    #[serde(default, borrow)]
    fail: Vec<FailItem<'a>>,
    #[serde(default, borrow)]
    release: Vec<ReleaseItem<'a>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct HeartbeatItem<'a> {
    task_id: u64,
    lease_id: u64,
    /// As in a heartbeat.
    progress: Option<f64>,
    /// As in a heartbeat.
    message: Option<String>,
    /// As in a heartbeat.
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    checkpoint: Option<&'a RawValue>,
    /// As in a heartbeat.
    lease_ms: Option<i64>,
    /// The worker that reports. It is recorded with a stale report and authorizes nothing.
    worker: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReleaseItem<'a> {
    task_id: u64,
    lease_id: u64,
    /// As in a release.
    delay_ms: Option<i64>,
    /// As in a release.
    priority: Option<i64>,
    /// As in a release.
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    checkpoint: Option<&'a RawValue>,
    /// The worker that reports. It is recorded with a stale report and authorizes nothing.
    worker: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CompleteItem<'a> {
    task_id: u64,
    lease_id: u64,
    /// Any JSON; kept as it is.
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    output: Option<&'a RawValue>,
    /// Files that came out, at most 100; only for tasks of a run.
    artifacts: Option<Vec<ArtifactBody>>,
    /// The worker that reports. It is recorded with a stale report and authorizes nothing.
    worker: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FailItem<'a> {
    task_id: u64,
    lease_id: u64,
    reason: String,
    code: Option<String>,
    retryable: Option<bool>,
    retry_after_ms: Option<i64>,
    /// As in a failure.
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    checkpoint: Option<&'a RawValue>,
    /// The worker that reports. It is recorded with a stale report and authorizes nothing.
    worker: Option<String>,
}

impl ReportsBody<'_> {
    /// The reports that are meant, and for each completion the files whose bytes are still to be
    /// kept.
    pub(crate) fn parse(self) -> Result<(ReportTasks, Vec<Vec<Handed>>), Problem> {
        let heartbeat = |item: HeartbeatItem<'_>| {
            let HeartbeatItem { task_id, lease_id, progress, message, checkpoint, .. } = item;
            let (lease_ms, worker) = (item.lease_ms, item.worker);
            let body = HeartbeatBody { lease_id, progress, message, checkpoint, lease_ms, worker };
            body.parse(task_id)
        };
        let release = |item: ReleaseItem<'_>| {
            let ReleaseItem { task_id, lease_id, delay_ms, priority, checkpoint, worker } = item;
            ReleaseBody { lease_id, delay_ms, priority, checkpoint, worker }.parse(task_id)
        };
        let complete = |item: CompleteItem<'_>| {
            let CompleteItem { task_id, lease_id, output, artifacts, worker } = item;
            CompleteBody { lease_id, output, artifacts, worker }.parse(task_id)
        };
        let fail = |item: FailItem<'_>| {
            let FailItem { task_id, lease_id, reason, code, retryable, checkpoint, .. } = item;
            let (retry_after_ms, worker) = (item.retry_after_ms, item.worker);
            FailBody { lease_id, reason, code, retryable, retry_after_ms, checkpoint, worker }
                .parse(task_id)
        };
        let completes: Vec<_> =
            self.complete.into_iter().map(complete).collect::<Result<_, _>>()?;
        let (completes, handed) = completes.into_iter().unzip();
        let reports = ReportTasks {
            heartbeats: self.heartbeat.into_iter().map(heartbeat).collect::<Result<_, _>>()?,
            completes,
            fails: self.fail.into_iter().map(fail).collect::<Result<_, _>>()?,
            releases: self.release.into_iter().map(release).collect::<Result<_, _>>()?,
            ..ReportTasks::default()
        };
        Ok((reports, handed))
    }
}
