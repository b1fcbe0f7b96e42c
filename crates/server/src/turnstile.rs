//! New work takes its turn, so that a crowd of clients cannot push workers aside: only so much of it
//! is read, decided and answered at a time, and the rest waits without costing anything. Whoever
//! waits too long, or finds too many waiting, is refused; its body was not read.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limits::{NEW_WORK_BYTES_AT_ONCE, NEW_WORK_WAIT_MAX, NEW_WORK_WAITING_MAX};
use crate::problem::Problem;

/// However little a request has, it counts as so much.
const UNIT_BYTES: u64 = 4 << 10;
const UNITS: u32 = (NEW_WORK_BYTES_AT_ONCE / UNIT_BYTES) as u32;
/// However much it has, it counts as no more: large ones must not go one by one, each waiting for
/// the disk alone.
const UNITS_EACH_MAX: u32 = UNITS / 8;

/// The way in for new work.
#[derive(Debug)]
pub(crate) struct Turnstile {
    units: Semaphore,
    waiting: AtomicUsize,
}

/// A turn, until it is dropped.
pub(crate) struct Turn<'a>(#[expect(dead_code, reason = "it is given back")] SemaphorePermit<'a>);

impl Default for Turnstile {
    fn default() -> Self {
        Self { units: Semaphore::new(UNITS as usize), waiting: AtomicUsize::new(0) }
    }
}

impl Turnstile {
    /// Waits for a turn, in order of arrival.
    pub(crate) async fn enter(&self, bytes: u64) -> Result<Turn<'_>, Problem> {
        self.enter_within(bytes, NEW_WORK_WAIT_MAX).await
    }

    async fn enter_within(&self, bytes: u64, patience: Duration) -> Result<Turn<'_>, Problem> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(UNITS_EACH_MAX);
        let units = units.clamp(1, UNITS_EACH_MAX);
        if let Ok(turn) = self.units.try_acquire_many(units) {
            return Ok(Turn(turn));
        }
        let place = Place::take(&self.waiting)?;
        let turn = tokio::time::timeout(patience, self.units.acquire_many(units)).await;
        drop(place);
        match turn {
            Ok(Ok(turn)) => Ok(Turn(turn)),
            // Nobody closes it; a turn that did not come is the same.
            Ok(Err(_)) | Err(_) => {
                let ms = patience.as_millis();
                Err(overloaded(&format!("new work had to wait for more than {ms} ms")))
            }
        }
    }

    /// How many wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// A place in the line, until it is dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Result<Self, Problem> {
        let place = Self(waiting);
        match waiting.fetch_add(1, Ordering::Relaxed) < NEW_WORK_WAITING_MAX {
            true => Ok(place),
            false => Err(overloaded(&format!(
                "{NEW_WORK_WAITING_MAX} requests with new work wait already"
            ))),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn overloaded(why: &str) -> Problem {
    Problem::new("overloaded", format!("{why}; try again in a moment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all that there is, in large pieces.
    async fn fill(turnstile: &Turnstile) -> Vec<Turn<'_>> {
        let mut turns = Vec::new();
        for _ in 0..UNITS / UNITS_EACH_MAX {
            turns.push(turnstile.enter_within(u64::MAX, Duration::ZERO).await.ok().unwrap());
        }
        turns
    }

    #[tokio::test(start_paused = true)]
    async fn new_work_waits_for_its_turn_and_not_for_ever() {
        let turnstile = Turnstile::default();
        let all = fill(&turnstile).await;
        let refusal = turnstile.enter(1).await.err().unwrap();
        assert_eq!(refusal.code, "overloaded");
        assert_eq!(turnstile.waiting(), 0);
        let (turn, ()) = tokio::join!(turnstile.enter(1), async { drop(all) });
        assert!(turn.is_ok());
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_not_joined() {
        let turnstile = Turnstile::default();
        let _all = fill(&turnstile).await;
        turnstile.waiting.store(NEW_WORK_WAITING_MAX, Ordering::Relaxed);
        assert!(turnstile.enter(1).await.err().unwrap().detail.contains("wait already"));
        assert_eq!(turnstile.waiting(), NEW_WORK_WAITING_MAX);
    }

    #[tokio::test]
    async fn small_requests_go_side_by_side() {
        let turnstile = Turnstile::default();
        let mut turns = Vec::new();
        for _ in 0..UNITS {
            turns.push(turnstile.enter_within(100, Duration::ZERO).await.ok().unwrap());
        }
        assert!(turnstile.enter_within(100, Duration::ZERO).await.is_err());
    }
}
