//! `tenure workflow list`: what a server knows.

use clap::Args;
use tenure_sdk::{Workflow, WorkflowFilter};

use super::shown::ShownWorkflow;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::shown;
use crate::ui::moment::{now, relative};
use crate::ui::output::Lines;
use crate::ui::pages::Range;
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
        let page = async |limit, cursor| {
            let page = client.list_workflows(WorkflowFilter { limit: Some(limit), cursor }).await?;
            Ok((page.workflows, page.next_cursor))
        };
        let found = list.range.fetch(page).await?;
        let mut out = Lines::new();
        match format {
            Format::Json => {
                let items = found.items.iter().map(ShownWorkflow::of).collect();
                let next_cursor = found.next_cursor.clone();
                shown::print(&mut out, &shown::List { items, next_cursor });
            }
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
            found.tell_rest();
        }
        Ok(())
    })
}

fn row(workflow: &Workflow, now: u64) -> [Cell; 5] {
    [
        workflow.name.as_str().into(),
        workflow.version.to_string().into(),
        workflow.nodes.to_string().into(),
        workflow.transitions.to_string().into(),
        relative(workflow.registered_at, now).into(),
    ]
}
