//! A batch of reports is answered item by item, in its order, over however many records it was
//! decided.

use tenure_record::id::TaskId;

use super::{LawResult, hold};
use crate::request::{AnyRequest, AnyResponse};

const EACH: &str = "every report of a batch is answered, in its order";

pub(super) fn told(ask: &AnyRequest, answer: &AnyResponse) -> LawResult {
    let (AnyRequest::ReportTasks(report), AnyResponse::ReportTasks(told)) = (ask, answer) else {
        return Ok(());
    };
    let sent = report.heartbeats.iter().map(|it| it.lease.task_id);
    let sent = sent.chain(report.completes.iter().map(|item| item.lease.task_id));
    let sent = sent.chain(report.fails.iter().map(|item| item.lease.task_id));
    let sent: Vec<TaskId> = sent.chain(report.releases.iter().map(|it| it.lease.task_id)).collect();
    let told: Vec<TaskId> = told.iter().map(|it| it.task_id).collect();
    hold(EACH, sent == told, || format!("reports on {sent:?} are answered for {told:?}"))
}
