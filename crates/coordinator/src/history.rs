//! A task's history, from the log: each step names the record of the step before.

use tenure_core::codec;
use tenure_core::event::Record;
use tenure_core::id::{LeaseId, Lsn, TaskId};
use tenure_core::state::StateName;
use tenure_core::time::Timestamp;
use tenure_core::transition::{Transition, transitions};
use tenure_wal::{Read, ReadLog};

use crate::limits::{HISTORY_BYTES, HISTORY_ITEMS_MAX};
use crate::recover::Failure;

/// What a step adds to an answer beside its texts, about.
const STEP_BYTES: usize = 128;

/// One step of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its record.
    pub lsn: Lsn,
    /// Log time.
    pub at: Timestamp,
    /// What happened.
    pub event: &'static str,
    /// The state before; none for a new task.
    pub from: Option<StateName>,
    /// The state after.
    pub to: StateName,
    /// The task's grants so far.
    pub attempt: u32,
    /// Whose doing it was, or whose lease it ended.
    pub worker: Option<String>,
    /// The lease it is about.
    pub lease_id: Option<LeaseId>,
    /// Why, for programs.
    pub code: Option<String>,
    /// Why, for people.
    pub reason: Option<String>,
}

impl Step {
    /// A transition, to keep.
    #[must_use]
    pub fn of(record: &Record<'_>, step: &Transition<'_>) -> Self {
        Self {
            lsn: record.lsn,
            at: record.at,
            event: step.event,
            from: step.from,
            to: step.to,
            attempt: step.attempt,
            worker: step.worker.map(str::to_owned),
            lease_id: step.lease_id,
            code: step.code.filter(|code| !code.is_empty()).map(str::to_owned),
            reason: step.reason.filter(|reason| !reason.is_empty()).map(str::to_owned),
        }
    }
}

impl Step {
    /// What it adds to an answer, about.
    fn bytes(&self) -> usize {
        let texts = [&self.worker, &self.code, &self.reason].into_iter().flatten();
        STEP_BYTES + texts.map(String::len).sum::<usize>()
    }
}

/// What is known of a task's past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Oldest first.
    pub steps: Vec<Step>,
    /// What was before this record is not here: it was trimmed, or there is too much of it.
    pub truncated_before: Option<Lsn>,
}

/// Reads the history that ends with the record `last`, which must be durable.
pub fn history<R: ReadLog>(log: &mut R, task_id: TaskId, last: Lsn) -> Result<History, Failure> {
    let mut history = History::default();
    let (mut next, mut bytes) = (last, 0);
    while next > Lsn::NONE {
        let Some(Found { steps, before }) = read_steps(log, task_id, next)? else {
            history.truncated_before = Some(Lsn(next.0 + 1));
            break;
        };
        bytes += steps.iter().map(Step::bytes).sum::<usize>();
        history.steps.extend(steps.into_iter().rev());
        // A chain that does not go back is not ours to follow.
        next = before.filter(|before| *before < next).unwrap_or(Lsn::NONE);
        let is_full = history.steps.len() >= HISTORY_ITEMS_MAX || bytes >= HISTORY_BYTES;
        if next > Lsn::NONE && is_full {
            history.truncated_before = history.steps.last().map(|oldest| oldest.lsn);
            break;
        }
    }
    history.steps.reverse();
    Ok(history)
}

/// The steps of a task in one record, and the record before it.
struct Found {
    steps: Vec<Step>,
    before: Option<Lsn>,
}

/// Reads one record; nothing if it was trimmed.
fn read_steps<R: ReadLog>(
    log: &mut R,
    task_id: TaskId,
    lsn: Lsn,
) -> Result<Option<Found>, Failure> {
    log.seek(tenure_wal::Lsn(lsn.0));
    let Read::Frame(frame) = log.read()? else { return Ok(None) };
    let found = frame.records().find(|(at, _)| at.0 == lsn.0);
    let Some((_, bytes)) = found else { return Ok(None) };
    let record = codec::decode(bytes).map_err(|malformed| Failure::Record { lsn, malformed })?;
    let steps = transitions(&record);
    let ours = || steps.iter().filter(|step| step.task_id == task_id);
    let before = ours().next().map(|step| step.previous);
    Ok(Some(Found { steps: ours().map(|step| Step::of(&record, step)).collect(), before }))
}
