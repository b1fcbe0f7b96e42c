//! `tenure serve`: the server.

mod upkeep;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tenure_server::{Hangup, Lines, News, Options, serve};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::failure::Failure;
use crate::ui::{output, span};

const EXAMPLES: &str = "\
Examples:
  tenure serve --data ./tenure-data
  tenure serve --data ./tenure-data --listen 127.0.0.1:0
  tenure serve --data ./tenure-data --retention 12h --archive ./tenure-archive
  tenure serve --data ./tenure-data --memory-max 4GiB
  TENURE_API_KEY=… tenure serve --data ./tenure-data --listen 0.0.0.0:7070

Durability:
  sync          a reply leaves when its record is on disk: nothing that was told can be lost
  interval=5ms  a reply leaves at once; a loss of power can take back the last 5 ms
  os            a reply leaves at once; a loss of power can take back half a minute and more

What is kept of the log, beyond what the last two snapshots need:
  all           everything, for ever
  hours=24      what was written in the last 24 hours
  bytes=4GiB    so much in all (KiB, MiB, GiB, or plain bytes)";

/// The server: HTTP and live updates on one port.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// The folder of the log; it is made if it is missing.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// Where to listen. Anything but a loopback address needs an API key.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    listen: String,

    /// When a reply may leave: sync, interval=5ms or os.
    #[arg(long, value_name = "MODE", default_value = "sync", value_parser = parse_durability)]
    durability: tenure_server::Durability,

    #[command(flatten)]
    upkeep: upkeep::Args,

    /// Write finished tasks and runs into this folder before they are forgotten; it is made if it is
    /// missing. Nothing is archived unless this is given.
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,

    /// How much memory the process may take, such as 4GiB. At nine tenths of it new work is refused.
    /// Unless this is given, it is 80 % of what the system allows.
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    memory_max: Option<u64>,

    /// Which lines go to stderr: one for each transition, late result and refusal, at most 1,000 a
    /// second; or only what the server says about itself.
    #[arg(long, value_name = "LINES", default_value = "transitions")]
    log: Log,

    /// How those lines look.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

/// Which lines are written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Log {
    /// What happens to tasks, too.
    Transitions,
    /// Only what the server says about itself.
    Quiet,
}

/// How lines are written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// For people.
    Text,
    /// For programs: one JSON object each.
    Json,
}

fn begin_log(format: LogFormat) {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    // A line that cannot be written is let go: its own complaint would panic.
    let lines = lines.log_internal_errors(false);
    // What libraries say about strangers is not ours to write, and has no budget.
    let ours =
        Targets::new().with_default(LevelFilter::ERROR).with_target("tenure", LevelFilter::INFO);
    let all = tracing_subscriber::registry().with(ours);
    match format {
        LogFormat::Text => all.with(lines).init(),
        LogFormat::Json => all.with(lines.json().flatten_event(true)).init(),
    }
}

fn parse_memory(text: &str) -> Result<u64, String> {
    let min = tenure_server::limits::MEMORY_BYTES_MIN;
    let bytes = upkeep::parse_bytes(text)?;
    match bytes < min {
        true => Err(format!("a server needs at least {} MiB", min >> 20)),
        false => Ok(bytes),
    }
}

fn parse_durability(text: &str) -> Result<tenure_server::Durability, String> {
    use tenure_server::Durability;
    match text {
        "sync" => Ok(Durability::Sync),
        "os" => Ok(Durability::Os),
        other => {
            let span = other.strip_prefix("interval=").and_then(|span| span::parse(span).ok());
            let ms = span.and_then(|span| span.as_millis().try_into().ok());
            ms.filter(|ms| (1..=60_000).contains(ms)).map(Durability::IntervalMs).ok_or_else(|| {
                "it must be sync, os, or interval=1ms to interval=60000ms".to_owned()
            })
        }
    }
}

pub(crate) fn run(args: &Serve, api_key: Option<&str>) -> Result<(), Failure> {
    begin_log(args.log_format);
    match args.durability {
        tenure_server::Durability::Sync => {}
        tenure_server::Durability::IntervalMs(ms) => tracing::warn!(
            "replies leave before their records are durable: a loss of power can take back {ms} ms"
        ),
        tenure_server::Durability::Os => tracing::warn!(
            "replies leave before their records are durable: a loss of power can take back half a \
             minute and more"
        ),
    }
    let options = Options {
        data: args.data.clone(),
        listen: args.listen.clone(),
        durability: args.durability,
        upkeep: args.upkeep.parsed(),
        archive: args.archive.clone(),
        memory_max: args.memory_max,
        api_key: api_key.map(str::to_owned),
        hangup: Hangup::Ignore,
        lines: match args.log {
            Log::Transitions => Lines::Transitions,
            Log::Quiet => Lines::Quiet,
        },
    };
    serve(&options, |news| match news {
        News::Replaying(progress) => tracing::info!(records = progress.records, "replaying"),
        News::Note(note) => tracing::warn!("{note}"),
        News::Started(start) => match start.snapshot {
            Some(lsn) => tracing::info!(
                snapshot = lsn.0,
                records = start.records,
                "started from a snapshot and the records after it"
            ),
            None => tracing::info!(records = start.records, "started from the whole log"),
        },
        News::Ready(address) => {
            let mut out = std::io::stdout().lock();
            // Whoever started us may not be interested.
            let _ = writeln!(out, "tenure is ready at http://{address}");
            let _ = out.flush();
        }
    })
    .map_err(Failure::Server)?;
    output::say("tenure has stopped in good order");
    Ok(())
}
