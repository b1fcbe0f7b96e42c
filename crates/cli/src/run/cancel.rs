//! `tenure run cancel`: ending a run.

use clap::Args;

use super::which::Which;
use super::words::standing_words;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::moment::now;
use crate::ui::output::Lines;

pub(super) const EXAMPLES: &str = "\
All that is live in the run ends with it: tasks are CANCELED, waiting or leased, their workers hear
that they have lost them, and runs that it has begun end too. A wide run ends over several records;
until the last of them it is RUNNING, and `tenure run get` shows how it is ending. To ask again
changes nothing.

Examples:
  tenure run cancel 17
  tenure run cancel order --key A-1";

#[derive(Debug, Args)]
pub(super) struct Cancel {
    #[command(flatten)]
    which: Which,
}

pub(super) fn run(cancel: &Cancel, server: &Server, format: Format) -> Result<(), Failure> {
    let which = cancel.which.parse()?;
    server.with(|client| async move {
        let run = client.runs().cancel(which).await?;
        let mut out = Lines::new();
        match format {
            Format::Table => {
                let state = &run.state;
                let standing = standing_words(&run, now()).map(|words| format!(", {words}"));
                out.print(format_args!(
                    "run {} is {state}{}",
                    run.id,
                    standing.unwrap_or_default()
                ));
            }
            Format::Json => json::print(&mut out, &run),
        }
        out.finish();
        Ok(())
    })
}
