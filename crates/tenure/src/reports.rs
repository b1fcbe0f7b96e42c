//! Reports of a worker under its leases: heartbeats, releases, and batches of all kinds.

use std::time::Duration;

use tenure_core::command::{self, LeaseRef, ReleaseTask, ReportTasks};
use tenure_record::progress::Progress;
use tenure_record::terms::Priority;

use crate::error::Error;
use crate::outcome::{Failure, FailureReport, Output};
use crate::terms;

/// A heartbeat, which extends a lease.
///
/// ```
/// # use tenure::{Heartbeat, LeaseId, LeaseRef, TaskId};
/// # let lease = LeaseRef { task_id: TaskId(1), lease_id: LeaseId(1) };
/// let heartbeat = Heartbeat::new(lease).progress(0.4, "4 of 10 pages").checkpoint("4");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Heartbeat {
    lease: LeaseRef,
    extend_by: Option<Duration>,
    checkpoint: Vec<u8>,
    fraction: Option<f64>,
    message: Option<String>,
}

impl Heartbeat {
    /// A heartbeat that extends the lease by its own length.
    pub fn new(lease: LeaseRef) -> Self {
        Self { lease, extend_by: None, checkpoint: Vec::new(), fraction: None, message: None }
    }

    /// Extends the lease by this span instead.
    pub fn extend_by(self, span: Duration) -> Self {
        Self { extend_by: Some(span), ..self }
    }

    /// Saves a checkpoint, which the next attempt gets with its lease: at most 64 KiB.
    pub fn checkpoint(self, checkpoint: impl Into<Vec<u8>>) -> Self {
        Self { checkpoint: checkpoint.into(), ..self }
    }

    /// Reports progress: a fraction from 0 to 1 and a message for people, which may be empty.
    pub fn progress(self, fraction: f64, message: impl Into<String>) -> Self {
        let message = Some(message.into()).filter(|message| !message.is_empty());
        Self { fraction: Some(fraction), message, ..self }
    }

    pub(crate) fn parse(self) -> Result<command::Heartbeat, Error> {
        let progress = Progress::parse(self.fraction, self.message.as_deref())?;
        Ok(command::Heartbeat {
            lease: self.lease,
            lease_ms: self.extend_by.map(terms::lease_ms).transpose()?,
            checkpoint: terms::checkpoint(&self.checkpoint)?,
            progress: progress.map(Box::new),
        })
    }
}

impl From<LeaseRef> for Heartbeat {
    fn from(lease: LeaseRef) -> Self {
        Self::new(lease)
    }
}

/// The release of a lease.
#[derive(Clone, Debug)]
#[must_use]
pub struct Release {
    lease: LeaseRef,
    delay: Duration,
    priority: Option<i32>,
    checkpoint: Vec<u8>,
}

impl Release {
    /// A release after which another worker can lease the task at once.
    pub fn new(lease: LeaseRef) -> Self {
        Self { lease, delay: Duration::ZERO, priority: None, checkpoint: Vec::new() }
    }

    /// Delays the task before it can be leased again.
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Gives the task another priority.
    pub fn priority(self, priority: i32) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// Saves a checkpoint, which the next attempt gets with its lease: at most 64 KiB.
    pub fn checkpoint(self, checkpoint: impl Into<Vec<u8>>) -> Self {
        Self { checkpoint: checkpoint.into(), ..self }
    }

    pub(crate) fn parse(self) -> Result<ReleaseTask, Error> {
        let priority = self.priority.map(|priority| Priority::parse(priority.into()));
        Ok(ReleaseTask {
            lease: self.lease,
            delay_ms: terms::span("delay", self.delay)?,
            priority: priority.transpose()?,
            checkpoint: terms::checkpoint(&self.checkpoint)?,
        })
    }
}

impl From<LeaseRef> for Release {
    fn from(lease: LeaseRef) -> Self {
        Self::new(lease)
    }
}

/// Reports to be made with one call; see [`Tenure::report`](crate::Tenure::report).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Reports {
    heartbeats: Vec<Heartbeat>,
    completes: Vec<(LeaseRef, Output)>,
    fails: Vec<(LeaseRef, Failure)>,
    releases: Vec<Release>,
}

impl Reports {
    /// No reports yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a heartbeat.
    pub fn heartbeat(mut self, heartbeat: impl Into<Heartbeat>) -> Self {
        self.heartbeats.push(heartbeat.into());
        self
    }

    /// Adds a completion.
    pub fn complete(mut self, lease: LeaseRef, output: impl Into<Output>) -> Self {
        self.completes.push((lease, output.into()));
        self
    }

    /// Adds a failure. One that only releases its lease counts among the releases, after those that
    /// were added as such.
    pub fn fail(mut self, lease: LeaseRef, failure: Failure) -> Self {
        self.fails.push((lease, failure));
        self
    }

    /// Adds a release.
    pub fn release(mut self, release: impl Into<Release>) -> Self {
        self.releases.push(release.into());
        self
    }

    pub(crate) fn parse(self) -> Result<ReportTasks, Error> {
        let heartbeats =
            self.heartbeats.into_iter().map(Heartbeat::parse).collect::<Result<_, _>>();
        let completes = self.completes.into_iter().map(|(lease, output)| output.parse(lease, None));
        let releases = self.releases.into_iter().map(Release::parse).collect::<Result<_, _>>();
        let mut reports = ReportTasks {
            heartbeats: heartbeats?,
            completes: completes.collect::<Result<_, _>>()?,
            releases: releases?,
            ..ReportTasks::default()
        };
        for (lease, failure) in self.fails {
            match failure.parse(lease, None)? {
                FailureReport::Fail(fail) => reports.fails.push(fail),
                FailureReport::Release(release) => reports.releases.push(release),
            }
        }
        Ok(reports)
    }
}
