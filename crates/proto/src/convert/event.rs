//! Events of tasks and runs, which share one message.

use tenure_api::{Event, EventFilter, RunEvent, TaskEvent, Timestamp};

use super::{run, task};
use crate::v1;

impl From<Event> for v1::Event {
    fn from(event: Event) -> Self {
        match event {
            Event::Task(event) => event.into(),
            Event::Run(event) => event.into(),
        }
    }
}

impl From<TaskEvent> for v1::Event {
    fn from(event: TaskEvent) -> Self {
        let TaskEvent {
            id,
            lsn,
            at,
            event,
            task_id,
            queue,
            from,
            to,
            worker,
            lease_id,
            attempt,
            priority,
            code,
            reason,
            run_id,
            dead_letter_of,
        } = event;
        Self {
            id,
            lsn,
            at: at.as_ms(),
            event,
            task_id,
            queue,
            from: task::state_number(from.as_ref()),
            to: task::state_number(Some(&to)),
            worker,
            lease_id,
            attempt,
            priority,
            code,
            reason,
            run_id,
            dead_letter_of,
            ..Self::default()
        }
    }
}

impl From<RunEvent> for v1::Event {
    fn from(event: RunEvent) -> Self {
        let RunEvent { id, lsn, at, event, run_id, workflow, parent_run_id, to, signal, code } =
            event;
        Self {
            id,
            lsn,
            at: at.as_ms(),
            event,
            run_id: Some(run_id),
            run_state: run::state_number(to.as_ref()),
            workflow,
            parent_run_id,
            signal,
            code,
            ..Self::default()
        }
    }
}

impl From<v1::Event> for Event {
    fn from(event: v1::Event) -> Self {
        let v1::Event {
            id,
            lsn,
            at,
            event,
            task_id,
            queue,
            from,
            to,
            worker,
            lease_id,
            attempt,
            priority,
            code,
            reason,
            run_id,
            run_state,
            workflow,
            parent_run_id,
            signal,
            dead_letter_of,
        } = event;
        let at = Timestamp(at);
        if task_id == 0 {
            let (run_id, to) = (run_id.unwrap_or_default(), run::state(run_state));
            return Event::Run(RunEvent {
                id,
                lsn,
                at,
                event,
                run_id,
                workflow,
                parent_run_id,
                to,
                signal,
                code,
            });
        }
        let (from, to) = (task::state(from), task::some_state(to));
        Event::Task(TaskEvent {
            id,
            lsn,
            at,
            event,
            task_id,
            queue,
            from,
            to,
            worker,
            lease_id,
            attempt,
            priority,
            code,
            reason,
            run_id,
            dead_letter_of,
        })
    }
}

impl From<EventFilter> for v1::WatchRequest {
    fn from(EventFilter { after, task, run, queue }: EventFilter) -> Self {
        Self { after, task_id: task, queue, run_id: run }
    }
}

impl From<v1::WatchRequest> for EventFilter {
    fn from(v1::WatchRequest { after, task_id, queue, run_id }: v1::WatchRequest) -> Self {
        Self { after, task: task_id, run: run_id, queue }
    }
}
