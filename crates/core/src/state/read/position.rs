//! Where a task stands in the line of its queue.

use tenure_record::id::TaskId;

use crate::limits::POSITION_SCAN_MAX;
use crate::state::State;

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePosition {
    /// It is not ready: it waits for its time, is leased or has ended.
    Nowhere,
    /// So many ready tasks of its queue go before it.
    Behind(usize),
    /// More of them than are counted, which are [`POSITION_SCAN_MAX`].
    FarBehind,
}

impl State {
    /// Where a task stands in the line of its queue, paused or not.
    #[must_use]
    pub fn queue_position(&self, id: TaskId) -> QueuePosition {
        let Some(task) = self.task_slot(id) else { return QueuePosition::Nowhere };
        if !self.live().is_ready(task.queue, task.priority, id) {
            return QueuePosition::Nowhere;
        }
        let line = self.live().ready(std::iter::once(task.queue));
        let before = line.take(POSITION_SCAN_MAX + 1).position(|next| next.task_id == id);
        before.map_or(QueuePosition::FarBehind, QueuePosition::Behind)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::command::{Command, LeaseTasks, NewTask, SubmitTasks};
    use crate::limits::BATCH_ITEMS_MAX;
    use crate::state::Draft;
    use crate::{Verdict, apply, decide};
    use tenure_record::event::Record;
    use tenure_record::name::{QueueName, WorkerName};
    use tenure_record::terms::Payload;
    use tenure_record::time::{Now, Timestamp};

    fn play(state: &mut State, command: &Command) {
        let now = Now::both(Timestamp(1_000_000));
        let verdict = decide(&mut Draft::new(state), command, now, 0);
        let Ok(Verdict::Append(event, _)) = verdict else { panic!("{command:?} is not written") };
        let record = Record { lsn: state.last_lsn().next(), at: now.log, wall: now.wall, event };
        apply(state, &record);
    }

    fn submit(state: &mut State, count: usize) {
        let queue = QueueName::parse("q").unwrap();
        let task = NewTask::new(queue, Payload::parse("payload", Vec::new()).unwrap());
        play(state, &Command::SubmitTasks(SubmitTasks { tasks: vec![task; count] }));
    }

    #[test]
    fn those_in_front_are_counted_up_to_a_bound() {
        let mut state = State::new(0);
        submit(&mut state, BATCH_ITEMS_MAX);
        submit(&mut state, 2);
        let last = POSITION_SCAN_MAX as u64 + 1;
        assert_eq!(state.queue_position(TaskId(1)), QueuePosition::Behind(0));
        assert_eq!(state.queue_position(TaskId(last)), QueuePosition::Behind(POSITION_SCAN_MAX));
        assert_eq!(state.queue_position(TaskId(last + 1)), QueuePosition::FarBehind);
        assert_eq!(
            state.queue_position(TaskId(last + 2)),
            QueuePosition::Nowhere,
            "there is no such task"
        );
        play(
            &mut state,
            &Command::LeaseTasks(LeaseTasks {
                worker: WorkerName::parse("w").unwrap(),
                queues: vec![QueueName::parse("q").unwrap()],
                tasks_max: NonZeroU32::MIN,
                lease_ms: None,
            }),
        );
        assert_eq!(state.queue_position(TaskId(1)), QueuePosition::Nowhere, "it is leased");
        assert_eq!(
            state.queue_position(TaskId(last + 1)),
            QueuePosition::Behind(POSITION_SCAN_MAX)
        );
    }
}
