//! A task to submit, with the settings that differ from the defaults.

use std::time::{Duration, SystemTime};

use tenure_api::{Backoff, BackoffKind, Payload, Timestamp};
use tenure_proto::v1;

use crate::error::Error;

/// A task to submit.
///
/// ```
/// use std::time::Duration;
/// use tenure_sdk::NewTask;
///
/// # fn main() -> Result<(), tenure_sdk::Error> {
/// #[derive(serde::Serialize)]
/// struct Letter<'a> {
///     to: &'a str,
/// }
///
/// let task = NewTask::json("mail", &Letter { to: "ada@example.org" })?
///     .key("welcome/ada")
///     .priority(10)
///     .delay(Duration::from_secs(5))
///     .tag("customer", "ada");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct NewTask {
    pub(crate) task: tenure_api::NewTask,
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl NewTask {
    /// A task of a queue, with a payload of JSON text or any other bytes.
    pub fn new(queue: impl Into<String>, payload: impl Into<Payload>) -> Self {
        let (queue, payload) = (Some(queue.into()), payload.into());
        Self { task: tenure_api::NewTask { queue, payload, ..tenure_api::NewTask::default() } }
    }

    /// A task of a queue, with a value as its payload.
    ///
    /// A value that has no JSON, such as a map whose keys are not text, is an error.
    #[cfg(feature = "json")]
    pub fn json<T: serde::Serialize + ?Sized>(
        queue: impl Into<String>,
        value: &T,
    ) -> Result<Self, Error> {
        Ok(Self::new(queue, crate::json::payload("payload", value)?))
    }

    /// The message of a submit.
    pub(crate) fn into_wire(self) -> Result<v1::NewTask, Error> {
        let kind = self.task.backoff.as_ref().and_then(|backoff| backoff.kind.as_ref());
        match kind {
            Some(BackoffKind::Other(kind)) => Err(Error::unknown("backoff.kind", kind)),
            _ => Ok(self.task.into()),
        }
    }

    fn with(mut self, set: impl FnOnce(&mut tenure_api::NewTask)) -> Self {
        set(&mut self.task);
        self
    }

    /// Sets the priority, from -100 to 100; higher is leased first.
    pub fn priority(self, priority: i32) -> Self {
        self.with(|task| task.priority = Some(priority))
    }

    /// Delays the first lease by this time.
    pub fn delay(self, delay: Duration) -> Self {
        self.with(|task| task.delay_ms = Some(ms(delay)))
    }

    /// Delays the first lease until this time of the server's wall clock.
    pub fn run_at(self, at: SystemTime) -> Self {
        let at = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.with(|task| task.run_at = Some(Timestamp(ms(at))))
    }

    /// Sets the number of failures that end the task: 20 unless set.
    pub fn max_failures(self, failures: u32) -> Self {
        self.with(|task| task.max_failures = Some(failures))
    }

    /// Sets the number of expired leases that end the task: 10 unless set.
    pub fn max_expiries(self, expiries: u32) -> Self {
        self.with(|task| task.max_expiries = Some(expiries))
    }

    /// Sets the number of failures and expired leases that together end the task. The other two
    /// budgets then have no default.
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.with(|task| task.max_attempts = Some(attempts))
    }

    /// Sets how long the task waits after a failure.
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.with(|task| task.backoff = Some(backoff))
    }

    /// Sets the length of a lease: how long a worker may be silent.
    pub fn lease(self, lease: Duration) -> Self {
        let ms = u32::try_from(lease.as_millis()).unwrap_or(u32::MAX);
        self.with(|task| task.lease_ms = Some(ms))
    }

    /// Limits the time from submit to end. A task that takes longer ends FAILED with the code
    /// `TIMEOUT`.
    pub fn total_timeout(self, timeout: Duration) -> Self {
        self.with(|task| task.total_timeout_ms = Some(ms(timeout)))
    }

    /// Limits the time of one attempt, with heartbeats or without. An attempt that takes longer is a
    /// failure with the code `ATTEMPT_TIMEOUT`.
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        self.with(|task| task.attempt_timeout_ms = Some(ms(timeout)))
    }

    /// Sets the idempotency key: submitting an equal task under the same key returns the existing
    /// task. A submit without a response is retried only if it has a key.
    pub fn key(self, key: impl Into<String>) -> Self {
        self.with(|task| task.key = Some(key.into()))
    }

    /// Sets how long the key is held, from submit. Afterwards the key creates a new task even if the
    /// first one is still running.
    pub fn key_ttl(self, ttl: Duration) -> Self {
        self.with(|task| task.key_ttl_ms = Some(ms(ttl)))
    }

    /// Adds a tag, for people and for filters.
    pub fn tag(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|task| {
            task.tags.insert(key.into(), value.into());
        })
    }

    /// Sets the name of the kind of work, for workers and for filters.
    pub fn name(self, name: impl Into<String>) -> Self {
        self.with(|task| task.name = Some(name.into()))
    }

    /// Sets the W3C trace context of this submit, which the worker gets with the lease.
    pub fn traceparent(self, traceparent: impl Into<String>) -> Self {
        self.with(|task| task.traceparent = Some(traceparent.into()))
    }
}

impl From<tenure_api::NewTask> for NewTask {
    fn from(task: tenure_api::NewTask) -> Self {
        Self { task }
    }
}
