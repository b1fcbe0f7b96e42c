//! `tenure worker list`: who was heard of lately.

use tenure_sdk::WorkerInfo;

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::moment::{now, relative};
use crate::output::Lines;
use crate::shown::{self, List, ShownWorker};
use crate::table::{Cell, Column, Table};

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

pub(super) fn run(server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let workers = client.list_workers().await?;
        let mut out = Lines::new();
        match format {
            Format::Json => {
                shown::print(&mut out, &List::whole(workers.iter().map(ShownWorker::of)));
            }
            Format::Table => {
                let now = now();
                let mut table = Table::new(COLUMNS);
                for worker in &workers {
                    table.row(row(worker, now));
                }
                table.print(&mut out, "no worker was heard of lately");
            }
        }
        out.finish();
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
