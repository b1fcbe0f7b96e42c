//! One number for the whole truth: two states with the same hash hold the same facts.
//!
//! It covers queues by name and tasks by id, with everything that a decision or an answer could
//! depend on. It does not cover counters, LSNs, the clock, or where things lie in memory.

use std::fmt;

use super::facts::Facts;
use super::task::{Cold, LeaseEnd, Task, TaskState};
use crate::time::Timestamp;

/// A hash of all facts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StateHash(pub [u8; 32]);

impl fmt::Display for StateHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for StateHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Bytes gathered before they are hashed: large pieces hash faster.
const GATHER_BYTES: usize = 64 << 10;

impl Facts {
    /// The hash of these facts. It reads everything: call it on a clone, off the writer's thread.
    #[must_use]
    pub fn hash(&self) -> StateHash {
        let mut sink = Sink { hasher: blake3::Hasher::new(), gathered: Vec::new() };
        let mut queues: Vec<_> = self.queues.iter().map(|(_, queue)| queue).collect();
        queues.sort_by(|a, b| a.name.cmp(&b.name));
        sink.number(queues.len() as u64);
        for queue in queues {
            sink.bytes(queue.name.as_bytes());
            sink.number(u64::from(queue.configured));
            sink.number(u64::from(queue.settings.paused));
            sink.optional(queue.settings.retention_ms);
        }
        sink.number(self.tasks.len());
        for (id, task) in self.tasks.iter() {
            sink.number(id);
            self.hash_task(task, &mut sink);
        }
        sink.finish()
    }

    fn hash_task(&self, task: &Task, sink: &mut Sink) {
        sink.bytes(self.queue_name(task.queue).as_bytes());
        sink.number(task.name() as u64);
        match task.state {
            TaskState::Waiting { not_before, clock } => {
                sink.number(not_before.0);
                sink.number(clock as u64);
            }
            TaskState::Leased { worker, expires_at } => {
                sink.bytes(self.worker_name(worker).as_bytes());
                sink.number(expires_at.0);
            }
            TaskState::Completed { at }
            | TaskState::Failed { at }
            | TaskState::Dead { at }
            | TaskState::Canceled { at } => sink.number(at.0),
        }
        sink.number(task.created_at.0);
        sink.number(task.started_at.0);
        sink.number(task.lease_id.0);
        sink.number(task.attempt.into());
        sink.number(task.lease_ms.into());
        sink.number(task.granted_ms.into());
        for count in [task.failures, task.expiries, task.max_attempts, task.max_expiries] {
            sink.number(count.into());
        }
        sink.number(task.priority.get() as u64);
        sink.number(match task.lease_end {
            LeaseEnd::Open => 0,
            LeaseEnd::Completed => 1,
            LeaseEnd::Failed => 2,
            LeaseEnd::Released => 3,
            LeaseEnd::Taken => 4,
        });
        sink.number(u64::from(task.cancel_requested));
        sink.bytes(self.blobs.get(task.payload));
        sink.bytes(self.blobs.get(task.output));
        // Whether there is a cold part at all is a matter of memory: an empty one says nothing.
        match self.cold_of(task).filter(|cold| **cold != Cold::default()) {
            Some(cold) => hash_cold(cold, sink),
            None => sink.number(0),
        }
    }
}

fn hash_cold(cold: &Cold, sink: &mut Sink) {
    sink.number(1);
    match &cold.key {
        Some(key) => {
            sink.bytes(key.text.as_bytes());
            sink.bytes(&key.hash.0);
        }
        None => sink.bytes(&[]),
    }
    let tags = cold.tags.as_deref().unwrap_or_default();
    sink.number(tags.len() as u64);
    for (key, value) in tags {
        sink.bytes(key.as_bytes());
        sink.bytes(value.as_bytes());
    }
    match &cold.backoff {
        Some(backoff) => {
            sink.number(backoff.kind.unwrap_or_default() as u64);
            sink.number(backoff.initial_ms);
            sink.number(backoff.max_ms);
            sink.number(backoff.jitter_permille.into());
        }
        None => sink.number(0),
    }
    sink.optional(cold.timeout_ms);
    for Timestamp(moment) in [cold.run_at, cold.deadline_at, cold.revoke_at] {
        sink.number(moment);
    }
    sink.number(cold.stale_lease.0);
    let errors = cold.errors.as_deref().unwrap_or_default();
    sink.number(errors.len() as u64);
    for error in errors {
        sink.bytes(error.code.as_bytes());
        sink.bytes(error.message.as_bytes());
    }
}

struct Sink {
    hasher: blake3::Hasher,
    gathered: Vec<u8>,
}

impl Sink {
    fn number(&mut self, number: u64) {
        self.gathered.extend_from_slice(&number.to_le_bytes());
    }

    fn optional(&mut self, number: Option<u64>) {
        self.number(u64::from(number.is_some()));
        self.number(number.unwrap_or_default());
    }

    /// The length goes first, so that no two lists of texts look alike.
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= GATHER_BYTES {
            self.hasher.update(&self.gathered);
            self.gathered.clear();
        }
    }

    fn finish(mut self) -> StateHash {
        self.hasher.update(&self.gathered);
        StateHash(*self.hasher.finalize().as_bytes())
    }
}
