//! `tenure snapshot`: a snapshot of a running server, now.

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::output::Lines;

pub(crate) const EXAMPLES: &str = "\
Waits until the snapshot is on disk, read back and checked. The server goes on meanwhile; the next
start needs only this and the records that follow it.

Examples:
  tenure snapshot
  tenure snapshot -o json | jq .lsn";

pub(crate) fn run(server: &Server, format: Format) -> Result<(), Failure> {
    let taken = server.with(|client| async move { Ok(client.snapshots().take().await?) })?;
    let mut lines = Lines::new();
    match format {
        Format::Json => json::print(&mut lines, &taken),
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
