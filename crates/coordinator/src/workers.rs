//! Who works here. Soft: it is what was heard lately, it steers nothing that is written, and it is
//! gone after a restart.

use std::collections::HashMap;
use std::sync::Arc;

use tenure_record::name::{QueueName, TagValue, WorkerName};
use tenure_record::terms::Tags;
use tenure_record::time::Timestamp;

use crate::limits::{WORKER_DEAD_AFTER_MS, WORKERS_MAX};

/// What a worker says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Its name.
    pub worker: WorkerName,
    /// What people call it, if not by its name.
    pub display_name: Option<TagValue>,
    /// Where it looks for work.
    pub queues: Vec<QueueName>,
    /// How much it can do at a time.
    pub slots: u32,
    /// What it is like.
    pub labels: Tags,
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

/// When there are too many, so many of the longest silent are forgotten at once.
const FORGOTTEN_AT_ONCE: usize = WORKERS_MAX / 10;

/// All workers that were heard of, and no more than [`WORKERS_MAX`]: the longest silent are
/// forgotten first. Strangers choose the names, so the table is one that cannot be made slow; its
/// order is never seen.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    by_name: HashMap<Arc<str>, Known>,
}

#[derive(Debug)]
struct Known {
    registration: Option<Registration>,
    seen_at: Timestamp,
}

impl Workers {
    /// A worker was heard.
    pub(crate) fn saw(&mut self, worker: &str, now: Timestamp) {
        if let Some(known) = self.by_name.get_mut(worker) {
            known.seen_at = now;
            return;
        }
        if self.by_name.len() >= WORKERS_MAX {
            self.forget_the_silent();
        }
        self.by_name.insert(Arc::from(worker), Known { registration: None, seen_at: now });
    }

    fn forget_the_silent(&mut self) {
        let silence = |(name, known): (&Arc<str>, &Known)| (known.seen_at, Arc::clone(name));
        let mut silent: Vec<_> = self.by_name.iter().map(silence).collect();
        silent.select_nth_unstable(FORGOTTEN_AT_ONCE);
        for (_, name) in &silent[..FORGOTTEN_AT_ONCE] {
            self.by_name.remove(name);
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
        self.by_name.remove(worker);
    }

    /// How many workers that were heard of lately said that they take from a queue.
    pub(crate) fn connected_to(&self, queue: &str, now: Timestamp) -> usize {
        let takes = |known: &Known| {
            let said = known.registration.as_ref().filter(|said| !said.draining);
            said.is_some_and(|said| said.queues.iter().any(|name| name.as_str() == queue))
        };
        let is_alive = |known: &Known| now < known.seen_at.plus_ms(WORKER_DEAD_AFTER_MS);
        self.by_name.values().filter(|known| is_alive(known) && takes(known)).count()
    }

    /// The first so many after a name, by name.
    pub(crate) fn list(
        &self,
        after: Option<&str>,
        limit: usize,
        now: Timestamp,
    ) -> Vec<WorkerInfo> {
        let info = |(name, known): (&Arc<str>, &Known)| WorkerInfo {
            name: Arc::clone(name),
            registration: known.registration.clone(),
            seen_at: known.seen_at,
            is_dead: known.seen_at.plus_ms(WORKER_DEAD_AFTER_MS) <= now,
            leases: 0,
        };
        let known =
            self.by_name.iter().filter(|(name, _)| after.is_none_or(|after| &***name > after));
        let mut known: Vec<_> = known.collect();
        if known.len() > limit {
            known.select_nth_unstable_by(limit, |a, b| a.0.cmp(b.0));
            known.truncate(limit);
        }
        known.sort_by(|a, b| a.0.cmp(b.0));
        known.into_iter().map(info).collect()
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
        let workers = workers.list(None, usize::MAX, Timestamp(1_000_001));
        let knows = |name: &str| workers.iter().any(|worker| &*worker.name == name);
        assert_eq!(workers.len(), WORKERS_MAX - FORGOTTEN_AT_ONCE + 1);
        assert!(knows("worker-0") && knows("newcomer") && !knows("worker-1"));
        assert!(!knows(&format!("worker-{FORGOTTEN_AT_ONCE}")));
        assert!(knows(&format!("worker-{}", FORGOTTEN_AT_ONCE + 1)));
    }

    #[test]
    fn a_worker_that_is_silent_for_a_minute_is_shown_as_dead() {
        let mut workers = Workers::default();
        workers.saw("anna", Timestamp(5));
        assert!(!workers.list(None, 1, Timestamp(60_004))[0].is_dead);
        assert!(workers.list(None, 1, Timestamp(60_005))[0].is_dead);
    }

    #[test]
    fn a_page_begins_after_a_name_and_ends_at_its_limit() {
        let mut workers = Workers::default();
        ["dora", "anna", "cleo", "ben"].iter().for_each(|name| workers.saw(name, Timestamp(1)));
        let names = |after, limit| {
            let workers = workers.list(after, limit, Timestamp(1));
            workers.iter().map(|worker| worker.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(None, 2), ["anna", "ben"]);
        assert_eq!(names(Some("ben"), 2), ["cleo", "dora"]);
        assert_eq!(names(Some("b"), 9), ["ben", "cleo", "dora"]);
        assert!(names(Some("dora"), 2).is_empty());
    }
}
