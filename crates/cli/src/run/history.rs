//! `tenure run history`: what was decided about a run and why, oldest first.

use clap::Args;
use tenure_flow::Definition;
use tenure_sdk::{Client, Error, Run, RunStep};

use super::story::Story;
use super::which::Which;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::moment::clock;
use crate::ui::output::{self, Lines};
use crate::ui::style::{self, Paint};

pub(super) const EXAMPLES: &str = "\
Each paragraph is one record of the log: what happened, and all that was decided because of it, in
that order. Where a condition decided, what it read is told. Times are UTC.

Examples:
  tenure run history 17
  tenure run history order --key A-1
  tenure run history 17 -o json | jq '.items[] | [.lsn, .cause.event]'
  tenure run redecide 17 42       would LSN 42 be decided the same way today?";

#[derive(Debug, Args)]
pub(super) struct History {
    #[command(flatten)]
    which: Which,
}

pub(super) fn run(history: &History, server: &Server, format: Format) -> Result<(), Failure> {
    let which = history.which.parse()?;
    server.with(|client| async move {
        let told = client.runs().history(which.clone()).await?;
        let mut out = Lines::new();
        match format {
            Format::Json => json::print(&mut out, &told),
            Format::Table => {
                let definition = definition(&client, &client.runs().get(which).await?).await?;
                let mut story = Story::new(definition.as_ref());
                let paint = Paint::of_stdout();
                for step in &told.items {
                    paragraph(&mut out, &mut story, step, paint);
                }
                if told.items.is_empty() {
                    out.print("nothing of its history is left in the log");
                }
            }
        }
        out.finish();
        if let (Some(lsn), Format::Table) = (told.truncated_before, format) {
            output::complain(&format!("what was before LSN {lsn} is no longer in the log"));
        }
        Ok(())
    })
}

/// The definition that a run began with; none if this version cannot read it.
pub(super) async fn definition(client: &Client, run: &Run) -> Result<Option<Definition>, Error> {
    let workflow = client.workflows().get(&run.workflow, Some(run.version)).await?;
    Ok(Definition::from_json(workflow.definition.as_bytes()).ok())
}

fn paragraph(out: &mut Lines, story: &mut Story<'_>, step: &RunStep, paint: Paint) {
    let lsn = paint.draw(style::faint(), &format!("{:>6}", step.lsn));
    let at = paint.draw(style::faint(), &clock(step.at));
    let cause = paint.draw(style::heading(), &story.cause(step.cause.as_bytes()));
    out.print(format_args!("{lsn}  {at}  {cause}"));
    for decision in &step.decisions {
        for sentence in story.decision(decision.as_bytes()) {
            out.print(format_args!("{:22}{sentence}", ""));
        }
    }
}
