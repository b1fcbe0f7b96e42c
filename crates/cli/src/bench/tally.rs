//! What one bench has seen.

use std::time::Duration;

use tenure_sdk::Error;

use crate::failure::Failure;

/// Counts, and how long each request took.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) lifecycles: u64,
    pub(super) requests: u64,
    /// Requests that were refused.
    pub(super) errors: u64,
    /// Those of them that were not told when to come back.
    pub(super) refused_without_advice: u64,
    /// Why the first of them was.
    pub(super) first_error: Option<String>,
    latencies_us: Vec<u32>,
}

/// How long requests took, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Latency {
    pub(super) p50: u32,
    pub(super) p99: u32,
    pub(super) max: u32,
}

impl Tally {
    pub(super) fn took(&mut self, spent: Duration) {
        self.requests += 1;
        self.latencies_us.push(u32::try_from(spent.as_micros()).unwrap_or(u32::MAX));
    }

    pub(super) fn refused(&mut self, why: impl FnOnce() -> String) {
        self.errors += 1;
        self.first_error.get_or_insert_with(why);
    }

    pub(super) fn add(&mut self, mut other: Self) {
        self.lifecycles += other.lifecycles;
        self.requests += other.requests;
        self.errors += other.errors;
        self.refused_without_advice += other.refused_without_advice;
        self.first_error = self.first_error.take().or(other.first_error);
        self.latencies_us.append(&mut other.latencies_us);
    }

    pub(super) fn latency(&self) -> Latency {
        let mut sorted = self.latencies_us.clone();
        sorted.sort_unstable();
        let at = |share: f64| {
            let place = ((sorted.len() as f64 * share).ceil() as usize).max(1) - 1;
            sorted.get(place).copied().unwrap_or_default()
        };
        Latency { p50: at(0.50), p99: at(0.99), max: at(1.0) }
    }
}

/// Adds up what the connections have seen; fails with the first that failed.
pub(super) async fn collect(
    running: Vec<tokio::task::JoinHandle<Result<Tally, Failure>>>,
) -> Result<Tally, Failure> {
    let mut all = Tally::default();
    for one in running {
        let gone = |_| Failure::from(Error::unavailable("a connection of the bench ended"));
        all.add(one.await.map_err(gone)??);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_all_that_was_measured() {
        let mut tally = Tally::default();
        for us in (1..=200).rev() {
            tally.took(Duration::from_micros(us));
        }
        assert_eq!(tally.latency(), Latency { p50: 100, p99: 198, max: 200 });
        assert_eq!(Tally::default().latency(), Latency::default());
    }
}
