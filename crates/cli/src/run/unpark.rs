//! `tenure run unpark`: letting parked runs go on.

use clap::Args;

use super::words::standing_words;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::moment::now;
use crate::ui::output::Lines;

pub(super) const EXAMPLES: &str = "\
The server parks a run whose next step does not fit one record: its tasks are not granted, its
timers do not fire, and results and signals are refused. `tenure run get` shows the reason. An
unparked run goes on where it stood. If the step still does not fit, it is parked again; then cancel
it. A run that is not parked is left as it is. Runs are unparked in the order given, up to the first
that is refused.

Examples:
  tenure run unpark 17
  tenure run unpark 17 18 19";

#[derive(Debug, Args)]
pub(super) struct Unpark {
    /// The runs' numbers.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<u64>,
}

pub(super) fn run(unpark: &Unpark, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        for id in &unpark.ids {
            let run = client.runs().unpark(*id).await?;
            let mut out = Lines::new();
            match format {
                Format::Table => {
                    let state = &run.state;
                    let standing = standing_words(&run, now()).map(|words| format!(", {words}"));
                    out.print(format_args!("run {id} is {state}{}", standing.unwrap_or_default()));
                }
                Format::Json => json::print(&mut out, &run),
            }
            out.finish();
        }
        Ok(())
    })
}
