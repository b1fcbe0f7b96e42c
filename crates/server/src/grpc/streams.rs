//! The leases that each worker's stream holds, so that they can be dropped when it is cut, given
//! back when it says goodbye, and taken over when the worker comes back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_code::Code;
use tenure_core::command::LeaseRef;
use tenure_record::id::{LeaseId, TaskId};

use super::stops::Stops;
use crate::app::App;
use crate::limits::WORK_STREAMS_MAX;
use crate::problem::Problem;

/// All streams of workers, and those that were cut lately.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    pub(super) stops: Stops,
    by_worker: Mutex<ByWorker>,
}

#[derive(Debug, Default)]
struct ByWorker {
    streams: usize,
    held: HashMap<Arc<str>, Vec<Arc<Held>>>,
}

/// The leases of one stream. Its owner is the only one who adds any.
#[derive(Debug, Default)]
pub(super) struct Held {
    leases: Mutex<HashMap<TaskId, LeaseId>>,
}

/// A place among the streams, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    app: Arc<App>,
    worker: Arc<str>,
    held: Arc<Held>,
}

impl Place {
    /// Takes a place for a stream of this worker.
    pub(super) fn take(app: &Arc<App>, worker: &str) -> Result<Self, Problem> {
        let worker: Arc<str> = Arc::from(worker);
        let mut all = app.streams.lock();
        if all.streams >= WORK_STREAMS_MAX {
            let detail =
                format!("there are {WORK_STREAMS_MAX} streams of workers already; try again later");
            return Err(Problem::new(Code::Overloaded, detail));
        }
        let held = Arc::new(Held::default());
        all.streams += 1;
        all.held.entry(Arc::clone(&worker)).or_default().push(Arc::clone(&held));
        drop(all);
        Ok(Self { app: Arc::clone(app), worker, held })
    }

    /// Makes these leases the business of this stream and of no other one of the same worker. They
    /// are held only once they are known to be good.
    pub(super) fn take_over(&self, leases: &[LeaseRef]) {
        let all = self.app.streams.lock();
        for held in all.held.get(&self.worker).into_iter().flatten() {
            if !Arc::ptr_eq(held, &self.held) {
                leases.iter().for_each(|lease| held.lock().forget(*lease));
            }
        }
    }

    /// What this stream holds.
    pub(super) fn held(&self) -> HeldGuard<'_> {
        self.held.lock()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.app.streams.lock();
        all.streams -= 1;
        if let Some(held) = all.held.get_mut(&self.worker) {
            held.retain(|held| !Arc::ptr_eq(held, &self.held));
            if held.is_empty() {
                all.held.remove(&self.worker);
            }
        }
    }
}

impl Streams {
    fn lock(&self) -> MutexGuard<'_, ByWorker> {
        self.by_worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn lock(&self) -> HeldGuard<'_> {
        HeldGuard(self.leases.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The leases of one stream, looked at.
pub(super) struct HeldGuard<'a>(MutexGuard<'a, HashMap<TaskId, LeaseId>>);

impl HeldGuard<'_> {
    /// One more.
    pub(super) fn keep(&mut self, lease: LeaseRef) {
        self.0.insert(lease.task_id, lease.lease_id);
    }

    /// One less, unless the task is held by a later lease.
    pub(super) fn forget(&mut self, lease: LeaseRef) {
        if self.0.get(&lease.task_id) == Some(&lease.lease_id) {
            self.0.remove(&lease.task_id);
        }
    }

    /// Whether it is here.
    pub(super) fn has(&self, lease: LeaseRef) -> bool {
        self.0.get(&lease.task_id) == Some(&lease.lease_id)
    }

    /// All of them, which are then here no more; oldest first.
    pub(super) fn take_all(&mut self) -> Vec<LeaseRef> {
        let lease = |(task_id, lease_id)| LeaseRef { task_id, lease_id };
        let mut leases: Vec<_> = self.0.drain().map(lease).collect();
        leases.sort_by_key(|lease| lease.lease_id);
        leases
    }
}
