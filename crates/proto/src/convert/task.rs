//! Tasks: submitted, shown, listed, canceled, explained; their history.

use tenure_api::{
    Backoff, BackoffKind, CancelTask, Encoding, Explanation, HeldLease, History, NewTask, Page,
    Phase, Progress, Reason, Task, TaskError, TaskFilter, TaskLink, TaskOfRun, TaskState, TaskStep,
    Timestamp,
};

use super::{all, given, ms, time};
use crate::v1;

/// The state that a number stands for; `None` for an unspecified one.
pub(super) fn state(number: i32) -> Option<TaskState> {
    Some(match v1::TaskState::try_from(number) {
        Ok(v1::TaskState::Unspecified) => return None,
        Ok(v1::TaskState::Waiting) => TaskState::Waiting,
        Ok(v1::TaskState::Leased) => TaskState::Leased,
        Ok(v1::TaskState::Completed) => TaskState::Completed,
        Ok(v1::TaskState::Failed) => TaskState::Failed,
        Ok(v1::TaskState::Dead) => TaskState::Dead,
        Ok(v1::TaskState::Canceled) => TaskState::Canceled,
        Err(_) => TaskState::Other(number.to_string()),
    })
}

/// The state of a message that always has one.
pub(super) fn some_state(number: i32) -> TaskState {
    state(number).unwrap_or_else(|| TaskState::Other("UNSPECIFIED".to_owned()))
}

impl From<&TaskState> for v1::TaskState {
    fn from(state: &TaskState) -> Self {
        match state {
            TaskState::Waiting => v1::TaskState::Waiting,
            TaskState::Leased => v1::TaskState::Leased,
            TaskState::Completed => v1::TaskState::Completed,
            TaskState::Failed => v1::TaskState::Failed,
            TaskState::Dead => v1::TaskState::Dead,
            TaskState::Canceled => v1::TaskState::Canceled,
            _ => v1::TaskState::Unspecified,
        }
    }
}

pub(super) fn state_number(state: Option<&TaskState>) -> i32 {
    state.map_or(v1::TaskState::Unspecified, Into::into).into()
}

impl From<Task> for v1::Task {
    fn from(task: Task) -> Self {
        let Task {
            id,
            queue,
            name,
            state,
            phase,
            priority,
            payload,
            payload_encoding: _,
            output,
            output_encoding: _,
            lease_ms,
            max_failures,
            max_expiries,
            max_attempts,
            total_timeout_ms,
            attempt_timeout_ms,
            error,
            attempt,
            failures,
            expiries,
            cancel_requested,
            lease,
            created_at,
            run_at,
            next_attempt_at,
            started_at,
            finished_at,
            key,
            tags,
            run,
            dead_letter,
            dead_letter_of,
            progress,
            checkpoint,
            checkpoint_encoding: _,
        } = task;
        Self {
            id,
            queue,
            state: state_number(Some(&state)),
            priority,
            payload: payload.into_bytes(),
            output: output.into_bytes(),
            lease_ms,
            max_failures,
            max_expiries,
            total_timeout_ms,
            error: error.map(Into::into),
            attempt,
            failures,
            expiries,
            cancel_requested,
            lease: lease.map(Into::into),
            created_at: created_at.as_ms(),
            run_at: ms(run_at),
            started_at: ms(started_at),
            finished_at: ms(finished_at),
            key,
            tags,
            run: run.map(Into::into),
            max_attempts,
            attempt_timeout_ms,
            phase: phase.map(|phase| phase.as_str().to_owned()),
            progress: progress.map(Into::into),
            next_attempt_at: ms(next_attempt_at),
            checkpoint: checkpoint.into(),
            name,
            dead_letter: dead_letter.map(Into::into),
            dead_letter_of: dead_letter_of.map(Into::into),
        }
    }
}

impl From<v1::Task> for Task {
    fn from(task: v1::Task) -> Self {
        let v1::Task {
            id,
            queue,
            state,
            priority,
            payload,
            output,
            lease_ms,
            max_failures,
            max_expiries,
            total_timeout_ms,
            error,
            attempt,
            failures,
            expiries,
            cancel_requested,
            lease,
            created_at,
            run_at,
            started_at,
            finished_at,
            key,
            tags,
            run,
            max_attempts,
            attempt_timeout_ms,
            phase,
            progress,
            next_attempt_at,
            checkpoint,
            name,
            dead_letter,
            dead_letter_of,
        } = task;
        Self {
            id,
            queue,
            name,
            state: some_state(state),
            phase: phase.map(Phase::from),
            priority,
            payload: payload.into(),
            payload_encoding: Encoding::Json,
            output: output.into(),
            output_encoding: Encoding::Json,
            lease_ms,
            max_failures,
            max_expiries,
            max_attempts,
            total_timeout_ms,
            attempt_timeout_ms,
            error: error.map(Into::into),
            attempt,
            failures,
            expiries,
            cancel_requested,
            lease: lease.map(Into::into),
            created_at: Timestamp(created_at),
            run_at: time(run_at),
            next_attempt_at: time(next_attempt_at),
            started_at: time(started_at),
            finished_at: time(finished_at),
            key,
            tags,
            run: run.map(Into::into),
            dead_letter: dead_letter.map(Into::into),
            dead_letter_of: dead_letter_of.map(Into::into),
            progress: progress.map(Into::into),
            checkpoint: checkpoint.into(),
            checkpoint_encoding: Encoding::Json,
        }
    }
}

impl From<TaskError> for v1::TaskError {
    fn from(TaskError { code, message }: TaskError) -> Self {
        Self { code, message }
    }
}

impl From<v1::TaskError> for TaskError {
    fn from(v1::TaskError { code, message }: v1::TaskError) -> Self {
        Self { code, message }
    }
}

impl From<HeldLease> for v1::HeldLease {
    fn from(HeldLease { lease_id, worker, expires_at }: HeldLease) -> Self {
        Self { lease_id, worker, expires_at: expires_at.as_ms() }
    }
}

impl From<v1::HeldLease> for HeldLease {
    fn from(v1::HeldLease { lease_id, worker, expires_at }: v1::HeldLease) -> Self {
        Self { lease_id, worker, expires_at: Timestamp(expires_at) }
    }
}

impl From<Progress> for v1::Progress {
    fn from(Progress { fraction, message, at }: Progress) -> Self {
        Self { fraction, message, at: at.as_ms() }
    }
}

impl From<v1::Progress> for Progress {
    fn from(v1::Progress { fraction, message, at }: v1::Progress) -> Self {
        Self { fraction, message, at: Timestamp(at) }
    }
}

impl From<TaskOfRun> for v1::TaskOfRun {
    fn from(TaskOfRun { run_id, node, token }: TaskOfRun) -> Self {
        Self { run_id, node, token }
    }
}

impl From<v1::TaskOfRun> for TaskOfRun {
    fn from(v1::TaskOfRun { run_id, node, token }: v1::TaskOfRun) -> Self {
        Self { run_id, node, token }
    }
}

impl From<TaskLink> for v1::TaskLink {
    fn from(TaskLink { task_id }: TaskLink) -> Self {
        Self { task_id }
    }
}

impl From<v1::TaskLink> for TaskLink {
    fn from(v1::TaskLink { task_id }: v1::TaskLink) -> Self {
        Self { task_id }
    }
}

impl From<NewTask> for v1::NewTask {
    fn from(task: NewTask) -> Self {
        let NewTask {
            queue,
            name,
            payload,
            priority,
            delay_ms,
            run_at,
            max_failures,
            max_expiries,
            max_attempts,
            backoff,
            lease_ms,
            total_timeout_ms,
            attempt_timeout_ms,
            key,
            key_ttl_ms,
            traceparent,
            tags,
        } = task;
        Self {
            queue: queue.unwrap_or_default(),
            payload: payload.into(),
            priority: priority.unwrap_or_default(),
            delay_ms,
            run_at: ms(run_at),
            max_failures,
            max_expiries,
            backoff: backoff.map(Into::into),
            lease_ms,
            total_timeout_ms,
            key,
            tags,
            max_attempts,
            attempt_timeout_ms,
            traceparent,
            key_ttl_ms,
            name,
        }
    }
}

impl From<v1::NewTask> for NewTask {
    fn from(task: v1::NewTask) -> Self {
        let v1::NewTask {
            queue,
            payload,
            priority,
            delay_ms,
            run_at,
            max_failures,
            max_expiries,
            backoff,
            lease_ms,
            total_timeout_ms,
            key,
            tags,
            max_attempts,
            attempt_timeout_ms,
            traceparent,
            key_ttl_ms,
            name,
        } = task;
        Self {
            queue: given(queue),
            name,
            payload: payload.into(),
            priority: given(priority),
            delay_ms,
            run_at: time(run_at),
            max_failures,
            max_expiries,
            max_attempts,
            backoff: backoff.map(Into::into),
            lease_ms,
            total_timeout_ms,
            attempt_timeout_ms,
            key,
            key_ttl_ms,
            traceparent,
            tags,
        }
    }
}

impl From<Backoff> for v1::Backoff {
    fn from(Backoff { kind, initial_ms, max_ms, jitter }: Backoff) -> Self {
        let kind = match kind {
            Some(BackoffKind::Fixed) => v1::BackoffKind::Fixed,
            Some(BackoffKind::Linear) => v1::BackoffKind::Linear,
            Some(BackoffKind::Exponential) => v1::BackoffKind::Exponential,
            _ => v1::BackoffKind::Unspecified,
        };
        Self { kind: kind.into(), initial_ms, max_ms, jitter }
    }
}

impl From<v1::Backoff> for Backoff {
    fn from(v1::Backoff { kind, initial_ms, max_ms, jitter }: v1::Backoff) -> Self {
        let kind = match v1::BackoffKind::try_from(kind) {
            Ok(v1::BackoffKind::Unspecified) => None,
            Ok(v1::BackoffKind::Fixed) => Some(BackoffKind::Fixed),
            Ok(v1::BackoffKind::Linear) => Some(BackoffKind::Linear),
            Ok(v1::BackoffKind::Exponential) => Some(BackoffKind::Exponential),
            Err(_) => Some(BackoffKind::Other(kind.to_string())),
        };
        Self { kind, initial_ms, max_ms, jitter }
    }
}

impl From<TaskFilter> for v1::ListTasksRequest {
    fn from(filter: TaskFilter) -> Self {
        let TaskFilter { queue, state, name, tag, worker, run, code, retrying, limit, cursor } =
            filter;
        Self {
            queue,
            state: state_number(state.as_ref()),
            tag,
            worker,
            limit,
            cursor: cursor.unwrap_or_default(),
            run_id: run,
            code,
            retrying,
            name,
        }
    }
}

impl From<v1::ListTasksRequest> for TaskFilter {
    fn from(list: v1::ListTasksRequest) -> Self {
        let v1::ListTasksRequest {
            queue,
            state: number,
            tag,
            worker,
            limit,
            cursor,
            run_id: run,
            code,
            retrying,
            name,
        } = list;
        let (state, cursor) = (state(number), given(cursor));
        Self { queue, state, name, tag, worker, run, code, retrying, limit, cursor }
    }
}

impl From<Page<Task>> for v1::ListTasksResponse {
    fn from(Page { items, next_cursor }: Page<Task>) -> Self {
        Self { tasks: all(items), next_cursor: next_cursor.unwrap_or_default() }
    }
}

impl From<v1::ListTasksResponse> for Page<Task> {
    fn from(v1::ListTasksResponse { tasks, next_cursor }: v1::ListTasksResponse) -> Self {
        Self { items: all(tasks), next_cursor: given(next_cursor) }
    }
}

/// With the task's id.
impl From<(u64, CancelTask)> for v1::CancelTaskRequest {
    fn from((task_id, CancelTask { grace_ms }): (u64, CancelTask)) -> Self {
        Self { task_id, grace_ms }
    }
}

impl From<v1::CancelTaskRequest> for (u64, CancelTask) {
    fn from(v1::CancelTaskRequest { task_id, grace_ms }: v1::CancelTaskRequest) -> Self {
        (task_id, CancelTask { grace_ms })
    }
}

impl From<Explanation> for v1::TaskExplanation {
    fn from(explanation: Explanation) -> Self {
        let Explanation { state, position, reasons, earliest_start_at } = explanation;
        Self {
            state: state_number(Some(&state)),
            position,
            reasons: all(reasons),
            earliest_start_at: ms(earliest_start_at),
        }
    }
}

impl From<v1::TaskExplanation> for Explanation {
    fn from(explanation: v1::TaskExplanation) -> Self {
        let v1::TaskExplanation { state, position, reasons, earliest_start_at } = explanation;
        let (state, earliest_start_at) = (some_state(state), time(earliest_start_at));
        Self { state, position, reasons: all(reasons), earliest_start_at }
    }
}

impl From<Reason> for v1::Reason {
    fn from(Reason { code, message, until, worker }: Reason) -> Self {
        Self { code, message, until: ms(until), worker }
    }
}

impl From<v1::Reason> for Reason {
    fn from(v1::Reason { code, message, until, worker }: v1::Reason) -> Self {
        Self { code, message, until: time(until), worker }
    }
}

impl From<TaskStep> for v1::Step {
    fn from(step: TaskStep) -> Self {
        let TaskStep { lsn, at, event, from, to, attempt, worker, lease_id, code, reason } = step;
        let (from, to) = (state_number(from.as_ref()), state_number(Some(&to)));
        let at = at.as_ms();
        Self { lsn, at, event, from, to, attempt, worker, lease_id, code, reason }
    }
}

impl From<v1::Step> for TaskStep {
    fn from(step: v1::Step) -> Self {
        let v1::Step { lsn, at, event, from, to, attempt, worker, lease_id, code, reason } = step;
        let (from, to, at) = (state(from), some_state(to), Timestamp(at));
        Self { lsn, at, event, from, to, attempt, worker, lease_id, code, reason }
    }
}

impl From<History<TaskStep>> for v1::TaskHistoryResponse {
    fn from(history: History<TaskStep>) -> Self {
        let History { items, next_cursor, truncated_before } = history;
        let next_cursor = next_cursor.unwrap_or_default();
        Self { steps: all(items), truncated_before, next_cursor }
    }
}

impl From<v1::TaskHistoryResponse> for History<TaskStep> {
    fn from(history: v1::TaskHistoryResponse) -> Self {
        let v1::TaskHistoryResponse { steps, truncated_before, next_cursor } = history;
        Self { items: all(steps), next_cursor: given(next_cursor), truncated_before }
    }
}
