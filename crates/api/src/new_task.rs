//! Tasks to submit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::text::text_enum;
use crate::{Payload, Timestamp, payload, tags};

text_enum! {
    /// How the waits between failures grow.
    BackoffKind {
        /// Every wait is `initial_ms`.
        Fixed = "fixed",
        /// Each wait is `initial_ms` longer than the one before.
        Linear = "linear",
        /// Each wait is twice as long as the one before.
        Exponential = "exponential",
    }
}

/// How long a task waits after a failure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    /// How the waits grow; exponentially if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<BackoffKind>,
    /// The first wait; 1,000 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ms: Option<u64>,
    /// The longest wait; 300,000 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<u64>,
    /// The random part of a wait, from 0 to 1; 0.2 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
}

/// A task to submit. The server fills in what is not given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewTask {
    /// The queue; `default` if not given.
    #[cfg_attr(feature = "openapi", schema(max_length = 256, min_length = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// What kind of work the task is, for workers and for filters.
    #[cfg_attr(feature = "openapi", schema(max_length = 128, min_length = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The input of the worker: any JSON of at most 1 MiB, kept byte for byte; `null` if not given.
    #[serde(
        default = "Payload::null",
        deserialize_with = "payload::with_null",
        skip_serializing_if = "Payload::is_empty"
    )]
    pub payload: Payload,
    /// The priority, from -100 to 100; higher is leased first; 0 if not given.
    #[cfg_attr(feature = "openapi", schema(minimum = -100, maximum = 100))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// The delay from submit until the task can be leased; not together with `run_at`.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 31_622_400_000_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// When the task can be leased first, by the wall clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Timestamp>,
    /// Failures that end the task; 20 if not given, none if `max_attempts` is given.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<u32>,
    /// Expired leases that end the task; 10 if not given, none if `max_attempts` is given.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_expiries: Option<u32>,
    /// Failures and expired leases that together end the task; none if not given.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// How long the task waits after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// The duration of a lease; 30,000 if not given.
    #[cfg_attr(feature = "openapi", schema(minimum = 50, maximum = 86_400_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u32>,
    /// The time limit from submit to end; a task that exceeds it ends FAILED with code `TIMEOUT`.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 31_622_400_000_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_timeout_ms: Option<u64>,
    /// The time limit of one attempt, with heartbeats or without; exceeding it is a failure with code
    /// `ATTEMPT_TIMEOUT`.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 31_622_400_000_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_timeout_ms: Option<u64>,
    /// The idempotency key: submitting an equal task under the same key returns the existing task.
    #[cfg_attr(feature = "openapi", schema(max_length = 256, min_length = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How long the key is held from submit, even if the task is still running; as long as the task
    /// exists if not given.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 31_622_400_000_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_ttl_ms: Option<u64>,
    /// The W3C trace context of the submit; the worker receives it with the lease.
    #[cfg_attr(feature = "openapi", schema(max_length = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Labels for people and filters.
    #[serde(
        default,
        deserialize_with = "tags::unique",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub tags: BTreeMap<String, String>,
}

/// Tasks to submit together, all or none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewTasks {
    /// The tasks, at most 10,000.
    pub tasks: Vec<NewTask>,
}
