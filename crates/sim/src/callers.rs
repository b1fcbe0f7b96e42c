//! The coordinator's callers: what each is told, and which have left.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_coordinator::{Refusal, Request, Respond, Responder};

use crate::request::{AnyResponse, Outcome};

/// One copy of a request that reached the coordinator.
pub(crate) type CallerId = u64;

/// What callers were told since the world looked.
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

/// The callers of the coordinator. Clones share one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers {
    seats: Arc<Mutex<Seats>>,
}

impl Callers {
    /// The way back to a caller.
    pub(crate) fn responder<R: Request>(
        &self,
        id: CallerId,
        wrap: fn(R::Response) -> AnyResponse,
    ) -> Responder<R> {
        let (callers, is_told) = (self.clone(), AtomicBool::new(false));
        Responder::new(Arc::new(SimCaller::<R> { id, callers, wrap, is_told }))
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

/// A caller that waits for the response to a request.
struct SimCaller<R: Request> {
    id: CallerId,
    callers: Callers,
    wrap: fn(R::Response) -> AnyResponse,
    is_told: AtomicBool,
}

impl<R: Request> fmt::Debug for SimCaller<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "caller {} of {}", self.id, R::NAME)
    }
}

impl<R: Request> Respond<R> for SimCaller<R> {
    fn is_gone(&self) -> bool {
        self.callers.is_gone(self.id)
    }

    fn respond(
        &self,
        outcome: Result<R::Response, Refusal>,
    ) -> Result<(), Result<R::Response, Refusal>> {
        self.is_told.store(true, Ordering::Relaxed);
        let mut seats = self.callers.lock();
        if seats.gone.contains(&self.id) {
            seats.news.unclaimed.push((self.id, outcome.clone().map(self.wrap)));
            return Err(outcome);
        }
        seats.news.told.push((self.id, outcome.map(self.wrap)));
        Ok(())
    }
}

impl<R: Request> Drop for SimCaller<R> {
    fn drop(&mut self) {
        if !self.is_told.load(Ordering::Relaxed) {
            self.callers.lock().news.dropped.push(self.id);
        }
    }
}
