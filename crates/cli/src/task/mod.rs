//! `tenure task`: looking at tasks, and telling them what to do.

mod cancel;
mod explain;
mod get;
pub(crate) mod history;
mod list;
mod retry;

use clap::{Args, Subcommand};

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;

pub(crate) use get::print;
pub(crate) use list::parse_tag;

const EXAMPLES: &str = "\
Examples:
  tenure task list --queue mail --state failed
  tenure task get 17
  tenure task explain 17
  tenure task history 17
  tenure task cancel 17 --grace 5s
  tenure task retry 17";

/// The verbs of tasks.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Task {
    #[command(subcommand)]
    verb: TaskVerb,
}

#[derive(Debug, Subcommand)]
enum TaskVerb {
    /// Show a task.
    #[command(after_help = get::EXAMPLES)]
    Get(get::Get),
    /// List tasks, newest first.
    #[command(after_help = list::EXAMPLES)]
    List(list::List),
    /// Ask a task to stop.
    #[command(after_help = cancel::EXAMPLES)]
    Cancel(cancel::Cancel),
    /// Give a FAILED, DEAD or CANCELED task another round.
    #[command(after_help = retry::EXAMPLES)]
    Retry(retry::Retry),
    /// Say why a task is not done yet.
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::Explain),
    /// Show what happened to a task, oldest first.
    #[command(after_help = history::EXAMPLES)]
    History(history::History),
}

pub(crate) fn run(task: &Task, server: &Server, format: Format) -> Result<(), Failure> {
    match &task.verb {
        TaskVerb::Get(get) => get::run(get, server, format),
        TaskVerb::List(list) => list::run(list, server, format),
        TaskVerb::Cancel(cancel) => cancel::run(cancel, server, format),
        TaskVerb::Retry(retry) => retry::run(retry, server, format),
        TaskVerb::Explain(explain) => explain::run(explain, server, format),
        TaskVerb::History(history) => history::run(history, server, format),
    }
}
