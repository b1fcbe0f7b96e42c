//! `tenure queue delete`: a queue that nothing needs any more.

use clap::Args;

use crate::client::Server;
use crate::failure::Failure;
use crate::ui::output::Lines;
use crate::ui::plain;

pub(super) const EXAMPLES: &str = "\
A queue goes when it has no tasks at all; finished tasks count until their retention is over. Its
settings go with it. A queue without settings is forgotten with its last task, without this command.

Examples:
  tenure queue delete mail";

#[derive(Debug, Args)]
pub(super) struct Delete {
    /// The queue's name.
    #[arg(value_name = "QUEUE")]
    queue: String,
}

pub(super) fn run(delete: &Delete, server: &Server) -> Result<(), Failure> {
    server.with(|client| async move {
        client.queues().delete(&delete.queue).await?;
        let mut out = Lines::new();
        out.print(format_args!("queue {} is deleted", plain::line(&delete.queue)));
        out.finish();
        Ok(())
    })
}
