//! `tenure worker list`: who was heard of lately.

use clap::Args;
use tenure_sdk::{WorkerFilter, WorkerInfo};

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::shown::{self, ShownWorker};
use crate::ui::moment::{now, relative};
use crate::ui::output::Lines;
use crate::ui::pages::Range;
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
        let page = async |limit, cursor| {
            let page = client.list_workers(WorkerFilter { limit: Some(limit), cursor }).await?;
            Ok((page.workers, page.next_cursor))
        };
        let found = list.range.fetch(page).await?;
        let mut out = Lines::new();
        match format {
            Format::Json => {
                let items = found.items.iter().map(ShownWorker::of).collect();
                let next_cursor = found.next_cursor.clone();
                shown::print(&mut out, &shown::List { items, next_cursor });
            }
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
            found.tell_rest();
        }
        Ok(())
    })
}

fn row(worker: &WorkerInfo, now: u64) -> [Cell; 7] {
    let state = match (worker.connected, worker.draining) {
        (false, _) => "dead",
        (true, true) => "draining",
        (true, false) => "connected",
    };
    let labels = worker.labels.iter().map(|(key, value)| format!("{key}={value}"));
    let labels = labels.collect::<Vec<_>>().join(" ");
    [
        worker.name.as_str().into(),
        state.into(),
        relative(worker.last_seen_at, now).into(),
        worker.active_leases.to_string().into(),
        Cell::maybe(worker.slots),
        Cell::maybe(Some(worker.queues.join(" ")).filter(|queues| !queues.is_empty())),
        Cell::maybe(Some(labels).filter(|labels| !labels.is_empty())),
    ]
}
