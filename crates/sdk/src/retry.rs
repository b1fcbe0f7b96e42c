//! Trying again: a little later each time, and not all at the same moment.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::error::Error;

/// How often a request is tried in all.
const TRIES_MAX: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// What doing a request twice would mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twice {
    /// The same as once.
    IsTheSame,
    /// Something else: it is tried again only if nothing was done.
    IsDifferent,
}

/// Tries until it is done, or it makes no sense, or it was tried often enough.
pub(crate) async fn again<T, F>(twice: Twice, mut attempt: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, tonic::Status>>,
{
    let mut waits = Waits::new(FIRST_WAIT, LONGEST_WAIT);
    for _ in 1..TRIES_MAX {
        let error = match attempt().await {
            Ok(done) => return Ok(done),
            Err(status) => Error::from(status),
        };
        let is_safe = twice == Twice::IsTheSame || error.is_refusal();
        if !error.is_retryable() || !is_safe {
            return Err(error);
        }
        let wait = waits.next().max(error.retry_after().unwrap_or_default());
        tokio::time::sleep(wait).await;
    }
    Ok(attempt().await?)
}

/// Waits that double up to a longest one, each drawn from its upper half.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    next: Duration,
    first: Duration,
    longest: Duration,
}

impl Waits {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { next: first, first, longest }
    }

    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(self.longest);
        let share = 0.5 + (random() % 1_000) as f64 / 2_000.0;
        wait.mul_f64(share)
    }

    /// All is well again.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// A number that nobody can foretell.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn waits_grow_and_stray_but_stay_below_the_longest() {
        let mut waits = Waits::new(Duration::from_millis(100), Duration::from_millis(350));
        for ms in [100, 200, 350, 350] {
            let (wait, ms) = (waits.next(), Duration::from_millis(ms));
            assert!(ms / 2 <= wait && wait <= ms, "{wait:?} for {ms:?}");
        }
        waits.reset();
        assert!(waits.next() <= Duration::from_millis(100));
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_have_been_done_is_not_done_twice() {
        let tries = Cell::new(0);
        let attempt = || {
            tries.set(tries.get() + 1);
            std::future::ready(Err::<(), _>(tonic::Status::unavailable("cut off")))
        };
        assert!(again(Twice::IsDifferent, attempt).await.is_err());
        assert_eq!(tries.replace(0), 1);
        assert!(again(Twice::IsTheSame, attempt).await.is_err());
        assert_eq!(tries.get(), TRIES_MAX);
    }
}
