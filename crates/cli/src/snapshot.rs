//! `tenure snapshot`: a snapshot of a running server, now.

use serde_json::json;

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::output::Lines;

pub(crate) const EXAMPLES: &str = "\
Waits until the snapshot is on disk, read back and checked. The server goes on meanwhile; the next
start needs only this and the records that follow it.

Examples:
  tenure snapshot
  tenure snapshot -o json | jq .lsn";

pub(crate) fn run(server: &Server, format: Format) -> Result<(), Failure> {
    let taken = server.with(|client| async move { Ok(client.take_snapshot().await?) })?;
    let mut lines = Lines::new();
    match format {
        Format::Json => lines.print(json!({
            "lsn": taken.lsn,
            "state_hash": taken.state_hash,
            "tasks": taken.tasks,
            "bytes": taken.bytes,
            "took_ms": taken.took_ms,
        })),
        Format::Table => {
            lines.print(format_args!("lsn       {}", taken.lsn));
            lines.print(format_args!("tasks     {}", taken.tasks));
            lines.print(format_args!("bytes     {}", taken.bytes));
            lines.print(format_args!("took      {} ms", taken.took_ms));
            lines.print(format_args!("state     {}", taken.state_hash));
        }
    }
    lines.finish();
    Ok(())
}
