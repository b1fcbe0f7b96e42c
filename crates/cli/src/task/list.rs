//! `tenure task list`: tasks, newest first, page after page.

use clap::Args;
use tenure_sdk::{Client, Task, TaskFilter, TaskState, Timestamp};

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::moment::{now, relative};
use crate::ui::output::Lines;
use crate::ui::pages::tell_rest;
use crate::ui::table::{Cell, Column, Table};

pub(super) const EXAMPLES: &str = "\
Examples:
  tenure task list
  tenure task list --queue mail --state waiting --limit 20
  tenure task list --tag customer:ada --all
  tenure task list --state dead --all -o json | jq '.items[].id'";

/// What a server puts on one page at most.
const PAGE_TASKS_MAX: u64 = 1_000;

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only of this queue.
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,

    /// Only in this state.
    #[arg(long, value_name = "STATE", ignore_case = true, value_enum)]
    state: Option<State>,

    /// Only with this tag, as KEY:VALUE or KEY=VALUE.
    #[arg(long, value_name = "KEY:VALUE", value_parser = parse_tag)]
    tag: Option<String>,

    /// Only those that this worker holds.
    #[arg(long, value_name = "WORKER")]
    worker: Option<String>,

    /// Only of this run.
    #[arg(long, value_name = "ID")]
    run: Option<u64>,

    /// Only those with this name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Only those whose last failure has this code.
    #[arg(long, value_name = "CODE")]
    code: Option<String>,

    /// Only those that wait for the end of their backoff.
    #[arg(long)]
    retrying: bool,

    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,

    /// All of them, however many there are.
    #[arg(long, conflicts_with = "limit")]
    all: bool,

    /// Where to go on: the next_cursor of an earlier list.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum State {
    Waiting,
    Leased,
    Completed,
    Failed,
    Dead,
    Canceled,
}

impl From<State> for TaskState {
    fn from(state: State) -> Self {
        match state {
            State::Waiting => TaskState::Waiting,
            State::Leased => TaskState::Leased,
            State::Completed => TaskState::Completed,
            State::Failed => TaskState::Failed,
            State::Dead => TaskState::Dead,
            State::Canceled => TaskState::Canceled,
        }
    }
}

/// A tag as the server wants it. `submit` writes `=`, so people write it here too.
pub(crate) fn parse_tag(text: &str) -> Result<String, String> {
    let at = text.find([':', '=']).ok_or("a tag is like customer:ada")?;
    Ok(format!("{}:{}", &text[..at], &text[at + 1..]))
}

pub(super) fn run(list: &List, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let pages = Pages::of(client, list);
        match format {
            Format::Table => print_table(pages).await,
            Format::Json => print_json(pages).await,
        }
    })
}

/// Page after page, until there are no more or there were enough.
struct Pages {
    client: Client,
    filter: TaskFilter,
    left: u64,
    is_done: bool,
}

impl Pages {
    fn of(client: Client, list: &List) -> Self {
        let filter = TaskFilter {
            queue: list.queue.clone(),
            state: list.state.map(TaskState::from),
            tag: list.tag.clone(),
            worker: list.worker.clone(),
            limit: None,
            cursor: list.cursor.clone(),
            run: list.run,
            name: list.name.clone(),
            code: list.code.clone(),
            retrying: list.retrying.then_some(true),
        };
        let left = if list.all { u64::MAX } else { list.limit };
        Self { client, filter, left, is_done: false }
    }

    async fn next(&mut self) -> Result<Option<Vec<Task>>, Failure> {
        if self.is_done || self.left == 0 {
            return Ok(None);
        }
        self.filter.limit = u32::try_from(self.left.min(PAGE_TASKS_MAX)).ok();
        let page = self.client.tasks().list(self.filter.clone()).await?;
        self.left = self.left.saturating_sub(page.items.len() as u64);
        self.is_done = page.next_cursor.is_none();
        self.filter.cursor = page.next_cursor;
        Ok(Some(page.items))
    }

    /// Where somebody else may go on.
    fn cursor(&self) -> Option<&str> {
        self.filter.cursor.as_deref()
    }
}

const COLUMNS: [Column; 8] = [
    Column::number("ID"),
    Column::word("STATE"),
    Column::text("QUEUE"),
    Column::number("PRIO"),
    Column::number("ATTEMPT"),
    Column::word("CREATED"),
    Column::text("WORKER"),
    Column::text("PAYLOAD"),
];

async fn print_table(mut pages: Pages) -> Result<(), Failure> {
    let now = now();
    let mut table = Table::new(COLUMNS);
    while let Some(tasks) = pages.next().await? {
        for task in &tasks {
            table.row(row(task, now));
        }
    }
    let mut out = Lines::new();
    table.print(&mut out, "no such tasks");
    out.finish();
    tell_rest(pages.cursor());
    Ok(())
}

fn row(task: &Task, now: Timestamp) -> [Cell; 8] {
    [
        task.id.to_string().into(),
        Cell::state(&task.state),
        task.queue.as_str().into(),
        task.priority.to_string().into(),
        task.attempt.to_string().into(),
        relative(task.created_at, now).into(),
        Cell::maybe(task.lease.as_ref().map(|lease| &lease.worker)),
        json::text(&task.payload).into(),
    ]
}

/// The shape of one page, written as the pages come: there may be many.
async fn print_json(mut pages: Pages) -> Result<(), Failure> {
    let Some(first) = pages.next().await? else { return Ok(()) };
    let mut out = Lines::new();
    let mut before = "{\"items\":[";
    let mut tasks = Some(first);
    while let Some(page) = tasks {
        for task in &page {
            out.part(before);
            out.part(json::text(task));
            before = ",";
        }
        tasks = pages.next().await?;
    }
    if before != "," {
        out.part(before);
    }
    out.print(format_args!("],\"next_cursor\":{}}}", json::text(&pages.cursor())));
    out.finish();
    Ok(())
}
