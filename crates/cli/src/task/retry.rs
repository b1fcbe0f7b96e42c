//! `tenure task retry`: another round for a task that did not come to a good end.

use clap::Args;

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::output::Lines;

pub(super) const EXAMPLES: &str = "\
The task waits in its old place again: its failures, expiries and deadline begin anew, its attempts
go on.

Examples:
  tenure task retry 17
  tenure task list --state dead --all -o json | jq '.items[].id' | xargs -n1 tenure task retry";

#[derive(Debug, Args)]
pub(super) struct Retry {
    /// The task's number.
    id: u64,
}

pub(super) fn run(retry: &Retry, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let task = client.tasks().retry(retry.id).await?;
        let mut out = Lines::new();
        match format {
            Format::Table => {
                let state = &task.state;
                out.print(format_args!("task {} is {state} again", task.id));
            }
            Format::Json => json::print(&mut out, &task),
        }
        out.finish();
        Ok(())
    })
}
