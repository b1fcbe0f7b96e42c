//! Reports of workers: what the outward model says, as commands.

use tenure_api as api;
use tenure_core::command::{CompleteTask, FailTask, Heartbeat, LeaseRef, ReleaseTask, ReportTasks};
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::name::{FailureCode, Reason, WorkerName};
use tenure_record::progress::Progress;
use tenure_record::terms::{Priority, SpanMs};

use super::artifact::{self, Handed};
use super::terms;
use crate::problem::Problem;

type Parsed<T> = Result<T, Problem>;

/// The task that a report is about: the address has it, or the report itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About {
    /// The task that the address names.
    Address(u64),
    /// The task that the report names.
    Report,
}

impl About {
    fn lease(self, task_id: Option<u64>, lease_id: u64) -> Parsed<LeaseRef> {
        let task_id = match (self, task_id) {
            (About::Address(address), Some(other)) if address != other => {
                let detail =
                    format!("task_id is {other} and the address says {address}; leave task_id out");
                return Err(Problem::invalid(detail));
            }
            (About::Address(task_id), _) | (About::Report, Some(task_id)) => task_id,
            (About::Report, None) => {
                return Err(Problem::invalid("task_id is missing; say which task it is"));
            }
        };
        Ok(LeaseRef { task_id: TaskId(task_id), lease_id: LeaseId(lease_id) })
    }
}

fn worker(name: Option<&str>) -> Parsed<Option<WorkerName>> {
    Ok(name.map(WorkerName::parse).transpose()?)
}

/// A heartbeat. The worker is checked and dropped: nothing is recorded of a stale heartbeat.
pub(crate) fn heartbeat(about: About, report: &api::HeartbeatReport) -> Parsed<Heartbeat> {
    worker(report.worker.as_deref())?;
    let progress = Progress::parse(report.progress, report.message.as_deref())?;
    Ok(Heartbeat {
        lease: about.lease(report.task_id, report.lease_id)?,
        lease_ms: terms::lease_ms(report.lease_ms)?,
        checkpoint: terms::checkpoint(report.checkpoint.as_bytes())?,
        progress: progress.map(Box::new),
    })
}

/// A completion, and the files whose bytes are still to be kept.
pub(crate) fn complete(
    about: About,
    report: api::CompleteReport,
) -> Parsed<(CompleteTask, Vec<Handed>)> {
    let output = terms::payload("output", report.output)?;
    let handed = artifact::parse(report.artifacts.unwrap_or_default())?;
    let lease = about.lease(report.task_id, report.lease_id)?;
    let worker = worker(report.worker.as_deref())?;
    Ok((CompleteTask { lease, output, artifacts: Vec::new(), worker }, handed))
}

/// A failed attempt.
pub(crate) fn fail(about: About, report: &api::FailReport) -> Parsed<FailTask> {
    Ok(FailTask {
        lease: about.lease(report.task_id, report.lease_id)?,
        reason: Reason::keep_end(&report.reason),
        code: report.code.as_deref().map(FailureCode::parse).transpose()?,
        retry: terms::retry(report.retryable, report.retry_after_ms)?,
        checkpoint: terms::checkpoint(report.checkpoint.as_bytes())?,
        worker: worker(report.worker.as_deref())?,
    })
}

/// A returned lease. The worker is checked and dropped: nothing is recorded of a stale release.
pub(crate) fn release(about: About, report: &api::ReleaseReport) -> Parsed<ReleaseTask> {
    worker(report.worker.as_deref())?;
    Ok(ReleaseTask {
        lease: about.lease(report.task_id, report.lease_id)?,
        delay_ms: SpanMs::parse("delay_ms", report.delay_ms.unwrap_or(0))?,
        priority: report.priority.map(|priority| Priority::parse(priority.into())).transpose()?,
        checkpoint: terms::checkpoint(report.checkpoint.as_bytes())?,
    })
}

/// A batch of reports, and for each completion the files whose bytes are still to be kept.
pub(crate) fn batch(reports: api::Reports) -> Parsed<(ReportTasks, Vec<Vec<Handed>>)> {
    let api::Reports { heartbeat, complete, fail, release } = reports;
    self::reports(
        heartbeat.into_iter(),
        complete.into_iter(),
        fail.into_iter(),
        release.into_iter(),
    )
}

/// Many reports at once, and for each completion the files whose bytes are still to be kept. The
/// reports are converted one by one, so that a batch costs no lists of its own.
pub(crate) fn reports(
    heartbeats: impl Iterator<Item = api::HeartbeatReport>,
    completes: impl Iterator<Item = api::CompleteReport>,
    fails: impl Iterator<Item = api::FailReport>,
    releases: impl Iterator<Item = api::ReleaseReport>,
) -> Parsed<(ReportTasks, Vec<Vec<Handed>>)> {
    let completes: Vec<_> =
        completes.map(|report| complete(About::Report, report)).collect::<Result<_, _>>()?;
    let (completes, handed) = completes.into_iter().unzip();
    let reports = ReportTasks {
        heartbeats: heartbeats
            .map(|report| heartbeat(About::Report, &report))
            .collect::<Result<_, _>>()?,
        completes,
        fails: fails.map(|report| fail(About::Report, &report)).collect::<Result<_, _>>()?,
        releases: releases
            .map(|report| release(About::Report, &report))
            .collect::<Result<_, _>>()?,
        ..ReportTasks::default()
    };
    Ok((reports, handed))
}
