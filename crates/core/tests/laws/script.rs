//! A run as people read it: one line for each command, with what the model says to it.

use std::fmt::Write as _;

use tenure_core::Rejection;
use tenure_core::command::{
    CancelTask, Command, CompleteTask, FailTask, Heartbeat, LeaseRef, LeaseTasks, NewTask,
    ReleaseTask, Reply, ReportTasks, Start,
};
use tenure_record::time::Now;

/// Something that was done at a time.
pub(crate) enum Line {
    Command(Now, Box<Command>, Result<Reply, Rejection>),
    Restart(Now),
    View(Now),
}

pub(crate) fn tell(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let (now, what, answer) = match line {
            Line::Command(now, command, answer) => {
                let answer = match answer {
                    Ok(reply) => format!("{reply:?}"),
                    Err(refusal) => format!("refused: {refusal:?}"),
                };
                (now, said(command), answer)
            }
            Line::Restart(now) => (now, "restart".to_owned(), "the same again".to_owned()),
            Line::View(now) => (now, "view".to_owned(), "kept".to_owned()),
        };
        let Now { log, wall } = now;
        let clocks = if log == wall { format!("{log:?}") } else { format!("{log:?}/{wall:?}") };
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{clocks:>10} {what}\n           -> {answer}");
    }
    text
}

fn said(command: &Command) -> String {
    match command {
        Command::SubmitTasks(command) => format!("submit {}", all(&command.tasks, new_task)),
        Command::LeaseTasks(LeaseTasks { worker, queues, tasks_max, lease_ms }) => {
            format!("lease {tasks_max} of {queues:?} to {worker}, lease_ms {lease_ms:?}")
        }
        Command::Heartbeat(report) => format!("heartbeat {}", alive(report)),
        Command::CompleteTask(report) => format!("complete {}", completed(report)),
        Command::FailTask(report) => format!("fail {}", failed(report)),
        Command::ReleaseTask(report) => format!("release {}", released(report)),
        Command::ReportTasks(ReportTasks { heartbeats, completes, fails, releases, .. }) => {
            format!(
                "report heartbeats {}, completes {}, fails {}, releases {}",
                all(heartbeats, alive),
                all(completes, completed),
                all(fails, failed),
                all(releases, released),
            )
        }
        Command::CancelTask(CancelTask { task_id, grace_ms }) => {
            format!("cancel task {task_id}, grace_ms {grace_ms:?}")
        }
        Command::RetryTask(task_id) => format!("retry task {task_id}"),
        Command::DropLeases(leases) => format!("drop {}", all(leases, held)),
        other @ (Command::FireTimers
        | Command::PauseQueue(_)
        | Command::ResumeQueue(_)
        | Command::ConfigureQueue(_)
        | Command::DeleteQueue(_)
        | Command::DeleteWorkflow(_)
        | Command::StartRuns(_)
        | Command::SignalByKey(_)
        | Command::PurgeTasks(_)
        | Command::PurgeArchived(_)
        | Command::SkipIds(_)
        | Command::RegisterWorkflow(_)
        | Command::StartRun(_)
        | Command::CancelRun(_)
        | Command::SignalRun(_)
        | Command::ContinueDispatch
        | Command::ContinueEnding { .. }
        | Command::ParkRun(_)
        | Command::UnparkRun(_)) => format!("{other:?}"),
    }
}

fn all<T>(items: &[T], one: impl Fn(&T) -> String) -> String {
    format!("[{}]", items.iter().map(one).collect::<Vec<_>>().join(", "))
}

fn held(lease: &LeaseRef) -> String {
    format!("task {} under lease {}", lease.task_id, lease.lease_id)
}

fn alive(report: &Heartbeat) -> String {
    let Heartbeat { lease, lease_ms, checkpoint, progress: _ } = report;
    format!("{}, lease_ms {lease_ms:?}, checkpoint {checkpoint:?}", held(lease))
}

fn released(report: &ReleaseTask) -> String {
    let ReleaseTask { lease, delay_ms, priority, checkpoint } = report;
    let after = delay_ms.get();
    format!("{}, after {after}, {priority:?}, checkpoint {checkpoint:?}", held(lease))
}

fn completed(report: &CompleteTask) -> String {
    format!("{} with {:?}", held(&report.lease), report.output)
}

fn failed(report: &FailTask) -> String {
    let FailTask { lease, reason, code, retry, checkpoint, worker: _ } = report;
    let (held, reason) = (held(lease), reason.as_str());
    format!("{held} with {reason:?} {code:?}, retry {retry:?}, checkpoint {checkpoint:?}")
}

/// Only what is not as usual.
fn new_task(new: &NewTask) -> String {
    let usual = NewTask::new(new.queue.clone(), new.payload.clone());
    let mut text = format!("{} {:?}", new.queue, new.payload);
    let mut add = |name: &str, is_usual: bool, value: String| {
        if !is_usual {
            let _ = write!(text, " {name}={value}");
        }
    };
    add("priority", new.priority == usual.priority, new.priority.get().to_string());
    add("start", new.start == Start::AtOnce, format!("{:?}", new.start));
    add("budgets", new.budgets == usual.budgets, format!("{:?}", new.budgets));
    add("backoff", new.backoff.is_none(), format!("{:?}", new.backoff));
    add("lease_ms", new.lease_ms == usual.lease_ms, new.lease_ms.get().to_string());
    add("total_timeout_ms", new.total_timeout_ms.is_none(), format!("{:?}", new.total_timeout_ms));
    let attempt_timeout_ms = format!("{:?}", new.attempt_timeout_ms);
    add("attempt_timeout_ms", new.attempt_timeout_ms.is_none(), attempt_timeout_ms);
    add("name", new.name.is_none(), format!("{:?}", new.name));
    add("traceparent", new.traceparent.is_none(), format!("{:?}", new.traceparent));
    add("key_ttl_ms", new.key_ttl_ms.is_none(), format!("{:?}", new.key_ttl_ms));
    add("key", new.key.is_none(), format!("{:?}", new.key));
    add("tags", new.tags == usual.tags, format!("{:?}", new.tags.as_slice()));
    text
}
