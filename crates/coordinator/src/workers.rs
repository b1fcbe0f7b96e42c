//! Who works here. Soft: it is what was heard lately, it steers nothing that is written, and it is
//! gone after a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenure_core::name::{QueueName, WorkerName};
use tenure_core::time::Timestamp;

use crate::limits::{WORKER_DEAD_AFTER_MS, WORKERS_MAX};

/// What a worker says about itself.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Its name.
    pub worker: WorkerName,
    /// Where it looks for work.
    pub queues: Vec<QueueName>,
    /// How much it can do at a time.
    pub slots: u32,
    /// What it is like.
    pub labels: BTreeMap<String, String>,
    /// It takes nothing new.
    pub draining: bool,
}

/// A worker that was heard of.
#[derive(Clone, Debug)]
pub struct WorkerInfo {
    /// Its name.
    pub name: Arc<str>,
    /// What it said about itself, if it did.
    pub registration: Option<Registration>,
    /// When it was heard last.
    pub seen_at: Timestamp,
    /// It was silent for so long that nobody expects it back.
    pub is_dead: bool,
    /// Leases that it holds; filled in from the state.
    pub leases: u32,
}

/// All workers that were heard of, and no more than [`WORKERS_MAX`]: the longest silent is
/// forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    by_name: BTreeMap<Arc<str>, Known>,
    by_silence: BTreeSet<(Timestamp, Arc<str>)>,
}

#[derive(Debug)]
struct Known {
    registration: Option<Registration>,
    seen_at: Timestamp,
}

impl Workers {
    /// A worker was heard.
    pub(crate) fn saw(&mut self, worker: &str, now: Timestamp) {
        match self.by_name.get_mut(worker) {
            // Most are heard many times in a millisecond.
            Some(known) if known.seen_at == now => {}
            Some(known) => {
                let mut place = (known.seen_at, Arc::from(""));
                if let Some((name, _)) = self.by_name.get_key_value(worker) {
                    place.1 = Arc::clone(name);
                }
                self.by_silence.remove(&place);
                place.0 = now;
                self.by_silence.insert(place);
                if let Some(known) = self.by_name.get_mut(worker) {
                    known.seen_at = now;
                }
            }
            None => {
                if self.by_name.len() >= WORKERS_MAX
                    && let Some((_, silent)) = self.by_silence.pop_first()
                {
                    self.by_name.remove(&silent);
                }
                let name: Arc<str> = Arc::from(worker);
                self.by_silence.insert((now, Arc::clone(&name)));
                self.by_name.insert(name, Known { registration: None, seen_at: now });
            }
        }
    }

    /// A worker said what it is.
    pub(crate) fn register(&mut self, registration: Registration, now: Timestamp) {
        self.saw(registration.worker.as_str(), now);
        if let Some(known) = self.by_name.get_mut(registration.worker.as_str()) {
            known.registration = Some(registration);
        }
    }

    /// A worker left.
    pub(crate) fn sign_off(&mut self, worker: &str) {
        if let Some((name, known)) = self.by_name.remove_entry(worker) {
            self.by_silence.remove(&(known.seen_at, name));
        }
    }

    /// All of them, by name.
    pub(crate) fn list(&self, now: Timestamp) -> Vec<WorkerInfo> {
        let info = |(name, known): (&Arc<str>, &Known)| WorkerInfo {
            name: Arc::clone(name),
            registration: known.registration.clone(),
            seen_at: known.seen_at,
            is_dead: known.seen_at.plus_ms(WORKER_DEAD_AFTER_MS) <= now,
            leases: 0,
        };
        self.by_name.iter().map(info).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_silent_is_forgotten_first() {
        let mut workers = Workers::default();
        for number in 0..WORKERS_MAX as u64 {
            workers.saw(&format!("worker-{number}"), Timestamp(number));
        }
        workers.saw("worker-0", Timestamp(1_000_000));
        workers.saw("newcomer", Timestamp(1_000_001));
        let names: Vec<_> =
            workers.list(Timestamp(1_000_001)).into_iter().map(|worker| worker.name).collect();
        assert_eq!(names.len(), WORKERS_MAX);
        assert!(names.iter().any(|name| &**name == "worker-0"));
        assert!(!names.iter().any(|name| &**name == "worker-1"));
        workers.sign_off("newcomer");
        assert_eq!(workers.by_silence.len(), WORKERS_MAX - 1);
    }

    #[test]
    fn a_worker_that_is_silent_for_a_minute_is_shown_as_dead() {
        let mut workers = Workers::default();
        workers.saw("anna", Timestamp(5));
        assert!(!workers.list(Timestamp(60_004))[0].is_dead);
        assert!(workers.list(Timestamp(60_005))[0].is_dead);
    }
}
