//! All judgement. A command is decided on a draft of the state, at a time and with a seed that
//! are handed in, and ends in a value: what to write and what to answer, or a refusal.

mod cancel_run;
mod cancel_task;
mod complete_task;
mod configure_queue;
mod continue_dispatch;
mod continue_ending;
mod dead_letter;
mod delete_queue;
mod delete_workflow;
mod drop_leases;
mod end_leases;
mod fail_task;
mod fire_timers;
mod heartbeat;
mod lease_tasks;
mod park_run;
mod pause_queue;
mod purge_archived;
mod purge_tasks;
mod register_workflow;
mod release_task;
mod report_tasks;
pub(crate) mod request_hash;
mod resume_queue;
mod retry_task;
mod signal_by_key;
mod signal_run;
mod skip_ids;
mod standing;
mod start_run;
mod start_runs;
mod submit_tasks;
#[cfg(test)]
mod tests;

use tenure_record::event::{About, Event, Report};
use tenure_record::id::{RunId, TaskId};
use tenure_record::progress::Checkpoint;
use tenure_record::time::Now;

use crate::apply::Stamp;
use crate::command::{Accepted, Command, Reply};
use crate::invariant;
use crate::rejection::Rejection;
use crate::state::{Draft, Ledger, Runs, Task};

/// What becomes of a command that is not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'c> {
    /// Write this, apply it, and answer so when it is durable.
    Append(Event<'c>, Reply),
    /// Nothing to write: answer so.
    Answer(Reply),
}

/// Decides a command. The draft is fresh, and afterwards holds what the event would do.
///
/// # Panics
/// If a decision would break a law of the state: better no record than a log that cannot be
/// replayed.
pub fn decide<'c>(
    draft: &mut Draft<'_>,
    command: &'c Command,
    now: Now,
    seed: u64,
) -> Result<Verdict<'c>, Rejection> {
    let verdict = match command {
        Command::SubmitTasks(command) => submit_tasks::decide(draft, command, now),
        Command::LeaseTasks(command) => lease_tasks::decide(draft, command, now),
        Command::Heartbeat(report) => report_tasks::alone(heartbeat::rule(draft, report, now)),
        Command::CompleteTask(command) => {
            report_tasks::alone(complete_task::rule(draft, command, now))
        }
        Command::FailTask(command) => {
            report_tasks::alone(fail_task::rule(draft, command, now, seed))
        }
        Command::ReleaseTask(report) => report_tasks::alone(release_task::rule(draft, report, now)),
        Command::ReportTasks(command) => report_tasks::decide(draft, command, now, seed),
        Command::CancelTask(command) => cancel_task::decide(draft, *command, now),
        Command::RetryTask(task_id) => retry_task::decide(draft, *task_id, now),
        Command::DropLeases(leases) => drop_leases::decide(draft, leases, now, seed),
        Command::FireTimers => Ok(fire_timers::decide(draft, now, seed)),
        Command::PauseQueue(command) => pause_queue::decide(draft, command, now),
        Command::ResumeQueue(queue) => resume_queue::decide(draft, queue),
        Command::ConfigureQueue(command) => configure_queue::decide(draft, command),
        Command::DeleteQueue(queue) => delete_queue::decide(draft, queue),
        Command::PurgeTasks(retention) => Ok(purge_tasks::decide(draft, *retention, now)),
        Command::PurgeArchived(archived) => Ok(purge_archived::decide(draft, archived)),
        Command::SkipIds(jump) => skip_ids::decide(draft, *jump),
        Command::RegisterWorkflow(command) => register_workflow::decide(draft, command, now),
        Command::DeleteWorkflow(command) => delete_workflow::decide(draft, command),
        Command::StartRun(command) => start_run::decide(draft, command, now),
        Command::StartRuns(command) => start_runs::decide(draft, command, now),
        Command::CancelRun(run_id) => cancel_run::decide(draft, *run_id, now),
        Command::SignalRun(command) => signal_run::decide(draft, command, now),
        Command::SignalByKey(command) => signal_by_key::decide(draft, command, now),
        Command::ContinueDispatch => Ok(continue_dispatch::decide(draft, now)),
        Command::ContinueEnding { items_max } => {
            Ok(continue_ending::decide(draft, *items_max, now))
        }
        Command::ParkRun(command) => park_run::park(draft, command, now),
        Command::UnparkRun(run_id) => park_run::unpark(draft, *run_id, now),
    }?;
    if let Verdict::Append(..) = verdict {
        invariant::assert_draft(draft);
    }
    Ok(verdict)
}

/// What becomes of one report, alone or among others.
struct Ruling<'c> {
    task_id: TaskId,
    /// What is written, if anything: a stale report may be refused and still leave a trace.
    item: Option<Report<'c>>,
    result: Result<Accepted, Rejection>,
}

fn about(draft: &Draft<'_>, task_id: TaskId, task: &Task) -> About<'static> {
    About {
        task_id,
        queue: draft.queue_name(task.queue),
        priority: task.priority,
        attempt: task.attempt,
        previous: task.last_lsn,
        run_id: run_of(draft, task_id, task),
    }
}

/// The run that a task belongs to, if it does.
fn run_of(draft: &Draft<'_>, task_id: TaskId, task: &Task) -> RunId {
    if !task.in_run {
        return RunId::NONE;
    }
    let link = draft.cold(task_id).and_then(|cold| cold.run);
    link.map_or(RunId::NONE, |(run_id, _)| run_id)
}

/// Why a task of a run may not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halt {
    /// What it belongs to is ending, and it will end with it.
    Ending,
    /// Its run stands still.
    Parked(RunId),
}

/// Whether something about its run keeps a task from moving. One comparison while nothing is ending
/// or parked.
#[inline]
fn halt(draft: &Draft<'_>, task_id: TaskId, task: &Task) -> Option<Halt> {
    if task.in_run { halt_by_run(draft, task_id) } else { None }
}

fn halt_by_run(draft: &Draft<'_>, task_id: TaskId) -> Option<Halt> {
    if !(draft.has_endings() || draft.base().live().runs.parked > 0) {
        return None;
    }
    let (run_id, token) = draft.cold(task_id)?.run?;
    let scope = Runs::token(draft, run_id, token)?.scope;
    if draft.is_ending(run_id, scope) {
        return Some(Halt::Ending);
    }
    let is_parked = Runs::run(draft, run_id)?.stands_still();
    is_parked.then_some(Halt::Parked(run_id))
}

/// The bytes of a checkpoint that a report hands in; none if it does not. They are copied twice on
/// their way into the state, which counts as work.
fn checkpoint<'c>(draft: &Draft<'_>, handed: Option<&'c Checkpoint>) -> &'c [u8] {
    let bytes = handed.map(Checkpoint::as_bytes).unwrap_or_default();
    draft.count_work(bytes.len() / 1_024);
    bytes
}

/// The record that a draft would become.
fn stamp(draft: &Draft<'_>, now: Now) -> Stamp {
    Stamp::new(draft.lsn(), now)
}
