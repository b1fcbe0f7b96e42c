//! How far workers say that they are. Soft: it steers nothing that is written, and it is gone with
//! the attempt, with the process, or when there is too much of it.

use std::collections::HashMap;

use tenure_core::State;
use tenure_core::command::Heartbeat;
use tenure_core::state::TaskView;
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::progress::{Fraction, Progress, ProgressMessage};
use tenure_record::time::Timestamp;

use crate::limits::PROGRESS_BYTES_MAX;

/// How far a worker says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressInfo {
    /// As a number, if it said one.
    pub fraction: Option<Fraction>,
    /// In words, if it said any.
    pub message: Option<ProgressMessage>,
    /// When it said so.
    pub at: Timestamp,
}

/// What an entry takes beside its message, about.
const ENTRY_BYTES: usize = 128;
/// When there is too much, one part in this many of what was said longest ago is forgotten at once.
const FORGOTTEN_PART: usize = 10;

/// What was said under each lease, and no more than [`PROGRESS_BYTES_MAX`] of it.
#[derive(Debug, Default)]
pub(crate) struct ProgressTable {
    by_task: HashMap<TaskId, (LeaseId, ProgressInfo)>,
    bytes: usize,
}

impl ProgressTable {
    /// A heartbeat was accepted. What it does not say stays as it was said before.
    pub(crate) fn heard(&mut self, heartbeat: &Heartbeat, now: Timestamp, state: &State) {
        let Some(progress) = heartbeat.progress.as_deref() else { return };
        let (task_id, lease_id) = (heartbeat.lease.task_id, heartbeat.lease.lease_id);
        let before = self.remove(task_id).filter(|(under, _)| *under == lease_id);
        let (fraction, message) =
            before.map_or((None, None), |(_, info)| (info.fraction, info.message));
        let Progress { fraction: new_fraction, message: new_message } = progress.clone();
        let info = ProgressInfo {
            fraction: new_fraction.or(fraction),
            message: new_message.or(message),
            at: now,
        };
        self.bytes += bytes_of(&info);
        self.by_task.insert(task_id, (lease_id, info));
        if self.bytes > PROGRESS_BYTES_MAX {
            self.forget(|id, under| {
                let lease = state.task(id).and_then(|task| task.lease());
                lease.is_none_or(|lease| lease.lease_id != under)
            });
        }
    }

    /// What is known of an attempt that is under way.
    pub(crate) fn of(&self, task: &TaskView<'_>) -> Option<ProgressInfo> {
        if self.by_task.is_empty() {
            return None;
        }
        let (under, info) = self.by_task.get(&task.id)?;
        let is_held = task.lease().is_some_and(|lease| lease.lease_id == *under);
        is_held.then(|| info.clone())
    }

    fn remove(&mut self, task_id: TaskId) -> Option<(LeaseId, ProgressInfo)> {
        let removed = self.by_task.remove(&task_id)?;
        self.bytes -= bytes_of(&removed.1);
        Some(removed)
    }

    /// Forgets attempts that are over, and if that is not enough those that were silent longest.
    fn forget(&mut self, is_over: impl Fn(TaskId, LeaseId) -> bool) {
        let known = self.by_task.iter();
        let over = known.filter(|(id, (under, _))| is_over(**id, *under));
        let mut gone: Vec<_> = over.map(|(id, _)| *id).collect();
        if gone.len() < self.by_task.len() / FORGOTTEN_PART {
            let known = self.by_task.iter();
            let mut silent: Vec<_> = known.map(|(id, (_, info))| (info.at, *id)).collect();
            let count = (silent.len() / FORGOTTEN_PART).max(1).min(silent.len() - 1);
            silent.select_nth_unstable(count);
            gone.extend(silent[..count].iter().map(|(_, id)| *id));
        }
        for task_id in gone {
            self.remove(task_id);
        }
    }
}

fn bytes_of(info: &ProgressInfo) -> usize {
    ENTRY_BYTES + info.message.as_ref().map_or(0, |message| message.as_str().len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::command::LeaseRef;

    fn heartbeat(task: u64, fraction: Option<f64>, message: Option<&str>) -> Heartbeat {
        let lease = LeaseRef { task_id: TaskId(task), lease_id: LeaseId(task) };
        let progress = Progress::parse(fraction, message).expect("it is in range");
        Heartbeat { progress: progress.map(Box::new), ..lease.into() }
    }

    #[test]
    fn what_a_heartbeat_does_not_say_stays_as_it_was_said() {
        let (mut table, state) = (ProgressTable::default(), State::new(0));
        table.heard(&heartbeat(1, Some(0.4), Some("reading")), Timestamp(5), &state);
        table.heard(&heartbeat(1, Some(0.6), None), Timestamp(6), &state);
        table.heard(&heartbeat(1, None, None), Timestamp(7), &state);
        let (_, info) = &table.by_task[&TaskId(1)];
        assert_eq!(info.fraction.map(Fraction::get), Some(0.6));
        assert_eq!(info.message.as_ref().map(ProgressMessage::as_str), Some("reading"));
        assert_eq!(info.at, Timestamp(6));
    }

    #[test]
    fn progress_of_any_number_of_tasks_stays_within_its_bound() {
        let (mut table, state) = (ProgressTable::default(), State::new(0));
        let message = "x".repeat(1_000);
        for task in 1..=40_000 {
            table.heard(&heartbeat(task, None, Some(&message)), Timestamp(task), &state);
            assert!(table.bytes <= PROGRESS_BYTES_MAX);
        }
        assert_eq!(table.bytes, table.by_task.len() * (ENTRY_BYTES + 1_000));
    }

    #[test]
    fn attempts_that_are_over_are_forgotten_first_and_then_the_longest_silent() {
        let known = |over: u64| {
            let (mut table, state) = (ProgressTable::default(), State::new(0));
            for task in 1..=100 {
                table.heard(&heartbeat(task, Some(0.5), None), Timestamp(1_000 - task), &state);
            }
            table.forget(|id, _| id.0 <= over);
            let mut left: Vec<_> = table.by_task.keys().map(|id| id.0).collect();
            left.sort_unstable();
            left
        };
        assert_eq!(known(50), (51..=100).collect::<Vec<_>>());
        assert_eq!(known(0), (1..=90).collect::<Vec<_>>());
    }
}
