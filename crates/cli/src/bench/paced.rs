//! How long a task takes from its submit to a worker that waits for it, at a rate that leaves the
//! server idle in between.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tenure_sdk::{Client, Error, NewTask};
use tokio::time::MissedTickBehavior;

use super::Load;
use super::grpc::Stream;
use super::http::{Door, complete, lease_body};
use super::tally::Tally;
use super::wire::connect;
use crate::client::Server;
use crate::failure::Failure;

/// How long one task may take.
const PATIENCE: Duration = Duration::from_secs(60);
const WORKER: &str = "bench-0";

/// A task is submitted by one request, and pushed to a worker's stream on another connection.
pub(super) async fn over_grpc(
    server: &Server,
    client: &Client,
    load: &Arc<Load>,
    rate: u32,
) -> Result<Tally, Failure> {
    let (mut tally, mut ticks) = (Tally::default(), ticks(rate));
    let mut stream = Stream::open(connect(server).await?, load, WORKER, 1).await?;
    stream.next(PATIENCE).await?;
    let tasks = client.tasks();
    for _ in 0..load.lifecycles {
        ticks.tick().await;
        let start = Instant::now();
        let task = NewTask::new(load.queue.as_str(), load.payload.clone());
        let submitted = tasks.submit(task);
        let pushed = async {
            loop {
                let news = stream.next(PATIENCE).await?.ok_or_else(late)?;
                if !news.leases.is_empty() {
                    return Ok::<_, Failure>((start.elapsed(), news.leases));
                }
            }
        };
        let (submitted, pushed) = tokio::join!(submitted, pushed);
        submitted?;
        let (spent, leases) = pushed?;
        tally.took(spent);
        stream.complete(leases).await?;
        while stream.next(PATIENCE).await?.ok_or_else(late)?.results.is_empty() {}
        tally.lifecycles += 1;
        load.complete(1);
    }
    Ok(tally)
}

/// The same with a parked request for a lease.
pub(super) async fn over_http(
    server: &Server,
    load: &Arc<Load>,
    rate: u32,
) -> Result<Tally, Failure> {
    let (mut tally, mut ticks) = (Tally::default(), ticks(rate));
    let (mut submits, mut leases) = (Door::open(server).await?, Door::open(server).await?);
    let lease = lease_body(load, WORKER, 60_000);
    let payload = String::from_utf8_lossy(&load.payload);
    let submit = Bytes::from(format!(r#"{{"queue":"{}","payload":{payload}}}"#, load.queue));
    for _ in 0..load.lifecycles {
        let granted = async {
            let granted = leases.post("/v1/leases", lease.clone()).await;
            (Instant::now(), granted)
        };
        let submitted = async {
            ticks.tick().await;
            let start = Instant::now();
            submits.post("/v1/tasks", submit.clone()).await.map(|_| start)
        };
        let ((end, granted), start) = tokio::join!(granted, submitted);
        tally.took(end.saturating_duration_since(start?));
        let mut beside = Tally::default();
        complete(&mut submits, load, &granted?.body, &mut beside).await?;
        tally.lifecycles += beside.lifecycles;
    }
    Ok(tally)
}

fn ticks(rate: u32) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn late() -> Error {
    Error::unavailable("a task did not come back within a minute")
}
