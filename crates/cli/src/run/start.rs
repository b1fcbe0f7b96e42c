//! `tenure run start`: a run of a workflow, and its end if somebody waits for it.

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use tenure_sdk::{Client, Error, NewRun, RunState};
use tokio::time::Instant;

use super::batch;
use super::words::error_words;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::submit::parse_tag;
use crate::ui::given;
use crate::ui::json;
use crate::ui::output::{self, Lines};

pub(super) const EXAMPLES: &str = "\
It prints the run's number. With --wait it follows the run to its end, also over a restart of the
server, and prints its output; a run that does not come to a good end is exit code 1.

Examples:
  tenure run start order --input '{\"order\": \"A-1\", \"amount\": 20, \"to\": \"Lisbon\"}'
  tenure run start order --input @order.json --key A-1 --tag customer=ada
  tenure run start order --batch orders.ndjson       one {\"input\": …, \"key\": …} per line
  tenure run start invoices --input '{\"folder\": \"invoices\"}' --wait | jq .total";

#[derive(Debug, Args)]
pub(super) struct Start {
    /// The workflow's name.
    #[arg(value_name = "NAME")]
    workflow: String,

    /// What it is given: JSON, @FILE, or - for standard input.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    input: String,

    /// The same start under the same key gives the same run.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// The workflow's version; the newest if not given.
    #[arg(long, value_name = "N")]
    version: Option<u32>,

    /// A label for people; may be given several times.
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse_tag)]
    tags: Vec<(String, String)>,

    /// Begin many runs: a file with one JSON object per line, or - for standard input. Each line may
    /// have input, key, version and tags.
    #[arg(long, value_name = "FILE.ndjson")]
    #[arg(conflicts_with_all = ["input", "key", "version", "tags", "wait"])]
    batch: Option<String>,

    /// Wait for its end, and print its output.
    #[arg(long)]
    wait: bool,
}

/// One question; the run is asked for again and again.
const ASK: Duration = Duration::from_secs(60);
/// How long a server may be away.
const AWAY_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);

pub(super) fn run(start: &Start, server: &Server, format: Format) -> Result<(), Failure> {
    if let Some(path) = &start.batch {
        return batch::run(&start.workflow, path, server, format);
    }
    let new_run = start.parse()?;
    server.with(|client| async move {
        let run = client.runs().start(new_run).await.map_err(|error| start.unsure(error))?;
        if start.wait {
            return print_end(&client, run.id, format).await;
        }
        let mut out = Lines::new();
        match format {
            Format::Table => out.print(run.id),
            Format::Json => json::print(&mut out, &run),
        }
        out.finish();
        Ok(())
    })
}

impl Start {
    fn parse(&self) -> Result<NewRun, Failure> {
        let mut run = NewRun::of(&self.workflow).input(given::read("input", &self.input)?);
        if let Some(key) = &self.key {
            run = run.key(key);
        }
        if let Some(version) = self.version {
            run = run.version(version);
        }
        for (at, (key, value)) in self.tags.iter().enumerate() {
            if self.tags[..at].iter().any(|(known, _)| known == key) {
                return Err(Failure::Usage(format!("--tag {key} is given twice; keep one")));
            }
            run = run.tag(key, value);
        }
        Ok(run)
    }

    /// A start without an answer may have been done.
    fn unsure(&self, error: Error) -> Failure {
        if error.is_definite() {
            return Failure::Refused(error);
        }
        let told = match &self.key {
            Some(_) => "it may have begun; to start it again under its key is safe",
            None => {
                "it may have begun: look with `tenure run list`, and give a --key to make it safe \
                 to start it again"
            }
        };
        let cause = Box::new(Failure::Refused(error));
        Failure::HalfDone { cause, said: None, told: told.to_owned() }
    }
}

/// Waits, and prints what came of it.
async fn print_end(client: &Client, id: u64, format: Format) -> Result<(), Failure> {
    if io::stderr().is_terminal() {
        output::complain(&format!("run {id} has begun; waiting for its end"));
    }
    let run = end(client, id).await.inspect_err(|_| {
        output::complain(&format!("run {id} has begun; `tenure run get {id}` shows it"));
    })?;
    let is_good = run.state == RunState::Completed;
    let mut out = Lines::new();
    match format {
        Format::Json => json::print(&mut out, &run),
        Format::Table if is_good => json::print(&mut out, &run.output),
        Format::Table => {}
    }
    out.finish();
    match is_good {
        true => Ok(()),
        false => {
            let state = run.state;
            Err(Failure::RunEnded { run_id: run.id, state, error: error_words(&run.error) })
        }
    }
}

async fn end(client: &Client, id: u64) -> Result<tenure_sdk::Run, Error> {
    let mut heard = Instant::now();
    loop {
        match client.runs().wait(id, ASK).await {
            Ok(run) if run.finished_at.is_some() => return Ok(run),
            Ok(_) => heard = Instant::now(),
            Err(error) if error.is_retryable() && heard.elapsed() < AWAY_MAX => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}
