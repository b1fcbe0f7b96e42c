//! `tenure worker`: who does the work.

mod list;

use clap::{Args, Subcommand};

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure worker list";

/// The verbs of workers.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Worker {
    #[command(subcommand)]
    verb: WorkerVerb,
}

#[derive(Debug, Subcommand)]
enum WorkerVerb {
    /// List the workers that were heard of lately.
    #[command(after_help = list::EXAMPLES)]
    List,
}

pub(crate) fn run(worker: &Worker, server: &Server, format: Format) -> Result<(), Failure> {
    match &worker.verb {
        WorkerVerb::List => list::run(server, format),
    }
}
