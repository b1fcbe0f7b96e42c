//! A follower sees every transition exactly once and in order, also across restarts.

use tenure_record::event::Record;
use tenure_record::id::{LeaseId, Lsn, TaskId};
use tenure_record::state::TaskState;
use tenure_record::transition::{Transition, transitions};

use super::{LawResult, hold};

const LAW: &str = "a follower sees every transition once and in order";

/// A transition, as far as it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) lsn: Lsn,
    pub(crate) index: usize,
    event: &'static str,
    task_id: TaskId,
    from: Option<TaskState>,
    to: TaskState,
    lease_id: Option<LeaseId>,
    attempt: u32,
}

impl Told {
    pub(crate) fn of(record: &Record<'_>, step: &Transition<'_>) -> Self {
        Self {
            lsn: record.lsn,
            index: step.index,
            event: step.event,
            task_id: step.task_id,
            from: step.from,
            to: step.to,
            lease_id: step.lease_id,
            attempt: step.attempt,
        }
    }
}

/// All transitions so far.
#[derive(Debug, Default)]
pub(crate) struct FeedLaw {
    all: Vec<Told>,
}

impl FeedLaw {
    pub(super) fn record(&mut self, record: &Record<'_>) {
        self.all.extend(transitions(record).iter().map(|step| Told::of(record, step)));
    }

    /// A follower that has seen so many is shown one more.
    pub(crate) fn shown(&self, seen: usize, shown: &Told) -> LawResult {
        hold(LAW, self.all.get(seen) == Some(shown), || {
            format!("number {seen} is {shown:?}, and should be {:?}", self.all.get(seen))
        })
    }

    /// How many there are before a record: one who asks for what was trimmed goes on from there.
    pub(crate) fn before(&self, lsn: Lsn) -> usize {
        self.all.partition_point(|told| told.lsn < lsn)
    }

    /// What followers are shown of one task.
    pub(super) fn of_task(
        &self,
        id: TaskId,
    ) -> impl Iterator<Item = (Lsn, &'static str, TaskState)> {
        let ours = self.all.iter().filter(move |told| told.task_id == id);
        ours.map(|told| (told.lsn, told.event, told.to))
    }

    /// A follower has nothing more to see.
    pub(crate) fn ended(&self, seen: usize) -> LawResult {
        let all = self.all.len();
        hold(LAW, seen == all, || format!("{seen} of {all} transitions were seen at the end"))
    }
}
