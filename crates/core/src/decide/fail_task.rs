//! A worker says that its attempt failed.

use tenure_flow::definition::NodeKind;
use tenure_record::event::{Report, TaskFailed};
use tenure_record::id::TaskId;
use tenure_record::name::Text;
use tenure_record::snapshot::LeaseEnd;
use tenure_record::state::TaskState;
use tenure_record::terms::Backoff;
use tenure_record::time::{Now, Timestamp};

use super::standing::{self, Standing};
use super::{Ruling, about, checkpoint, dead_letter, stamp};
use crate::apply;
use crate::command::{Accepted, FailTask, Retry};
use crate::state::{Draft, Ledger, Runs, Task};
use crate::workflow::{self, TaskEnd};

/// The code of a failure that came without one.
const CODE_DEFAULT: &str = "TASK_FAILED";

pub(super) fn rule<'c>(
    draft: &mut Draft<'_>,
    command: &'c FailTask,
    now: Now,
    seed: u64,
) -> Ruling<'c> {
    let lease = command.lease;
    let task_id = lease.task_id;
    match standing::look_to_report(draft, lease, now) {
        Ok(Standing::Holds { task, .. }) => {
            let failures = task.failures + 1;
            let code = command.code.as_ref().map_or(CODE_DEFAULT, |code| code.as_str());
            let retry = match task.in_run && !is_retried(draft, task_id, code) {
                true => Retry::Never,
                false => command.retry,
            };
            let budgets = task.budgets(draft.cold(task_id));
            let goes_on = budgets.allow(failures, task.expiries);
            let to = next_state(&task, goes_on, retry);
            let not_before = match to == TaskState::Waiting {
                true => next_start(draft, task_id, failures, retry, now, seed),
                false => Timestamp::ZERO,
            };
            let mut item = TaskFailed {
                about: about(draft, task_id, &task),
                lease_id: lease.lease_id,
                worker: draft.holder(&task),
                to,
                failures,
                not_before,
                code: Text::Borrowed(code),
                reason: Text::Borrowed(command.reason.as_str()),
                cascade: Vec::new(),
                checkpoint: checkpoint(draft, command.checkpoint.as_ref()),
                dead_letter: dead_letter::of(draft, task_id, &task, to),
            };
            apply::task::failed(draft, stamp(draft, now), &item);
            if task.in_run && to.is_terminal() {
                let end = match to == TaskState::Canceled {
                    true => TaskEnd::Canceled,
                    false => TaskEnd::Failed { code, reason: command.reason.as_str() },
                };
                item.cascade = workflow::task_ended(draft, now, task_id, end);
            }
            let result = Ok(Accepted::now(to));
            Ruling { task_id, item: Some(Report::TaskFailed(item)), result }
        }
        Ok(Standing::Ended { task, by: LeaseEnd::Failed }) => {
            Ruling { task_id, item: None, result: Ok(Accepted::now(task.name())) }
        }
        Ok(Standing::Ended { task, .. } | Standing::Stale { task }) => {
            standing::too_late(draft, lease, command.worker.as_ref(), &task, now)
        }
        Err(refusal) => Ruling { task_id, item: None, result: Err(refusal) },
    }
}

/// Whether a task may have another attempt after a failure with this code: a run's node can say no.
pub(super) fn is_retried(draft: &Draft<'_>, task_id: TaskId, code: &str) -> bool {
    let link = draft.cold(task_id).and_then(|cold| cold.run);
    let Some((run_id, token)) = link else { return true };
    let run = Runs::run(draft, run_id);
    let node = run
        .zip(Runs::token(draft, run_id, token))
        .map(|(run, token)| &run.workflow.definition().nodes[token.node as usize]);
    match node.map(|node| &node.kind) {
        Some(NodeKind::Task(node)) => node.retry.retry_on.allows(code),
        Some(NodeKind::Pass | NodeKind::Workflow(_) | NodeKind::Signal(_) | NodeKind::Timer(_))
        | None => true,
    }
}

fn next_state(task: &Task, goes_on: bool, retry: Retry) -> TaskState {
    match retry {
        _ if task.cancel_requested => TaskState::Canceled,
        Retry::Never => TaskState::Failed,
        Retry::WithBackoff | Retry::After(_) if goes_on => TaskState::Waiting,
        Retry::WithBackoff | Retry::After(_) => TaskState::Failed,
    }
}

/// When the attempt after a failure may start.
pub(super) fn next_start(
    draft: &Draft<'_>,
    task_id: TaskId,
    failures: u16,
    retry: Retry,
    now: Now,
    seed: u64,
) -> Timestamp {
    let wait_ms = match retry {
        Retry::After(span) => span.get(),
        Retry::WithBackoff | Retry::Never => {
            let backoff = draft.cold(task_id).and_then(|cold| cold.backoff.as_ref());
            backoff.unwrap_or(&Backoff::STANDARD).wait_ms(failures, draw(seed, task_id))
        }
    };
    now.log.plus_ms(wait_ms)
}

/// A number for this task out of the one for the whole command, so that tasks that fail together
/// do not come back together. (The finalizer of splitmix64.)
fn draw(seed: u64, task_id: TaskId) -> u64 {
    let mut z = seed.wrapping_add(task_id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
