//! `tenure status`: how the server stands.

use clap::Args;
use tenure_sdk::ServerStatus;

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::output::Lines;
use crate::shown::{self, ShownStatus};
use crate::span;
use crate::table::Facts;

const EXAMPLES: &str = "\
Examples:
  tenure status
  tenure status --hash -o json | jq -r .state_hash";

/// Show how the server stands.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Status {
    /// Also work out the hash of everything, which takes the server a while.
    #[arg(long)]
    hash: bool,
}

pub(crate) fn run(status: &Status, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        let status = match status.hash {
            true => client.status_with_hash().await?,
            false => client.status().await?,
        };
        let mut out = Lines::new();
        match format {
            Format::Table => facts(&status).print(&mut out),
            Format::Json => shown::print(&mut out, &ShownStatus::of(&status)),
        }
        out.finish();
        Ok(())
    })
}

fn facts(status: &ServerStatus) -> Facts {
    let tasks = |state: &str| status.tasks.get(state).copied().unwrap_or(0).to_string();
    let mut facts = Facts::default();
    facts.add("version", status.version.as_str());
    facts.add("role", status.role.as_str());
    facts.add("up", span::exact(status.uptime_ms / 1_000 * 1_000));
    facts.add("last LSN", status.lsn.to_string());
    facts.add("durable LSN", status.durable_lsn.to_string());
    facts.add_some("state hash", status.state_hash.as_deref());
    facts.add("waiting", tasks("WAITING"));
    facts.add("leased", tasks("LEASED"));
    facts.add("completed", tasks("COMPLETED"));
    facts.add("failed", tasks("FAILED"));
    facts.add("dead", tasks("DEAD"));
    facts.add("canceled", tasks("CANCELED"));
    facts.add("parked leases", status.parked_leases.to_string());
    if let Some(archive) = &status.archive {
        facts.add("archive", archive.folder.as_str());
        facts.add("archived", format!("{} since the start", archive.archived));
        let failing = archive.failing.as_ref();
        let failing = failing
            .map(|why| format!("for {}: {why}", span::exact(archive.failing_ms / 1_000 * 1_000)));
        facts.add_some("not archived", failing);
    }
    facts
}
