//! A task's history, from the log: each step names the record of the step before.

use std::collections::BTreeMap;

use tenure_log::{Read, ReadLog};
use tenure_record::codec;
use tenure_record::event::Record;
use tenure_record::id::{LeaseId, Lsn, TaskId};
use tenure_record::state::TaskState;
use tenure_record::time::Timestamp;
use tenure_record::transition::{Transition, transitions};

use crate::limits::{HISTORY_BYTES, HISTORY_ITEMS_MAX};
use crate::recover::Failure;

/// What a step adds to an answer beside its texts, about.
const STEP_BYTES: usize = 128;

/// One step of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its record.
    pub lsn: Lsn,
    /// When, by the wall clock.
    pub at: Timestamp,
    /// What happened.
    pub event: &'static str,
    /// The state before; none for a new task.
    pub from: Option<TaskState>,
    /// The state after.
    pub to: TaskState,
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
            at: record.wall,
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
    let mut told = histories(log, &[(task_id, last)], usize::MAX)?.unwrap_or_default();
    Ok(told.pop().unwrap_or_default())
}

/// Reads the histories of many tasks, no two the same, each with its last record, which must be durable. Each record is
/// read once, whoever it is about, from the newest to the oldest. None if they hold more bytes than
/// so: then ask for fewer.
pub fn histories<R: ReadLog>(
    log: &mut R,
    tasks: &[(TaskId, Lsn)],
    bytes_max: usize,
) -> Result<Option<Vec<History>>, Failure> {
    let mut reading = Reading::begin(tasks);
    while let Some((&last, _)) = reading.wanted.last_key_value() {
        log.seek(tenure_log::Lsn(last.0));
        let Read::Frame(frame) = log.read()? else {
            // It was trimmed, and so was all that is older.
            reading.truncate(last);
            continue;
        };
        let records: Vec<_> = frame.records().collect();
        let first = records.first().map_or(last, |(lsn, _)| Lsn(lsn.0));
        // What is wanted of this frame, also what turns up while it is read.
        while let Some(lsn) = reading.next_from(first) {
            let Some((_, bytes)) = records.iter().find(|(at, _)| at.0 == lsn.0) else {
                reading.truncate(lsn);
                continue;
            };
            let record =
                codec::decode(bytes).map_err(|malformed| Failure::Record { lsn, malformed })?;
            reading.take(&record);
        }
        if reading.bytes > bytes_max {
            return Ok(None);
        }
    }
    Ok(Some(reading.told.into_iter().map(Told::whole).collect()))
}

/// Histories that are being read, backward.
struct Reading<'t> {
    tasks: &'t [(TaskId, Lsn)],
    told: Vec<Told>,
    /// Which record is wanted next, by whom.
    wanted: BTreeMap<Lsn, Vec<usize>>,
    bytes: usize,
}

/// One of them so far, newest first.
#[derive(Default)]
struct Told {
    history: History,
    bytes: usize,
}

impl Told {
    fn whole(mut self) -> History {
        self.history.steps.reverse();
        self.history
    }

    fn is_full(&self) -> bool {
        self.history.steps.len() >= HISTORY_ITEMS_MAX || self.bytes >= HISTORY_BYTES
    }
}

impl<'t> Reading<'t> {
    fn begin(tasks: &'t [(TaskId, Lsn)]) -> Self {
        let mut wanted: BTreeMap<Lsn, Vec<usize>> = BTreeMap::new();
        for (at, (_, last)) in tasks.iter().enumerate().filter(|(_, (_, last))| *last > Lsn::NONE) {
            wanted.entry(*last).or_default().push(at);
        }
        Self { tasks, told: tasks.iter().map(|_| Told::default()).collect(), wanted, bytes: 0 }
    }

    /// The newest record that is wanted and not older than `first`.
    fn next_from(&self, first: Lsn) -> Option<Lsn> {
        self.wanted.last_key_value().map(|(lsn, _)| *lsn).filter(|lsn| *lsn >= first)
    }

    /// This record cannot be read: the histories that go on with it end here.
    fn truncate(&mut self, lsn: Lsn) {
        for at in self.wanted.remove(&lsn).unwrap_or_default() {
            self.told[at].history.truncated_before = Some(Lsn(lsn.0 + 1));
        }
    }

    /// Takes out of a record what is wanted of it, and goes on to what was before.
    fn take(&mut self, record: &Record<'_>) {
        let wanted = self.wanted.remove(&record.lsn).unwrap_or_default();
        let mut found: BTreeMap<TaskId, (usize, Vec<Step>, Option<Lsn>)> =
            wanted.into_iter().map(|at| (self.tasks[at].0, (at, Vec::new(), None))).collect();
        for step in &transitions(record) {
            if let Some((_, steps, before)) = found.get_mut(&step.task_id) {
                before.get_or_insert(step.previous);
                steps.push(Step::of(record, step));
            }
        }
        for (at, steps, before) in found.into_values() {
            let told = &mut self.told[at];
            let bytes = steps.iter().map(Step::bytes).sum::<usize>();
            told.bytes += bytes;
            self.bytes += bytes;
            told.history.steps.extend(steps.into_iter().rev());
            // A chain that does not go back is not ours to follow.
            let next = before.filter(|before| *before < record.lsn && *before > Lsn::NONE);
            let Some(next) = next else { continue };
            if told.is_full() {
                told.history.truncated_before = told.history.steps.last().map(|oldest| oldest.lsn);
            } else {
                self.wanted.entry(next).or_default().push(at);
            }
        }
    }
}
