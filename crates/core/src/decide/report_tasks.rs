//! Several reports at once. Each stands for itself and is decided as if those before it were
//! applied; all that change something are one record.

use super::{Ruling, Verdict, complete_task, fail_task, heartbeat, release_task};
use crate::command::{Reply, ReportTasks, Reported};
use crate::event::{About, Event, Report, ReportsApplied};
use crate::limits::{BATCH_ITEMS_MAX, RECORD_BYTES_MAX};
use crate::rejection::Rejection;
use crate::state::Draft;
use crate::time::Now;
use crate::workflow;

/// Numbers and field keys of one item in a record, beside its texts and output, at the most.
const ITEM_BYTES: usize = 128;

pub(super) fn decide<'c>(
    draft: &mut Draft<'_>,
    command: &'c ReportTasks,
    now: Now,
    seed: u64,
) -> Result<Verdict<'c>, Rejection> {
    let items = check_count(command)?;
    draft.reserve(items);
    let mut results = Vec::with_capacity(items);
    let mut reports = Vec::with_capacity(items);
    let mut bytes = 0;
    let mut take = |ruling: Ruling<'c>| {
        bytes += ruling.item.as_ref().map_or(0, bytes_of);
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
    if bytes > RECORD_BYTES_MAX {
        return Err(Rejection::RecordTooLarge { bytes });
    }
    let reply = Reply::Reported(results);
    Ok(match reports.is_empty() {
        true => Verdict::Answer(reply),
        false => Verdict::Append(Event::ReportsApplied(ReportsApplied { reports }), reply),
    })
}

/// How many items there are, if one request may have so many.
fn check_count(command: &ReportTasks) -> Result<usize, Rejection> {
    let ReportTasks { heartbeats, completes, fails, releases } = command;
    let items = heartbeats.len() + completes.len() + fails.len() + releases.len();
    match items <= BATCH_ITEMS_MAX {
        true => Ok(items),
        false => Err(Rejection::BatchTooLarge { items, items_max: BATCH_ITEMS_MAX }),
    }
}

/// What an item takes in a record, or a little more.
fn bytes_of(report: &Report<'_>) -> usize {
    let about = |about: &About<'_>| ITEM_BYTES + about.queue.as_str().len();
    match report {
        Report::LeaseExtended(_) => ITEM_BYTES,
        Report::TaskCompleted(item) => {
            about(&item.about)
                + item.worker.as_str().len()
                + item.output.len()
                + workflow::bytes(&item.cascade)
        }
        Report::TaskFailed(item) => {
            let why = item.code.as_str().len() + item.reason.as_str().len();
            about(&item.about) + item.worker.as_str().len() + why + workflow::bytes(&item.cascade)
        }
        Report::LeaseReleased(item) => {
            let cascade = workflow::bytes(&item.cascade);
            about(&item.about) + item.worker.as_str().len() + cascade
        }
        Report::TaskCancelled(item) => about(&item.about),
    }
}
