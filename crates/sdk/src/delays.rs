//! Delays before a reconnect or a retry: exponential backoff with jitter.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Delays that double up to a maximum, each drawn from its upper half.
#[derive(Clone, Debug)]
pub(crate) struct RetryDelays {
    next: Duration,
    min: Duration,
    max: Duration,
}

impl RetryDelays {
    pub(crate) fn new(min: Duration, max: Duration) -> Self {
        Self { next: min, min, max }
    }

    pub(crate) fn next(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).min(self.max);
        let share = 0.5 + (random() % 1_000) as f64 / 2_000.0;
        delay.mul_f64(share)
    }

    /// Starts again at the minimum, after a success.
    pub(crate) fn reset(&mut self) {
        self.next = self.min;
    }
}

/// A random number.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_with_jitter_up_to_the_maximum() {
        let mut delays = RetryDelays::new(Duration::from_millis(100), Duration::from_millis(350));
        for ms in [100, 200, 350, 350] {
            let (delay, ms) = (delays.next(), Duration::from_millis(ms));
            assert!(ms / 2 <= delay && delay <= ms, "{delay:?} for {ms:?}");
        }
        delays.reset();
        assert!(delays.next() <= Duration::from_millis(100));
    }
}
