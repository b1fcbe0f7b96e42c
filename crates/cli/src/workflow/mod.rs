//! `tenure workflow`: definitions of workflows.

mod check;

use clap::{Args, Subcommand};

use crate::Format;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure workflow check order.yaml";

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
}

pub(crate) fn run(workflow: &Workflow, format: Format) -> Result<(), Failure> {
    match &workflow.verb {
        WorkflowVerb::Check(check) => check::run(check, format),
    }
}
