//! Workers, and the leases that they are granted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::payload::encoded_payloads;
use crate::{Encoding, Payload, TaskOfRun, Timestamp, tags};

/// A worker's request for leases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    /// The worker's id.
    pub worker: String,
    /// The queues to take tasks from, 1 to 100.
    pub queues: Vec<String>,
    /// The maximum number of leases; 1 if not given.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// How long to wait for the first lease; 0 if not given.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 60_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// The duration of the leases, instead of what each task says.
    #[cfg_attr(feature = "openapi", schema(minimum = 50, maximum = 86_400_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u32>,
}

/// The leases that a request was granted, in grant order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Leases {
    /// The leases; none if no task was ready in time.
    pub leases: Vec<Lease>,
}

/// A lease as its worker sees it: the task to execute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(remote = "Self")]
pub struct Lease {
    /// The task's id.
    pub task_id: u64,
    /// The lease's id and fencing token: a later lease of the task has a larger one.
    pub lease_id: u64,
    /// The number of leases granted on the task, this one included.
    pub attempt: u32,
    /// The task's queue.
    pub queue: String,
    /// What kind of work the task is.
    pub name: Option<String>,
    /// The input of the worker.
    pub payload: Payload,
    /// How `payload` is written in JSON; absent if it is JSON.
    #[serde(default, skip_serializing_if = "Encoding::is_json")]
    pub payload_encoding: Encoding,
    /// The task's tags.
    pub tags: BTreeMap<String, String>,
    /// Where the last attempt left off; empty if it reported no checkpoint.
    pub checkpoint: Payload,
    /// How `checkpoint` is written in JSON; absent if it is JSON.
    #[serde(default, skip_serializing_if = "Encoding::is_json")]
    pub checkpoint_encoding: Encoding,
    /// When the lease expires unless it is extended, by the wall clock.
    pub expires_at: Timestamp,
    /// The run that created the task, if a run did.
    pub run: Option<TaskOfRun>,
    /// The W3C trace context of the task's submit.
    pub traceparent: Option<String>,
}

encoded_payloads!(Lease: payload as payload_encoding, checkpoint as checkpoint_encoding);

/// What a worker says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// The worker's name for people; its id if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The queues that the worker takes tasks from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    /// The number of tasks that the worker executes at a time; 1 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Labels that describe the worker.
    #[serde(
        default,
        deserialize_with = "tags::unique",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub labels: BTreeMap<String, String>,
    /// Whether the worker takes nothing new.
    #[serde(default)]
    pub draining: bool,
}

/// A worker that was heard of lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Worker {
    /// The worker's id, as its requests name it.
    pub id: String,
    /// The worker's name for people; its id if it registered no other.
    pub name: String,
    /// Whether the server heard of the worker lately.
    pub connected: bool,
    /// Whether the worker has been silent for too long.
    pub dead: bool,
    /// When the server heard of the worker last.
    pub last_seen_at: Timestamp,
    /// The number of leases that the worker holds.
    pub active_leases: u32,
    /// The queues that the worker takes tasks from, if it registered.
    pub queues: Vec<String>,
    /// The number of tasks that the worker executes at a time, if it registered.
    pub slots: Option<u32>,
    /// Labels that describe the worker.
    pub labels: BTreeMap<String, String>,
    /// Whether the worker takes nothing new.
    pub draining: bool,
}

/// The outcome of a worker's sign-off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignedOff {
    /// The number of leases that were released.
    pub released: u64,
}
