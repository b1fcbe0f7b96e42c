//! Batches of reports: decided in as many records as they need, and answered when the last of them
//! is durable.

use tenure_core::Rejection;
use tenure_core::command::{Command, ReportTasks, Reported};
use tenure_log::Log;
use tenure_record::id::TaskId;
use tenure_record::time::Now;

use crate::refusal::Refusal;
use crate::request::Responder;
use crate::step::Coordinator;

/// Reports of one request, and what became of those that are decided.
#[derive(Debug)]
pub(crate) struct ReportProgress {
    command: Command,
    results: Vec<Reported>,
    /// The whole request is refused.
    refused: Option<Refusal>,
}

/// A batch of reports that waits for another record, and the responder of its caller.
#[derive(Debug)]
pub(crate) struct UnfinishedReport {
    progress: ReportProgress,
    pub(crate) to: Responder<ReportTasks>,
}

impl UnfinishedReport {
    pub(crate) fn new(report: ReportTasks, to: Responder<ReportTasks>) -> Self {
        Self { progress: ReportProgress::new(report), to }
    }
}

impl ReportProgress {
    pub(crate) fn new(report: ReportTasks) -> Self {
        Self { command: Command::ReportTasks(report), results: Vec::new(), refused: None }
    }

    /// Whether reports are left to decide.
    pub(crate) fn has_more(&self) -> bool {
        self.refused.is_none() && self.results.len() < tasks(self.report()).count()
    }

    fn report(&self) -> &ReportTasks {
        let Command::ReportTasks(report) = &self.command else {
            unreachable!("a report's progress is that of a report")
        };
        report
    }

    /// Takes what one record decided.
    fn take(&mut self, outcome: Result<Vec<Reported>, Refusal>) {
        let is_single = match outcome {
            Ok(reports) => {
                self.results.extend(reports);
                false
            }
            // One by one, so that one report that is too much costs only itself.
            Err(Refusal::Rejected(rejection @ Rejection::RecordTooLarge { .. })) => {
                let next = tasks(self.report()).nth(self.results.len());
                if let Some(task_id) = next.filter(|_| self.report().is_single) {
                    self.results.push(Reported { task_id, result: Err(rejection) });
                }
                true
            }
            Err(refusal) => {
                self.refused = Some(refusal);
                return;
            }
        };
        let decided = self.results.len();
        if let Command::ReportTasks(report) = &mut self.command {
            (report.decided, report.is_single) = (decided, is_single);
        }
    }

    fn outcome(self) -> Result<Vec<Reported>, Refusal> {
        self.refused.map_or(Ok(self.results), Err)
    }
}

/// The tasks that are reported on, in the order in which they are decided.
fn tasks(report: &ReportTasks) -> impl Iterator<Item = TaskId> + '_ {
    let heartbeats = report.heartbeats.iter().map(|item| item.lease.task_id);
    let completes = report.completes.iter().map(|item| item.lease.task_id);
    let fails = report.fails.iter().map(|item| item.lease.task_id);
    let releases = report.releases.iter().map(|item| item.lease.task_id);
    heartbeats.chain(completes).chain(fails).chain(releases)
}

impl<L: Log> Coordinator<L> {
    /// Decides reports as far as one record goes. What is left comes after the requests that are
    /// waiting, so that one large batch does not hold up the rest.
    pub(crate) fn report(&mut self, mut report: UnfinishedReport, now: Now) {
        self.report_more(&mut report.progress, now);
        match report.progress.has_more() {
            true => self.intake.unfinished.push_back(report),
            false => self.put(report.to, report.progress.outcome()),
        }
    }

    /// Decides reports as far as one record goes.
    pub(crate) fn report_more(&mut self, progress: &mut ReportProgress, now: Now) {
        let outcome = self.run_as(&progress.command, now);
        let decided = progress.results.len();
        progress.take(outcome);
        let heard = progress.results.iter().zip(&progress.report().heartbeats).skip(decided);
        for (reported, heartbeat) in heard {
            if reported.result.is_ok() {
                self.soft.heard(heartbeat, &self.state, now);
            }
        }
    }

    /// Goes on with batches of reports, each by one record at a time.
    pub(crate) fn continue_reports(&mut self, now: Now) {
        for _ in 0..self.intake.unfinished.len() {
            if !self.has_room() {
                return;
            }
            let Some(report) = self.intake.unfinished.pop_front() else { return };
            self.report(report, now);
            self.serve_ready_queues(now);
        }
    }
}
