//! `tenure queue configure`: settings of a queue.

use std::time::Duration;

use clap::{ArgGroup, Args};
use tenure_sdk::QueueSettings;

use super::print_one;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::span;

pub(super) const EXAMPLES: &str = "\
What is not given stays as it is; the word `default` takes a retention back.

Examples:
  tenure queue configure mail --retention 7d
  tenure queue configure mail --retention default
  tenure queue configure mail --dead-letter-queue mail-failed
  tenure queue configure mail --no-dead-letter-queue";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("settings").required(true).multiple(true))]
pub(super) struct Configure {
    /// The queue's name.
    #[arg(value_name = "QUEUE")]
    queue: String,

    /// How long its finished tasks are kept.
    #[arg(long, value_name = "SPAN|default", value_parser = parse_setting, group = "settings")]
    retention: Option<Setting>,

    /// The queue that gets a copy of each task that ends FAILED or DEAD. One that is not there yet is made.
    #[arg(long, value_name = "QUEUE", group = "settings")]
    dead_letter_queue: Option<String>,

    /// Copy no more tasks that end FAILED or DEAD.
    #[arg(long, group = "settings", conflicts_with = "dead_letter_queue")]
    no_dead_letter_queue: bool,
}

/// A new value of a setting.
#[derive(Clone, Copy, Debug)]
enum Setting {
    Span(Duration),
    Default,
}

fn parse_setting(text: &str) -> Result<Setting, String> {
    match text {
        "default" => Ok(Setting::Default),
        text => span::parse(text).map(Setting::Span),
    }
}

pub(super) fn run(configure: &Configure, server: &Server, format: Format) -> Result<(), Failure> {
    let mut settings = QueueSettings {
        queue: configure.queue.clone(),
        dead_letter_queue: configure.dead_letter_queue.clone(),
        ..QueueSettings::default()
    };
    match configure.retention {
        Some(Setting::Span(span)) => settings.retention_ms = u64::try_from(span.as_millis()).ok(),
        Some(Setting::Default) => settings.clear.push("retention_ms".to_owned()),
        None => {}
    }
    if configure.no_dead_letter_queue {
        settings.clear.push("dead_letter_queue".to_owned());
    }
    server.with(|client| async move {
        print_one(&client.configure_queue(settings).await?, format);
        Ok(())
    })
}
