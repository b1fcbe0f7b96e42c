//! `tenure wal dump`: every record as one line of JSON.

use std::ops::ControlFlow;

use clap::Args;

use super::{Data, Seen, json, read, sentence};
use crate::failure::Failure;
use crate::ui::output::{Lines, complain};
use crate::ui::plain;

pub(super) const EXAMPLES: &str = "\
The log is read and checked from its beginning to its end, or with --limit up to the last record
that is printed. Torn ends and other news go to stderr, so stdout has nothing but records.

Examples:
  tenure wal dump --data ./data
  tenure wal dump --data ./data --from 1000 --limit 10
  tenure wal dump --data ./data | jq 'select(.event == \"TaskFailed\")'";

#[derive(Debug, Args)]
pub(super) struct Dump {
    #[command(flatten)]
    data: Data,

    /// The first record to print.
    #[arg(long, value_name = "LSN", default_value_t = 1)]
    from: u64,

    /// Print at most so many records, and read no further.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

pub(super) fn run(dump: &Dump) -> Result<(), Failure> {
    let mut lines = Lines::new();
    let mut left = dump.limit.unwrap_or(u64::MAX);
    let print = |seen: &Seen<'_>| {
        if seen.record.lsn.0 >= dump.from && left > 0 {
            left -= 1;
            // Texts of a record come from outside, and stdout may be a terminal.
            lines.print(plain::json(&json::record(&seen.record).to_string()));
        }
        // A log may be a thousand times longer than what is wanted of it.
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let outcome = read(&dump.data.folder, |_| {}, print);
    // What was read before a fault is good: it was checked frame by frame.
    lines.finish();
    for note in &outcome?.recovered.notes {
        complain(&sentence(note));
    }
    Ok(())
}
