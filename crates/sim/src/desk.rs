//! Where the coordinator's callers sit: what each is told, and who left.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_coordinator::{Caller, Outcome};

/// One copy of a request that reached the coordinator.
pub(crate) type CallerId = u64;

/// What happened at the desk since somebody looked.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Outcomes that were taken.
    pub(crate) told: Vec<(CallerId, Outcome)>,
    /// Outcomes for those who had left.
    pub(crate) unclaimed: Vec<(CallerId, Outcome)>,
    /// Those who were dropped without a word.
    pub(crate) dropped: Vec<CallerId>,
}

#[derive(Debug, Default)]
struct Seats {
    news: News,
    gone: BTreeSet<CallerId>,
}

/// The desk. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Desk {
    seats: Arc<Mutex<Seats>>,
}

impl Desk {
    pub(crate) fn caller(&self, id: CallerId) -> SimCaller {
        SimCaller { id, desk: self.clone(), is_told: false }
    }

    /// Somebody leaves without a word.
    pub(crate) fn leave(&self, id: CallerId) {
        self.lock().gone.insert(id);
    }

    pub(crate) fn is_gone(&self, id: CallerId) -> bool {
        self.lock().gone.contains(&id)
    }

    pub(crate) fn take_news(&self) -> News {
        std::mem::take(&mut self.lock().news)
    }

    fn lock(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who waits for an outcome.
#[derive(Debug)]
pub(crate) struct SimCaller {
    id: CallerId,
    desk: Desk,
    is_told: bool,
}

impl Caller for SimCaller {
    fn is_gone(&self) -> bool {
        self.desk.is_gone(self.id)
    }

    fn tell(mut self, outcome: Outcome) -> Result<(), Outcome> {
        self.is_told = true;
        let mut seats = self.desk.lock();
        if seats.gone.contains(&self.id) {
            seats.news.unclaimed.push((self.id, outcome.clone()));
            return Err(outcome);
        }
        seats.news.told.push((self.id, outcome));
        Ok(())
    }
}

impl Drop for SimCaller {
    fn drop(&mut self) {
        if !self.is_told {
            self.desk.lock().news.dropped.push(self.id);
        }
    }
}
