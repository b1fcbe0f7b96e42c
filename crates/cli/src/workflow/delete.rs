//! `tenure workflow delete`: a workflow that nothing needs any more.

use clap::Args;

use crate::client::Server;
use crate::failure::Failure;
use crate::ui::output::Lines;
use crate::ui::plain;

pub(super) const EXAMPLES: &str = "\
A version goes when no run of it is kept, finished ones included, and no other definition calls it.
Its number is not used again: the next registration goes on counting.

Examples:
  tenure workflow delete order
  tenure workflow delete order --version 3";

#[derive(Debug, Args)]
pub(super) struct Delete {
    /// The workflow's name.
    name: String,

    /// One version; all of them if not given.
    #[arg(long, value_name = "N")]
    version: Option<u32>,
}

pub(super) fn run(delete: &Delete, server: &Server) -> Result<(), Failure> {
    server.with(|client| async move {
        client.workflows().delete(&delete.name, delete.version).await?;
        let mut out = Lines::new();
        let name = plain::line(&delete.name);
        match delete.version {
            Some(version) => out.print(format_args!("version {version} of {name} is deleted")),
            None => out.print(format_args!("workflow {name} is deleted")),
        }
        out.finish();
        Ok(())
    })
}
