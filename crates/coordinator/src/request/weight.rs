//! How much memory a request takes while it waits, in bytes.

use tenure_core::command::{NewTask, StartRun};
use tenure_record::progress::Checkpoint;

use super::types::{PurgeArchived, ReportTasks, SignalByKey};

/// What a request or an item of one holds beside its texts, about.
pub(super) const ITEM_BYTES: usize = 256;

pub(super) fn task_bytes(task: &NewTask) -> usize {
    ITEM_BYTES + task.payload.as_bytes().len()
}

pub(super) fn tasks_bytes(tasks: &[NewTask]) -> usize {
    tasks.iter().map(task_bytes).sum()
}

pub(super) fn runs_bytes(runs: &[StartRun]) -> usize {
    runs.iter().map(|run| ITEM_BYTES + run.input.bytes()).sum()
}

pub(super) fn signal_by_key_bytes(request: &SignalByKey) -> usize {
    let input = request.start.as_ref().map_or(0, |start| start.input.bytes());
    ITEM_BYTES + request.signal.payload.bytes() + input
}

pub(super) fn archived_bytes(PurgeArchived(archived): &PurgeArchived) -> usize {
    ITEM_BYTES + size_of::<u64>() * (archived.tasks.len() + archived.runs.len())
}

pub(super) fn report_bytes(report: &ReportTasks) -> usize {
    let items = report.heartbeats.len()
        + report.completes.len()
        + report.fails.len()
        + report.releases.len();
    let outputs = report.completes.iter().map(|complete| complete.output.as_bytes().len());
    let reasons = report.fails.iter().map(|fail| fail.reason.as_str().len());
    let kept = report.heartbeats.iter().map(|heartbeat| &heartbeat.checkpoint);
    let kept = kept.chain(report.fails.iter().map(|fail| &fail.checkpoint));
    let kept = kept.chain(report.releases.iter().map(|release| &release.checkpoint));
    let kept = kept.map(|kept| checkpoint_bytes(kept.as_ref()));
    items * ITEM_BYTES + outputs.sum::<usize>() + reasons.sum::<usize>() + kept.sum::<usize>()
}

pub(super) fn checkpoint_bytes(checkpoint: Option<&Checkpoint>) -> usize {
    checkpoint.map_or(0, |checkpoint| checkpoint.as_bytes().len())
}
