//! `tenure run signal`: news from outside for a run.

use clap::Args;
use tenure_sdk::SignalOutcome;

use super::which::Which;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::json;
use crate::ui::output::Lines;
use crate::ui::{given, plain};

pub(super) const EXAMPLES: &str = "\
Exactly one token gets it, the oldest that waits for this name and correlation. If none waits, it is
kept for the next that does. With a --signal-id the same signal counts once, however often it is sent.
With --key and --start the signal begins the run if no run of the workflow holds the key.

Examples:
  tenure run signal 17 approval --payload '{\"approved\": true, \"by\": \"ada\"}'
  tenure run signal 17 paid --correlation A-1 --payload @receipt.json --signal-id receipt/4711
  tenure run signal order paid --key A-1 --start '{\"order\": \"A-1\"}'";

#[derive(Debug, Args)]
pub(super) struct Signal {
    #[command(flatten)]
    which: Which,

    /// The signal's name.
    name: String,

    /// What it says: JSON, @FILE, or - for standard input.
    #[arg(long, value_name = "JSON", default_value = "null")]
    payload: String,

    /// What tells it from others of the name.
    #[arg(long, value_name = "TEXT")]
    correlation: Option<String>,

    /// The same signal under the same id counts once.
    #[arg(long, value_name = "ID")]
    signal_id: Option<String>,

    /// With --key: the input of the run that begins if no run holds the key. JSON, @FILE, or -.
    #[arg(long, value_name = "JSON", requires = "key")]
    start: Option<String>,
}

pub(super) fn run(signal: &Signal, server: &Server, format: Format) -> Result<(), Failure> {
    let payload = given::read("payload", &signal.payload)?;
    let mut sent = tenure_sdk::Signal::new(&signal.name).payload(payload);
    if let Some(correlation) = &signal.correlation {
        sent = sent.correlation(correlation);
    }
    if let Some(id) = &signal.signal_id {
        sent = sent.id(id);
    }
    if let Some(input) = &signal.start {
        sent = sent.or_start(tenure_sdk::NewRun::of("").input(given::read("start", input)?));
    }
    let which = signal.which.parse()?;
    server.with(|client| async move {
        let signaled = client.runs().signal(which, sent).await.map_err(|error| {
            if error.is_definite() || signal.signal_id.is_some() {
                return Failure::Refused(error);
            }
            let told = "it may have been taken: look with `tenure run history`, and give a \
                        --signal-id to make it safe to send it again";
            let cause = Box::new(Failure::Refused(error));
            Failure::HalfDone { cause, said: None, told: told.to_owned() }
        })?;
        let mut out = Lines::new();
        match format {
            Format::Json => json::print(&mut out, &signaled),
            Format::Table => {
                let (id, name) = (signaled.run_id, plain::line(&signal.name));
                if signaled.started {
                    out.print(format_args!("run {id} has begun"));
                }
                out.print(match signaled.outcome {
                    SignalOutcome::Given => {
                        let token = signaled.token.unwrap_or_default();
                        format!("token {token} of run {id} has got {name}")
                    }
                    SignalOutcome::Kept => {
                        format!("nobody waits for {name} yet; run {id} keeps it")
                    }
                    SignalOutcome::Known => format!("run {id} had this {name} before"),
                    SignalOutcome::Other(_) | _ => format!("run {id} took {name}"),
                });
            }
        }
        out.finish();
        Ok(())
    })
}
