//! `tenure task cancel`: asking a task to stop.

use std::time::Duration;

use clap::Args;
use tenure_sdk::Task;

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::output::Lines;
use crate::ui::{plain, span};

pub(super) const EXAMPLES: &str = "\
A task that waits is CANCELED at once. The worker of one that is leased is told; it may stop, or
finish. With a grace, its lease is revoked when that is over.

Examples:
  tenure task cancel 17
  tenure task cancel 17 --grace 5s";

#[derive(Debug, Args)]
pub(super) struct Cancel {
    /// The task's number.
    id: u64,

    /// How long its worker may go on; for as long as it holds the lease if not given.
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    grace: Option<Duration>,
}

pub(super) fn run(cancel: &Cancel, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let task = client.tasks().cancel(cancel.id, cancel.grace).await?;
        let mut out = Lines::new();
        match format {
            Format::Table => out.print(sentence(&task)),
            Format::Json => json::print(&mut out, &task),
        }
        out.finish();
        Ok(())
    })
}

fn sentence(task: &Task) -> String {
    let (id, state) = (task.id, &task.state);
    match &task.lease {
        Some(lease) => {
            let worker = plain::line(&lease.worker);
            format!("task {id} is asked to stop; {worker} holds it and is told")
        }
        None => format!("task {id} is {state}"),
    }
}
