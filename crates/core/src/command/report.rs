//! What a worker says under a lease without ending its task.

use tenure_record::progress::{Checkpoint, Progress};
use tenure_record::terms::{LeaseMs, Priority, SpanMs};

use super::LeaseRef;

/// A worker that is still at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Under which lease.
    pub lease: LeaseRef,
    /// Ends the lease this long from now, instead of after the lease's own span.
    pub lease_ms: Option<LeaseMs>,
    /// Where the next attempt goes on.
    pub checkpoint: Option<Checkpoint>,
    /// How far the work is. Nothing is decided by it, and it is not recorded.
    pub progress: Option<Box<Progress>>,
}

impl From<LeaseRef> for Heartbeat {
    fn from(lease: LeaseRef) -> Self {
        Self { lease, lease_ms: None, checkpoint: None, progress: None }
    }
}

/// A worker that gives its lease back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseTask {
    /// Which lease.
    pub lease: LeaseRef,
    /// How long the task waits before it may run again.
    pub delay_ms: SpanMs,
    /// The task's new priority; it keeps its own if not given.
    pub priority: Option<Priority>,
    /// Where the next attempt goes on.
    pub checkpoint: Option<Checkpoint>,
}

impl From<LeaseRef> for ReleaseTask {
    fn from(lease: LeaseRef) -> Self {
        Self { lease, delay_ms: SpanMs::ZERO, priority: None, checkpoint: None }
    }
}
