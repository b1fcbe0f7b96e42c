//! `tenure submit`: tasks, one by one or many from a file.

mod backoff;
mod batch;
mod line;
mod wait;

use std::time::Duration;

use clap::Args;
use tenure_sdk::api::NewTask;
use tenure_sdk::{Backoff, Error, Task, Timestamp};

use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::task;
use crate::ui::given;
use crate::ui::output::Lines;
use crate::ui::{moment, span};

const EXAMPLES: &str = "\
Examples:
  tenure submit --queue mail --payload '{\"to\": \"ada@example.org\"}'
  tenure submit --queue mail --payload @letter.json --delay 5m --priority 10
  echo '{\"argv\": [\"date\"]}' | tenure submit --queue commands --payload - --wait
  tenure submit --queue mail --key welcome/ada --tag customer=ada --max-failures 5
  tenure submit --queue mail --backoff exponential,initial=1s,max=5m,jitter=0.2
  tenure submit --batch tasks.ndjson

A batch has one object on each line, with the fields of POST /v1/tasks:
  {\"queue\": \"mail\", \"payload\": {\"to\": \"ada@example.org\"}, \"key\": \"welcome/ada\", \"delay_ms\": 5000}

It is submitted in chunks of 1000 lines, each of them as a whole or not at all, in the order of the
file. If it stops in the middle, it says which lines are in and how to go on. Lines with a key can
be submitted again without harm: the task that is there is found.";

/// Submit a task, or many.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Submit {
    /// Where it waits.
    #[arg(long, value_name = "QUEUE", default_value = "default")]
    queue: String,

    /// What the worker gets: JSON, @FILE with JSON in it, or - for standard input.
    #[arg(long, value_name = "JSON", default_value = "null")]
    payload: String,

    /// From -100 to 100, higher first.
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true)]
    priority: i32,

    /// Not before so long, such as 500ms, 5s, 2m, 1h or 1d.
    #[arg(long, value_name = "SPAN", value_parser = span::parse, conflicts_with = "run_at")]
    delay: Option<Duration>,

    /// Not before that moment, such as 2026-11-15T22:40:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment::parse)]
    run_at: Option<Timestamp>,

    /// What kind of work it is, for workers and for lists.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Failures that end it; 20 if not given, none with --max-attempts.
    #[arg(long, value_name = "N")]
    max_failures: Option<u32>,

    /// Expired leases that end it; 10 if not given, none with --max-attempts.
    #[arg(long, value_name = "N")]
    max_expiries: Option<u32>,

    /// Failures and expired leases that together end it.
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,

    /// How long a worker may be silent; 30s if not given.
    #[arg(long, value_name = "SPAN", value_parser = parse_lease)]
    lease: Option<u32>,

    /// From submit to end; a task that takes longer ends FAILED with code TIMEOUT.
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    total_timeout: Option<Duration>,

    /// How long one attempt may take, with heartbeats or without; one that takes longer has failed.
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    attempt_timeout: Option<Duration>,

    /// How it waits between failures: KIND,initial=SPAN,max=SPAN,jitter=0..1, each of them optional.
    /// KIND is fixed, linear or exponential.
    #[arg(long, value_name = "BACKOFF", value_parser = backoff::parse)]
    backoff: Option<Backoff>,

    /// The same submit under the same key gives the same task.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// How long the key is held; as long as the task exists if not given.
    #[arg(long, value_name = "SPAN", value_parser = span::parse, requires = "key")]
    key_ttl: Option<Duration>,

    /// The W3C trace context of the submit, for the worker.
    #[arg(long, value_name = "TRACEPARENT")]
    traceparent: Option<String>,

    /// A label for people; may be given several times.
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse_tag)]
    tags: Vec<(String, String)>,

    /// Wait for its end, and print its output.
    #[arg(long)]
    wait: bool,

    /// Submit the tasks of a file with one JSON object on each line, or of standard input with -.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "queue", "payload", "priority", "delay", "run_at", "max_failures", "max_expiries",
        "max_attempts", "lease", "total_timeout", "attempt_timeout", "backoff", "key", "key_ttl",
        "traceparent", "name", "tags", "wait",
    ])]
    batch: Option<String>,

    /// Begin a batch at this line.
    #[arg(long, value_name = "N", requires = "batch", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    from_line: u64,
}

fn parse_lease(text: &str) -> Result<u32, String> {
    let ms = span::parse(text)?.as_millis();
    u32::try_from(ms).map_err(|_| "a lease lasts 50ms to 1d".to_owned())
}

pub(crate) fn parse_tag(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a tag is like customer=ada")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn run(submit: &Submit, server: &Server, format: Format) -> Result<(), Failure> {
    if let Some(file) = &submit.batch {
        return batch::run(file, submit.from_line, server, format);
    }
    let new_task = submit.parse()?;
    server.with(|client| async move {
        let task = client.tasks().submit(new_task).await.map_err(|error| submit.unsure(error))?;
        match submit.wait {
            true => wait::print_end(&client, task.id, format).await,
            false => {
                print(&task, format);
                Ok(())
            }
        }
    })
}

impl Submit {
    fn parse(&self) -> Result<NewTask, Failure> {
        let mut tags = std::collections::BTreeMap::new();
        for (key, value) in &self.tags {
            if tags.insert(key.clone(), value.clone()).is_some() {
                return Err(Failure::Usage(format!("--tag {key} is given twice; keep one")));
            }
        }
        Ok(NewTask {
            queue: Some(self.queue.clone()),
            payload: given::read("payload", &self.payload)?.into(),
            priority: Some(self.priority),
            delay_ms: self.delay.map(ms),
            run_at: self.run_at,
            max_failures: self.max_failures,
            max_expiries: self.max_expiries,
            max_attempts: self.max_attempts,
            backoff: self.backoff.clone(),
            lease_ms: self.lease,
            total_timeout_ms: self.total_timeout.map(ms),
            attempt_timeout_ms: self.attempt_timeout.map(ms),
            key_ttl_ms: self.key_ttl.map(ms),
            traceparent: self.traceparent.clone(),
            name: self.name.clone(),
            key: self.key.clone(),
            tags,
        })
    }
}

impl Submit {
    /// A submit without an answer may have been done.
    fn unsure(&self, error: Error) -> Failure {
        if error.is_definite() {
            return Failure::Refused(error);
        }
        let told = match &self.key {
            Some(_) => "it may have been submitted; to submit it again under its key is safe",
            None => {
                "it may have been submitted: look with `tenure task list`, and give a --key to \
                 make it safe to submit it again"
            }
        };
        let cause = Box::new(Failure::Refused(error));
        Failure::HalfDone { cause, said: None, told: told.to_owned() }
    }
}

fn print(new: &Task, format: Format) {
    match format {
        Format::Table => {
            let mut out = Lines::new();
            out.print(new.id);
            out.finish();
        }
        Format::Json => task::print(new, format),
    }
}
