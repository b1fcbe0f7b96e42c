//! Archived tasks and runs for people.

use std::collections::BTreeMap;

use serde::Deserialize;
use tenure_sdk::api::{
    Archived, ArchivedHistory, Payload, Run, RunStep, Task, TaskError, TaskStep,
};

use super::Kind;
use super::item::Item;
use crate::run::history::paragraph;
use crate::run::story::Story;
use crate::task::history as task_history;
use crate::ui::json;
use crate::ui::moment::{self, relative};
use crate::ui::output::{self, Lines};
use crate::ui::style::Paint;
use crate::ui::table::{Cell, Column, Facts, Table};

const TASKS: [Column; 8] = [
    Column::number("ID"),
    Column::word("STATE"),
    Column::text("QUEUE"),
    Column::word("FINISHED"),
    Column::number("ATTEMPT"),
    Column::text("KEY"),
    Column::text("RUN"),
    Column::text("ERROR"),
];

const RUNS: [Column; 6] = [
    Column::number("ID"),
    Column::word("STATE"),
    Column::text("WORKFLOW"),
    Column::word("FINISHED"),
    Column::text("KEY"),
    Column::text("ERROR"),
];

/// An empty table for things of this kind.
pub(super) fn table(kind: Kind) -> Table {
    match kind {
        Kind::Task => Table::new(TASKS),
        Kind::Run => Table::new(RUNS),
    }
}

/// One of them.
pub(super) fn row(item: &Item) -> Vec<Cell> {
    let error = item.error.as_ref().map(error);
    let finished = item.finished_at.map(|at| relative(at, moment::now()));
    let id = Cell::from(item.id.to_string());
    match &item.workflow {
        None => vec![
            id,
            Cell::state(&item.state.as_str().into()),
            Cell::maybe(item.queue.as_ref()),
            Cell::maybe(finished),
            Cell::maybe(item.attempt),
            Cell::maybe(item.key.as_ref()),
            Cell::maybe(item.run.as_ref().map(|run| format!("{} {}", run.run_id, run.node))),
            Cell::maybe(error),
        ],
        Some(workflow) => vec![
            id,
            Cell::run_state(&item.state.as_str().into()),
            workflow.as_str().into(),
            Cell::maybe(finished),
            Cell::maybe(item.key.as_ref()),
            Cell::maybe(error),
        ],
    }
}

/// A task, and what happened to it.
pub(super) fn task(line: &str) {
    let Some(archived) = whole::<Task, TaskStep>(line) else { return };
    let Archived { item: task, archived_at, history, .. } = &archived;
    let mut facts = Facts::default();
    facts.add("id", task.id.to_string());
    facts.add("queue", task.queue.as_str());
    facts.add("state", Cell::state(&task.state));
    let run = task.run.as_ref().map(|run| format!("{}, node {}", run.run_id, run.node));
    facts.add_some("run", run);
    facts.add("attempt", task.attempt.to_string());
    facts.add_some("error", task.error.as_ref().map(error));
    facts.add("created", task.created_at.to_string());
    facts.add_some("started", task.started_at.map(|at| at.to_string()));
    facts.add_some("finished", task.finished_at.map(|at| at.to_string()));
    facts.add("archived", archived_at.to_string());
    facts.add_some("key", task.key.as_deref());
    facts.add_some("tags", tags(&task.tags));
    facts.add_some("payload", text(&task.payload));
    facts.add_some("output", text(&task.output));
    let mut out = Lines::new();
    facts.print(&mut out);
    out.print("");
    let (mut steps, now) = (Table::new(task_history::COLUMNS), moment::now());
    for step in &history.items {
        steps.row(task_history::row(step, now));
    }
    steps.print(&mut out, "nothing of its history was left in the log when it was archived");
    out.finish();
    tell_truncated(history);
}

/// A run, and what was decided about it.
pub(super) fn run(line: &str) {
    let Some(archived) = whole::<Run, RunStep>(line) else { return };
    let Archived { item: run, archived_at, history, .. } = &archived;
    let mut facts = Facts::default();
    facts.add("id", run.id.to_string());
    facts.add("workflow", run.workflow.as_str());
    facts.add("version", run.version.to_string());
    facts.add("state", Cell::run_state(&run.state));
    let failed = run.error.parse::<Option<TaskError>>().ok().flatten();
    facts.add_some("error", failed.as_ref().map(error));
    facts.add("started", run.started_at.to_string());
    facts.add_some("finished", run.finished_at.map(|at| at.to_string()));
    facts.add("archived", archived_at.to_string());
    facts.add_some("key", run.key.as_deref());
    facts.add_some("tags", tags(&run.tags));
    facts.add_some("input", text(&run.input));
    facts.add_some("output", text(&run.output));
    let mut out = Lines::new();
    facts.print(&mut out);
    out.print("");
    let (mut story, paint) = (Story::new(None), Paint::of_stdout());
    for step in &history.items {
        paragraph(&mut out, &mut story, step, paint);
    }
    out.finish();
    tell_truncated(history);
}

/// Reads a whole line.
fn whole<'l, T: Deserialize<'l>, S: Deserialize<'l>>(line: &'l str) -> Option<Archived<T, S>> {
    let told = |error| output::complain(&format!("its line cannot be read as a whole: {error}"));
    Archived::parse(line).map_err(told).ok()
}

fn error(error: &TaskError) -> String {
    format!("{} ({})", error.message, error.code)
}

fn tags(tags: &BTreeMap<String, String>) -> Option<String> {
    let pairs: Vec<_> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Some(pairs.join(" ")).filter(|pairs| !pairs.is_empty())
}

/// A payload as the line has it: JSON, or base64.
fn text(payload: &Payload) -> Option<String> {
    Some(payload).filter(|payload| !payload.is_empty()).map(json::text)
}

fn tell_truncated<S>(history: &ArchivedHistory<S>) {
    if let Some(lsn) = history.truncated_before {
        output::complain(&format!(
            "what was before LSN {lsn} was no longer in the log, or too much, when it was archived"
        ));
    }
}
