//! More than a server can take: batches are submitted at a rate, whatever becomes of them, while
//! workers do what they can. What counts is what gets done meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::Load;
use super::http::{Door, LEASE_WAIT_MS, complete, lease_body, submit_body, submit_path};
use super::tally::{Tally, collect};
use crate::client::Server;
use crate::failure::Failure;

/// Connections that lease and complete.
const WORKERS: u32 = 16;

/// How much is offered, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// Tasks a second.
    pub(super) rate: u32,
    /// Tasks a request.
    pub(super) batch: u32,
    pub(super) seconds: u32,
    /// Connections that submit.
    pub(super) connections: u32,
}

/// What became of an offer.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) tally: Tally,
    /// Tasks that were sent.
    pub(super) offered: u64,
    /// Tasks that were taken.
    pub(super) accepted: u64,
    /// How long it took.
    pub(super) spent: Duration,
}

/// When each batch is due, for all who submit.
struct Schedule {
    start: Instant,
    end: Instant,
    interval: Duration,
    next: AtomicU64,
    offered: AtomicU64,
    accepted: AtomicU64,
}

impl Schedule {
    /// When the next batch is due; nothing after the end. One who is late does not catch up: what
    /// could not be sent was not offered.
    fn next(&self) -> Option<Instant> {
        let now = Instant::now();
        let passed = now.duration_since(self.start).as_nanos() / self.interval.as_nanos().max(1);
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.next.fetch_max(passed, Ordering::Relaxed);
        let due = self.start + self.interval.saturating_mul(u32::try_from(number).ok()?);
        (due < self.end && now < self.end).then_some(due)
    }
}

pub(super) async fn run(
    server: &Server,
    load: &Arc<Load>,
    offer: Offer,
) -> Result<Outcome, Failure> {
    let Offer { rate, batch, seconds, connections } = offer;
    let mut doors = Vec::new();
    for _ in 0..connections + WORKERS {
        doors.push(Door::open(server).await?);
    }
    let start = Instant::now();
    let schedule = Arc::new(Schedule {
        start,
        end: start + Duration::from_secs(seconds.into()),
        interval: Duration::from_secs(1) * batch / rate,
        next: AtomicU64::new(0),
        offered: AtomicU64::new(0),
        accepted: AtomicU64::new(0),
    });
    let (mut workers, mut crowd) = (Vec::new(), Vec::new());
    for (number, door) in (0..).zip(doors) {
        let (load, schedule) = (Arc::clone(load), Arc::clone(&schedule));
        match number < WORKERS {
            true => workers.push(tokio::spawn(work(door, load, schedule, number))),
            false => crowd.push(tokio::spawn(submit(door, load, schedule, batch))),
        }
    }
    let mut tally = collect(workers).await?;
    // Those who still wait for their turn do not count, nor does the time that they wait.
    let spent = start.elapsed();
    let offered = schedule.offered.load(Ordering::Relaxed);
    let accepted = schedule.accepted.load(Ordering::Relaxed);
    tally.add(collect(crowd).await?);
    Ok(Outcome { tally, offered, accepted, spent })
}

async fn submit(
    mut door: Door,
    load: Arc<Load>,
    schedule: Arc<Schedule>,
    batch: u32,
) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    let (path, body): (_, Bytes) = (submit_path(batch), submit_body(&load, batch, batch));
    let batch = u64::from(batch);
    while let Some(due) = schedule.next() {
        tokio::time::sleep_until(due).await;
        schedule.offered.fetch_add(batch, Ordering::Relaxed);
        if door.offer(path, body.clone(), &mut tally).await? {
            schedule.accepted.fetch_add(batch, Ordering::Relaxed);
        }
    }
    Ok(tally)
}

async fn work(
    mut door: Door,
    load: Arc<Load>,
    schedule: Arc<Schedule>,
    number: u32,
) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    let lease = lease_body(&load, &format!("bench-{number}"), LEASE_WAIT_MS);
    while Instant::now() < schedule.end {
        if let Some(answer) = door.ask("/v1/leases", lease.clone(), &mut tally).await? {
            complete(&mut door, &load, &answer, &mut tally).await?;
        }
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn batches_come_at_the_rate_and_one_who_is_late_does_not_catch_up() {
        let start = Instant::now();
        let schedule = Schedule {
            start,
            end: start + Duration::from_secs(1),
            interval: Duration::from_millis(100),
            next: AtomicU64::new(0),
            offered: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
        };
        let at = |due: Option<Instant>| due.map(|due| due.duration_since(start).as_millis());
        assert_eq!([at(schedule.next()), at(schedule.next())], [Some(0), Some(100)]);
        tokio::time::advance(Duration::from_millis(750)).await;
        assert_eq!(at(schedule.next()), Some(200));
        assert_eq!([at(schedule.next()), at(schedule.next())], [Some(700), Some(800)]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(at(schedule.next()), None);
    }
}
