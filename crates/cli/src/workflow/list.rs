//! `tenure workflow list`: what a server knows.

use clap::Args;
use tenure_sdk::{Timestamp, Workflow};

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::moment::{now, relative};
use crate::ui::output::Lines;
use crate::ui::pages::{Range, tell_rest};
use crate::ui::table::{Cell, Column, Table};

pub(super) const EXAMPLES: &str = "\
Examples:
  tenure workflow list
  tenure workflow list --all -o json | jq '.items[].name'";

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    range: Range,
}

const COLUMNS: [Column; 5] = [
    Column::text("NAME"),
    Column::number("VERSION"),
    Column::number("NODES"),
    Column::number("TRANSITIONS"),
    Column::word("REGISTERED"),
];

pub(super) fn run(list: &List, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let workflows = client.workflows();
        let found = list.range.fetch(async |page| workflows.list(page).await).await?;
        let mut out = Lines::new();
        match format {
            Format::Json => json::print(&mut out, &found),
            Format::Table => {
                let now = now();
                let mut table = Table::new(COLUMNS);
                for workflow in &found.items {
                    table.row(row(workflow, now));
                }
                table.print(&mut out, "no workflows yet; `tenure workflow put FILE` registers one");
            }
        }
        out.finish();
        if format == Format::Table {
            tell_rest(found.next_cursor.as_deref());
        }
        Ok(())
    })
}

fn row(workflow: &Workflow, now: Timestamp) -> [Cell; 5] {
    [
        workflow.name.as_str().into(),
        workflow.version.to_string().into(),
        workflow.nodes.to_string().into(),
        workflow.transitions.to_string().into(),
        relative(workflow.registered_at, now).into(),
    ]
}
