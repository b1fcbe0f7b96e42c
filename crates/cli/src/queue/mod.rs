//! `tenure queue`: how full queues are, and their settings.

mod change;
mod configure;
mod delete;
mod list;

use clap::{Args, Subcommand};
use tenure_sdk::Queue as QueueInfo;

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::moment::{now, relative};
use crate::ui::output::Lines;
use crate::ui::span;
use crate::ui::table::{Cell, Column, Table};

const EXAMPLES: &str = "\
Examples:
  tenure queue list
  tenure queue pause mail
  tenure queue resume mail
  tenure queue configure mail --retention 7d --dead-letter-queue mail-failed
  tenure queue delete mail";

/// The verbs of queues.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Queue {
    #[command(subcommand)]
    verb: QueueVerb,
}

#[derive(Debug, Subcommand)]
enum QueueVerb {
    /// List queues, by name.
    #[command(after_help = list::EXAMPLES)]
    List(list::List),
    /// Give no more leases from a queue. What is leased goes on.
    #[command(after_help = change::PAUSE_EXAMPLES)]
    Pause(change::Pause),
    /// Give leases from a queue again.
    #[command(after_help = change::RESUME_EXAMPLES)]
    Resume(change::Named),
    /// Change settings of a queue. One that is not there yet is made.
    #[command(after_help = configure::EXAMPLES)]
    Configure(configure::Configure),
    /// Delete a queue that has no tasks, finished ones included, with its settings.
    #[command(after_help = delete::EXAMPLES)]
    Delete(delete::Delete),
}

pub(crate) fn run(queue: &Queue, server: &Server, format: Format) -> Result<(), Failure> {
    match &queue.verb {
        QueueVerb::List(list) => list::run(list, server, format),
        QueueVerb::Pause(pause) => change::pause(pause, server, format),
        QueueVerb::Resume(named) => change::resume(named, server, format),
        QueueVerb::Configure(configure) => configure::run(configure, server, format),
        QueueVerb::Delete(delete) => delete::run(delete, server),
    }
}

const COLUMNS: [Column; 11] = [
    Column::text("QUEUE"),
    Column::word("STATE"),
    Column::number("WAITING"),
    Column::number("LEASED"),
    Column::number("COMPLETED"),
    Column::number("FAILED"),
    Column::number("DEAD"),
    Column::number("CANCELED"),
    Column::word("OLDEST"),
    Column::word("RETENTION"),
    Column::text("DEAD LETTERS"),
];

/// A table of queues.
fn table<'a>(queues: impl IntoIterator<Item = &'a QueueInfo>) -> Table {
    let now = now();
    let mut table = Table::new(COLUMNS);
    for queue in queues {
        let state = match (queue.paused, queue.paused_until) {
            (false, _) => "open".to_owned(),
            (true, None) => "paused".to_owned(),
            (true, Some(until)) => format!("paused, opens {}", relative(until, now)),
        };
        table.row([
            queue.name.as_str().into(),
            state.into(),
            queue.depth.to_string().into(),
            queue.leased.to_string().into(),
            queue.completed.to_string().into(),
            queue.failed.to_string().into(),
            queue.dead.to_string().into(),
            queue.canceled.to_string().into(),
            Cell::maybe(queue.oldest_waiting_at.map(|at| relative(at, now))),
            Cell::maybe(queue.retention_ms.map(span::exact)),
            Cell::maybe(queue.dead_letter_queue.as_deref()),
        ]);
    }
    table
}

/// Prints one queue, as it is after a change.
fn print_one(queue: &QueueInfo, format: Format) {
    let mut out = Lines::new();
    match format {
        Format::Table => table([queue]).print(&mut out, ""),
        Format::Json => json::print(&mut out, queue),
    }
    out.finish();
}
