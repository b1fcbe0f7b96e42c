//! `tenure task explain`: why a task is not done yet.

use clap::Args;
use tenure_sdk::Explanation;

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::moment::{now, relative};
use crate::ui::output::Lines;
use crate::ui::table::{Cell, Facts};

pub(super) const EXAMPLES: &str = "\
Examples:
  tenure task explain 17
  tenure task explain 17 -o json | jq -r '.reasons[].code'";

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The task's number.
    id: u64,
}

pub(super) fn run(explain: &Explain, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let explanation = client.tasks().explain(explain.id).await?;
        let mut out = Lines::new();
        match format {
            Format::Table => facts(&explanation).print(&mut out),
            Format::Json => json::print(&mut out, &explanation),
        }
        out.finish();
        Ok(())
    })
}

fn facts(explanation: &Explanation) -> Facts {
    let mut facts = Facts::default();
    facts.add("state", Cell::state(&explanation.state));
    facts.add_some("position", explanation.position.map(|position| position.to_string()));
    facts.add_some("starts", explanation.earliest_start_at.map(|at| relative(at, now())));
    for reason in &explanation.reasons {
        facts.add("reason", reason.message.as_str());
    }
    facts
}
