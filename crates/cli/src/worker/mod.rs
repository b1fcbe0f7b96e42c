//! `tenure worker`: who does the work. `exec` runs programs, `http` makes requests.

pub(crate) mod exec;
mod http;
mod list;
mod output;
pub(crate) mod terms;
mod verbatim;

use clap::{Args, Subcommand};

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure worker exec --queue images --slots 4
  tenure worker http --queue hooks
  tenure worker list";

/// Do the tasks of queues, and look at who does.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Worker {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run each task's payload as a program.
    Exec(exec::Exec),
    /// Send each task's payload to its URL.
    Http(http::Http),
    /// List the workers that were heard of lately.
    #[command(after_help = list::EXAMPLES)]
    List(list::List),
    /// Outlives a worker that is killed, to end what it has started.
    #[command(hide = true)]
    Guard(exec::guard::Watch),
}

pub(crate) fn run(worker: &Worker, server: &Server, format: Format) -> Result<(), Failure> {
    match &worker.verb {
        Verb::Exec(exec) => exec::run(exec, server),
        Verb::Http(http) => http::run(http, server),
        Verb::List(list) => list::run(list, server, format),
        Verb::Guard(guard) => exec::guard::run(guard).map_err(Failure::NoRuntime),
    }
}
