//! What both doors say in their own way and mean alike: checked in one place.

use tenure_code::{Code, Echo};
use tenure_coordinator::Registration;
use tenure_core::command::{PauseEnd, Retry, Start};
use tenure_core::limits::{LEASE_QUEUES_MAX, LEASE_TASKS_MAX};
use tenure_record::name::{QueueName, TagKey, TagValue, WorkerName};
use tenure_record::progress::Checkpoint;
use tenure_record::terms::{Backoff, BackoffKind, Payload, SpanMs, Tags};
use tenure_record::time::Timestamp;

use super::pairs::Pairs;
use crate::problem::Problem;

type Parsed<T> = Result<T, Problem>;

/// When a task may run first.
pub(crate) fn start(delay_ms: Option<i128>, run_at: Option<Timestamp>) -> Parsed<Start> {
    match (delay_ms, run_at) {
        (Some(_), Some(_)) => Err(Problem::invalid("delay_ms and run_at are both given; keep one")),
        (Some(ms), None) => Ok(Start::After(SpanMs::parse("delay_ms", ms)?)),
        (None, Some(at)) => Ok(Start::At(at)),
        (None, None) => Ok(Start::AtOnce),
    }
}

/// What ends the pause of a queue.
pub(crate) fn pause_end(until: Option<Timestamp>, for_ms: Option<i128>) -> Parsed<PauseEnd> {
    match (until, for_ms) {
        (Some(_), Some(_)) => Err(Problem::invalid("until and for_ms are both given; keep one")),
        (Some(at), None) => Ok(PauseEnd::At(at)),
        (None, Some(ms)) => Ok(PauseEnd::After(SpanMs::parse("for_ms", ms)?)),
        (None, None) => Ok(PauseEnd::Resumed),
    }
}

/// A span that must not be zero.
pub(crate) fn some_span(field: &str, ms: Option<impl Into<i128>>) -> Parsed<Option<SpanMs>> {
    Ok(ms.map(|ms| SpanMs::parse_some(field, ms)).transpose()?)
}

/// How long a task holds its key.
pub(crate) fn key_ttl(ms: Option<impl Into<i128>>, has_key: bool) -> Parsed<Option<SpanMs>> {
    if ms.is_some() && !has_key {
        return Err(Problem::invalid("key_ttl_ms is given without a key; give both, or neither"));
    }
    some_span("key_ttl_ms", ms)
}

/// How a task waits between failures; what is left out is as usual.
pub(crate) fn backoff(
    kind: Option<BackoffKind>,
    initial_ms: Option<u64>,
    max_ms: Option<u64>,
    jitter: Option<f64>,
) -> Parsed<Backoff> {
    let usual = Backoff::STANDARD;
    let jitter = jitter.unwrap_or(f64::from(usual.jitter_permille) / 1_000.0);
    if !(0.0..=1.0).contains(&jitter) {
        let detail = format!("backoff.jitter is {jitter}; it must be from 0 to 1");
        return Err(Problem::invalid(detail));
    }
    let backoff = Backoff {
        kind: kind.or(usual.kind),
        initial_ms: initial_ms.unwrap_or(usual.initial_ms),
        max_ms: max_ms.unwrap_or(usual.max_ms),
        jitter_permille: (jitter * 1_000.0).round() as u16,
    };
    Ok(backoff.parse()?)
}

/// A payload or an output.
pub(crate) fn payload(field: &str, bytes: Vec<u8>) -> Parsed<Payload> {
    Payload::parse(field, bytes)
        .map_err(|invalid| Problem::new(Code::PayloadTooLarge, invalid.to_string()))
}

/// Where the next attempt of a task goes on; nothing if there are no bytes.
pub(crate) fn checkpoint(bytes: &[u8]) -> Parsed<Option<Checkpoint>> {
    Checkpoint::parse(bytes)
        .map_err(|invalid| Problem::new(Code::PayloadTooLarge, invalid.to_string()))
}

/// Tags of a task or a run, or labels of a worker. A key that comes twice is refused.
pub(crate) fn tags(field: &str, tags: impl IntoIterator<Item = (String, String)>) -> Parsed<Tags> {
    let parse = |(key, value): (String, String)| {
        Ok::<_, Problem>((TagKey::parse(&key)?, TagValue::parse(&value)?))
    };
    let mut tags: Vec<_> = tags.into_iter().map(parse).collect::<Result<_, _>>()?;
    tags.sort();
    if let Some(pair) = tags.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let key = Echo(pair[0].0.as_str());
        return Err(Problem::invalid(format!("{field} has the key {key} twice; keep one")));
    }
    Ok(Tags::parse(tags)?)
}

/// What follows a failure.
pub(crate) fn retry(retryable: Option<bool>, retry_after_ms: Option<i128>) -> Parsed<Retry> {
    match (retryable.unwrap_or(true), retry_after_ms) {
        (false, Some(_)) => {
            let detail = "retryable is false and retry_after_ms is given; keep one";
            Err(Problem::invalid(detail))
        }
        (false, None) => Ok(Retry::Never),
        (true, Some(ms)) => Ok(Retry::After(SpanMs::parse("retry_after_ms", ms)?)),
        (true, None) => Ok(Retry::WithBackoff),
    }
}

/// How many tasks a worker wants.
pub(crate) fn tasks_max(max: Option<i64>) -> Parsed<std::num::NonZeroU32> {
    let max = max.unwrap_or(1);
    let parsed = u32::try_from(max).ok().and_then(std::num::NonZeroU32::new);
    parsed.filter(|max| max.get() <= LEASE_TASKS_MAX).ok_or_else(|| {
        Problem::invalid(format!("max is {max}; it must be from 1 to {LEASE_TASKS_MAX}"))
    })
}

/// How long somebody wants to wait.
pub(crate) fn wait(wait_ms: Option<i128>) -> Parsed<u64> {
    let wait_ms = wait_ms.unwrap_or(0);
    let max = tenure_coordinator::limits::WAIT_MS_MAX;
    u64::try_from(wait_ms).ok().filter(|ms| *ms <= max).ok_or_else(|| {
        Problem::invalid(format!("wait_ms is {wait_ms}; it must be from 0 to {max}"))
    })
}

/// Names of queues.
pub(crate) fn queues(names: &[String]) -> Parsed<Vec<QueueName>> {
    Ok(names.iter().map(|name| QueueName::parse(name)).collect::<Result<_, _>>()?)
}

/// What a worker says about itself, as it came.
pub(crate) struct Said {
    pub(crate) worker: String,
    pub(crate) display_name: Option<String>,
    pub(crate) queues: Vec<String>,
    pub(crate) slots: Option<u32>,
    pub(crate) labels: Pairs,
    pub(crate) draining: bool,
}

impl Said {
    /// The registration that is meant. It is kept in memory, so all of it has a limit.
    pub(crate) fn parse(self) -> Parsed<Registration> {
        let count = self.queues.len();
        if count > LEASE_QUEUES_MAX {
            let detail =
                format!("queues has {count} names; at most {LEASE_QUEUES_MAX} are allowed");
            return Err(Problem::invalid(detail));
        }
        Ok(Registration {
            worker: WorkerName::parse(&self.worker)?,
            display_name: self.display_name.as_deref().map(TagValue::parse).transpose()?,
            queues: queues(&self.queues)?,
            slots: self.slots.unwrap_or(1),
            labels: tags("labels", self.labels.0)?,
            draining: self.draining,
        })
    }
}
