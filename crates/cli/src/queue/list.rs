//! `tenure queue list`: all queues, by name.

use super::table;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::output::Lines;
use crate::shown::{self, List, ShownQueue};

pub(super) const EXAMPLES: &str = "\
Examples:
  tenure queue list
  tenure queue list -o json | jq '.items[] | select(.depth > 1000) | .name'";

pub(super) fn run(server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let queues = client.list_queues().await?;
        let mut out = Lines::new();
        match format {
            Format::Table => table(&queues).print(&mut out, "no queues yet; a task makes one"),
            Format::Json => {
                shown::print(&mut out, &List::whole(queues.iter().map(ShownQueue::of)));
            }
        }
        out.finish();
        Ok(())
    })
}
