//! All judgement. A command is decided on a draft of the state, at a time and with a seed that
//! are handed in, and ends in a value: what to write and what to answer, or a refusal.

mod cancel_run;
mod cancel_task;
mod complete_task;
mod configure_queue;
mod continue_dispatch;
mod drop_leases;
mod expire_leases;
mod fail_task;
mod fire_deadlines;
mod heartbeat;
mod lease_tasks;
mod pause_queue;
mod purge_archived;
mod purge_tasks;
mod register_workflow;
mod release_task;
mod report_tasks;
mod resume_queue;
mod retry_task;
mod signal_run;
mod skip_ids;
mod standing;
mod start_run;
mod submit_tasks;
#[cfg(test)]
mod tests;

use crate::apply::Stamp;
use crate::command::{Accepted, Command, Reply};
use crate::event::{About, Event, Report};
use crate::id::{RunId, TaskId};
use crate::invariant;
use crate::rejection::Rejection;
use crate::state::{Draft, Ledger, Task};
use crate::time::Now;

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
        Command::Heartbeat(lease) => heartbeat::decide(draft, *lease, now),
        Command::CompleteTask(command) => single(complete_task::rule(draft, command, now)),
        Command::FailTask(command) => single(fail_task::rule(draft, command, now, seed)),
        Command::ReleaseTask(lease) => single(release_task::rule(draft, *lease, now)),
        Command::ReportTasks(command) => report_tasks::decide(draft, command, now, seed),
        Command::CancelTask(command) => cancel_task::decide(draft, *command, now),
        Command::RetryTask(task_id) => retry_task::decide(draft, *task_id, now),
        Command::ExpireLeases => Ok(expire_leases::decide(draft, now)),
        Command::DropLeases(leases) => drop_leases::decide(draft, leases, now),
        Command::FireDeadlines => Ok(fire_deadlines::decide(draft, now)),
        Command::PauseQueue(queue) => pause_queue::decide(draft, queue),
        Command::ResumeQueue(queue) => resume_queue::decide(draft, queue),
        Command::ConfigureQueue(command) => configure_queue::decide(draft, command),
        Command::PurgeTasks(retention) => Ok(purge_tasks::decide(draft, *retention, now)),
        Command::PurgeArchived(archived) => Ok(purge_archived::decide(draft, archived)),
        Command::SkipIds => skip_ids::decide(draft),
        Command::RegisterWorkflow(command) => register_workflow::decide(draft, command, now),
        Command::StartRun(command) => start_run::decide(draft, command, now),
        Command::CancelRun(run_id) => cancel_run::decide(draft, *run_id, now),
        Command::SignalRun(command) => signal_run::decide(draft, command, now),
        Command::ContinueDispatch => Ok(continue_dispatch::decide(draft, now)),
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

/// A report that came alone.
fn single(ruling: Ruling<'_>) -> Result<Verdict<'_>, Rejection> {
    let Ruling { task_id, item, result } = ruling;
    let reply = match (result, &item) {
        (Ok(Accepted { extended: Some(extended), .. }), _) => Reply::Extended(extended),
        (Ok(Accepted { state, extended: None }), _) => Reply::Task(task_id, state),
        (Err(refusal), Some(_)) => Reply::LeaseLost(refusal),
        (Err(refusal), None) => return Err(refusal),
    };
    Ok(match item {
        Some(item) => Verdict::Append(item.into(), reply),
        None => Verdict::Answer(reply),
    })
}

impl<'a> From<Report<'a>> for Event<'a> {
    fn from(report: Report<'a>) -> Self {
        match report {
            Report::LeaseExtended(item) => Event::LeaseExtended(item),
            Report::TaskCompleted(item) => Event::TaskCompleted(item),
            Report::TaskFailed(item) => Event::TaskFailed(item),
            Report::LeaseReleased(item) => Event::LeaseReleased(item),
            Report::TaskCancelled(item) => Event::TaskCancelled(item),
        }
    }
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

/// The record that a draft would become.
fn stamp(draft: &Draft<'_>, now: Now) -> Stamp {
    Stamp { lsn: draft.lsn(), at: now.log }
}
