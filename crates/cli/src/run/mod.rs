//! `tenure run`: runs of workflows.

mod batch;
mod cancel;
mod get;
pub(crate) mod graph;
mod history;
mod list;
mod redecide;
mod signal;
mod start;
pub(crate) mod story;
mod tokens;
mod unpark;
mod which;
mod words;

use clap::{Args, Subcommand};

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure run start order --input '{\"order\": \"A-1\", \"amount\": 20, \"to\": \"Lisbon\"}' --wait
  tenure run list --state waiting
  tenure run get order --key A-1
  tenure run graph 17
  tenure run signal 17 approval --payload '{\"approved\": true, \"by\": \"ada\"}'
  tenure run history 17
  tenure run cancel 17";

/// The verbs of runs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Run {
    #[command(subcommand)]
    verb: RunVerb,
}

#[derive(Debug, Subcommand)]
enum RunVerb {
    /// Begin a run of a workflow.
    #[command(after_help = start::EXAMPLES)]
    Start(start::Start),
    /// Show a run.
    #[command(after_help = get::EXAMPLES)]
    Get(get::Get),
    /// List runs, newest first.
    #[command(after_help = list::EXAMPLES)]
    List(list::List),
    /// End a run, and all that is live in it.
    #[command(after_help = cancel::EXAMPLES)]
    Cancel(cancel::Cancel),
    /// Let parked runs go on where they stood.
    #[command(after_help = unpark::EXAMPLES)]
    Unpark(unpark::Unpark),
    /// Bring a run news from outside.
    #[command(after_help = signal::EXAMPLES)]
    Signal(signal::Signal),
    /// Draw a run: its workflow, and where it stands.
    #[command(after_help = graph::EXAMPLES)]
    Graph(graph::Draw),
    /// Show where a run stands and has stood, token by token.
    #[command(after_help = tokens::EXAMPLES)]
    Tokens(tokens::Tokens),
    /// Tell what was decided about a run and why, oldest first.
    #[command(after_help = history::EXAMPLES)]
    History(history::History),
    /// Decide a record of a run again, and compare.
    #[command(after_help = redecide::EXAMPLES)]
    Redecide(redecide::Redecide),
}

pub(crate) fn run(run: &Run, server: &Server, format: Format) -> Result<(), Failure> {
    match &run.verb {
        RunVerb::Start(start) => start::run(start, server, format),
        RunVerb::Get(get) => get::run(get, server, format),
        RunVerb::List(list) => list::run(list, server, format),
        RunVerb::Cancel(cancel) => cancel::run(cancel, server, format),
        RunVerb::Unpark(unpark) => unpark::run(unpark, server, format),
        RunVerb::Signal(signal) => signal::run(signal, server, format),
        RunVerb::Graph(draw) => graph::run(draw, server, format),
        RunVerb::Tokens(tokens) => tokens::run(tokens, server, format),
        RunVerb::History(history) => history::run(history, server, format),
        RunVerb::Redecide(redecide) => redecide::run(redecide, server, format),
    }
}
