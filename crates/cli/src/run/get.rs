//! `tenure run get`: a run, with all that is known about it.

use clap::Args;
use tenure_sdk::{Payload, Run, Timestamp};

use super::which::Which;
use super::words::{error_words, standing_words};
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::moment::{now, relative};
use crate::ui::output::Lines;
use crate::ui::table::{Cell, Facts};

pub(super) const EXAMPLES: &str = "\
Examples:
  tenure run get 17
  tenure run get order --key A-1
  tenure run get 17 -o json | jq .output";

#[derive(Debug, Args)]
pub(super) struct Get {
    #[command(flatten)]
    which: Which,
}

pub(super) fn run(get: &Get, server: &Server, format: Format) -> Result<(), Failure> {
    let which = get.which.parse()?;
    server.with(|client| async move {
        print(&client.runs().get(which).await?, format);
        Ok(())
    })
}

/// Prints a run.
pub(super) fn print(run: &Run, format: Format) {
    let mut out = Lines::new();
    match format {
        Format::Table => facts(run, now()).print(&mut out),
        Format::Json => json::print(&mut out, run),
    }
    out.finish();
}

fn facts(run: &Run, now: Timestamp) -> Facts {
    let ago = |at: Timestamp| relative(at, now);
    let some = |payload: &Payload| (!payload.is_empty()).then(|| json::text(payload));
    let parent = run.parent.as_ref();
    let parent = parent.map(|parent| format!("run {}, token {}", parent.run_id, parent.token));
    let tags = run.tags.iter().map(|(key, value)| format!("{key}={value}"));
    let tags = (!run.tags.is_empty()).then(|| tags.collect::<Vec<_>>().join(" "));
    let mut facts = Facts::default();
    facts.add("id", run.id.to_string());
    facts.add("workflow", format!("{} {}", run.workflow, run.version));
    facts.add("state", Cell::run_state(&run.state));
    facts.add_some("standing", standing_words(run, now));
    facts.add_some("error", error_words(&run.error));
    facts.add("tokens", format!("{}, {} live", run.tokens, run.live_tokens));
    facts.add_some("signals", (run.kept_signals > 0).then(|| format!("{} kept", run.kept_signals)));
    facts.add("started", ago(run.started_at));
    facts.add_some("finished", run.finished_at.map(ago));
    facts.add_some("deadline", run.deadline_at.map(ago));
    facts.add_some("parent", parent);
    facts.add_some("root", (run.root != run.id).then(|| format!("run {}", run.root)));
    facts.add_some("key", run.key.as_deref());
    facts.add_some("tags", tags);
    facts.add_some("input", some(&run.input));
    facts.add_some("context", some(&run.context));
    facts.add_some("output", some(&run.output));
    facts
}
