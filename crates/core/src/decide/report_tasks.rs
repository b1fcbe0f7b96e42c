//! Reports, alone or several at once. Each stands for itself and is decided as if those before it
//! were applied. The recorded ones are one record, or several where what follows from them is much.

use tenure_record::event::{About, Event, Report, ReportsApplied};
use tenure_record::time::Now;

use super::{Ruling, Verdict, complete_task, fail_task, heartbeat, release_task};
use crate::command::{
    Accepted, CompleteTask, FailTask, Heartbeat, ReleaseTask, Reply, ReportTasks, Reported, Rest,
};
use crate::limits::{BATCH_ITEMS_MAX, SWEEP_BYTES_MAX};
use crate::planted::{self, Bug};
use crate::rejection::Rejection;
use crate::state::Draft;
use crate::workflow;

/// Numbers and field keys of one item in a record, beside its texts and output, at the most.
const ITEM_BYTES: usize = 128;

pub(super) fn decide<'c>(
    draft: &mut Draft<'_>,
    command: &'c ReportTasks,
    now: Now,
    seed: u64,
) -> Result<Verdict<'c>, Rejection> {
    let items = check_count(command)?.saturating_sub(command.decided);
    draft.reserve(items);
    let mut batch = Batch { results: Vec::with_capacity(items), reports: Vec::new(), bytes: 0 };
    batch.reports.reserve(items);
    let heartbeats = command.heartbeats.iter().map(Item::Heartbeat);
    let completes = command.completes.iter().map(Item::Complete);
    let fails = command.fails.iter().map(Item::Fail);
    let releases = command.releases.iter().map(Item::Release);
    let all = heartbeats.chain(completes).chain(fails).chain(releases);
    let mut rest = Rest::Nothing;
    for item in all.skip(command.decided) {
        let is_enough = command.is_single && !batch.results.is_empty();
        if is_enough || batch.is_full(draft) {
            rest = Rest::More;
            break;
        }
        batch.take(match item {
            Item::Heartbeat(report) => heartbeat::rule(draft, report, now),
            Item::Complete(report) => complete_task::rule(draft, report, now),
            Item::Fail(report) => fail_task::rule(draft, report, now, seed),
            Item::Release(report) => release_task::rule(draft, report, now),
        });
    }
    let Batch { results, reports, .. } = batch;
    let reply = Reply::Reported { reports: results, rest };
    Ok(match reports.is_empty() {
        true => Verdict::Answer(reply),
        false => Verdict::Append(Event::ReportsApplied(ReportsApplied { reports }), reply),
    })
}

/// A report that came alone: a batch of one, with an answer of its own.
pub(super) fn alone(ruling: Ruling<'_>) -> Result<Verdict<'_>, Rejection> {
    let Ruling { task_id, item, result } = ruling;
    let reply = match (result, &item) {
        (Ok(Accepted { extended: Some(extended), .. }), _) => Reply::Extended(extended),
        (Ok(Accepted { state, extended: None }), _) => Reply::Task(task_id, state),
        (Err(refusal), Some(_)) => Reply::LeaseLost(refusal),
        (Err(refusal), None) => return Err(refusal),
    };
    Ok(match item {
        Some(item) => {
            Verdict::Append(Event::ReportsApplied(ReportsApplied { reports: vec![item] }), reply)
        }
        None => Verdict::Answer(reply),
    })
}

/// One report of a request.
enum Item<'c> {
    Heartbeat(&'c Heartbeat),
    Complete(&'c CompleteTask),
    Fail(&'c FailTask),
    Release(&'c ReleaseTask),
}

/// The reports of one record.
struct Batch<'c> {
    results: Vec<Reported>,
    reports: Vec<Report<'c>>,
    bytes: usize,
}

impl<'c> Batch<'c> {
    /// Whether the rest of the reports waits for the next record: one more might be too much for
    /// this one.
    fn is_full(&self, draft: &Draft<'_>) -> bool {
        let is_full = self.bytes >= SWEEP_BYTES_MAX || draft.is_full();
        is_full && !planted::has(Bug::ReportsInOneRecord)
    }

    fn take(&mut self, ruling: Ruling<'c>) {
        self.bytes += ruling.item.as_ref().map_or(0, bytes_of);
        self.reports.extend(ruling.item);
        self.results.push(Reported { task_id: ruling.task_id, result: ruling.result });
    }
}

/// How many items there are, if one request may have so many.
fn check_count(command: &ReportTasks) -> Result<usize, Rejection> {
    let ReportTasks { heartbeats, completes, fails, releases, .. } = command;
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
        Report::LeaseExtended(item) => ITEM_BYTES + item.checkpoint.len(),
        Report::TaskCompleted(item) => {
            about(&item.about)
                + item.worker.as_str().len()
                + item.output.len()
                + workflow::bytes(&item.cascade)
        }
        Report::TaskFailed(item) => {
            let why = item.code.as_str().len() + item.reason.as_str().len();
            let names = about(&item.about) + item.worker.as_str().len();
            names + why + item.checkpoint.len() + workflow::bytes(&item.cascade)
        }
        Report::LeaseReleased(item) => {
            let cascade = workflow::bytes(&item.cascade);
            let names = about(&item.about) + item.worker.as_str().len();
            names + item.checkpoint.len() + cascade
        }
        Report::StaleReportRejected(item) => about(&item.about),
    }
}
