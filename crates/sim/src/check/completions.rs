//! At most one completion per task, and its output is that of the report that was accepted.

use tenure_core::Rejection;
use tenure_core::command::CompleteTask;
use tenure_record::event::Record;
use tenure_record::state::TaskState;

use super::{LawResult, hold};
use crate::item::{End, Item};
use crate::ledger::TaskLedger;
use crate::model::Model;
use crate::request::{AnyRequest, AnyResponse};

const ONCE: &str = "at most one completion per task";
const OUTPUT: &str = "the output is that of the accepted report";

pub(super) fn item(
    ledger: &TaskLedger,
    model: &Model,
    record: &Record<'_>,
    item: Item<'_>,
) -> LawResult {
    let Item::Ended { about, lease_id, by: End::Completed { output }, .. } = item else {
        return Ok(());
    };
    let task = ledger.task(about.task_id);
    hold(ONCE, task.is_some_and(|task| task.completed.is_none()), || {
        format!("record {}: task {} is completed again", record.lsn, about.task_id)
    })?;
    let sent = model.outputs.get(&lease_id).is_some_and(|outputs| outputs.contains(output));
    hold(OUTPUT, sent, || {
        let output = String::from_utf8_lossy(output);
        format!("record {}: nobody sent {output:?} under lease {lease_id}", record.lsn)
    })
}

pub(super) fn told(ledger: &TaskLedger, ask: &AnyRequest, answer: &AnyResponse) -> LawResult {
    if let (AnyRequest::CompleteTask(sent), AnyResponse::CompleteTask(_)) = (ask, answer) {
        return accepted(ledger, sent);
    }
    if let (AnyRequest::ReportTasks(sent), AnyResponse::ReportTasks(reports)) = (ask, answer) {
        let reports = reports.iter().skip(sent.heartbeats.len());
        for (complete, report) in sent.completes.iter().zip(reports) {
            match &report.result {
                Ok(_) => accepted(ledger, complete)?,
                Err(rejection) => refused(ledger, complete, rejection)?,
            }
        }
    }
    Ok(())
}

pub(super) fn rejected(ledger: &TaskLedger, ask: &AnyRequest, rejection: &Rejection) -> LawResult {
    let AnyRequest::CompleteTask(sent) = ask else { return Ok(()) };
    refused(ledger, sent, rejection)
}

fn accepted(ledger: &TaskLedger, sent: &CompleteTask) -> LawResult {
    let task = ledger.tasks.get(&sent.lease.task_id);
    let is_so = task.is_some_and(|task| {
        task.state == TaskState::Completed
            && task.completed.as_ref().is_some_and(|(by, _)| *by == sent.lease.lease_id)
    });
    hold(ONCE, is_so, || format!("{sent:?} was accepted; the log says {task:?}"))
}

fn refused(ledger: &TaskLedger, sent: &CompleteTask, rejection: &Rejection) -> LawResult {
    // It says what is wrong with the report, whatever became of another one under the same lease.
    if matches!(rejection, Rejection::NoRunForArtifacts { .. }) {
        return Ok(());
    }
    let by = ledger.task(sent.lease.task_id).and_then(|task| task.completed.as_ref());
    hold(ONCE, by.is_none_or(|(by, _)| *by != sent.lease.lease_id), || {
        format!("{sent:?} was refused ({rejection}) and is done")
    })
}
