//! The one door into the coordinator: bounded, and the first to go are those who hurt least.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::INBOX_REQUESTS_MAX;
use crate::memory::{Memory, Pool};
use crate::planted::{self, Bug};
use crate::refusal::Refusal;
use crate::request::{Envelope, Ready, RequestClass};
use crate::supply::Supply;

/// How long the coordinator looks for something new before it sleeps.
const WATCH_SPAN: Duration = Duration::from_micros(50);
/// Looks at the clock once in so many spins.
const WATCH_SPINS: u32 = 32;

/// Requests on their way to the coordinator. Clones are the same inbox.
#[derive(Debug)]
pub struct Inbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    bell: Condvar,
    /// Counts what happens, so that one who watches need not take the lock.
    news: AtomicU64,
    /// How full it is, for those who only want to know that.
    requests: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether workers find more work than they take.
    is_ample: AtomicBool,
    /// The budget of the process, in which requests that wait have a pool.
    memory: Memory,
}

/// How full an inbox is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests that are not decided yet.
    pub requests: usize,
    /// What they hold, about.
    pub bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    requests: VecDeque<Envelope>,
    bytes: usize,
    /// Requests that were taken and are not decided yet, and their bytes: they count.
    taken: usize,
    taken_bytes: usize,
    /// Somebody rang since the coordinator slept last. Only a sleep clears it: a ring that comes
    /// while it works must not be lost.
    rung: bool,
    /// The coordinator sleeps, and what wakes it.
    asleep: Option<WakesFor>,
    /// Why nothing is let in any more.
    closed: Option<Arc<str>>,
}

/// What a sleeping coordinator is woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakesFor {
    /// A request, or the bell.
    Anything,
    /// Only the bell: requests could not be decided now.
    TheBell,
}

impl Clone for Inbox {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new(Memory::default())
    }
}

impl Inbox {
    /// An empty inbox, whose requests count in this budget.
    #[must_use]
    pub fn new(memory: Memory) -> Self {
        let waiting = Waiting {
            requests: VecDeque::new(),
            bytes: 0,
            taken: 0,
            taken_bytes: 0,
            rung: false,
            asleep: None,
            closed: None,
        };
        let (requests, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (waiting, bell, news) = (Mutex::new(waiting), Condvar::new(), AtomicU64::new(0));
        let is_ample = AtomicBool::new(false);
        let shared = Shared { waiting, bell, news, requests, bytes, is_ample, memory };
        Self { shared: Arc::new(shared) }
    }
}

impl Inbox {
    /// Lets a request in, or tells its caller why not.
    pub fn push(&self, request: Envelope) {
        self.push_all([request]);
    }

    /// Lets several in, next to each other and in this order. The callers of those that are not
    /// let in are told why.
    pub fn push_all(&self, requests: impl IntoIterator<Item = Envelope>) {
        let mut refused = Vec::new();
        let mut waiting = self.lock();
        for request in requests {
            match waiting.admit(&request, &self.shared.memory) {
                Ok(()) => waiting.requests.push_back(request),
                Err(refusal) => refused.push(request.refuse(refusal)),
            }
        }
        self.show_load(&waiting);
        self.wake(waiting, WakesFor::Anything);
        // A refusal grants no lease, so nothing can be lost.
        refused.into_iter().for_each(|ready: Ready| ready.respond(&mut Vec::new()));
    }
}

impl Inbox {
    /// Says that something happened elsewhere that the coordinator should look at.
    pub fn ring(&self) {
        self.wake(self.lock(), WakesFor::TheBell);
    }

    /// Lets nothing in any more.
    pub fn close(&self, why: &str) {
        let mut waiting = self.lock();
        waiting.closed.get_or_insert_with(|| Arc::from(why));
        self.wake(waiting, WakesFor::TheBell);
    }

    /// Lets nothing in any more, and tells the callers of all requests that wait that no coordinator
    /// will decide them.
    pub(crate) fn abandon(&self, why: &str) {
        self.close(why);
        let waiting = std::mem::take(&mut self.lock().requests);
        let refusal = Refusal::Unavailable(Arc::from(why));
        // A refusal grants no lease, so nothing can be lost.
        waiting.into_iter().for_each(|it| it.refuse(refusal.clone()).respond(&mut Vec::new()));
    }

    /// Whether nothing is let in any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().closed.is_some()
    }

    /// How full it is. Takes no lock, so it may be a moment old.
    #[must_use]
    pub fn load(&self) -> Load {
        let Shared { requests, bytes, .. } = &*self.shared;
        Load { requests: requests.load(Ordering::Relaxed), bytes: bytes.load(Ordering::Relaxed) }
    }

    /// Whether workers found more work than they took, lately. Takes no lock.
    #[must_use]
    pub fn supply(&self) -> Supply {
        match self.shared.is_ample.load(Ordering::Relaxed) {
            true => Supply::Ample,
            false => Supply::Short,
        }
    }

    pub(crate) fn show_supply(&self, supply: Supply) {
        self.shared.is_ample.store(supply == Supply::Ample, Ordering::Relaxed);
    }

    /// The memory budget of the process.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// Whether a request of this class and of about this many bytes would be let in just now: asked
    /// before its body is read.
    ///
    /// # Errors
    /// The refusal that it would get.
    pub fn room_for(&self, class: RequestClass, bytes: usize) -> Result<(), Refusal> {
        if class == RequestClass::Submit && self.shared.memory.is_full() {
            return Err(Refusal::memory_full(&self.shared.memory));
        }
        self.load().admits(class, bytes, self.shared.memory.pool(Pool::Inbox).max())
    }

    fn show_load(&self, waiting: &Waiting) {
        let Load { requests, bytes } = waiting.load();
        self.shared.requests.store(requests, Ordering::Relaxed);
        self.shared.bytes.store(bytes, Ordering::Relaxed);
        self.shared.memory.pool(Pool::Inbox).set(bytes as u64);
    }

    /// Whether somebody waits to be taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().requests.is_empty()
    }

    /// Takes all requests that wait. Those taken before must have been decided.
    pub(crate) fn take(&self, into: &mut VecDeque<Envelope>) {
        debug_assert!(into.is_empty(), "what was taken is decided first");
        let mut waiting = self.lock();
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
        self.show_load(&waiting);
    }

    /// Sleeps until something happens, or for so long. Does not sleep if it happened already.
    pub fn wait(&self, wakes_for: WakesFor, timeout: Option<Duration>) {
        let mut waiting = self.lock();
        if !waiting.has_news(wakes_for) {
            // To fall asleep and to be woken takes longer than the next request of a caller who
            // was just answered.
            let seen = self.shared.news.load(Ordering::Relaxed);
            drop(waiting);
            self.watch(seen, timeout);
            waiting = self.lock();
        }
        if !waiting.has_news(wakes_for) {
            waiting.asleep = Some(wakes_for);
            waiting = match timeout {
                None => self.shared.bell.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    let woken = self.shared.bell.wait_timeout(waiting, timeout);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        (waiting.asleep, waiting.rung) = (None, false);
    }

    /// Looks for something new for a very short time, without sleeping.
    fn watch(&self, seen: u64, timeout: Option<Duration>) {
        let start = Instant::now();
        let span = timeout.map_or(WATCH_SPAN, |timeout| timeout.min(WATCH_SPAN));
        while self.shared.news.load(Ordering::Relaxed) == seen && start.elapsed() < span {
            for _ in 0..WATCH_SPINS {
                std::hint::spin_loop();
            }
        }
    }

    fn wake(&self, mut waiting: MutexGuard<'_, Waiting>, by: WakesFor) {
        waiting.rung |= by == WakesFor::TheBell;
        self.shared.news.fetch_add(1, Ordering::Relaxed);
        let is_meant = match waiting.asleep {
            Some(WakesFor::Anything) => true,
            Some(WakesFor::TheBell) => by == WakesFor::TheBell,
            None => false,
        };
        if is_meant {
            waiting.asleep = None;
            drop(waiting);
            self.shared.bell.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Load {
    fn admits(self, class: RequestClass, weight: usize, bytes_max: u64) -> Result<(), Refusal> {
        let share = |limit: usize| match class {
            RequestClass::Report => limit,
            RequestClass::Other => limit / 4 * 3,
            RequestClass::Submit => limit / 2,
        };
        if planted::has(Bug::InboxUnbounded) {
            return Ok(());
        }
        let limit = share(INBOX_REQUESTS_MAX);
        if self.requests >= limit {
            return Err(Refusal::Overloaded { what: "requests waiting", limit });
        }
        let limit = share(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        if self.bytes.saturating_add(weight) > limit {
            return Err(Refusal::Overloaded { what: "bytes of requests waiting", limit });
        }
        Ok(())
    }
}

impl Waiting {
    fn load(&self) -> Load {
        Load { requests: self.requests.len() + self.taken, bytes: self.bytes + self.taken_bytes }
    }

    fn has_news(&self, wakes_for: WakesFor) -> bool {
        self.rung || (wakes_for == WakesFor::Anything && !self.requests.is_empty())
    }

    fn admit(&mut self, request: &Envelope, memory: &Memory) -> Result<(), Refusal> {
        if let Some(why) = &self.closed {
            return Err(Refusal::Unavailable(Arc::clone(why)));
        }
        let weight = request.weight();
        self.load().admits(request.class(), weight, memory.pool(Pool::Inbox).max())?;
        self.bytes += weight;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending::Pending;
    use crate::request::GetStatus;

    const LONG: Option<Duration> = Some(Duration::from_secs(60));

    fn sleeps(inbox: &Inbox, wakes_for: WakesFor) -> bool {
        let start = Instant::now();
        inbox.wait(wakes_for, Some(Duration::from_millis(20)));
        start.elapsed() >= Duration::from_millis(20)
    }

    #[test]
    fn a_ring_that_comes_while_requests_are_taken_is_not_lost() {
        let inbox = Inbox::default();
        inbox.ring();
        inbox.take(&mut VecDeque::new());
        inbox.wait(WakesFor::TheBell, LONG);
        assert!(sleeps(&inbox, WakesFor::TheBell), "one ring, one awakening");
    }

    #[test]
    fn requests_wake_only_who_can_decide_them() {
        let inbox = Inbox::default();
        drop(Pending::ask(&inbox, GetStatus));
        inbox.wait(WakesFor::Anything, LONG);
        assert!(sleeps(&inbox, WakesFor::TheBell));
        let mut taken = VecDeque::new();
        inbox.take(&mut taken);
        assert_eq!(taken.len(), 1);
        assert!(sleeps(&inbox, WakesFor::Anything));
    }

    #[test]
    fn a_sleeper_is_woken_from_another_thread() {
        let inbox: Inbox = Inbox::default();
        let other = inbox.clone();
        let sleeper = std::thread::spawn(move || other.wait(WakesFor::Anything, LONG));
        while !sleeper.is_finished() {
            drop(Pending::ask(&inbox, GetStatus));
            std::thread::yield_now();
        }
        sleeper.join().unwrap();
    }
}
