//! Work that the coordinator has taken on and not decided yet: requests, batches of reports, and its
//! own commands.

use std::collections::VecDeque;

use tenure_core::command::{Command, LeaseRef};

use crate::inbox::Inbox;
use crate::limits::UNFINISHED_REPORTS_MAX;
use crate::refusal::Refusal;
use crate::report::UnfinishedReport;
use crate::request::{Envelope, Ready, Request};

/// Work that is not decided yet.
#[derive(Debug)]
pub(crate) struct Intake {
    /// Requests that were taken from the inbox.
    pub(crate) in_progress: VecDeque<Envelope>,
    /// Batches of reports of which some are not decided yet.
    pub(crate) unfinished: VecDeque<UnfinishedReport>,
    /// Commands of the coordinator itself, for which no caller waits.
    pub(crate) internal_commands: VecDeque<Command>,
    /// Timers that fired while no process ran are still to be handled, so no request is taken.
    pub(crate) is_starting: bool,
}

impl Intake {
    /// Begins with commands that a start has to run.
    pub(crate) fn new(internal_commands: VecDeque<Command>) -> Self {
        let (in_progress, unfinished) = (VecDeque::new(), VecDeque::new());
        Self { in_progress, unfinished, internal_commands, is_starting: true }
    }

    /// Takes requests from the inbox, unless those taken before are not decided.
    pub(crate) fn take(&mut self, inbox: &Inbox) {
        let is_behind = self.unfinished.len() >= UNFINISHED_REPORTS_MAX;
        if self.in_progress.is_empty() && !self.is_starting && !is_behind {
            inbox.take(&mut self.in_progress);
        }
    }

    /// Adds the release of leases whose callers are gone.
    pub(crate) fn release(&mut self, leases: impl Iterator<Item = LeaseRef>) {
        let releases = leases.map(|lease| Command::ReleaseTask(lease.into()));
        self.internal_commands.extend(releases);
    }

    /// Whether every request that was taken is decided.
    pub(crate) fn is_settled(&self) -> bool {
        self.in_progress.is_empty() && self.unfinished.is_empty()
    }

    /// Whether there is something to decide at once, here or in the inbox.
    pub(crate) fn has_more(&self, inbox: &Inbox) -> bool {
        !self.is_settled()
            // Requests that came while others were being served.
            || (!self.is_starting && !inbox.is_empty())
            || !self.internal_commands.is_empty()
    }

    /// Refuses every request that is not decided, those in the inbox included.
    pub(crate) fn refuse_requests(&mut self, inbox: &Inbox, refusal: &Refusal) -> Vec<Ready> {
        let mut requests = std::mem::take(&mut self.in_progress);
        inbox.take(&mut self.in_progress);
        requests.append(&mut self.in_progress);
        requests.into_iter().map(|envelope| envelope.refuse(refusal.clone())).collect()
    }

    /// Refuses every batch of reports that is not decided to its end.
    pub(crate) fn refuse_reports(&mut self, refusal: &Refusal) -> Vec<Ready> {
        let reports = self.unfinished.drain(..);
        reports.map(|report| Request::ready(report.to, Err(refusal.clone()))).collect()
    }
}
