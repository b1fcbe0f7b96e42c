//! `tenure task history`: what happened to a task, oldest first.

use clap::Args;
use tenure_sdk::{TaskStep, Timestamp};

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::moment::{now, relative};
use crate::ui::output::{self, Lines};
use crate::ui::table::{Cell, Column, Table};

pub(super) const EXAMPLES: &str = "\
Examples:
  tenure task history 17
  tenure task history 17 -o json | jq '.items[] | [.at, .event, .reason]'";

#[derive(Debug, Args)]
pub(super) struct History {
    /// The task's number.
    id: u64,
}

const COLUMNS: [Column; 9] = [
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

pub(super) fn run(history: &History, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let history = client.tasks().history(history.id).await?;
        let mut out = Lines::new();
        match format {
            Format::Json => json::print(&mut out, &history),
            Format::Table => {
                let now = now();
                let mut table = Table::new(COLUMNS);
                for step in &history.items {
                    table.row(row(step, now));
                }
                table.print(&mut out, "nothing of its history is left in the log");
            }
        }
        out.finish();
        if let (Some(lsn), Format::Table) = (history.truncated_before, format) {
            output::complain(&format!("what was before LSN {lsn} is no longer in the log"));
        }
        Ok(())
    })
}

fn row(step: &TaskStep, now: Timestamp) -> [Cell; 9] {
    let reason = match (&step.code, &step.reason) {
        (Some(code), Some(reason)) => Some(format!("{reason} ({code})")),
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (None, None) => None,
    };
    [
        step.lsn.to_string().into(),
        relative(step.at, now).into(),
        step.event.as_str().into(),
        step.from.as_ref().map_or_else(|| Cell::maybe(None::<&str>), Cell::state),
        Cell::state(&step.to),
        step.attempt.to_string().into(),
        Cell::maybe(step.lease_id),
        Cell::maybe(step.worker.as_ref()),
        Cell::maybe(reason),
    ]
}
