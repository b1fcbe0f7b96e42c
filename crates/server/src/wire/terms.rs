//! The terms of requests: values of the outward model, checked and parsed into those of the rules.

use std::collections::BTreeMap;

use tenure_api as api;
use tenure_code::{Code, Echo};
use tenure_core::command::{PauseEnd, Retry, Start};
use tenure_core::limits::LEASE_TASKS_MAX;
use tenure_record::name::{QueueName, TagKey, TagValue};
use tenure_record::progress::Checkpoint;
use tenure_record::terms::{Backoff, BackoffKind, LeaseMs, Payload, SpanMs, Tags};
use tenure_record::time::Timestamp;

use crate::problem::Problem;

type Parsed<T> = Result<T, Problem>;

/// A point in time, which has to be one that can be shown again.
pub(crate) fn time(field: &str, at: api::Timestamp) -> Parsed<Timestamp> {
    let api::Timestamp(ms) = at;
    let late = |why| Problem::invalid(format!("{field} is {ms} ms after 1970; {why}"));
    at.checked().map(|at| Timestamp(at.0)).map_err(late)
}

/// A point in time that may be left out.
pub(crate) fn maybe_time(field: &str, at: Option<api::Timestamp>) -> Parsed<Option<Timestamp>> {
    at.map(|at| time(field, at)).transpose()
}

/// When a task may run first.
pub(crate) fn start(delay_ms: Option<u64>, run_at: Option<Timestamp>) -> Parsed<Start> {
    match (delay_ms, run_at) {
        (Some(_), Some(_)) => Err(Problem::invalid("delay_ms and run_at are both given; keep one")),
        (Some(ms), None) => Ok(Start::After(SpanMs::parse("delay_ms", ms)?)),
        (None, Some(at)) => Ok(Start::At(at)),
        (None, None) => Ok(Start::AtOnce),
    }
}

/// What ends the pause of a queue.
pub(crate) fn pause_end(until: Option<Timestamp>, for_ms: Option<u64>) -> Parsed<PauseEnd> {
    match (until, for_ms) {
        (Some(_), Some(_)) => Err(Problem::invalid("until and for_ms are both given; keep one")),
        (Some(at), None) => Ok(PauseEnd::At(at)),
        (None, Some(ms)) => Ok(PauseEnd::After(SpanMs::parse("for_ms", ms)?)),
        (None, None) => Ok(PauseEnd::Resumed),
    }
}

/// A duration.
pub(crate) fn span(field: &str, ms: Option<u64>) -> Parsed<Option<SpanMs>> {
    Ok(ms.map(|ms| SpanMs::parse(field, ms)).transpose()?)
}

/// The duration of a lease.
pub(crate) fn lease_ms(ms: Option<u32>) -> Parsed<Option<LeaseMs>> {
    Ok(ms.map(|ms| LeaseMs::parse(ms.into())).transpose()?)
}

/// A duration that must not be zero.
pub(crate) fn some_span(field: &str, ms: Option<u64>) -> Parsed<Option<SpanMs>> {
    Ok(ms.map(|ms| SpanMs::parse_some(field, ms)).transpose()?)
}

/// How long a task holds its key.
pub(crate) fn key_ttl(ms: Option<u64>, has_key: bool) -> Parsed<Option<SpanMs>> {
    if ms.is_some() && !has_key {
        return Err(Problem::invalid("key_ttl_ms is given without a key; give both, or neither"));
    }
    some_span("key_ttl_ms", ms)
}

/// How a task waits between failures; what is left out has its default.
pub(crate) fn backoff(backoff: api::Backoff) -> Parsed<Backoff> {
    let api::Backoff { kind, initial_ms, max_ms, jitter } = backoff;
    let kind = match kind {
        None => None,
        Some(api::BackoffKind::Fixed) => Some(BackoffKind::Fixed),
        Some(api::BackoffKind::Linear) => Some(BackoffKind::Linear),
        Some(api::BackoffKind::Exponential) => Some(BackoffKind::Exponential),
        Some(other) => {
            return Err(Problem::invalid(format!(
                "backoff.kind is {}; it must be fixed, linear or exponential",
                Echo(other.as_str())
            )));
        }
    };
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
pub(crate) fn payload(field: &str, payload: api::Payload) -> Parsed<Payload> {
    Payload::parse(field, payload.into())
        .map_err(|invalid| Problem::new(Code::PayloadTooLarge, invalid.to_string()))
}

/// Where the next attempt of a task goes on; nothing if there are no bytes.
pub(crate) fn checkpoint(bytes: &[u8]) -> Parsed<Option<Checkpoint>> {
    Checkpoint::parse(bytes)
        .map_err(|invalid| Problem::new(Code::PayloadTooLarge, invalid.to_string()))
}

/// Tags of a task or a run, or labels of a worker.
pub(crate) fn tags(tags: BTreeMap<String, String>) -> Parsed<Tags> {
    let parse = |(key, value): (String, String)| {
        Ok::<_, Problem>((TagKey::parse(&key)?, TagValue::parse(&value)?))
    };
    Ok(Tags::parse(tags.into_iter().map(parse).collect::<Result<_, _>>()?)?)
}

/// What follows a failure.
pub(crate) fn retry(retryable: Option<bool>, retry_after_ms: Option<u64>) -> Parsed<Retry> {
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
pub(crate) fn tasks_max(max: Option<u32>) -> Parsed<std::num::NonZeroU32> {
    let max = max.unwrap_or(1);
    std::num::NonZeroU32::new(max).filter(|max| max.get() <= LEASE_TASKS_MAX).ok_or_else(|| {
        Problem::invalid(format!("max is {max}; it must be from 1 to {LEASE_TASKS_MAX}"))
    })
}

/// How long a request waits.
pub(crate) fn wait(wait_ms: Option<u64>) -> Parsed<u64> {
    let wait_ms = wait_ms.unwrap_or(0);
    let max = tenure_coordinator::limits::WAIT_MS_MAX;
    Some(wait_ms).filter(|ms| *ms <= max).ok_or_else(|| {
        Problem::invalid(format!("wait_ms is {wait_ms}; it must be from 0 to {max}"))
    })
}

/// Names of queues.
pub(crate) fn queues(names: &[String]) -> Parsed<Vec<QueueName>> {
    Ok(names.iter().map(|name| QueueName::parse(name)).collect::<Result<_, _>>()?)
}
