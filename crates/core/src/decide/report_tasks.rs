//! Several reports at once. Each stands for itself and is decided as if those before it were
//! applied; all that change something are one record.

use super::{Ruling, Verdict, complete_task, fail_task, heartbeat, release_task};
use crate::command::{FailTask, Reply, ReportTasks, Reported};
use crate::event::{Event, ReportsApplied};
use crate::limits::{BATCH_ITEMS_MAX, NAME_BYTES_MAX, RECORD_BYTES_MAX};
use crate::rejection::Rejection;
use crate::state::Draft;
use crate::time::Now;

/// Beside its output, or its reason and code, an item has two names and a few numbers.
const ITEM_BYTES_MAX: usize = 2 * NAME_BYTES_MAX + 128;

pub(super) fn decide<'c>(
    draft: &mut Draft<'_>,
    command: &'c ReportTasks,
    now: Now,
    seed: u64,
) -> Result<Verdict<'c>, Rejection> {
    let items = check_size(command)?;
    draft.reserve(items);
    let mut results = Vec::with_capacity(items);
    let mut reports = Vec::with_capacity(items);
    let mut take = |ruling: Ruling<'c>| {
        reports.extend(ruling.item);
        results.push(Reported { task_id: ruling.task_id, result: ruling.result });
    };
    for lease in &command.heartbeats {
        take(heartbeat::rule(draft, *lease, now));
    }
    for report in &command.completes {
        take(complete_task::rule(draft, report, now));
    }
    for report in &command.fails {
        take(fail_task::rule(draft, report, now, seed));
    }
    for lease in &command.releases {
        take(release_task::rule(draft, *lease, now));
    }
    let reply = Reply::Reported(results);
    Ok(match reports.is_empty() {
        true => Verdict::Answer(reply),
        false => Verdict::Append(Event::ReportsApplied(ReportsApplied { reports }), reply),
    })
}

/// How many items there are, if they fit one record.
fn check_size(command: &ReportTasks) -> Result<usize, Rejection> {
    let ReportTasks { heartbeats, completes, fails, releases } = command;
    let items = heartbeats.len() + completes.len() + fails.len() + releases.len();
    if items > BATCH_ITEMS_MAX {
        return Err(Rejection::BatchTooLarge { items });
    }
    let outputs: usize = completes.iter().map(|report| report.output.as_bytes().len()).sum();
    let reasons: usize = fails.iter().map(bytes_of_reason).sum();
    let named = completes.len() + fails.len() + releases.len();
    let bytes = outputs + reasons + named * ITEM_BYTES_MAX + heartbeats.len() * 32;
    if bytes > RECORD_BYTES_MAX {
        return Err(Rejection::RecordTooLarge { bytes });
    }
    Ok(items)
}

fn bytes_of_reason(report: &FailTask) -> usize {
    report.reason.as_str().len() + report.code.as_ref().map_or(0, |code| code.as_str().len())
}
