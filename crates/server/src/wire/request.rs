//! Requests as they come over HTTP: field names and defaults of the contract. Parsed here, once.

use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use tenure_code::Echo;
use tenure_core::command::{
    CancelTask, ConfigureQueue, LeaseTasks, NewTask, PauseQueue, Setting, SettingsChange,
};
use tenure_record::id::TaskId;
use tenure_record::name::{QueueName, TaskKey, TaskName, WorkerName};
use tenure_record::terms::{Backoff, BackoffKind, Budgets, LeaseMs, Payload, Priority, SpanMs};
use tenure_record::trace::TraceParent;
use utoipa::ToSchema;

use super::pairs::Pairs;
use super::terms;
use crate::moment;
use crate::problem::Problem;

/// A task to submit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTaskBody<'a> {
    /// Where it waits; "default" if not given.
    #[schema(max_length = 256, min_length = 1)]
    queue: Option<String>,
    /// What kind of work it is, for workers and for lists.
    #[schema(max_length = 128, min_length = 1)]
    name: Option<String>,
    /// Any JSON; kept as it is.
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<&'a RawValue>,
    /// Higher goes first; 0 if not given.
    #[schema(minimum = -100, maximum = 100)]
    priority: Option<i64>,
    /// How long it waits before it may run; not together with `run_at`.
    #[schema(minimum = 0, maximum = 31_622_400_000_i64)]
    delay_ms: Option<i64>,
    /// When it may run, by the wall clock.
    #[schema(format = DateTime)]
    run_at: Option<String>,
    /// Failures that end it; 20 if not given, none if `max_attempts` is given.
    #[schema(minimum = 1, maximum = 10_000)]
    max_failures: Option<i64>,
    /// Expired leases that end it; 10 if not given, none if `max_attempts` is given.
    #[schema(minimum = 1, maximum = 10_000)]
    max_expiries: Option<i64>,
    /// Failures and expired leases that together end it; none if not given.
    #[schema(minimum = 1, maximum = 10_000)]
    max_attempts: Option<i64>,
    /// How it waits between failures.
    backoff: Option<BackoffBody>,
    /// How long a lease lasts; 30,000 if not given.
    #[schema(minimum = 50, maximum = 86_400_000)]
    lease_ms: Option<i64>,
    /// From submit to end; a task that takes longer ends FAILED with code `TIMEOUT`.
    #[schema(minimum = 0, maximum = 31_622_400_000_i64)]
    total_timeout_ms: Option<i64>,
    /// How long one attempt may take, with heartbeats or without; one that takes longer is a failure with
    /// code `ATTEMPT_TIMEOUT`.
    #[schema(minimum = 1, maximum = 31_622_400_000_i64)]
    attempt_timeout_ms: Option<i64>,
    /// The same submit under the same key gives the same task.
    #[schema(max_length = 256, min_length = 1)]
    key: Option<String>,
    /// How long the key is held, from submit, even if the task still runs; as long as the task exists if
    /// not given.
    #[schema(minimum = 1, maximum = 31_622_400_000_i64)]
    key_ttl_ms: Option<i64>,
    /// The W3C trace context of the submit, for the worker.
    #[schema(max_length = 128)]
    traceparent: Option<String>,
    /// Labels for people.
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    tags: Option<Pairs>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BackoffBody {
    kind: Option<String>,
    initial_ms: Option<u64>,
    max_ms: Option<u64>,
    jitter: Option<f64>,
}

fn span(field: &str, ms: Option<i64>) -> Result<Option<SpanMs>, Problem> {
    Ok(ms.map(|ms| SpanMs::parse(field, ms)).transpose()?)
}

/// What the headers of a submit say.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// `Idempotency-Key`.
    pub(crate) key: Option<String>,
    /// `traceparent`, if it is well formed.
    pub(crate) traceparent: Option<TraceParent>,
}

impl Said {
    /// Reads the headers. A malformed `traceparent`, or more than one, counts as none, as the W3C
    /// Recommendation says.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut keys = headers.get_all("idempotency-key").iter();
        let key = match (keys.next(), keys.next()) {
            (None, _) => None,
            (Some(key), None) => Some(key.to_str().map_err(|_| {
                Problem::invalid("the header Idempotency-Key is not text; give it as `key`")
            })?),
            (Some(_), Some(_)) => {
                return Err(Problem::invalid(
                    "the header Idempotency-Key comes more than once; keep one",
                ));
            }
        };
        let mut parents = headers.get_all("traceparent").iter();
        let traceparent = match (parents.next(), parents.next()) {
            (Some(parent), None) => parent.to_str().ok(),
            (None, _) | (Some(_), Some(_)) => None,
        };
        Ok(Self {
            key: key.map(str::to_owned),
            traceparent: traceparent.and_then(|text| TraceParent::parse(text).ok()),
        })
    }
}

impl NewTaskBody<'_> {
    /// The task that is meant.
    pub(crate) fn parse(self) -> Result<NewTask, Problem> {
        self.parse_with(Said::default())
    }

    /// The task that is meant, with what the headers of the request say.
    pub(crate) fn parse_with(mut self, said: Said) -> Result<NewTask, Problem> {
        if let Some(key) = said.key {
            if let Some(other) = self.key.as_ref().filter(|other| **other != key) {
                return Err(Problem::invalid(format!(
                    "key is {} and the header Idempotency-Key is {}; keep one",
                    Echo(other),
                    Echo(&key)
                )));
            }
            self.key = Some(key);
        }
        let run_at = self.run_at.map(|at| moment::parse("run_at", &at)).transpose()?;
        Ok(NewTask {
            queue: QueueName::parse(self.queue.as_deref().unwrap_or("default"))?,
            payload: payload("payload", self.payload)?,
            name: self.name.as_deref().map(TaskName::parse).transpose()?,
            priority: Priority::parse(self.priority.unwrap_or(0))?,
            start: terms::start(self.delay_ms.map(i128::from), run_at)?,
            budgets: Budgets::parse(self.max_failures, self.max_expiries, self.max_attempts)?,
            backoff: self.backoff.map(BackoffBody::parse).transpose()?,
            lease_ms: self.lease_ms.map_or(Ok(LeaseMs::default()), LeaseMs::parse)?,
            total_timeout_ms: span("total_timeout_ms", self.total_timeout_ms)?,
            attempt_timeout_ms: terms::some_span("attempt_timeout_ms", self.attempt_timeout_ms)?,
            key_ttl_ms: terms::key_ttl(self.key_ttl_ms, self.key.is_some())?,
            key: self.key.as_deref().map(TaskKey::parse).transpose()?,
            tags: terms::tags("tags", self.tags.unwrap_or_default().0)?,
            traceparent: match self.traceparent {
                Some(text) => Some(TraceParent::parse(&text)?),
                None => said.traceparent,
            },
            seal: None,
        }
        .sealed())
    }
}

impl BackoffBody {
    fn parse(self) -> Result<Backoff, Problem> {
        let kind = match self.kind.as_deref() {
            None => None,
            Some("fixed") => Some(BackoffKind::Fixed),
            Some("linear") => Some(BackoffKind::Linear),
            Some("exponential") => Some(BackoffKind::Exponential),
            Some(other) => {
                return Err(Problem::invalid(format!(
                    "backoff.kind is {}; it must be fixed, linear or exponential",
                    Echo(other)
                )));
            }
        };
        terms::backoff(kind, self.initial_ms, self.max_ms, self.jitter)
    }
}

pub(super) fn payload(field: &str, json: Option<&RawValue>) -> Result<Payload, Problem> {
    terms::payload(field, json.map_or("null", RawValue::get).as_bytes().to_vec())
}

/// Tasks to submit together.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchBody<'a> {
    /// All or none of them.
    #[serde(borrow)]
    pub(crate) tasks: Vec<NewTaskBody<'a>>,
}

/// A worker that asks for work.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeaseBody {
    worker: String,
    queues: Vec<String>,
    /// Leases at most; 1 if not given.
    #[schema(minimum = 1, maximum = 1_000)]
    max: Option<i64>,
    /// How long to wait for the first.
    #[schema(minimum = 0, maximum = 60_000)]
    wait_ms: Option<i64>,
    /// Instead of what the tasks say.
    #[schema(minimum = 50, maximum = 86_400_000)]
    lease_ms: Option<i64>,
}

impl LeaseBody {
    /// The request that is meant, and how long it waits.
    pub(crate) fn parse(self) -> Result<(LeaseTasks, u64), Problem> {
        let request = LeaseTasks {
            worker: WorkerName::parse(&self.worker)?,
            queues: terms::queues(&self.queues)?,
            tasks_max: terms::tasks_max(self.max)?,
            lease_ms: self.lease_ms.map(LeaseMs::parse).transpose()?,
        };
        Ok((request, terms::wait(self.wait_ms.map(i128::from))?))
    }
}

/// A wish that a task stop.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelBody {
    grace_ms: Option<i64>,
}

impl CancelBody {
    /// The wish that is meant.
    pub(crate) fn parse(self, task_id: u64) -> Result<CancelTask, Problem> {
        let grace_ms = self.grace_ms.map(|ms| SpanMs::parse("grace_ms", ms)).transpose()?;
        Ok(CancelTask { task_id: TaskId(task_id), grace_ms })
    }
}

/// Settings of a queue; null clears one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueBody {
    #[serde(default, deserialize_with = "given")]
    retention_ms: Option<Option<i64>>,
    /// No leases are given before this moment of the wall clock, in RFC 3339.
    #[serde(default, deserialize_with = "given")]
    paused_until: Option<Option<String>>,
    /// The queue that gets a copy of each task that ends FAILED or DEAD. It is made if it is not there yet.
    #[serde(default, deserialize_with = "given")]
    dead_letter_queue: Option<Option<String>>,
}

/// Tells a field that is null from one that is not there.
fn given<'d, D, T>(from: D) -> Result<Option<Option<T>>, D::Error>
where
    D: serde::Deserializer<'d>,
    T: Deserialize<'d>,
{
    Option::deserialize(from).map(Some)
}

/// How long a queue is paused; until it is resumed if nothing is given.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseBody {
    /// It opens by itself at this moment of the wall clock, in RFC 3339.
    until: Option<String>,
    /// It opens by itself after so many milliseconds. At most one of the two is given.
    #[schema(minimum = 0)]
    for_ms: Option<i64>,
}

impl PauseBody {
    /// The pause that is meant.
    pub(crate) fn parse(self, queue: QueueName) -> Result<PauseQueue, Problem> {
        let until = self.until.as_deref().map(|at| moment::parse("until", at)).transpose()?;
        let end = terms::pause_end(until, self.for_ms.map(i128::from))?;
        Ok(PauseQueue { queue, end })
    }
}

impl QueueBody {
    /// The settings that are meant.
    pub(crate) fn parse(self, queue: QueueName) -> Result<ConfigureQueue, Problem> {
        let retention_ms = match self.retention_ms {
            None => Setting::Keep,
            Some(None) => Setting::Clear,
            Some(Some(ms)) => Setting::Set(SpanMs::parse("retention_ms", ms)?),
        };
        let paused_until = match self.paused_until.as_ref().map(Option::as_deref) {
            None => Setting::Keep,
            Some(None) => Setting::Clear,
            Some(Some(at)) => Setting::Set(moment::parse("paused_until", at)?),
        };
        let dead_letter_queue = match self.dead_letter_queue.as_ref().map(Option::as_deref) {
            None => Setting::Keep,
            Some(None) => Setting::Clear,
            Some(Some(name)) => Setting::Set(QueueName::parse(name)?),
        };
        let change =
            SettingsChange { retention_ms, paused_until, dead_letter_queue, ..Default::default() };
        Ok(ConfigureQueue { queue, change })
    }
}

/// What a worker says about itself.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkerBody {
    /// What people call it, if not by its id.
    name: Option<String>,
    #[serde(default)]
    queues: Vec<String>,
    slots: Option<u32>,
    #[serde(default)]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    labels: Pairs,
    #[serde(default)]
    draining: bool,
}

impl WorkerBody {
    /// The registration that is meant.
    pub(crate) fn parse(self, id: &str) -> Result<tenure_coordinator::Registration, Problem> {
        terms::Said {
            worker: id.to_owned(),
            display_name: self.name,
            queues: self.queues,
            slots: self.slots,
            labels: self.labels,
            draining: self.draining,
        }
        .parse()
    }
}
