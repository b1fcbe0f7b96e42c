//! Why a task is not done yet, in words. Both doors say the same.

use tenure_api::{Explanation, Reason};
use tenure_coordinator::{Explained, TaskInfo};
use tenure_core::limits::POSITION_SCAN_MAX;
use tenure_core::state::{Eligibility, Halted, QueuePosition};
use tenure_record::state::TaskState;
use tenure_record::time::Timestamp;

use crate::show::{self, time};

fn reason(code: &str, message: impl Into<String>) -> Reason {
    Reason { code: code.to_owned(), message: message.into(), until: None, worker: None }
}

/// Why a task is not done yet.
pub(crate) fn explanation(explained: &Explained) -> Explanation {
    let task = &explained.task;
    let position = match explained.position {
        // A task that does not move has no turn.
        QueuePosition::Behind(others) if explained.halted.is_none() => Some(others as u64 + 1),
        QueuePosition::Behind(_) | QueuePosition::Nowhere | QueuePosition::FarBehind => None,
    };
    let mut reasons: Vec<_> = explained.halted.iter().map(of_its_run).collect();
    let mut earliest_start_at = None;
    match task.state {
        // Its turn in the queue, and workers, make no difference to a task that does not move.
        TaskState::Waiting if explained.halted.is_some() => {}
        TaskState::Waiting => {
            if explained.position == QueuePosition::Nowhere {
                earliest_start_at = task.not_before.filter(|at| *at != Timestamp::ZERO);
                reasons.push(too_early(task, earliest_start_at));
            }
            earliest_start_at = match explained.eligibility {
                Eligibility::Open => earliest_start_at,
                Eligibility::Paused { until: None } => None,
                // A pause with an end is over by itself.
                Eligibility::Paused { until } => earliest_start_at.max(until),
            };
            reasons.extend(in_its_way(explained));
        }
        TaskState::Leased => reasons.push(leased(task)),
        TaskState::Completed | TaskState::Failed | TaskState::Dead | TaskState::Canceled => {
            reasons.push(ended(task));
        }
    }
    if task.cancel_requested && !task.state.is_terminal() {
        let message = "somebody wants it to stop, and its worker is told so";
        reasons.push(reason("cancel_requested", message));
    }
    let earliest_start_at = earliest_start_at.map(time);
    Explanation { state: show::task::state(task.state), position, reasons, earliest_start_at }
}

/// What about its run keeps a task from being granted, and its reports from being accepted.
fn of_its_run(halted: &Halted) -> Reason {
    match halted {
        Halted::Ending { run_id, state, since } => {
            let (state, since) = (state.as_str(), time(*since));
            let message = format!(
                "run {run_id} is ending as {state} since {since}; the task will be CANCELED with it, \
                 and reports on it are refused with lease_lost"
            );
            reason("run_ending", message)
        }
        Halted::BranchEnding { run_id } => {
            let message = format!(
                "its branch of run {run_id} is ending; the task will be CANCELED with it, and reports \
                 on it are refused with lease_lost"
            );
            reason("run_ending", message)
        }
        Halted::Parked { run_id, reason: why, at } => {
            let at = time(*at);
            let message = format!(
                "run {run_id} is parked since {at}: {why}; cancel the run, or let it go on with \
                 `tenure run unpark {run_id}`"
            );
            reason("run_parked", message)
        }
    }
}

fn too_early(task: &TaskInfo, until: Option<Timestamp>) -> Reason {
    let when = until.map_or_else(|| "in a moment".to_owned(), |at| format!("at {}", time(at)));
    let (code, why) = match task.failures {
        0 => ("delayed", "it is delayed".to_owned()),
        1 => ("backing_off", "it failed once".to_owned()),
        times => ("backing_off", format!("it failed {times} times")),
    };
    Reason { until: until.map(time), ..reason(code, format!("{why} and may start {when}")) }
}

/// What is in the way of a task that waits.
fn in_its_way(explained: &Explained) -> Vec<Reason> {
    let queue = &explained.task.queue;
    let mut reasons = Vec::new();
    match explained.eligibility {
        Eligibility::Open => {}
        Eligibility::Paused { until } => {
            let message = match until {
                None => {
                    format!("the queue {queue} is paused: resume it, and leases are given again")
                }
                Some(at) => format!("the queue {queue} is paused until {}", time(at)),
            };
            reasons.push(Reason { until: until.map(time), ..reason("queue_paused", message) });
        }
    }
    let ahead = match explained.position {
        QueuePosition::Nowhere => None,
        QueuePosition::Behind(0) => Some(format!("it is the next in line of the queue {queue}")),
        QueuePosition::Behind(1) => Some(format!("one task of the queue {queue} goes before it")),
        QueuePosition::Behind(others) => {
            Some(format!("{others} tasks of the queue {queue} go before it"))
        }
        QueuePosition::FarBehind => {
            Some(format!("more than {POSITION_SCAN_MAX} tasks of the queue {queue} go before it"))
        }
    };
    reasons.extend(ahead.map(|message| reason("in_line", message)));
    let workers = match explained.workers {
        0 => reason(
            "no_workers",
            format!(
                "no connected worker has said that it takes from the queue {queue}: start one; \
                 those that only ask for leases are not counted"
            ),
        ),
        1 => reason("workers", format!("one connected worker takes from the queue {queue}")),
        many => reason("workers", format!("{many} connected workers take from the queue {queue}")),
    };
    reasons.push(workers);
    reasons
}

fn leased(task: &TaskInfo) -> Reason {
    let Some(lease) = &task.lease else {
        return reason("leased", "a worker holds it");
    };
    let until = time(lease.expires_at);
    let message = format!("{} holds it until {until}, and longer with heartbeats", lease.worker);
    let worker = Some(lease.worker.to_string());
    Reason { until: Some(until), worker, ..reason("leased", message) }
}

fn ended(task: &TaskInfo) -> Reason {
    let error = task.errors.last().map(|error| &*error.message);
    let message = match (task.state, error) {
        (TaskState::Completed, _) => "it is done".to_owned(),
        (state, Some(error)) => format!("it is {}: {error}; it can be retried", state.as_str()),
        (state, None) => format!("it is {}; it can be retried", state.as_str()),
    };
    reason("ended", message)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::sync::Arc;

    use tenure_core::command::{Command, LeaseTasks, RegisterWorkflow, StartRun};
    use tenure_core::{Draft, State, Verdict, apply, decide};
    use tenure_flow::Definition;
    use tenure_record::event::Record;
    use tenure_record::id::{RunId, TaskId};
    use tenure_record::name::{QueueName, WorkerName};
    use tenure_record::terms::Tags;
    use tenure_record::time::{Now, WallOffset};
    use tenure_value::Value;

    use super::*;

    fn play(state: &mut State, command: &Command) {
        let now = Now::both(Timestamp(1_000_000));
        let verdict = decide(&mut Draft::new(state), command, now, 0);
        let Ok(Verdict::Append(event, _)) = verdict else { panic!("{command:?} is not written") };
        let record = Record { lsn: state.last_lsn().next(), at: now.log, wall: now.wall, event };
        apply(state, &record);
    }

    /// A run of a parent whose children have a task each, the first of them leased.
    fn begun() -> State {
        let mut state = State::new(0).ending_at_most(2);
        let parent = "
workflow: parent
initial_node: begin
nodes:
  - {ref: begin, kind: pass}
  - {ref: call, kind: workflow, workflow: {name: child}}
transitions:
  - {from: begin, to: call, spawn_count: 4}
";
        let child = "
workflow: child
initial_node: work
nodes:
  - {ref: work, kind: task, task: {queue: q}}
";
        for yaml in [child, parent] {
            let definition = Definition::compile(&tenure_flow::yaml::parse(yaml).unwrap());
            let definition = Arc::new(definition.unwrap());
            play(&mut state, &Command::RegisterWorkflow(RegisterWorkflow { definition }));
        }
        let input = Value::from_json(b"{}").unwrap();
        let (workflow, tags) = ("parent".into(), Tags::default());
        let start = StartRun { workflow, version: None, input, key: None, tags };
        play(&mut state, &Command::StartRun(start));
        let (tasks_max, lease_ms) = (NonZeroU32::MIN, None);
        let worker = WorkerName::parse("anna").unwrap();
        let queues = vec![QueueName::parse("q").unwrap()];
        let lease = LeaseTasks { worker, queues, tasks_max, lease_ms };
        play(&mut state, &Command::LeaseTasks(lease));
        state
    }

    fn explained(state: &State, task: u64) -> Explanation {
        let task_id = TaskId(task);
        explanation(&Explained {
            task: TaskInfo::of(&state.task(task_id).unwrap(), WallOffset::ZERO),
            position: state.queue_position(task_id),
            halted: state.halted(task_id),
            eligibility: Eligibility::Open,
            workers: 0,
        })
    }

    fn codes(explanation: &Explanation) -> Vec<&str> {
        explanation.reasons.iter().map(|reason| reason.code.as_str()).collect()
    }

    #[test]
    fn a_task_whose_run_is_ending_says_so_and_not_that_it_is_in_line() {
        let mut state = begun();
        assert_eq!(codes(&explained(&state, 1)), ["leased"]);
        assert_eq!(codes(&explained(&state, 2)), ["in_line", "no_workers"]);
        play(&mut state, &Command::CancelRun(RunId(1)));
        for (task, expected) in [(1, &["run_ending", "leased"][..]), (2, &["run_ending"])] {
            let explanation = explained(&state, task);
            assert_eq!(codes(&explanation), expected, "task {task}");
            assert_eq!(explanation.position, None, "task {task}");
            let message = &explanation.reasons[0].message;
            assert!(message.contains("run 1 is ending as CANCELED since 1970"), "{message}");
        }
        while state.has_endings() {
            play(&mut state, &Command::ContinueEnding { items_max: 2 });
        }
        assert_eq!(codes(&explained(&state, 2)), ["ended"], "once it is over that is all");
    }
}
