//! Retries of requests: exponential backoff with jitter, and only where a repetition is safe.

use std::time::Duration;

use crate::delays::RetryDelays;
use crate::error::Error;

/// The most attempts of a request, the first included.
const ATTEMPTS_MAX: u32 = 6;
const DELAY_MIN: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(5);

/// Whether a request that is sent twice has the effect of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idempotency {
    /// Any retryable error is retried.
    Idempotent,
    /// An error is retried only if the request definitely had no effect.
    NotIdempotent,
}

impl Idempotency {
    /// A request with an idempotency key is idempotent.
    pub(crate) fn of_key(key: Option<&str>) -> Self {
        match key {
            Some(_) => Self::Idempotent,
            None => Self::NotIdempotent,
        }
    }
}

/// Sends a request until it succeeds, its error is not retryable, or the attempts are used up.
pub(crate) async fn retry<T, F>(
    idempotency: Idempotency,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, tonic::Status>>,
{
    let mut delays = RetryDelays::new(DELAY_MIN, DELAY_MAX);
    for _ in 1..ATTEMPTS_MAX {
        let error = match attempt().await {
            Ok(response) => return Ok(response),
            Err(status) => Error::from_status(status),
        };
        let is_safe = idempotency == Idempotency::Idempotent || error.is_definite();
        if !error.is_retryable() || !is_safe {
            return Err(error);
        }
        let delay = delays.next().max(error.retry_after().unwrap_or_default());
        tokio::time::sleep(delay).await;
    }
    attempt().await.map_err(Error::from_status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test(start_paused = true)]
    async fn a_request_of_unknown_effect_is_retried_only_if_it_is_idempotent() {
        let attempts = Cell::new(0);
        let attempt = || {
            attempts.set(attempts.get() + 1);
            std::future::ready(Err::<(), _>(tonic::Status::unavailable("cut off")))
        };
        assert!(retry(Idempotency::NotIdempotent, attempt).await.is_err());
        assert_eq!(attempts.replace(0), 1);
        assert!(retry(Idempotency::Idempotent, attempt).await.is_err());
        assert_eq!(attempts.get(), ATTEMPTS_MAX);
    }
}
