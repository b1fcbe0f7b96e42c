//! What all workers on the command line have in common.

use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant};

use clap::Args;
use tenure_sdk::{Client, Failure, LeasedTask, Output};

use crate::ui::span;

/// Tasks at a time that one worker takes on.
const SLOTS_MAX: i64 = 1_000;

/// From where a worker takes tasks, and how.
#[derive(Clone, Debug, Args)]
pub(crate) struct Terms {
    /// A queue to take tasks from; may be given more than once.
    #[arg(long = "queue", value_name = "QUEUE", required = true)]
    pub(crate) queues: Vec<String>,

    /// How many tasks at a time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=SLOTS_MAX))]
    pub(crate) slots: u32,

    /// What the worker is called; two with one name may take over each other's leases.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// How long its leases last without a heartbeat, if not as each task says.
    #[arg(long, value_name = "SPAN", value_parser = span::parse_to_a_day)]
    pub(crate) lease: Option<Duration>,

    /// How long tasks may still take after SIGTERM or SIGINT; then they are stopped and given back.
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = span::parse_to_a_day)]
    pub(crate) drain_timeout: Duration,

    /// Say nothing about tasks that come and go.
    #[arg(long)]
    pub(crate) quiet: bool,
}

impl Terms {
    /// A worker that has everything but handlers.
    pub(crate) fn worker(&self, client: Client) -> tenure_sdk::Worker {
        let mut worker = tenure_sdk::Worker::new(client);
        if let Some(name) = &self.name {
            worker = worker.name(name);
        }
        if let Some(lease) = self.lease {
            worker = worker.lease(lease);
        }
        worker.slots(self.slots).drain_timeout(self.drain_timeout)
    }

    /// Has what happens told on stderr.
    pub(crate) fn log(&self) {
        let level = if self.quiet { tracing::Level::WARN } else { tracing::Level::INFO };
        let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false);
        // A line that cannot be written is let go: its own complaint would panic.
        log.with_ansi(false).with_max_level(level).log_internal_errors(false).init();
    }
}

/// Does a task, with a line in the log when it begins and when it ends.
pub(super) async fn told(
    task: &LeasedTask,
    what: impl fmt::Display,
    work: impl Future<Output = Result<Output, Failure>>,
) -> Result<Output, Failure> {
    let (id, attempt, queue) = (task.id(), task.attempt(), task.queue());
    tracing::info!(task = id, attempt, lease = task.lease_id(), queue, "begins: {what}");
    let began = Instant::now();
    let result = work.await;
    let took_ms = began.elapsed().as_millis() as u64;
    match &result {
        Ok(output) => {
            let bytes = output.as_bytes().len();
            tracing::info!(task = id, attempt, took_ms, bytes, "done");
        }
        // A reason may be many lines, and may try to look like ours.
        Err(failure) => {
            let failure = failure.to_string();
            tracing::info!(task = id, attempt, took_ms, "not done: {failure:?}");
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        terms: Terms,
    }

    #[test]
    fn slots_and_queues_have_bounds() {
        let parse = |line: &str| Line::try_parse_from(line.split(' ')).map(|line| line.terms);
        assert!(parse("exec").is_err(), "a queue is needed");
        assert!(parse("exec --queue q --slots 0").is_err());
        assert!(parse("exec --queue q --slots 1001").is_err());
        let terms = parse("exec --queue q --queue r --lease 30s").unwrap();
        assert_eq!((terms.queues.len(), terms.slots), (2, 1));
        assert_eq!(terms.lease, Some(Duration::from_secs(30)));
    }
}
