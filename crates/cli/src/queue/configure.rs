//! `tenure queue configure`: settings of a queue.

use std::time::Duration;

use clap::Args;
use tenure_sdk::QueueSettings;

use super::print_one;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::span;

pub(super) const EXAMPLES: &str = "\
What is not given stays as it is; the word `default` takes a setting back.

Examples:
  tenure queue configure mail --retention 7d
  tenure queue configure mail --retention default";

#[derive(Debug, Args)]
pub(super) struct Configure {
    /// The queue's name.
    #[arg(value_name = "QUEUE")]
    queue: String,

    /// How long its finished tasks are kept.
    #[arg(long, value_name = "SPAN|default", value_parser = parse_setting, required = true)]
    retention: Setting,
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
    let queue = configure.queue.clone();
    let settings = match configure.retention {
        Setting::Span(span) => {
            let retention_ms = u64::try_from(span.as_millis()).ok();
            QueueSettings { queue, retention_ms, ..QueueSettings::default() }
        }
        Setting::Default => QueueSettings {
            queue,
            clear: vec!["retention_ms".to_owned()],
            ..QueueSettings::default()
        },
    };
    server.with(|client| async move {
        print_one(&client.configure_queue(settings).await?, format);
        Ok(())
    })
}
