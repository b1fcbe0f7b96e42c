//! `tenure task get`: a task, with all that is known about it.

use clap::Args;
use tenure_sdk::api::TaskLink;
use tenure_sdk::{Payload, Phase, Progress, Task, Timestamp};

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::moment::{now, relative};
use crate::ui::output::Lines;
use crate::ui::span;
use crate::ui::table::{Cell, Facts};

pub(super) const EXAMPLES: &str = "\
Examples:
  tenure task get 17
  tenure task get 17 -o json | jq .output";

#[derive(Debug, Args)]
pub(super) struct Get {
    /// The task's number.
    id: u64,
}

pub(super) fn run(get: &Get, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        print(&client.tasks().get(get.id).await?, format);
        Ok(())
    })
}

/// Prints a task.
pub(crate) fn print(task: &Task, format: Format) {
    let mut out = Lines::new();
    match format {
        Format::Table => facts(task, now()).print(&mut out),
        Format::Json => json::print(&mut out, task),
    }
    out.finish();
}

/// A number, and the budget that bounds it if one does.
fn counted(count: u32, budget: Option<u32>) -> String {
    match budget {
        Some(budget) => format!("{count} of {budget}"),
        None => count.to_string(),
    }
}

fn facts(task: &Task, now: Timestamp) -> Facts {
    let ago = |at: Timestamp| relative(at, now);
    let some = |payload: &Payload| (!payload.is_empty()).then(|| json::text(payload));
    let lease = task.lease.as_ref().map(|lease| {
        format!("{} by {}, ends {}", lease.lease_id, lease.worker, ago(lease.expires_at))
    });
    let error = task.error.as_ref().map(|error| format!("{} ({})", error.message, error.code));
    let tags = task.tags.iter().map(|(key, value)| format!("{key}={value}"));
    let tags = (!task.tags.is_empty()).then(|| tags.collect::<Vec<_>>().join(" "));
    let canceled = task.cancel_requested.then_some("requested");
    let mut facts = Facts::default();
    facts.add("id", task.id.to_string());
    facts.add("queue", task.queue.as_str());
    facts.add_some("name", task.name.as_deref());
    facts.add("state", Cell::state(&task.state));
    facts.add_some("phase", task.phase.as_ref().map(Phase::as_str));
    facts.add_some("next attempt", task.next_attempt_at.map(ago));
    facts.add_some("cancel", canceled);
    facts.add_some("lease", lease);
    facts.add_some("progress", task.progress.as_ref().map(|said| progress(said, now)));
    facts.add("priority", task.priority.to_string());
    facts.add("attempt", task.attempt.to_string());
    facts.add("failures", counted(task.failures, task.max_failures));
    facts.add("expiries", counted(task.expiries, task.max_expiries));
    facts.add_some("max attempts", task.max_attempts.map(|budget| budget.to_string()));
    facts.add_some("error", error);
    facts.add_some("dead letter", task.dead_letter.as_ref().map(task_link));
    facts.add_some("dead letter of", task.dead_letter_of.as_ref().map(task_link));
    facts.add("created", ago(task.created_at));
    facts.add_some("runs", task.run_at.map(ago));
    facts.add_some("started", task.started_at.map(ago));
    facts.add_some("finished", task.finished_at.map(ago));
    facts.add("lease time", span::exact(task.lease_ms.into()));
    facts.add_some("total timeout", task.total_timeout_ms.map(span::exact));
    facts.add_some("attempt timeout", task.attempt_timeout_ms.map(span::exact));
    facts.add_some("key", task.key.as_deref());
    facts.add_some("tags", tags);
    facts.add_some("payload", some(&task.payload));
    facts.add_some("output", some(&task.output));
    facts.add_some("checkpoint", some(&task.checkpoint));
    facts
}

fn task_link(link: &TaskLink) -> String {
    format!("task {}", link.task_id)
}

fn progress(said: &Progress, now: Timestamp) -> String {
    let percent = said.fraction.map(|fraction| format!("{:.0} %", fraction * 100.0));
    let words = [percent.as_deref(), said.message.as_deref()].into_iter().flatten();
    format!("{}, {}", words.collect::<Vec<_>>().join(", "), relative(said.at, now))
}
