//! `tenure run tokens`: where a run stands and has stood.

use clap::Args;
use tenure_graph::Standing;
use tenure_sdk::{Timestamp, Token};

use super::which::Which;
use super::words::error_words;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::moment::{now, relative};
use crate::ui::output::Lines;
use crate::ui::pages::{Range, tell_rest};
use crate::ui::style;
use crate::ui::table::{Cell, Column, Table};

pub(super) const EXAMPLES: &str = "\
Each visit of a node is a token. PATH is the branch it is in: root/bids#1[4] is branch 4 of the group
bids, opened as group 1 of the run.

Examples:
  tenure run tokens 17
  tenure run tokens 17 --all -o json | jq '.items[] | select(.state == \"failed\")'";

#[derive(Debug, Args)]
pub(super) struct Tokens {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    range: Range,
}

const COLUMNS: [Column; 7] = [
    Column::number("ID"),
    Column::text("NODE"),
    Column::word("STATE"),
    Column::text("PATH"),
    Column::number("PARENT"),
    Column::text("FOR"),
    Column::text("ERROR"),
];

pub(super) fn run(tokens: &Tokens, server: &Server, format: Format) -> Result<(), Failure> {
    let which = tokens.which.parse()?;
    server.with(|client| async move {
        let runs = client.runs();
        let page = async |page| runs.tokens(which.clone(), page).await;
        let found = tokens.range.fetch(page).await?;
        let mut out = Lines::new();
        match format {
            Format::Json => json::print(&mut out, &found),
            Format::Table => {
                let now = now();
                let mut table = Table::new(COLUMNS);
                for token in &found.items {
                    table.row(row(token, now));
                }
                table.print(&mut out, "no such tokens");
            }
        }
        out.finish();
        if format == Format::Table {
            tell_rest(found.next_cursor.as_deref());
        }
        Ok(())
    })
}

fn row(token: &Token, now: Timestamp) -> [Cell; 7] {
    [
        token.id.to_string().into(),
        token.node.as_str().into(),
        Cell::styled(token.state.as_str(), style::standing(Standing::of(token.state.as_str()))),
        token.path.as_str().into(),
        Cell::maybe(token.parent),
        Cell::maybe(work(token, now)),
        Cell::maybe(error_words(&token.error)),
    ]
}

/// What it is, or was, there for.
fn work(token: &Token, now: Timestamp) -> Option<String> {
    let task = token.task_id.map(|id| format!("task {id}"));
    let child = || token.child_run_id.map(|id| format!("run {id}"));
    let signal = || {
        token.signal.as_ref().map(|signal| match signal.correlation.as_str() {
            "" => format!("signal {}", signal.name),
            correlation => format!("signal {} of {correlation}", signal.name),
        })
    };
    let timer = || token.wakes_at.map(|at| relative(at, now));
    task.or_else(child).or_else(signal).or_else(timer)
}
