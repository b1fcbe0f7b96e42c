//! `tenure queue pause` and `resume`: whether leases are given from a queue.

use std::time::Duration;

use clap::Args;
use tenure_sdk::{PauseQueue, Timestamp};

use super::print_one;
use crate::Format;
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::{moment, span};

pub(super) const PAUSE_EXAMPLES: &str = "\
Examples:
  tenure queue pause mail
  tenure queue pause mail --for 1h          it opens by itself after an hour
  tenure queue pause mail --until 2026-12-01T08:00:00Z";

pub(super) const RESUME_EXAMPLES: &str = "\
Examples:
  tenure queue resume mail";

#[derive(Debug, Args)]
pub(super) struct Named {
    /// The queue's name.
    #[arg(value_name = "QUEUE")]
    queue: String,
}

#[derive(Debug, Args)]
pub(super) struct Pause {
    /// The queue's name.
    #[arg(value_name = "QUEUE")]
    queue: String,

    /// It opens by itself after this span.
    #[arg(long = "for", value_name = "SPAN", value_parser = span::parse)]
    span: Option<Duration>,

    /// It opens by itself at this moment of the server's wall clock, in RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = moment::parse, conflicts_with = "span")]
    until: Option<Timestamp>,
}

pub(super) fn pause(pause: &Pause, server: &Server, format: Format) -> Result<(), Failure> {
    let for_ms = pause.span.and_then(|span| u64::try_from(span.as_millis()).ok());
    let (queue, until) = (&pause.queue, pause.until);
    server.with(|client| async move {
        let pause = PauseQueue { until, for_ms };
        print_one(&client.queues().pause(queue, pause).await?, format);
        Ok(())
    })
}

pub(super) fn resume(named: &Named, server: &Server, format: Format) -> Result<(), Failure> {
    server.with(|client| async move {
        print_one(&client.queues().resume(&named.queue).await?, format);
        Ok(())
    })
}
