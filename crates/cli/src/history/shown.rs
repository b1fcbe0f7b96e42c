//! Archived tasks and runs for people.

use serde::Deserialize;
use serde_json::value::RawValue;
use tenure_sdk::{RunState, TaskState};

use super::Kind;
use super::item::Item;
use crate::run::story::Story;
use crate::ui::moment::{self, clock, relative};
use crate::ui::output::{self, Lines};
use crate::ui::style::{self, Paint};
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

const STEPS: [Column; 9] = [
    Column::number("LSN"),
    Column::word("WHEN"),
    Column::word("EVENT"),
    Column::word("FROM"),
    Column::word("TO"),
    Column::number("ATTEMPT"),
    Column::number("LEASE"),
    Column::text("WORKER"),
    Column::text("REASON"),
];

/// What is shown of one alone.
#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    created_at: Option<String>,
    started_at: Option<String>,
    #[serde(default)]
    tags: std::collections::BTreeMap<String, String>,
    #[serde(borrow)]
    history: Past<'a>,
}

#[derive(Deserialize)]
struct Past<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
    truncated_before: Option<u64>,
}

#[derive(Deserialize)]
struct Step {
    lsn: u64,
    at: String,
    event: String,
    from: Option<String>,
    to: String,
    attempt: u32,
    lease_id: Option<u64>,
    worker: Option<String>,
    code: Option<String>,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct RunStep<'a> {
    lsn: u64,
    at: String,
    #[serde(borrow)]
    cause: &'a RawValue,
    #[serde(borrow)]
    decisions: Vec<&'a RawValue>,
}

/// An empty table for things of this kind.
pub(super) fn table(kind: Kind) -> Table {
    match kind {
        Kind::Task => Table::new(TASKS),
        Kind::Run => Table::new(RUNS),
    }
}

/// One of them.
pub(super) fn row(item: &Item) -> Vec<Cell> {
    let error = item.error.as_ref().map(|error| format!("{} ({})", error.message, error.code));
    let finished = item.finished_at.as_deref().map(ago);
    let id = Cell::from(item.id.to_string());
    match &item.workflow {
        None => vec![
            id,
            task_state(&item.state),
            Cell::maybe(item.queue.as_ref()),
            Cell::maybe(finished),
            Cell::maybe(item.attempt),
            Cell::maybe(item.key.as_ref()),
            Cell::maybe(item.run.as_ref().map(|run| format!("{} {}", run.run_id, run.node))),
            Cell::maybe(error),
        ],
        Some(workflow) => vec![
            id,
            run_state(&item.state),
            workflow.as_str().into(),
            Cell::maybe(finished),
            Cell::maybe(item.key.as_ref()),
            Cell::maybe(error),
        ],
    }
}

/// A task, and what happened to it.
pub(super) fn task(item: &Item, line: &str) {
    let mut out = Lines::new();
    let mut facts = Facts::default();
    facts.add("id", item.id.to_string());
    facts.add_some("queue", item.queue.as_deref());
    facts.add("state", task_state(&item.state));
    let run = item.run.as_ref().map(|run| format!("{}, node {}", run.run_id, run.node));
    facts.add_some("run", run);
    facts.add_some("attempt", item.attempt.map(|attempt| attempt.to_string()));
    let Some(whole) = more_facts(&mut out, facts, item, line) else { return };
    let mut steps = Table::new(STEPS);
    for step in whole.history.items.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()) {
        steps.row(step_row(&step));
    }
    steps.print(&mut out, "nothing of its history was left in the log when it was archived");
    out.finish();
    tell_truncated(&whole);
}

/// A run, and what was decided about it.
pub(super) fn run(item: &Item, line: &str) {
    let mut out = Lines::new();
    let mut facts = Facts::default();
    facts.add("id", item.id.to_string());
    facts.add_some("workflow", item.workflow.as_deref());
    facts.add_some("version", item.version.map(|version| version.to_string()));
    facts.add("state", run_state(&item.state));
    let Some(whole) = more_facts(&mut out, facts, item, line) else { return };
    let (mut story, paint) = (Story::new(None), Paint::of_stdout());
    for raw in &whole.history.items {
        let Ok(step) = serde_json::from_str::<RunStep<'_>>(raw.get()) else { continue };
        let lsn = paint.draw(style::faint(), &format!("{:>6}", step.lsn));
        let at = moment::parse(&step.at).map_or_else(|_| step.at.clone(), clock);
        let at = paint.draw(style::faint(), &at);
        let cause = story.cause(step.cause.get().as_bytes());
        let cause = paint.draw(style::heading(), &cause);
        out.print(format_args!("{lsn}  {at}  {cause}"));
        for decision in &step.decisions {
            for sentence in story.decision(decision.get().as_bytes()) {
                out.print(format_args!("{:22}{sentence}", ""));
            }
        }
    }
    out.finish();
    tell_truncated(&whole);
}

/// Prints what tasks and runs have in common, and a blank line.
fn more_facts<'a>(
    out: &mut Lines,
    mut facts: Facts,
    item: &Item,
    line: &'a str,
) -> Option<Whole<'a>> {
    let whole: Whole<'_> = match serde_json::from_str(line) {
        Ok(whole) => whole,
        Err(error) => {
            output::complain(&format!("its line cannot be read as a whole: {error}"));
            return None;
        }
    };
    let error = item.error.as_ref().map(|error| format!("{} ({})", error.message, error.code));
    facts.add_some("error", error);
    facts.add_some("created", whole.created_at.as_deref());
    facts.add_some("started", whole.started_at.as_deref());
    facts.add_some("finished", item.finished_at.as_deref());
    facts.add("archived", item.archived_at.as_str());
    facts.add_some("key", item.key.as_deref());
    let tags = whole.tags.iter().map(|(key, value)| format!("{key}={value}"));
    facts.add_some("tags", (!whole.tags.is_empty()).then(|| tags.collect::<Vec<_>>().join(" ")));
    facts.add_some("payload", whole.payload.map(RawValue::get));
    facts.add_some("input", whole.input.map(RawValue::get));
    facts.add_some("output", whole.output.map(RawValue::get));
    facts.print(out);
    out.print("");
    Some(whole)
}

fn step_row(step: &Step) -> [Cell; 9] {
    let reason = match (&step.code, &step.reason) {
        (Some(code), Some(reason)) => Some(format!("{reason} ({code})")),
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (None, None) => None,
    };
    [
        step.lsn.to_string().into(),
        ago(&step.at).into(),
        step.event.as_str().into(),
        step.from.as_deref().map_or_else(|| Cell::maybe(None::<&str>), task_state),
        task_state(&step.to),
        step.attempt.to_string().into(),
        Cell::maybe(step.lease_id),
        Cell::maybe(step.worker.as_ref()),
        Cell::maybe(reason),
    ]
}

fn tell_truncated(whole: &Whole<'_>) {
    if let Some(lsn) = whole.history.truncated_before {
        output::complain(&format!(
            "what was before LSN {lsn} was no longer in the log, or too much, when it was archived"
        ));
    }
}

fn ago(at: &str) -> String {
    moment::parse(at).map_or_else(|_| at.to_owned(), |ms| relative(ms, moment::now()))
}

fn task_state(name: &str) -> Cell {
    Cell::state(&TaskState::from(name))
}

fn run_state(name: &str) -> Cell {
    Cell::run_state(&RunState::from(name))
}
