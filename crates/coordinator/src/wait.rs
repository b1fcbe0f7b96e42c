//! Those who wait: for work in some queues, or for a task to end. Nobody is looked for; each is
//! found by what it waits for, in the order in which it came, or by its deadline.

use std::collections::{BTreeMap, BTreeSet};

use tenure_record::time::Timestamp;

use crate::limits::PARKED_SWEEP_MS;

/// Who waits, in the order of arrival.
pub(crate) type Ticket = u64;

/// Waiters by what they wait for.
#[derive(Debug)]
pub(crate) struct Waiters<K, W> {
    waiters: BTreeMap<Ticket, Waiter<K, W>>,
    lines: BTreeMap<K, BTreeSet<Ticket>>,
    deadlines: BTreeSet<(Timestamp, Ticket)>,
    next: Ticket,
    limit: usize,
    /// Bytes of memory that they take, about.
    bytes: u64,
    /// When those who left without a word were looked for last.
    cleared_at: Timestamp,
}

#[derive(Debug)]
struct Waiter<K, W> {
    waits_for: Vec<K>,
    until: Timestamp,
    bytes: u64,
    who: W,
}

/// How long somebody waits, and what that takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// When its time is up.
    pub(crate) until: Timestamp,
    /// Bytes of memory that it takes meanwhile, about.
    pub(crate) bytes: u64,
}

impl<K: Ord + Clone, W> Waiters<K, W> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            waiters: BTreeMap::new(),
            lines: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            next: 0,
            limit,
            bytes: 0,
            cleared_at: Timestamp::ZERO,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Bytes of memory that all of them take, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Lets somebody wait, or gives it back if too many do. Before that, those who are gone make
    /// room.
    pub(crate) fn park(
        &mut self,
        waits_for: Vec<K>,
        wait: Wait,
        now: Timestamp,
        who: W,
        gone: impl Fn(&W) -> bool,
    ) -> Result<(), W> {
        if self.waiters.len() >= self.limit {
            self.sweep(now, gone);
        }
        if self.waiters.len() >= self.limit {
            return Err(who);
        }
        let ticket = self.next;
        self.next += 1;
        for key in &waits_for {
            self.lines.entry(key.clone()).or_default().insert(ticket);
        }
        let Wait { until, bytes } = wait;
        self.deadlines.insert((until, ticket));
        self.bytes += bytes;
        self.waiters.insert(ticket, Waiter { waits_for, until, bytes, who });
        Ok(())
    }

    /// Lets those go that left without a word. That means a look at all of them, so it is done at
    /// most once in [`PARKED_SWEEP_MS`].
    pub(crate) fn sweep(&mut self, now: Timestamp, gone: impl Fn(&W) -> bool) {
        if self.cleared_at.plus_ms(PARKED_SWEEP_MS) <= now {
            self.cleared_at = now;
            self.remove_if(gone);
        }
    }

    /// Who has waited longest for this.
    pub(crate) fn first(&self, key: &K) -> Option<(Ticket, &W)> {
        let ticket = *self.lines.get(key)?.first()?;
        self.waiters.get(&ticket).map(|waiter| (ticket, &waiter.who))
    }

    /// Lets somebody go.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<W> {
        let Waiter { waits_for, until, bytes, who } = self.waiters.remove(&ticket)?;
        self.bytes -= bytes;
        self.deadlines.remove(&(until, ticket));
        for key in &waits_for {
            if let Some(line) = self.lines.get_mut(key) {
                line.remove(&ticket);
                if line.is_empty() {
                    self.lines.remove(key);
                }
            }
        }
        Some(who)
    }

    /// The next deadline.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|(until, _)| *until)
    }

    /// Somebody whose time is up.
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<W> {
        let (until, ticket) = *self.deadlines.first()?;
        (until <= now).then(|| self.remove(ticket)).flatten()
    }

    /// Lets all go for whom this is true.
    pub(crate) fn remove_if(&mut self, gone: impl Fn(&W) -> bool) -> Vec<W> {
        let tickets = self.waiters.iter().filter(|(_, waiter)| gone(&waiter.who));
        let tickets: Vec<Ticket> = tickets.map(|(ticket, _)| *ticket).collect();
        tickets.into_iter().filter_map(|ticket| self.remove(ticket)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_who_came_first_is_first_in_every_line() {
        let mut waiters = Waiters::new(3);
        let mut park = |lines: &[&'static str], until, who: &'static str| {
            let wait = Wait { until: Timestamp(until), bytes: 10 };
            waiters.park(lines.to_vec(), wait, Timestamp(1_000), who, |who| *who == "gone")
        };
        park(&["a", "b"], 9, "anna").unwrap();
        park(&["b"], 5, "ben").unwrap();
        park(&["b", "c"], 7, "gone").unwrap();
        park(&["b", "c"], 7, "cleo").unwrap();
        assert_eq!(park(&["c"], 7, "dora"), Err("dora"));
        let (ticket, who) = waiters.first(&"b").unwrap();
        assert_eq!(*who, "anna");
        waiters.remove(ticket);
        assert!(waiters.first(&"a").is_none(), "she left all lines");
        assert_eq!(waiters.next_deadline(), Some(Timestamp(5)));
        assert_eq!(waiters.pop_due(Timestamp(4)), None);
        assert_eq!(waiters.pop_due(Timestamp(7)), Some("ben"));
        assert_eq!(waiters.remove_if(|who| *who == "cleo"), ["cleo"]);
        assert_eq!(waiters.bytes(), 0);
        assert!(waiters.is_empty() && waiters.lines.is_empty() && waiters.deadlines.is_empty());
    }
}
