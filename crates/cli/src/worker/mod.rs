//! `tenure worker`: real work. `exec` runs programs, `http` makes requests.

pub(crate) mod exec;
mod http;
mod output;
mod span;
pub(crate) mod terms;

use clap::{Args, Subcommand};

use crate::client::Server;
use crate::failure::Failure;

/// Do the tasks of queues.
#[derive(Debug, Args)]
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
    /// Outlives a worker that is killed, to end what it has started.
    #[command(hide = true)]
    Guard(exec::guard::Watch),
}

pub(crate) fn run(worker: &Worker, server: &Server) -> Result<(), Failure> {
    match &worker.verb {
        Verb::Exec(exec) => exec::run(exec, server),
        Verb::Http(http) => http::run(http, server),
        Verb::Guard(guard) => exec::guard::run(guard).map_err(Failure::NoRuntime),
    }
}
