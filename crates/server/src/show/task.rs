//! Tasks and their history.

use std::sync::Arc;

use bytes::Bytes;
use tenure_api as api;
use tenure_coordinator::limits::HISTORY_BYTES;
use tenure_coordinator::{History, Step, TaskInfo, TaskOfRun};
use tenure_core::state::Phase;
use tenure_record::id::TaskId;
use tenure_record::progress::Fraction;
use tenure_record::state::TaskState;
use tenure_record::terms::Budget;

use super::{bytes, tags, text, time};
use crate::admission::response_budget;
use crate::app::App;
use crate::problem::Problem;
use crate::wire::list;
use crate::wire::page::of_history;

/// A task.
pub(crate) fn task(task: &TaskInfo) -> api::Task {
    let number = |budget: Option<Budget>| budget.map(|budget| budget.get().into());
    let last = task.errors.last().filter(|_| task.state != TaskState::Completed);
    api::Task {
        id: task.id.0,
        queue: task.queue.to_string(),
        name: text(task.name.as_ref()),
        state: state(task.state),
        phase: task.phase.map(phase),
        priority: task.priority.get().into(),
        payload: bytes(task.payload.clone()).into(),
        payload_encoding: api::Encoding::Json,
        output: bytes(task.output.clone()).into(),
        output_encoding: api::Encoding::Json,
        lease_ms: task.lease_ms,
        max_failures: number(task.budgets.max_failures),
        max_expiries: number(task.budgets.max_expiries),
        max_attempts: number(task.budgets.max_attempts),
        total_timeout_ms: task.total_timeout_ms,
        attempt_timeout_ms: task.attempt_timeout_ms,
        error: last.map(|error| api::TaskError {
            code: error.code.to_string(),
            message: error.message.to_string(),
        }),
        attempt: task.attempt,
        failures: task.failures.into(),
        expiries: task.expiries.into(),
        cancel_requested: task.cancel_requested,
        lease: task.lease.as_ref().map(|lease| api::HeldLease {
            lease_id: lease.lease_id.0,
            worker: lease.worker.to_string(),
            expires_at: time(lease.expires_at),
        }),
        created_at: time(task.created_at),
        run_at: task.run_at.map(time),
        next_attempt_at: task.next_attempt_at.map(time),
        started_at: task.started_at.map(time),
        finished_at: task.finished_at.map(time),
        key: text(task.key.as_ref()),
        tags: tags(&task.tags),
        run: task.run.as_ref().map(of_run),
        dead_letter: task.dead_letter.map(link),
        dead_letter_of: task.dead_letter_of.map(link),
        progress: task.progress.as_ref().map(|progress| api::Progress {
            fraction: progress.fraction.map(Fraction::get),
            message: progress.message.as_ref().map(|message| message.as_str().to_owned()),
            at: time(progress.at),
        }),
        checkpoint: checkpoint(task.checkpoint.as_ref()),
        checkpoint_encoding: api::Encoding::Json,
    }
}

/// The place of a task in its run.
pub(super) fn of_run(run: &TaskOfRun) -> api::TaskOfRun {
    api::TaskOfRun { run_id: run.run_id.0, node: run.node.to_string(), token: run.token.0 }
}

/// Where the next attempt continues; empty for none.
pub(super) fn checkpoint(bytes: Option<&Arc<[u8]>>) -> api::Payload {
    bytes.map(|bytes| Bytes::copy_from_slice(bytes)).unwrap_or_default().into()
}

fn link(task_id: TaskId) -> api::TaskLink {
    api::TaskLink { task_id: task_id.0 }
}

/// The state of a task.
pub(crate) fn state(state: TaskState) -> api::TaskState {
    match state {
        TaskState::Waiting => api::TaskState::Waiting,
        TaskState::Leased => api::TaskState::Leased,
        TaskState::Completed => api::TaskState::Completed,
        TaskState::Failed => api::TaskState::Failed,
        TaskState::Dead => api::TaskState::Dead,
        TaskState::Canceled => api::TaskState::Canceled,
    }
}

fn phase(phase: Phase) -> api::Phase {
    match phase {
        Phase::Ready => api::Phase::Ready,
        Phase::Delayed => api::Phase::Delayed,
        Phase::Retrying => api::Phase::Retrying,
        Phase::Paused => api::Phase::Paused,
    }
}

/// A page of a task's history, which is read from the log's files.
pub(crate) async fn read_history(
    app: &App,
    task_id: TaskId,
    page: api::PageQuery,
) -> Result<api::History<api::TaskStep>, Problem> {
    let limit = list::limit(page.limit)?;
    let tenure = app.tenure.clone();
    response_budget::reserve(HISTORY_BYTES).await?;
    let whole = tokio::task::spawn_blocking(move || tenure.history(task_id)).await;
    let whole = whole.map_err(|_| Problem::stopping())??;
    let (steps, next_cursor) =
        of_history(&whole.steps, |step| step.lsn.0, page.cursor.as_deref(), limit)?;
    Ok(history(steps, next_cursor, &whole))
}

/// Steps of a task's history, and where the next page continues.
pub(crate) fn history(
    steps: &[Step],
    next_cursor: Option<String>,
    whole: &History,
) -> api::History<api::TaskStep> {
    api::History {
        items: steps.iter().map(step).collect(),
        next_cursor,
        truncated_before: whole.truncated_before.map(|lsn| lsn.0),
    }
}

fn step(step: &Step) -> api::TaskStep {
    api::TaskStep {
        lsn: step.lsn.0,
        at: time(step.at),
        event: step.event.to_owned(),
        from: step.from.map(state),
        to: state(step.to),
        attempt: step.attempt,
        worker: step.worker.clone(),
        lease_id: step.lease_id.map(|lease| lease.0),
        code: step.code.clone(),
        reason: step.reason.clone(),
    }
}
