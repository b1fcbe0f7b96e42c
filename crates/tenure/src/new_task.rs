//! A task to submit, with what differs from the defaults.

use std::time::{Duration, SystemTime};

use tenure_core::command::{NewTask as Submission, Start};
use tenure_record::name::{QueueName, TaskKey, TaskName};
use tenure_record::terms::{Backoff as Waits, BackoffKind, Budgets, LeaseMs, Priority};
use tenure_record::trace::TraceParent;

use crate::error::Error;
use crate::terms;

/// A task to submit.
///
/// Values are checked when the task is submitted, so that the builder has no errors of its own, but
/// for JSON.
///
/// ```
/// use std::time::Duration;
/// use tenure::NewTask;
///
/// let task = NewTask::new("mail")
///     .payload(r#"{"to":"ada@example.org"}"#)
///     .key("welcome/ada")
///     .priority(10)
///     .delay(Duration::from_secs(5))
///     .tag("customer", "ada");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct NewTask {
    queue: String,
    payload: Vec<u8>,
    name: Option<String>,
    priority: i32,
    start: When,
    max_failures: Option<u32>,
    max_expiries: Option<u32>,
    max_attempts: Option<u32>,
    backoff: Option<Backoff>,
    lease: Option<Duration>,
    total_timeout: Option<Duration>,
    attempt_timeout: Option<Duration>,
    key: Option<String>,
    key_ttl: Option<Duration>,
    tags: Vec<(String, String)>,
    traceparent: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum When {
    AtOnce,
    After(Duration),
    At(SystemTime),
}

/// How long a task waits after a failure. A fifth of each wait is jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Always this long.
    Fixed(Duration),
    /// This much longer after each failure, up to the second span.
    Linear(Duration, Duration),
    /// Twice as long after each failure, up to the second span.
    Exponential(Duration, Duration),
}

impl NewTask {
    /// A task of a queue with an empty payload and the defaults. The queue is created with its first
    /// task.
    pub fn new(queue: impl Into<String>) -> Self {
        Self {
            queue: queue.into(),
            payload: Vec::new(),
            name: None,
            priority: 0,
            start: When::AtOnce,
            max_failures: None,
            max_expiries: None,
            max_attempts: None,
            backoff: None,
            lease: None,
            total_timeout: None,
            attempt_timeout: None,
            key: None,
            key_ttl: None,
            tags: Vec::new(),
            traceparent: None,
        }
    }

    /// The payload, which its worker gets: JSON, or any other bytes, at most 1 MiB.
    pub fn payload(self, payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: payload.into(), ..self }
    }

    /// The payload as JSON.
    ///
    /// # Errors
    /// The value has no JSON form, such as a map whose keys are not text.
    #[cfg(feature = "json")]
    pub fn json(self, payload: &impl serde::Serialize) -> Result<Self, Error> {
        Ok(Self { payload: terms::json("payload", payload)?, ..self })
    }

    /// The kind of work, for workers and lists.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// The priority, from -100 to 100; higher ones go first.
    pub fn priority(self, priority: i32) -> Self {
        Self { priority, ..self }
    }

    /// The task does not start before this delay is over. It replaces [`NewTask::run_at`].
    pub fn delay(self, delay: Duration) -> Self {
        Self { start: When::After(delay), ..self }
    }

    /// The task does not start before this moment of the wall clock. It replaces [`NewTask::delay`].
    pub fn run_at(self, at: SystemTime) -> Self {
        Self { start: When::At(at), ..self }
    }

    /// The number of failures that ends the task FAILED; 20 by default.
    pub fn max_failures(self, failures: u32) -> Self {
        Self { max_failures: Some(failures), ..self }
    }

    /// The number of expired leases that ends the task DEAD; 10 by default.
    pub fn max_expiries(self, expiries: u32) -> Self {
        Self { max_expiries: Some(expiries), ..self }
    }

    /// The number of failures and expired leases together that ends the task. With it, the other two
    /// budgets have no default.
    pub fn max_attempts(self, attempts: u32) -> Self {
        Self { max_attempts: Some(attempts), ..self }
    }

    /// How long the task waits after a failure; exponential from 1 s to 5 min by default.
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { backoff: Some(backoff), ..self }
    }

    /// The length of a lease, which heartbeats extend; 30 s by default.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// The time from submit to end. A task that takes longer ends FAILED with the code `TIMEOUT`.
    pub fn total_timeout(self, timeout: Duration) -> Self {
        Self { total_timeout: Some(timeout), ..self }
    }

    /// The time that one attempt may take, with heartbeats or without. An attempt that takes longer is
    /// a failure with the code `ATTEMPT_TIMEOUT`.
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        Self { attempt_timeout: Some(timeout), ..self }
    }

    /// The idempotency key: while a task with this key exists, an equal submit returns that task.
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// How long the task holds its key, from submit; as long as it exists by default.
    pub fn key_ttl(self, ttl: Duration) -> Self {
        Self { key_ttl: Some(ttl), ..self }
    }

    /// Adds a tag, by which lists can be filtered.
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.push((key.into(), value.into()));
        self
    }

    /// The W3C trace context of the submit, which its worker gets with the lease.
    pub fn traceparent(self, traceparent: impl Into<String>) -> Self {
        Self { traceparent: Some(traceparent.into()), ..self }
    }

    /// The task with every value checked.
    pub(crate) fn parse(self) -> Result<Submission, Error> {
        if self.key_ttl.is_some() && self.key.is_none() {
            return Err(Error::invalid("key_ttl is given without a key; give both, or neither"));
        }
        let count = |number: Option<u32>| number.map(i64::from);
        let task = Submission {
            name: self.name.as_deref().map(TaskName::parse).transpose()?,
            priority: Priority::parse(self.priority.into())?,
            start: match self.start {
                When::AtOnce => Start::AtOnce,
                When::After(delay) => Start::After(terms::span("delay", delay)?),
                When::At(at) => Start::At(terms::moment(at)),
            },
            budgets: Budgets::parse(
                count(self.max_failures),
                count(self.max_expiries),
                count(self.max_attempts),
            )?,
            backoff: self.backoff.map(Backoff::parse).transpose()?,
            lease_ms: self.lease.map_or(Ok(LeaseMs::default()), terms::lease_ms)?,
            total_timeout_ms: terms::some_span("total_timeout", self.total_timeout)?,
            attempt_timeout_ms: terms::some_span("attempt_timeout", self.attempt_timeout)?,
            key: self.key.as_deref().map(TaskKey::parse).transpose()?,
            key_ttl_ms: terms::some_span("key_ttl", self.key_ttl)?,
            tags: terms::tags(self.tags)?,
            traceparent: self.traceparent.as_deref().map(TraceParent::parse).transpose()?,
            ..Submission::new(
                QueueName::parse(&self.queue)?,
                terms::payload("payload", self.payload)?,
            )
        };
        // The hash of a keyed submit is computed here, not on the writer's thread.
        Ok(task.sealed())
    }
}

impl Backoff {
    fn parse(self) -> Result<Waits, Error> {
        let (kind, initial, max) = match self {
            Backoff::Fixed(wait) => (BackoffKind::Fixed, wait, wait),
            Backoff::Linear(step, max) => (BackoffKind::Linear, step, max),
            Backoff::Exponential(first, max) => (BackoffKind::Exponential, first, max),
        };
        let (initial_ms, max_ms) = (terms::ms(initial), terms::ms(max));
        Ok(Waits { kind: Some(kind), initial_ms, max_ms, ..Waits::STANDARD }.parse()?)
    }
}
