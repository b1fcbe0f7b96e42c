//! The memory budget: one bound for the process, and an account for each pool that takes memory.
//! A pool counts what it holds with a permit that gives it back when it is dropped. New work is
//! refused while the pools together hold [`MEMORY_FULL_PERCENT`] of the budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::{
    FEED_BYTES_MAX, INBOX_BYTES_MAX, MEMORY_FULL_PERCENT, MEMORY_POOL_PART, OUTBOX_BYTES_MAX,
    PARKED_BYTES_MAX,
};

/// What takes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Tasks, payloads, runs and definitions.
    State,
    /// Requests that wait to be decided.
    Inbox,
    /// Outcomes that wait until they are durable.
    Outbox,
    /// Requests that wait for work, or for a task or a run to end.
    Parked,
    /// Recent frames of the log.
    Feed,
    /// Bodies of requests that are being read.
    Bodies,
    /// Answers that are made or sent.
    Answers,
    /// Live updates on their way to subscribers.
    Subscribers,
}

impl Pool {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 8] = [
        Self::State,
        Self::Inbox,
        Self::Outbox,
        Self::Parked,
        Self::Feed,
        Self::Bodies,
        Self::Answers,
        Self::Subscribers,
    ];

    /// Its name in metrics and in the status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Inbox => "inbox",
            Self::Outbox => "outbox",
            Self::Parked => "parked",
            Self::Feed => "feed",
            Self::Bodies => "bodies",
            Self::Answers => "answers",
            Self::Subscribers => "subscribers",
        }
    }
}

/// The account of one pool. Clones are the same account.
#[derive(Clone, Debug)]
pub struct Budget {
    shared: Arc<Account>,
}

#[derive(Debug)]
struct Account {
    name: &'static str,
    max: u64,
    used: AtomicU64,
}

impl Budget {
    /// An account of its own.
    #[must_use]
    pub fn new(name: &'static str, max: u64) -> Self {
        Self { shared: Arc::new(Account { name, max, used: AtomicU64::new(0) }) }
    }

    /// Which pool it is.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.shared.name
    }

    /// How many bytes the pool may hold.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.shared.max
    }

    /// How many bytes it holds, about.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.shared.used.load(Ordering::Relaxed)
    }

    /// Takes so many bytes, if the pool may hold them too.
    #[must_use]
    pub fn try_take(&self, bytes: u64) -> Option<Permit> {
        let fits = |used: u64| used.checked_add(bytes).filter(|used| *used <= self.max());
        let taken = self.shared.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.ok().map(|_| Permit { budget: self.clone(), bytes })
    }

    /// Takes so many bytes even if that is more than the pool may hold: for what is there already,
    /// and is bounded elsewhere.
    #[must_use]
    pub fn take(&self, bytes: u64) -> Permit {
        self.shared.used.fetch_add(bytes, Ordering::Relaxed);
        Permit { budget: self.clone(), bytes }
    }

    /// Says how many bytes the pool holds, where its owner counts by itself.
    pub fn set(&self, bytes: u64) {
        self.shared.used.store(bytes, Ordering::Relaxed);
    }
}

/// Bytes of a pool, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    budget: Budget,
    bytes: u64,
}

impl Permit {
    /// How many bytes it is for.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Is for so many bytes from here on. Says whether the pool may hold them.
    pub fn resize(&mut self, bytes: u64) -> bool {
        let used = &self.budget.shared.used;
        let before = std::mem::replace(&mut self.bytes, bytes);
        let others = used.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
        others.wrapping_sub(before).wrapping_add(bytes) <= self.budget.max()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.shared.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The budget of the process. Clones are the same budget.
#[derive(Clone, Debug)]
pub struct Memory {
    max: u64,
    pools: [Budget; Pool::ALL.len()],
}

impl Default for Memory {
    /// Without a bound for the process; the pools keep theirs.
    fn default() -> Self {
        Self::new(u64::MAX)
    }
}

impl Memory {
    /// A budget of so many bytes. No pool but the state may hold more than a part of it.
    #[must_use]
    pub fn new(max: u64) -> Self {
        let pool = |pool: Pool| {
            let limit = match pool {
                Pool::State => max,
                Pool::Inbox => INBOX_BYTES_MAX as u64,
                Pool::Outbox => OUTBOX_BYTES_MAX,
                Pool::Parked => PARKED_BYTES_MAX,
                Pool::Feed => FEED_BYTES_MAX as u64,
                Pool::Bodies | Pool::Answers | Pool::Subscribers => u64::MAX,
            };
            Budget::new(pool.as_str(), limit.min(Self::part_of(pool, max)))
        };
        Self { max, pools: Pool::ALL.map(pool) }
    }

    /// Bounds a pool. Only while nothing is in it.
    #[must_use]
    pub fn bound(mut self, pool: Pool, limit: u64) -> Self {
        let max = limit.min(Self::part_of(pool, self.max));
        self.pools[pool as usize] = Budget::new(pool.as_str(), max);
        self
    }

    fn part_of(pool: Pool, max: u64) -> u64 {
        match pool {
            Pool::State => max,
            Pool::Inbox
            | Pool::Outbox
            | Pool::Parked
            | Pool::Feed
            | Pool::Bodies
            | Pool::Answers
            | Pool::Subscribers => max / MEMORY_POOL_PART,
        }
    }

    /// The account of a pool.
    #[must_use]
    pub fn pool(&self, pool: Pool) -> &Budget {
        &self.pools[pool as usize]
    }

    /// The accounts of all pools.
    #[must_use]
    pub fn pools(&self) -> &[Budget] {
        &self.pools
    }

    /// How many bytes the process may take; [`u64::MAX`] if there is no bound.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// How many bytes all pools hold, about.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.pools.iter().map(Budget::used).sum()
    }

    /// How many bytes there may be before new work is refused.
    #[must_use]
    pub fn full_at(&self) -> u64 {
        self.max / 100 * MEMORY_FULL_PERCENT
    }

    /// Whether new work is refused.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.used() >= self.full_at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_takes_no_more_than_its_bound_and_gets_everything_back() {
        let budget = Budget::new("some", 100);
        assert!(budget.try_take(101).is_none());
        let first = budget.try_take(60).unwrap();
        assert!(budget.try_take(41).is_none(), "60 are taken");
        let mut second = budget.try_take(40).unwrap();
        assert!(!second.resize(50), "110 are more than 100");
        assert_eq!((budget.used(), second.bytes()), (110, 50));
        assert!(second.resize(1));
        let forced = budget.take(1_000);
        assert_eq!(budget.used(), 1_061);
        drop((first, second, forced));
        assert_eq!((budget.used(), budget.max(), budget.name()), (0, 100, "some"));
    }

    #[test]
    fn new_work_is_refused_at_nine_tenths_and_taken_again_below() {
        let memory = Memory::new(1_000).bound(Pool::Answers, 10_000);
        assert_eq!(memory.pool(Pool::Answers).max(), 125, "a pool gets an eighth");
        assert_eq!(memory.pool(Pool::State).max(), 1_000);
        memory.pool(Pool::State).set(800);
        let answers = memory.pool(Pool::Answers).try_take(99).unwrap();
        assert!(!memory.is_full());
        let body = memory.pool(Pool::Bodies).take(1);
        assert!(memory.is_full(), "all pools count");
        drop(body);
        assert!(!memory.is_full());
        drop(answers);
        memory.pool(Pool::State).set(900);
        assert!(memory.is_full());
        let unbounded = Memory::default();
        unbounded.pool(Pool::State).set(1 << 50);
        assert!(!unbounded.is_full());
        assert_eq!(unbounded.pool(Pool::Inbox).max(), INBOX_BYTES_MAX as u64);
    }
}
