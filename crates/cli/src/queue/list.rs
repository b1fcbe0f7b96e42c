//! `tenure queue list`: queues, by name.

use clap::Args;

use super::table;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::output::Lines;
use crate::ui::pages::{Range, tell_rest};

pub(super) const EXAMPLES: &str = "\
Examples:
  tenure queue list
  tenure queue list -o json | jq '.items[] | select(.depth > 1000) | .name'";

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    range: Range,
}

pub(super) fn run(list: &List, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let queues = client.queues();
        let found = list.range.fetch(async |page| queues.list(page).await).await?;
        let mut out = Lines::new();
        match format {
            Format::Table => table(&found.items).print(&mut out, "no queues yet; a task makes one"),
            Format::Json => json::print(&mut out, &found),
        }
        out.finish();
        if format == Format::Table {
            tell_rest(found.next_cursor.as_deref());
        }
        Ok(())
    })
}
