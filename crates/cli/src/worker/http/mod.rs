//! `tenure worker http`: makes requests.

mod call;
mod payload;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tenure_sdk::LeasedTask;

use self::call::Limits;
use self::payload::AllowedHost;
use super::output::OUTPUT_BYTES_MAX;
use super::terms::{Terms, told};
use crate::client::Server;
use crate::failure::Failure;
use crate::ui::span;

const EXAMPLES: &str = "\
A payload:
  {\"url\": \"https://example.org/hook\", \"body\": {\"n\": 1}, \"headers\": {…}, \"method\": \"POST\"}
  Only url is needed. Without body the whole payload is sent.

The request has the headers Tenure-Task-Id, Tenure-Lease-Id (the fence), Tenure-Attempt and
Idempotency-Key, which is the task's id at every attempt. The answer's body is the output. 408,
425, 429, 5xx and broken connections are tried again, as Retry-After asks; other answers are final.
No redirect is followed.

Whoever may submit to the queue may have this worker call any address that it can reach, unless
--allow-host says which.

Examples:
  tenure worker http --queue hooks --slots 20 --allow-host example.org";

/// Send each task's payload to its URL.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Http {
    #[command(flatten)]
    terms: Terms,

    /// How long an answer may take, from the connection to its last byte.
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = span::parse_to_a_day)]
    timeout: Duration,

    /// The most that an answer's body may have.
    #[arg(long, value_name = "BYTES", default_value_t = OUTPUT_BYTES_MAX as u64)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=OUTPUT_BYTES_MAX as u64))]
    output_max: u64,

    /// Call only this host (with a port, only that port); may be given more than once.
    #[arg(long = "allow-host", value_name = "HOST", value_parser = AllowedHost::parse)]
    allowed_hosts: Vec<AllowedHost>,
}

pub(super) fn run(http: &Http, server: &Server) -> Result<(), Failure> {
    http.terms.log();
    let caller =
        call::caller().map_err(|error| Failure::NoRuntime(std::io::Error::other(error)))?;
    let limits = Limits {
        timeout: http.timeout,
        output_max: usize::try_from(http.output_max).unwrap_or(OUTPUT_BYTES_MAX),
    };
    let allowed: Arc<[AllowedHost]> = http.allowed_hosts.as_slice().into();
    if allowed.is_empty() {
        tracing::warn!("any address may be called; --allow-host says which may");
    }
    server.with(async |client| {
        let mut worker = http.terms.worker(client);
        for queue in &http.terms.queues {
            let (caller, allowed) = (caller.clone(), Arc::clone(&allowed));
            worker = worker.handle(queue, move |task: LeasedTask| {
                let (caller, allowed) = (caller.clone(), Arc::clone(&allowed));
                async move {
                    let call = payload::parse(task.payload_bytes(), &allowed);
                    let what = match &call {
                        Ok(call) => format!("{} to {:?}", call.method, call.host()),
                        Err(_) => "a payload that cannot be sent".to_owned(),
                    };
                    told(&task, what, async { call::run(&task, call?, &caller, limits).await })
                        .await
                }
            });
        }
        tracing::info!(queues = http.terms.queues.join(","), slots = http.terms.slots, "at work");
        worker.drain_on_signals().run().await?;
        tracing::info!("the worker has left in good order");
        Ok(())
    })
}
