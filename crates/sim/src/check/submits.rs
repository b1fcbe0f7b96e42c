//! An acknowledged submit exists with equal content, a refused one left no trace, and one without
//! an answer is there wholly or not at all.

use std::collections::BTreeMap;

use tenure_coordinator::Refusal;
use tenure_coordinator::request::SubmitTask;
use tenure_core::command::{NewTask, Start, SubmitOutcome};
use tenure_core::state::Facts;
use tenure_record::event::{Created, Event, Record};
use tenure_record::id::TaskId;
use tenure_record::time::Clock;

use super::{LawResult, hold};
use crate::ledger::TaskLedger;
use crate::model::{Model, Submission, SubmissionId, nonce};
use crate::request::{AnyRequest, AnyResponse};

const EXISTS: &str = "an acknowledged submit exists with equal content";
const NO_TRACE: &str = "a refused submit leaves no trace";
const WHOLE: &str = "a submit is there wholly or not at all";

/// A record that makes tasks makes all of a submission, as it was sent.
pub(super) fn record(ledger: &TaskLedger, model: &mut Model, record: &Record<'_>) -> LawResult {
    let Event::TaskCreated(event) = &record.event else { return Ok(()) };
    let lsn = record.lsn;
    let mut made: BTreeMap<SubmissionId, Vec<usize>> = BTreeMap::new();
    for item in &event.tasks {
        let sent = nonce(&item.payload).and_then(|(id, index)| {
            let task = model.submissions.get(&id)?.tasks.get(index)?;
            Some((id, index, task))
        });
        let Some((id, index, task)) = sent else {
            return hold(WHOLE, false, || {
                format!("record {lsn}: nobody sent task {}", item.task_id)
            });
        };
        hold(EXISTS, is_same(item, task), || {
            format!("record {lsn}: {item:?} was sent as {task:?}")
        })?;
        made.entry(id).or_default().push(index);
    }
    hold(WHOLE, made.len() == 1, || format!("record {lsn} makes tasks of {} submits", made.len()))?;
    for (id, indexes) in made {
        let Some(submission) = model.submissions.get_mut(&id) else { continue };
        submission.taken += 1;
        counted(ledger, id, submission)?;
        for (index, task) in submission.tasks.iter().enumerate() {
            let known = task.key.as_ref().is_some_and(|key| {
                let place = (task.queue.as_str().to_owned(), key.as_str().to_owned());
                let twin = |at: &usize| {
                    let other = &submission.tasks[*at];
                    other.key == task.key && other.queue == task.queue
                };
                ledger.keys.contains_key(&place) || indexes.iter().any(twin)
            });
            hold(WHOLE, known || indexes.contains(&index), || {
                format!("record {lsn}: task {index} of submission {id} is missing")
            })?;
        }
    }
    Ok(())
}

fn is_same(item: &Created<'_>, task: &NewTask) -> bool {
    let clock = match task.start {
        Start::AtOnce | Start::After(_) => Clock::Log,
        Start::At(_) => Clock::Wall,
    };
    let tags = task.tags.as_slice().iter().map(|(key, value)| (key.as_str(), value.as_str()));
    item.queue.as_str() == task.queue.as_str()
        && item.payload == task.payload.as_bytes()
        && item.priority == task.priority
        && item.lease_ms == task.lease_ms.get()
        && item.max_failures == task.budgets.max_failures
        && item.max_expiries == task.budgets.max_expiries
        && item.max_attempts == task.budgets.max_attempts
        && item.backoff == task.backoff
        && item.total_timeout_ms == task.total_timeout_ms.map(|span| span.get())
        && item.attempt_timeout_ms == task.attempt_timeout_ms.map(|span| span.get())
        && item.clock == clock
        && item.key.as_ref().map(|key| key.as_str()) == task.key.as_ref().map(|key| key.as_str())
        && item.tags.iter().map(|tag| (tag.key.as_str(), tag.value.as_str())).eq(tags)
}

/// The tasks that a request wants to make.
fn sent(request: &AnyRequest) -> Option<&[NewTask]> {
    if let AnyRequest::SubmitTasks(sent) = request {
        return Some(&sent.tasks);
    }
    let AnyRequest::SubmitTask(SubmitTask(task)) = request else { return None };
    Some(std::slice::from_ref(task))
}

pub(super) fn told(
    ledger: &TaskLedger,
    model: &mut Model,
    ask: &AnyRequest,
    answer: &AnyResponse,
) -> LawResult {
    let Some(sent) = sent(ask) else { return Ok(()) };
    let made: Vec<(TaskId, SubmitOutcome)> = if let AnyResponse::SubmitTasks(made) = answer {
        made.iter().map(|made| (made.task_id, made.outcome)).collect()
    } else if let AnyResponse::SubmitTask(made) = answer {
        vec![(made.task.id, made.outcome)]
    } else {
        return Ok(());
    };
    hold(EXISTS, made.len() == sent.len(), || format!("{sent:?} was answered {made:?}"))?;
    for (task, (id, outcome)) in sent.iter().zip(made) {
        let entry = ledger.tasks.get(&id);
        // Under one key the payload is the same, but perhaps of an earlier task of the batch.
        let is_so = entry.is_some_and(|entry| {
            entry.payload == task.payload.as_bytes() && entry.queue == task.queue.as_str()
        });
        hold(EXISTS, is_so, || {
            format!("task {id} was acknowledged for {task:?}; the log says {entry:?}")
        })?;
        if outcome == SubmitOutcome::Created {
            hold(EXISTS, model.made.insert(id), || format!("task {id} was made twice"))?;
        }
        model.acknowledged.insert(id, task.payload.as_bytes().to_vec());
    }
    Ok(())
}

pub(super) fn refused(
    ledger: &TaskLedger,
    model: &mut Model,
    ask: &AnyRequest,
    refusal: &Refusal,
) -> LawResult {
    let Some(sent) = sent(ask) else { return Ok(()) };
    // A coordinator that ends does not know what becomes of what it decided.
    if matches!(refusal, Refusal::Unavailable(_)) {
        return Ok(());
    }
    let id = sent.first().and_then(|task| nonce(task.payload.as_bytes()));
    let Some(submission) = id.and_then(|(id, _)| model.submissions.get_mut(&id)) else {
        return Ok(());
    };
    submission.refused += 1;
    counted(ledger, id.map_or(0, |(id, _)| id), submission)
}

/// No submission is taken more often than it was sent and not refused.
fn counted(ledger: &TaskLedger, id: SubmissionId, submission: &Submission) -> LawResult {
    let most = submission.copies - submission.refused;
    hold(NO_TRACE, submission.taken <= most, || {
        format!(
            "submission {id} was sent {} times, refused {} times, and taken {} times by LSN {}",
            submission.copies, submission.refused, submission.taken, ledger.last_lsn
        )
    })
}

/// What was acknowledged is in the state, as it was sent.
pub(super) fn survived(ledger: &TaskLedger, model: &Model, facts: &Facts) -> LawResult {
    for (id, payload) in &model.acknowledged {
        if ledger.tasks.get(id).is_some_and(|task| task.is_purged) {
            continue;
        }
        let found = facts.task(*id).map(|task| task.payload().to_vec());
        hold(EXISTS, found.as_ref() == Some(payload), || {
            format!("task {id} was acknowledged, and is {found:?}")
        })?;
    }
    Ok(())
}
