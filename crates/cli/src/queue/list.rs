//! `tenure queue list`: queues, by name.

use clap::Args;
use tenure_sdk::QueueFilter;

use super::table;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::shown::{self, ShownQueue};
use crate::ui::output::Lines;
use crate::ui::pages::Range;

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
        let page = async |limit, cursor| {
            let page = client.list_queues(QueueFilter { limit: Some(limit), cursor }).await?;
            Ok((page.queues, page.next_cursor))
        };
        let found = list.range.fetch(page).await?;
        let mut out = Lines::new();
        match format {
            Format::Table => table(&found.items).print(&mut out, "no queues yet; a task makes one"),
            Format::Json => {
                let items = found.items.iter().map(ShownQueue::of).collect();
                let next_cursor = found.next_cursor.clone();
                shown::print(&mut out, &shown::List { items, next_cursor });
            }
        }
        out.finish();
        if format == Format::Table {
            found.tell_rest();
        }
        Ok(())
    })
}
