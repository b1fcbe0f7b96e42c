//! A task to submit, with what should be different from the defaults.

use std::time::{Duration, SystemTime};

use tenure_proto::v1;

/// A task to submit.
///
/// ```
/// use std::time::Duration;
/// use tenure_sdk::NewTask;
///
/// let task = NewTask::new("mail", r#"{"to":"ada@example.org"}"#)
///     .key("welcome/ada")
///     .priority(10)
///     .delay(Duration::from_secs(5))
///     .tag("customer", "ada");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct NewTask {
    pub(crate) wire: v1::NewTask,
}

/// How long a task waits after a failure.
#[derive(Clone, Copy, Debug)]
pub enum Backoff {
    /// Always so long.
    Fixed(Duration),
    /// So much longer each time, up to the second.
    Linear(Duration, Duration),
    /// Doubled each time, up to the second.
    Exponential(Duration, Duration),
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl NewTask {
    /// A task with the defaults. The payload is any bytes; JSON can be read by people too.
    pub fn new(queue: impl Into<String>, payload: impl Into<Vec<u8>>) -> Self {
        let (queue, payload) = (queue.into(), payload.into());
        Self { wire: v1::NewTask { queue, payload, ..v1::NewTask::default() } }
    }

    fn with(mut self, set: impl FnOnce(&mut v1::NewTask)) -> Self {
        set(&mut self.wire);
        self
    }

    /// From -100 to 100, higher first.
    pub fn priority(self, priority: i32) -> Self {
        self.with(|task| task.priority = priority)
    }

    /// Not before so long.
    pub fn delay(self, delay: Duration) -> Self {
        self.with(|task| task.delay_ms = Some(ms(delay)))
    }

    /// Not before that moment.
    pub fn run_at(self, at: SystemTime) -> Self {
        let at = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.with(|task| task.run_at = Some(ms(at)))
    }

    /// Failures that end it; 20 unless told.
    pub fn max_failures(self, failures: u32) -> Self {
        self.with(|task| task.max_failures = Some(failures))
    }

    /// Failures and expired leases that together end it. With this, the other two budgets have no
    /// default.
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.with(|task| task.max_attempts = Some(attempts))
    }

    /// Expired leases that end it; 10 unless told.
    pub fn max_expiries(self, expiries: u32) -> Self {
        self.with(|task| task.max_expiries = Some(expiries))
    }

    /// How it waits between failures.
    pub fn backoff(self, backoff: Backoff) -> Self {
        let (kind, initial, max) = match backoff {
            Backoff::Fixed(wait) => (v1::BackoffKind::Fixed, wait, wait),
            Backoff::Linear(first, max) => (v1::BackoffKind::Linear, first, max),
            Backoff::Exponential(first, max) => (v1::BackoffKind::Exponential, first, max),
        };
        let backoff = v1::Backoff {
            kind: kind.into(),
            initial_ms: Some(ms(initial)),
            max_ms: Some(ms(max)),
            jitter: None,
        };
        self.with(|task| task.backoff = Some(backoff))
    }

    /// How long a worker may be silent.
    pub fn lease(self, lease: Duration) -> Self {
        let ms = u32::try_from(lease.as_millis()).unwrap_or(u32::MAX);
        self.with(|task| task.lease_ms = Some(ms))
    }

    /// From submit to end. A task that takes longer ends FAILED with the code `TIMEOUT`.
    pub fn total_timeout(self, timeout: Duration) -> Self {
        self.with(|task| task.total_timeout_ms = Some(ms(timeout)))
    }

    /// How long one attempt may take, with heartbeats or without. One that takes longer is a failure
    /// with the code `ATTEMPT_TIMEOUT`.
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        self.with(|task| task.attempt_timeout_ms = Some(ms(timeout)))
    }

    /// How long the key is held, from submit. After it, the key makes a new task even if the first one
    /// still runs.
    pub fn key_ttl(self, ttl: Duration) -> Self {
        self.with(|task| task.key_ttl_ms = Some(ms(ttl)))
    }

    /// Makes the same submit give the same task. With a key, a submit without an answer is tried
    /// again; without one it is not, as nobody knows whether it was done.
    pub fn key(self, key: impl Into<String>) -> Self {
        self.with(|task| task.key = Some(key.into()))
    }

    /// A label for people.
    pub fn tag(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|task| {
            task.tags.insert(key.into(), value.into());
        })
    }

    /// What kind of work it is, for workers and for lists.
    pub fn name(self, name: impl Into<String>) -> Self {
        self.with(|task| task.name = Some(name.into()))
    }

    /// The W3C trace context of this submit. Its worker gets it with the lease.
    pub fn traceparent(self, traceparent: impl Into<String>) -> Self {
        self.with(|task| task.traceparent = Some(traceparent.into()))
    }
}

/// A task as it goes over the wire, for what this builder has no words for.
impl From<v1::NewTask> for NewTask {
    fn from(wire: v1::NewTask) -> Self {
        Self { wire }
    }
}
