//! `tenure bench`: a load test of a server, its clients included. A lifecycle is one task submitted,
//! leased and completed; it counts when the server has said that it is complete.

mod grpc;
mod http;
mod offered;
mod paced;
mod probe;
mod tally;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use self::offered::{Offer, Outcome};
use self::probe::Disk;
use self::tally::Latency;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::output::Lines;

const EXAMPLES: &str = "\
Examples:
  tenure bench                                       batches of 100 over gRPC streams
  tenure bench --protocol http --connections 16      the same over HTTP
  tenure bench --protocol http --batch 1 --connections 64 --lifecycles 100000
  tenure bench --rate 100 --lifecycles 1000          how long a task takes to a waiting worker
  tenure bench --offer 1000000 --connections 256     ten times too much, for 30 seconds
  tenure bench --offer 1000000 --connections 1024 --batch 10 --offer-batch 1000
  tenure bench --probe ./tenure-data -o json         with what the disk under it can do

It leaves its tasks, all of them complete unless more were offered than could be done, in a queue of
its own, bench-PID.";

/// A load test against a server: submit, lease, complete.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    /// How many tasks to take through their lives.
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    lifecycles: u64,

    /// How many tasks one request carries.
    #[arg(long, value_name = "B", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    batch: u32,

    /// How many connections work at the same time.
    #[arg(long, value_name = "C", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4_096))]
    connections: u32,

    /// How large each payload is.
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=1_048_576))]
    payload_bytes: u32,

    /// Over which door.
    #[arg(long, value_enum, default_value_t = Protocol::Grpc)]
    protocol: Protocol,

    /// So many tasks a second, one at a time; the latency is then that from the submit to a worker
    /// that waits.
    #[arg(long, value_name = "R", conflicts_with = "connections")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: Option<u32>,

    /// Offers so many tasks a second over HTTP for a while, whatever becomes of them, and tells how
    /// many get done meanwhile.
    #[arg(long, value_name = "R", conflicts_with_all = ["rate", "lifecycles"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    offer: Option<u32>,

    /// How many tasks one request offers, if not as many as workers take with one.
    #[arg(long, value_name = "B", requires = "offer")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    offer_batch: Option<u32>,

    /// For how long tasks are offered.
    #[arg(long, value_name = "S", default_value_t = 30, requires = "offer")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3_600))]
    seconds: u32,

    /// Measures the disk of this folder before and after, so that figures can be compared.
    #[arg(long, value_name = "DIR")]
    probe: Option<PathBuf>,
}

/// Over which door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// Requests, one after the other on each connection.
    Http,
    /// Streams.
    Grpc,
}

/// What all connections of one bench share.
#[derive(Debug)]
struct Load {
    queue: String,
    payload: Vec<u8>,
    batch: u32,
    lifecycles: u64,
    /// Tasks that somebody has undertaken to submit.
    begun: AtomicU64,
    /// Tasks that are complete.
    done: AtomicU64,
    progress: ProgressBar,
}

impl Load {
    /// Takes on the next batch; none when all of them are taken.
    fn take(&self) -> Option<u32> {
        let begun = self.begun.fetch_add(u64::from(self.batch), Ordering::Relaxed);
        let left = self.lifecycles.saturating_sub(begun).min(u64::from(self.batch));
        // At most a batch, which is a `u32`.
        (left > 0).then_some(left as u32)
    }

    /// Gives back what was taken on and refused.
    fn give_back(&self, tasks: u32) {
        // What is above the last batch is nobody's.
        self.begun.fetch_sub(u64::from(tasks), Ordering::Relaxed);
    }

    fn complete(&self, tasks: u64) {
        self.done.fetch_add(tasks, Ordering::Relaxed);
        self.progress.inc(tasks);
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.lifecycles
    }
}

pub(crate) fn run(args: &Bench, server: &Server, format: Format) -> Result<(), Failure> {
    let before = args.probe.as_deref().map(probe::measure).transpose()?;
    let load = Arc::new(Load {
        queue: format!("bench-{}", std::process::id()),
        payload: payload(args.payload_bytes),
        batch: args.batch,
        lifecycles: args.lifecycles,
        begun: AtomicU64::new(0),
        done: AtomicU64::new(0),
        progress: progress(args.lifecycles),
    });
    let outcome = server.with(async |client| {
        let start = Instant::now();
        if let Some(rate) = args.offer {
            let Bench { seconds, connections, .. } = *args;
            let batch = args.offer_batch.unwrap_or(args.batch);
            let offer = Offer { rate, batch, seconds, connections };
            return offered::run(server, &load, offer).await;
        }
        let tally = match (args.rate, args.protocol) {
            (Some(rate), Protocol::Grpc) => paced::over_grpc(server, &client, &load, rate).await?,
            (Some(rate), Protocol::Http) => paced::over_http(server, &load, rate).await?,
            (None, Protocol::Grpc) => grpc::run(server, &load, args.connections).await?,
            (None, Protocol::Http) => http::run(server, &load, args.connections).await?,
        };
        Ok(Outcome { offered: 0, accepted: 0, tally, spent: start.elapsed() })
    })?;
    load.progress.finish_and_clear();
    let after = args.probe.as_deref().map(probe::measure).transpose()?;
    let disk = before.zip(after).map(|(before, after)| before.with(after));
    show(&outcome, disk.as_ref(), format);
    Ok(())
}

/// A JSON text of exactly this length.
fn payload(bytes: u32) -> Vec<u8> {
    let mut text = vec![b'x'; bytes as usize];
    if let Some((first, rest)) = text.split_first_mut()
        && let Some((last, _)) = rest.split_last_mut()
    {
        (*first, *last) = (b'"', b'"');
    }
    text
}

/// A bar on a terminal; nothing elsewhere.
fn progress(lifecycles: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {human_pos}/{human_len}  {per_sec}");
    let bar =
        ProgressBar::with_draw_target(Some(lifecycles), ProgressDrawTarget::stderr_with_hz(5));
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn show(outcome: &Outcome, disk: Option<&Disk>, format: Format) {
    let Outcome { tally, offered, accepted, spent } = outcome;
    let per_s = |count: u64| count as f64 / spent.as_secs_f64();
    let (lifecycles, requests) = (per_s(tally.lifecycles), per_s(tally.requests));
    let Latency { p50, p99, max } = tally.latency();
    let mut out = Lines::new();
    match format {
        Format::Json => {
            let mut shown = json!({
                "lifecycles_per_s": lifecycles.round() as u64,
                "requests_per_s": requests.round() as u64,
                "latency_us": {"p50": p50, "p99": p99, "max": max},
                "errors": tally.errors,
                "lifecycles": tally.lifecycles,
                "seconds": spent.as_secs_f64(),
            });
            if *offered > 0 {
                shown["offered_per_s"] = json!(per_s(*offered).round() as u64);
                shown["accepted_per_s"] = json!(per_s(*accepted).round() as u64);
                shown["refused_without_retry_after"] = json!(tally.refused_without_advice);
            }
            if let Some(disk) = disk {
                shown["disk"] = disk.as_json();
            }
            out.print(shown);
        }
        Format::Table => {
            let (count, seconds) = (tally.lifecycles, spent.as_secs_f64());
            out.print(format_args!(
                "lifecycles  {lifecycles:.0} a second ({count} in {seconds:.2} s)"
            ));
            out.print(format_args!("requests    {requests:.0} a second"));
            out.print(format_args!("latency     p50 {p50} µs, p99 {p99} µs, max {max} µs"));
            out.print(format_args!("errors      {}", tally.errors));
            if *offered > 0 {
                let (offered, accepted) = (per_s(*offered), per_s(*accepted));
                let lacking = tally.refused_without_advice;
                out.print(format_args!(
                    "offered     {offered:.0} tasks a second, {accepted:.0} accepted"
                ));
                out.print(format_args!("refusals    {lacking} of them without Retry-After"));
            }
            if let Some(disk) = disk {
                out.print(format_args!("disk        {disk}"));
            }
        }
    }
    out.finish();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_json_of_the_length_that_was_asked_for() {
        for bytes in [2, 3, 100] {
            let text = payload(bytes);
            assert_eq!(text.len(), bytes as usize);
            assert!(serde_json::from_slice::<String>(&text).is_ok());
        }
    }

    #[test]
    fn every_task_is_taken_on_once_and_the_last_batch_is_short() {
        let load = Load {
            queue: String::new(),
            payload: Vec::new(),
            batch: 100,
            lifecycles: 250,
            begun: AtomicU64::new(0),
            done: AtomicU64::new(0),
            progress: ProgressBar::hidden(),
        };
        let taken: Vec<_> = std::iter::from_fn(|| load.take()).collect();
        assert_eq!(taken, [100, 100, 50]);
    }
}
