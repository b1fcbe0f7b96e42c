//! `tenure queue pause` and `resume`: whether leases are given from a queue.

use clap::Args;

use super::print_one;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;

pub(super) const PAUSE_EXAMPLES: &str = "\
Examples:
  tenure queue pause mail";

pub(super) const RESUME_EXAMPLES: &str = "\
Examples:
  tenure queue resume mail";

#[derive(Debug, Args)]
pub(super) struct Named {
    /// The queue's name.
    #[arg(value_name = "QUEUE")]
    queue: String,
}

pub(super) fn pause(named: &Named, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        print_one(&client.pause(&named.queue).await?, format);
        Ok(())
    })
}

pub(super) fn resume(named: &Named, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        print_one(&client.resume(&named.queue).await?, format);
        Ok(())
    })
}
