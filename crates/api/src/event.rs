//! Events: every transition of a task or a run, as a subscriber receives it.

use serde::{Deserialize, Serialize};

use crate::{RunState, TaskState, Timestamp};

/// A transition of a task or a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum Event {
    /// A transition of a task.
    Task(TaskEvent),
    /// A transition of a run.
    Run(RunEvent),
}

impl Event {
    /// The event's id, `LSN.index`: where a subscriber resumes.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Event::Task(event) => &event.id,
            Event::Run(event) => &event.id,
        }
    }

    /// The LSN of the record.
    #[must_use]
    pub fn lsn(&self) -> u64 {
        match self {
            Event::Task(event) => event.lsn,
            Event::Run(event) => event.lsn,
        }
    }

    /// When it happened.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Event::Task(event) => event.at,
            Event::Run(event) => event.at,
        }
    }

    /// The name of the event, such as `TaskCompleted`.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Event::Task(event) => &event.event,
            Event::Run(event) => &event.event,
        }
    }
}

/// A transition of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskEvent {
    /// The event's id, `LSN.index`: where a subscriber resumes.
    pub id: String,
    /// The LSN of the record.
    pub lsn: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The name of the event, such as `TaskCompleted`.
    pub event: String,
    /// The task's id.
    pub task_id: u64,
    /// The task's queue.
    pub queue: String,
    /// The state before; `None` for a new task.
    pub from: Option<TaskState>,
    /// The state after.
    pub to: TaskState,
    /// The worker that caused the transition, or whose lease it ended.
    pub worker: Option<String>,
    /// The lease that the transition is about.
    pub lease_id: Option<u64>,
    /// The number of leases granted on the task so far.
    pub attempt: u32,
    /// The task's priority.
    pub priority: i32,
    /// The reason, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The reason, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The run that the task belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<u64>,
    /// Of a new task in a dead letter queue: the task of which it is the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter_of: Option<u64>,
}

/// A transition of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunEvent {
    /// The event's id, `LSN.index`: where a subscriber resumes.
    pub id: String,
    /// The LSN of the record.
    pub lsn: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The name of the event, such as `RunCompleted`.
    pub event: String,
    /// The run's id.
    pub run_id: u64,
    /// Of a run that starts: its workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Of a run that starts: the run that waits for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<u64>,
    /// The state after, if it changed.
    pub to: Option<RunState>,
    /// Of a signal: its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The reason, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Which events to receive, and from where. A filter that is not given matches every event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct EventFilter {
    /// The id of the last event that was received, or an LSN; from now on if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Events of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<u64>,
    /// Events of this run and of its tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Events of the tasks of this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_back_as_what_it_is_about() {
        let events = [
            Event::Task(TaskEvent { task_id: 1, run_id: Some(2), ..TaskEvent::default() }),
            Event::Run(RunEvent { run_id: 2, ..RunEvent::default() }),
        ];
        for event in events {
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        }
    }
}
