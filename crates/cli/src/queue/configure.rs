//! `tenure queue configure`: settings of a queue.

use clap::{ArgGroup, Args};
use tenure_sdk::{QueueSettings, Setting};

use super::print_one;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::span;

pub(super) const EXAMPLES: &str = "\
What is not given stays as it is; the word `default` takes a retention or a limit back.

Examples:
  tenure queue configure mail --retention 7d
  tenure queue configure mail --retention default
  tenure queue configure mail --dead-letter-queue mail-failed
  tenure queue configure mail --no-dead-letter-queue
  tenure queue configure mail --max-waiting 10000";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("settings").required(true).multiple(true))]
pub(super) struct Configure {
    /// The queue's name.
    #[arg(value_name = "QUEUE")]
    queue: String,

    /// How long its finished tasks are kept.
    #[arg(long, value_name = "SPAN|default", value_parser = parse_setting, group = "settings")]
    retention: Option<Setting<u64>>,

    /// The queue that gets a copy of each task that ends FAILED or DEAD. One that is not there yet is made.
    #[arg(long, value_name = "QUEUE", group = "settings")]
    dead_letter_queue: Option<String>,

    /// Copy no more tasks that end FAILED or DEAD.
    #[arg(long, group = "settings", conflicts_with = "dead_letter_queue")]
    no_dead_letter_queue: bool,

    /// Reject a submit that would leave more tasks waiting.
    #[arg(long, value_name = "COUNT|default", value_parser = parse_count, group = "settings")]
    max_waiting: Option<Setting<u64>>,
}

fn parse_count(text: &str) -> Result<Setting<u64>, String> {
    match text {
        "default" => Ok(Setting::Clear),
        text => text.parse().map(Setting::Set).map_err(|_| "give a number or `default`".to_owned()),
    }
}

fn parse_setting(text: &str) -> Result<Setting<u64>, String> {
    match text {
        "default" => Ok(Setting::Clear),
        text => {
            let ms = span::parse(text)?.as_millis();
            Ok(Setting::Set(u64::try_from(ms).unwrap_or(u64::MAX)))
        }
    }
}

pub(super) fn run(configure: &Configure, server: &Server, format: Format) -> Result<(), Failure> {
    let dead_letter_queue = match (&configure.dead_letter_queue, configure.no_dead_letter_queue) {
        (Some(queue), _) => Setting::Set(queue.clone()),
        (None, true) => Setting::Clear,
        (None, false) => Setting::Keep,
    };
    let settings = QueueSettings {
        retention_ms: configure.retention.unwrap_or_default(),
        dead_letter_queue,
        max_waiting: configure.max_waiting.unwrap_or_default(),
        ..QueueSettings::default()
    };
    server.with(|client| async move {
        print_one(&client.queues().configure(&configure.queue, settings).await?, format);
        Ok(())
    })
}
