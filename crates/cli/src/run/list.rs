//! `tenure run list`: runs, newest first.

use clap::Args;
use tenure_sdk::{PageQuery, Run, RunFilter, RunState, Timestamp};

use super::words::{error_words, standing_brief};
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::task::parse_tag;
use crate::ui::json;
use crate::ui::moment::{now, relative};
use crate::ui::output::Lines;
use crate::ui::pages::{Range, tell_rest};
use crate::ui::table::{Cell, Column, Table};

pub(super) const EXAMPLES: &str = "\
Examples:
  tenure run list
  tenure run list --workflow order --state waiting
  tenure run list --tag customer:ada --all
  tenure run list --state failed -o json | jq '.items[] | [.id, .error.code]'";

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only of this workflow.
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,

    /// Only in this state.
    #[arg(long, value_name = "STATE", ignore_case = true, value_enum)]
    state: Option<State>,

    /// Only with this tag, as KEY:VALUE or KEY=VALUE.
    #[arg(long, value_name = "KEY:VALUE", value_parser = parse_tag)]
    tag: Option<String>,

    /// Only with this key; keys belong to a workflow.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    #[command(flatten)]
    range: Range,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum State {
    Running,
    Waiting,
    Completed,
    Failed,
    Canceled,
    #[value(name = "timed_out", alias = "timed-out")]
    TimedOut,
}

impl From<State> for RunState {
    fn from(state: State) -> Self {
        match state {
            State::Running => RunState::Running,
            State::Waiting => RunState::Waiting,
            State::Completed => RunState::Completed,
            State::Failed => RunState::Failed,
            State::Canceled => RunState::Canceled,
            State::TimedOut => RunState::TimedOut,
        }
    }
}

const COLUMNS: [Column; 7] = [
    Column::number("ID"),
    Column::word("STATE"),
    Column::text("WORKFLOW"),
    Column::number("LIVE"),
    Column::word("STARTED"),
    Column::text("ERROR"),
    Column::text("INPUT"),
];

pub(super) fn run(list: &List, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let page = async |PageQuery { limit, cursor }| {
            let filter = RunFilter {
                workflow: list.workflow.clone(),
                state: list.state.map(RunState::from),
                tag: list.tag.clone(),
                key: list.key.clone(),
                limit,
                cursor,
            };
            client.runs().list(filter).await
        };
        let found = list.range.fetch(page).await?;
        let mut out = Lines::new();
        match format {
            Format::Json => json::print(&mut out, &found),
            Format::Table => {
                let now = now();
                let mut table = Table::new(COLUMNS);
                for run in &found.items {
                    table.row(row(run, now));
                }
                table.print(&mut out, "no such runs");
            }
        }
        out.finish();
        if format == Format::Table {
            tell_rest(found.next_cursor.as_deref());
        }
        Ok(())
    })
}

fn row(run: &Run, now: Timestamp) -> [Cell; 7] {
    [
        run.id.to_string().into(),
        Cell::run_state(&run.state),
        format!("{} {}", run.workflow, run.version).into(),
        run.live_tokens.to_string().into(),
        relative(run.started_at, now).into(),
        Cell::maybe(standing_brief(run).or_else(|| error_words(&run.error))),
        json::text(&run.input).into(),
    ]
}
