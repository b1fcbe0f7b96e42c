//! `tenure worker list`: who was heard of lately.

use clap::Args;
use tenure_sdk::{Timestamp, WorkerInfo};

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
  tenure worker list
  tenure worker list -o json | jq '.items[] | select(.connected) | .id'";

const COLUMNS: [Column; 7] = [
    Column::text("WORKER"),
    Column::word("STATE"),
    Column::word("SEEN"),
    Column::number("LEASES"),
    Column::number("SLOTS"),
    Column::text("QUEUES"),
    Column::text("LABELS"),
];

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    range: Range,
}

pub(super) fn run(list: &List, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let workers = client.workers();
        let found = list.range.fetch(async |page| workers.list(page).await).await?;
        let mut out = Lines::new();
        match format {
            Format::Json => json::print(&mut out, &found),
            Format::Table => {
                let now = now();
                let mut table = Table::new(COLUMNS);
                for worker in &found.items {
                    table.row(row(worker, now));
                }
                table.print(&mut out, "no worker was heard of lately");
            }
        }
        out.finish();
        if format == Format::Table {
            tell_rest(found.next_cursor.as_deref());
        }
        Ok(())
    })
}

fn row(worker: &WorkerInfo, now: Timestamp) -> [Cell; 7] {
    let state = match (worker.connected, worker.draining) {
        (false, _) => "dead",
        (true, true) => "draining",
        (true, false) => "connected",
    };
    let labels = worker.labels.iter().map(|(key, value)| format!("{key}={value}"));
    let labels = labels.collect::<Vec<_>>().join(" ");
    [
        worker.id.as_str().into(),
        state.into(),
        relative(worker.last_seen_at, now).into(),
        worker.active_leases.to_string().into(),
        Cell::maybe(worker.slots),
        Cell::maybe(Some(worker.queues.join(" ")).filter(|queues| !queues.is_empty())),
        Cell::maybe(Some(labels).filter(|labels| !labels.is_empty())),
    ]
}
