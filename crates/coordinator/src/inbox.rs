//! The one door into the coordinator: bounded, and the first to go are those who hurt least.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ask::{Caller, Kind, Refusal, Request};
use crate::limits::{INBOX_BYTES_MAX, INBOX_REQUESTS_MAX};

/// Requests on their way to the coordinator. Clones are the same inbox.
#[derive(Debug)]
pub struct Inbox<C> {
    shared: Arc<Shared<C>>,
}

#[derive(Debug)]
struct Shared<C> {
    waiting: Mutex<Waiting<C>>,
    bell: Condvar,
}

#[derive(Debug)]
struct Waiting<C> {
    requests: VecDeque<Request<C>>,
    bytes: usize,
    /// Requests that were taken and are not decided yet, and their bytes: they count.
    taken: usize,
    taken_bytes: usize,
    /// Something happened since the coordinator looked last.
    rung: bool,
    /// The coordinator sleeps and must be woken.
    asleep: bool,
    /// Why nothing is let in any more.
    closed: Option<Arc<str>>,
}

impl<C> Clone for Inbox<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<C> Default for Inbox<C> {
    fn default() -> Self {
        let waiting = Waiting {
            requests: VecDeque::new(),
            bytes: 0,
            taken: 0,
            taken_bytes: 0,
            rung: false,
            asleep: false,
            closed: None,
        };
        Self { shared: Arc::new(Shared { waiting: Mutex::new(waiting), bell: Condvar::new() }) }
    }
}

impl<C: Caller> Inbox<C> {
    /// Lets a request in, or tells its caller why not.
    pub fn push(&self, request: Request<C>) {
        self.push_all([request]);
    }

    /// Lets several in, next to each other and in this order. The callers of those that are not
    /// let in are told why.
    pub fn push_all(&self, requests: impl IntoIterator<Item = Request<C>>) {
        let mut refused = Vec::new();
        let mut waiting = self.lock();
        for request in requests {
            match waiting.admit(&request) {
                Ok(()) => waiting.requests.push_back(request),
                Err(refusal) => refused.push((request.caller, refusal)),
            }
        }
        self.wake(waiting);
        for (caller, refusal) in refused {
            // Whoever is gone needs no refusal.
            let _ = caller.tell(Err(refusal));
        }
    }
}

impl<C> Inbox<C> {
    /// Says that something happened elsewhere that the coordinator should look at.
    pub fn ring(&self) {
        self.wake(self.lock());
    }

    /// Lets nothing in any more.
    pub fn close(&self, why: &str) {
        let mut waiting = self.lock();
        waiting.closed.get_or_insert_with(|| Arc::from(why));
        self.wake(waiting);
    }

    /// Whether nothing is let in any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().closed.is_some()
    }

    /// Whether somebody waits to be taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().requests.is_empty()
    }

    /// Takes all requests that wait. Those taken before must have been decided.
    pub(crate) fn take(&self, into: &mut VecDeque<Request<C>>) {
        debug_assert!(into.is_empty(), "what was taken is decided first");
        let mut waiting = self.lock();
        waiting.rung = false;
        std::mem::swap(&mut waiting.requests, into);
        waiting.taken = into.len();
        waiting.taken_bytes = std::mem::take(&mut waiting.bytes);
    }

    /// So many of those taken are still to be decided.
    pub(crate) fn left(&self, taken: usize) {
        let mut waiting = self.lock();
        waiting.taken = taken;
        if taken == 0 {
            waiting.taken_bytes = 0;
        }
    }

    /// Sleeps until something happens, or for so long.
    pub fn wait(&self, timeout: Option<Duration>) {
        let mut waiting = self.lock();
        if waiting.rung || !waiting.requests.is_empty() {
            waiting.rung = false;
            return;
        }
        waiting.asleep = true;
        let mut waiting = match timeout {
            None => self.shared.bell.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => {
                let woken = self.shared.bell.wait_timeout(waiting, timeout);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        (waiting.asleep, waiting.rung) = (false, false);
    }

    fn wake(&self, mut waiting: MutexGuard<'_, Waiting<C>>) {
        waiting.rung = true;
        if std::mem::replace(&mut waiting.asleep, false) {
            drop(waiting);
            self.shared.bell.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<C>> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Waiting<C> {
    fn admit(&mut self, request: &Request<C>) -> Result<(), Refusal> {
        if let Some(why) = &self.closed {
            return Err(Refusal::Unavailable(Arc::clone(why)));
        }
        let share = |limit: usize| match request.ask.kind() {
            Kind::Report => limit,
            Kind::Other => limit / 4 * 3,
            Kind::Submit => limit / 2,
        };
        let limit = share(INBOX_REQUESTS_MAX);
        if self.requests.len() + self.taken >= limit {
            return Err(Refusal::Overloaded { what: "requests waiting", limit });
        }
        let (weight, limit) = (request.ask.weight(), share(INBOX_BYTES_MAX));
        if self.bytes + self.taken_bytes + weight > limit {
            return Err(Refusal::Overloaded { what: "bytes of requests waiting", limit });
        }
        self.bytes += weight;
        Ok(())
    }
}
