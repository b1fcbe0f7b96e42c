//! `tenure workflow`: definitions of workflows.

mod check;
mod delete;
mod get;
mod list;
mod put;

use clap::{Args, Subcommand};

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure workflow check order.yaml
  tenure workflow put order.yaml
  tenure workflow list
  tenure workflow get order
  tenure workflow delete order --version 3";

/// The verbs of workflows.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Workflow {
    #[command(subcommand)]
    verb: WorkflowVerb,
}

#[derive(Debug, Subcommand)]
enum WorkflowVerb {
    /// Check a definition, without a server, and name all its faults.
    #[command(after_help = check::EXAMPLES)]
    Check(check::Check),
    /// Register a definition: a new version, unless the newest says the same.
    #[command(after_help = put::EXAMPLES)]
    Put(put::Put),
    /// List workflows by name, each with its newest version.
    #[command(after_help = list::EXAMPLES)]
    List(list::List),
    /// Show a workflow as a graph, or its definition with -o json.
    #[command(after_help = get::EXAMPLES)]
    Get(get::Get),
    /// Delete a workflow that nothing needs: one version, or all of them.
    #[command(after_help = delete::EXAMPLES)]
    Delete(delete::Delete),
}

pub(crate) fn run(workflow: &Workflow, server: &Server, format: Format) -> Result<(), Failure> {
    match &workflow.verb {
        WorkflowVerb::Check(check) => check::run(check, format),
        WorkflowVerb::Put(put) => put::run(put, server, format),
        WorkflowVerb::List(list) => list::run(list, server, format),
        WorkflowVerb::Get(get) => get::run(get, server, format),
        WorkflowVerb::Delete(delete) => delete::run(delete, server),
    }
}
