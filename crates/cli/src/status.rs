//! `tenure status`: how the server stands.

use clap::Args;
use tenure_sdk::api::MemoryStatus;
use tenure_server::engine_limits::LOG_TIME_AHEAD_MS_MAX;

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::output::Lines;
use crate::ui::span;
use crate::ui::table::Facts;

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
            Format::Json => json::print(&mut out, &status),
        }
        out.finish();
        Ok(())
    })
}

fn facts(status: &tenure_sdk::Status) -> Facts {
    let tasks = |state: &str| status.tasks.get(state).copied().unwrap_or(0).to_string();
    let mut facts = Facts::default();
    facts.add("version", status.version.as_str());
    facts.add("role", status.role.as_str());
    facts.add("up", span::exact(status.uptime_ms / 1_000 * 1_000));
    // Less is the drift between two clocks.
    let ahead_ms = Some(status.log_time_ahead_ms).filter(|ms| *ms > LOG_TIME_AHEAD_MS_MAX);
    let ahead = ahead_ms.map(|ms| {
        format!("{} ahead of the wall clock; check the clock", span::exact(ms / 1_000 * 1_000))
    });
    facts.add_some("log time", ahead);
    facts.add("last LSN", status.lsn.to_string());
    facts.add("durable LSN", status.durable_lsn.to_string());
    facts.add_some("state hash", status.state_hash.as_deref());
    facts.add("waiting", tasks("WAITING"));
    facts.add("leased", tasks("LEASED"));
    facts.add("completed", tasks("COMPLETED"));
    facts.add("failed", tasks("FAILED"));
    facts.add("dead", tasks("DEAD"));
    facts.add("canceled", tasks("CANCELED"));
    let some = |count: u64| (count > 0).then(|| count.to_string());
    facts.add_some("ending runs", some(status.ending_runs));
    let parked = some(status.parked_runs);
    let parked = parked.map(|count| format!("{count}; cancel them, or `tenure run unpark ID`"));
    facts.add_some("parked runs", parked);
    facts.add("parked leases", status.parked_leases.to_string());
    facts.add("memory", memory_line(&status.memory));
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

fn memory_line(memory: &MemoryStatus) -> String {
    let mib = |bytes: u64| bytes >> 20;
    let (used, max) = (mib(memory.used_bytes), mib(memory.max_bytes));
    match memory.full {
        true => format!("{used} of {max} MiB; no new work is taken"),
        false => format!("{used} of {max} MiB"),
    }
}
