//! One number for the whole truth: two states with the same hash hold the same facts.
//!
//! It covers queues by name, tasks by id, workflows by name and version and runs by id, with
//! everything that a decision or an answer could depend on. It does not cover counters, LSNs, the
//! clock, or where things lie in memory. Large values count by hashes of their own: what many
//! branches share is read once.

mod run;

use std::fmt;
use std::io;

use hashbrown::HashMap;
use tenure_record::snapshot::LeaseEnd;
use tenure_record::terms::Budget;
use tenure_record::time::Timestamp;
use tenure_value::Value;

use crate::state::facts::Facts;
use crate::state::facts::run::Versions;
use crate::state::facts::task::{Cold, Task, TaskPhase};

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
/// Values from this size on count by a hash of their own.
const HASHED_BYTES_MIN: usize = 256;
/// So many tasks or runs are a step.
const STEP_ITEMS: usize = 4_096;

/// The hash of facts in the making, for whoever must not be busy for long.
#[derive(Debug, Default)]
pub struct Hashing {
    sink: Sink,
    next: Next,
}

/// What is hashed next.
#[derive(Clone, Copy, Debug, Default)]
enum Next {
    #[default]
    Queues,
    /// Tasks from this id on.
    Tasks(u64),
    Workflows,
    /// Runs from this id on.
    Runs(u64),
}

impl Hashing {
    /// Goes on for a while. Gives the hash once it is made; then it must not be called again. The
    /// facts have to be the same ones each time.
    ///
    /// # Errors
    /// A payload or an output on the shelf cannot be read.
    pub fn step(&mut self, facts: &Facts) -> io::Result<Option<StateHash>> {
        let sink = &mut self.sink;
        self.next = match self.next {
            Next::Queues => {
                facts.hash_queues(sink);
                sink.number(facts.tasks.len());
                Next::Tasks(0)
            }
            Next::Tasks(from) => {
                let mut tasks = facts.tasks.up_from(from);
                for (id, task) in tasks.by_ref().take(STEP_ITEMS) {
                    sink.number(id);
                    facts.hash_task(task, sink)?;
                }
                tasks.next().map_or(Next::Workflows, |(id, _)| Next::Tasks(id))
            }
            Next::Workflows => {
                facts.hash_workflows(sink);
                sink.number(facts.runs.len());
                Next::Runs(0)
            }
            Next::Runs(from) => {
                let mut runs = facts.runs.up_from(from);
                for (id, stored) in runs.by_ref().take(STEP_ITEMS) {
                    sink.number(id);
                    sink.known.clear();
                    run::hash_run(stored, sink);
                }
                match runs.next() {
                    Some((id, _)) => Next::Runs(id),
                    None => return Ok(Some(sink.finish())),
                }
            }
        };
        Ok(None)
    }
}

impl Facts {
    /// The hash of these facts. It reads everything: call it on a clone, off the writer's thread.
    ///
    /// # Panics
    /// The shelf cannot be read; [`Facts::try_hash`] tells.
    #[must_use]
    pub fn hash(&self) -> StateHash {
        self.try_hash().expect("a check reads what is kept")
    }

    /// The hash of these facts, some of which may have to be read from the shelf.
    ///
    /// # Errors
    /// The shelf cannot be read.
    pub fn try_hash(&self) -> io::Result<StateHash> {
        let mut hashing = Hashing::default();
        loop {
            if let Some(hash) = hashing.step(self)? {
                return Ok(hash);
            }
        }
    }

    fn hash_queues(&self, sink: &mut Sink) {
        let mut queues: Vec<_> = self.queues.iter().map(|(_, queue)| queue).collect();
        queues.sort_by(|a, b| a.name.cmp(&b.name));
        sink.number(queues.len() as u64);
        for queue in queues {
            sink.bytes(queue.name.as_bytes());
            sink.number(u64::from(queue.configured));
            sink.bytes(&queue.settings.to_bytes());
        }
    }

    fn hash_workflows(&self, sink: &mut Sink) {
        for workflow in self.workflows.values().flatten() {
            sink.bytes(workflow.name.as_bytes());
            sink.number(workflow.version.into());
            sink.number(workflow.registered_at.0);
            sink.bytes(&workflow.hash);
        }
        let last = |(name, versions): (_, &Versions)| Some((name, versions.deleted_last()?));
        let left = self.workflows.iter().filter_map(last);
        let gone = self.deleted_workflows.iter().map(|(name, last)| (name, *last));
        for (name, last) in left.chain(gone) {
            sink.bytes(name.as_bytes());
            sink.number(last.into());
        }
    }

    fn hash_task(&self, task: &Task, sink: &mut Sink) -> io::Result<()> {
        sink.bytes(self.queue_name(task.queue).as_bytes());
        sink.bytes(self.task_name(task).map_or("", |name| name).as_bytes());
        sink.number(task.name() as u64);
        match task.state {
            TaskPhase::Waiting { not_before, clock } => {
                sink.number(not_before.0);
                sink.number(clock as u64);
            }
            TaskPhase::Leased { worker, expires_at } => {
                sink.bytes(self.worker_name(worker).as_bytes());
                sink.number(expires_at.0);
            }
            TaskPhase::Completed { at, offset }
            | TaskPhase::Failed { at, offset }
            | TaskPhase::Dead { at, offset }
            | TaskPhase::Canceled { at, offset } => {
                sink.number(at.0);
                sink.number(offset.get().0.cast_unsigned());
            }
        }
        sink.number(task.created_at.0);
        sink.number(task.started_at.0);
        sink.number(task.lease_id.0);
        sink.number(task.attempt.into());
        sink.number(task.lease_ms.into());
        for count in [task.failures, task.expiries] {
            sink.number(count.into());
        }
        sink.budget(task.max_failures);
        sink.budget(task.max_expiries);
        sink.number(task.priority.get() as u64);
        sink.number(match task.lease_end {
            LeaseEnd::Open => 0,
            LeaseEnd::Completed => 1,
            LeaseEnd::Failed => 2,
            LeaseEnd::Released => 3,
            LeaseEnd::Taken => 4,
        });
        sink.number(u64::from(task.cancel_requested));
        sink.bytes(&self.blobs.get(task.payload)?);
        sink.bytes(&self.blobs.get(task.output)?);
        // Whether there is a cold part at all is a matter of memory: an empty one says nothing.
        match self.cold_of(task).filter(|cold| **cold != Cold::default()) {
            Some(cold) => hash_cold(cold, sink),
            None => sink.number(0),
        }
        Ok(())
    }
}

fn hash_cold(cold: &Cold, sink: &mut Sink) {
    sink.number(1);
    match &cold.key {
        Some(key) => {
            sink.bytes(key.text.as_bytes());
            sink.bytes(&key.hash.0);
            sink.number(key.free_at.0);
            sink.number(u64::from(key.is_held));
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
    sink.optional(cold.total_timeout_ms);
    sink.budget(cold.max_attempts);
    sink.optional(cold.attempt_timeout_ms);
    sink.bytes(cold.traceparent.as_deref().unwrap_or_default().as_bytes());
    let moments = [cold.run_at, cold.deadline_at, cold.revoke_at, cold.attempt_deadline_at];
    for Timestamp(moment) in moments {
        sink.number(moment);
    }
    let (run, token) = cold.run.unwrap_or_default();
    sink.number(run.0);
    sink.number(token.0.into());
    sink.number(cold.dead_letter.0);
    sink.number(cold.dead_letter_of.0);
    sink.number(cold.stale_lease.0);
    sink.number(cold.granted_ms.into());
    sink.bytes(cold.checkpoint.as_deref().unwrap_or_default());
    let errors = cold.errors.as_deref().unwrap_or_default();
    sink.number(errors.len() as u64);
    for error in errors {
        sink.bytes(error.code.as_bytes());
        sink.bytes(error.message.as_bytes());
    }
}

#[derive(Debug, Default)]
struct Sink {
    hasher: blake3::Hasher,
    gathered: Vec<u8>,
    /// Hashes of large values of the run at hand, by where they lie.
    known: HashMap<usize, [u8; 32], foldhash::fast::FixedState>,
}

impl Sink {
    fn number(&mut self, number: u64) {
        self.gathered.extend_from_slice(&number.to_le_bytes());
    }

    fn value(&mut self, value: Option<&Value>) {
        match value {
            Some(value) => {
                let mut text = Vec::new();
                put_value(value, &mut self.known, &mut text);
                self.bytes(&text);
            }
            None => self.number(u64::MAX),
        }
    }

    fn budget(&mut self, budget: Option<Budget>) {
        self.number(budget.map_or(0, |budget| budget.get().into()));
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

    fn finish(&mut self) -> StateHash {
        self.hasher.update(&self.gathered);
        self.gathered.clear();
        StateHash(*self.hasher.finalize().as_bytes())
    }
}

/// Writes a value as it counts: the large ones inside it by their hashes. Where the bound lies
/// depends on nothing but the value.
fn put_value(
    value: &Value,
    known: &mut HashMap<usize, [u8; 32], foldhash::fast::FixedState>,
    out: &mut Vec<u8>,
) {
    let address = value.address().filter(|_| value.bytes() >= HASHED_BYTES_MIN);
    let Some(address) = address else { return value.write_json(out) };
    if let Some(hash) = known.get(&address) {
        return out.extend_from_slice(hash);
    }
    let mut parts = Vec::new();
    match value {
        Value::List(list) => {
            parts.push(b'[');
            for item in list.as_slice() {
                put_value(item, known, &mut parts);
                parts.push(b',');
            }
        }
        Value::Map(map) => {
            parts.push(b'{');
            for (key, value) in map.entries() {
                parts.extend_from_slice(&(key.len() as u64).to_le_bytes());
                parts.extend_from_slice(key.as_bytes());
                put_value(value, known, &mut parts);
                parts.push(b',');
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Float(_)
        | Value::Text(_) => value.write_json(&mut parts),
    }
    let hash = *blake3::hash(&parts).as_bytes();
    known.insert(address, hash);
    out.extend_from_slice(&hash);
}
