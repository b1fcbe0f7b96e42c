//! Whoever looks sees what the log says: nothing that is not in it, and nothing older than what
//! could be told when the question came.

use tenure_coordinator::TaskInfo;
use tenure_coordinator::request::ListTasks;
use tenure_core::Rejection;
use tenure_record::id::Lsn;

use super::{LawResult, hold};
use crate::ledger::{Seen, TaskLedger};
use crate::model::Delivery;
use crate::request::{AnyRequest, AnyResponse};

const DURABLE: &str = "a read shows only what is in the log";
const FRESH: &str = "a read after a write sees it";
const FILTER: &str = "a list has what was asked for, newest first";

pub(super) fn told(ledger: &TaskLedger, delivery: &Delivery, answer: &AnyResponse) -> LawResult {
    if let Some(task) = answer.task() {
        return task_shown(ledger, task, delivery.after);
    }
    if let (AnyRequest::ListTasks(ListTasks(filter)), AnyResponse::ListTasks(page)) =
        (&*delivery.ask, answer)
    {
        for task in &page.tasks {
            task_shown(ledger, task, delivery.after)?;
        }
        let falls = page.tasks.windows(2).all(|two| two[0].id > two[1].id);
        hold(FILTER, falls, || "the order is another".to_owned())?;
        let fits = page.tasks.iter().all(|task| {
            filter.queue.as_ref().is_none_or(|queue| queue.as_str() == &*task.queue)
                && filter.state.is_none_or(|state| state == task.state)
                && filter.before.is_none_or(|before| task.id < before)
        });
        return hold(FILTER, fits, || format!("{filter:?} lists another"));
    }
    if let AnyResponse::GetStatus(status) = answer {
        let lsn = status.lsn;
        hold(DURABLE, lsn <= ledger.last_lsn, || format!("LSN {lsn} is not durable"))?;
        return hold(FRESH, lsn >= delivery.after, || format!("LSN {lsn} is old"));
    }
    if let AnyResponse::GetFacts(facts) = answer {
        let lsn = facts.last_lsn();
        return hold(DURABLE, lsn <= ledger.last_lsn, || format!("LSN {lsn} is not durable"));
    }
    // Everything that was decided before the request is in a snapshot.
    if let AnyResponse::TakeSnapshot(taken) = answer {
        let is_so = taken.lsn <= ledger.last_lsn && taken.lsn >= delivery.after;
        return hold(DURABLE, is_so, || format!("a snapshot at LSN {}", taken.lsn));
    }
    Ok(())
}

fn task_shown(ledger: &TaskLedger, task: &TaskInfo, after: Lsn) -> LawResult {
    let Some(entry) = ledger.tasks.get(&task.id) else {
        return hold(DURABLE, false, || format!("task {} is not in the log", task.id));
    };
    let shown = Seen { lsn: task.last_lsn, state: task.state, attempt: task.attempt };
    hold(DURABLE, entry.history.contains(&shown), || {
        format!("task {} is shown as {shown:?}, never so in {:?}", task.id, entry.history)
    })?;
    let known = entry.seen_at(after);
    hold(FRESH, known.is_none_or(|known| shown.lsn >= known.lsn), || {
        format!("task {} is shown as {shown:?}, and was {known:?} before the question", task.id)
    })
}

pub(super) fn rejected(ledger: &TaskLedger, rejection: &Rejection) -> LawResult {
    match rejection {
        Rejection::TaskNotFound { task_id } => {
            hold(FRESH, ledger.task(*task_id).is_none(), || format!("{rejection}, and it is there"))
        }
        Rejection::TaskTerminal { task_id, state } | Rejection::NotRetryable { task_id, state } => {
            let entry = ledger.tasks.get(task_id);
            let was =
                entry.is_some_and(|task| task.history.iter().any(|seen| seen.state == *state));
            hold(DURABLE, was, || format!("{rejection}; the log says {entry:?}"))
        }
        Rejection::RunKeyConflict { key, run_id } => {
            let entry = ledger.runs.get(run_id);
            let holds = entry.is_some_and(|run| run.key.as_deref() == Some(key.as_str()));
            hold(DURABLE, holds, || format!("{rejection}; the log says {entry:?}"))
        }
        Rejection::LeaseLost { .. }
        | Rejection::QueueNotFound { .. }
        | Rejection::QueueInUse { .. }
        | Rejection::OwnDeadLetterQueue { .. }
        | Rejection::QueueOfDeadLetters { .. }
        | Rejection::WorkflowInUse { .. }
        | Rejection::TooManyDeletedWorkflows
        | Rejection::RunKeyNotFound { .. }
        | Rejection::InBatch { .. }
        | Rejection::RunKeyTwice { .. }
        | Rejection::WorkflowSignalUnknown { .. }
        | Rejection::BatchTooHeavy { .. }
        | Rejection::SignalConflict { .. }
        | Rejection::KeyConflict { .. }
        | Rejection::KeyTwice { .. }
        | Rejection::TooManyNames { .. }
        | Rejection::TooManyQueues { .. }
        | Rejection::QueueFull { .. }
        | Rejection::BatchTooLarge { .. }
        | Rejection::ValueTooLarge { .. }
        | Rejection::RecordTooLarge { .. }
        | Rejection::IdsExhausted { .. }
        | Rejection::RunNotFound { .. }
        | Rejection::WorkflowNotFound { .. }
        | Rejection::WorkflowBroken { .. }
        | Rejection::SignalUnknown { .. }
        | Rejection::RunOver { .. }
        | Rejection::RunEnding { .. }
        | Rejection::RunParked { .. }
        | Rejection::TaskOfRun { .. }
        | Rejection::SignalsFull { .. }
        | Rejection::SignalBytesFull { .. }
        | Rejection::InputInvalid { .. }
        | Rejection::TooManyVersions { .. }
        | Rejection::TooManyWorkflows
        | Rejection::NoRunForArtifacts { .. } => Ok(()),
    }
}
