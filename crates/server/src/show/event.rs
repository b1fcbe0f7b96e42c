//! Events: the transitions of a record.

use tenure_api as api;
use tenure_record::event::Record;
use tenure_record::transition::{RunTransition, Told, Transition};

use super::{task, time};

/// An event as a subscriber receives it.
pub(crate) fn event(record: &Record<'_>, told: &Told<'_>) -> api::Event {
    let id = format!("{}.{}", record.lsn, told.index());
    match told {
        Told::Task(step) => api::Event::Task(of_task(id, record, step)),
        Told::Run(step) => api::Event::Run(of_run(id, record, step)),
    }
}

fn of_task(id: String, record: &Record<'_>, step: &Transition<'_>) -> api::TaskEvent {
    let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
    api::TaskEvent {
        id,
        lsn: record.lsn.0,
        at: time(record.wall),
        event: step.event.to_owned(),
        task_id: step.task_id.0,
        queue: step.queue.to_owned(),
        from: step.from.map(task::state),
        to: task::state(step.to),
        worker: step.worker.map(str::to_owned),
        lease_id: step.lease_id.map(|lease| lease.0),
        attempt: step.attempt,
        priority: step.priority.get().into(),
        code: text(step.code),
        reason: text(step.reason),
        run_id: step.run_id.map(|run| run.0),
        dead_letter_of: step.dead_letter_of.map(|id| id.0),
    }
}

fn of_run(id: String, record: &Record<'_>, step: &RunTransition<'_>) -> api::RunEvent {
    api::RunEvent {
        id,
        lsn: record.lsn.0,
        at: time(record.wall),
        event: step.event.to_owned(),
        run_id: step.run_id.0,
        workflow: step.workflow.map(str::to_owned),
        parent_run_id: step.parent.map(|run| run.0),
        to: step.to.map(|state| state.as_str().into()),
        signal: step.signal.map(str::to_owned),
        code: step.code.map(str::to_owned),
    }
}
