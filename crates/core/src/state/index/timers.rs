//! The timer index: everything that waits for a moment, in one ordered set per clock.
//!
//! A *recorded* timer ([`TimerRef`]) fires in a record. A *silent* timer ([`Wakeup`]) writes nothing:
//! it makes a queue worth another look. Two trees are shaped for memory and for the hot path and are
//! merged with the rest on the way out: leases, which every grant and every report moves, and wakeups,
//! of which every delayed task has one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tenure_record::id::{GroupId, LeaseId, RunId, TaskId, TokenId};
use tenure_record::time::{Clock, Now, Timestamp};

use crate::planted;
use crate::state::store::QueueRef;

/// A timer whose firing is recorded. Timers of one moment fire in the order of the variants, then of
/// the ids: a deadline before the lease that it cut short, and a run before what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerRef {
    /// The deadline of a task.
    Task(TaskId),
    /// The deadline of a run.
    Run(RunId),
    /// The timeout of a join.
    Join(RunId, GroupId),
    /// The deadline of a node.
    Node(RunId, TokenId),
    /// A timer node's moment.
    Timer(RunId, TokenId),
    /// The end of a task's lease. Leases of one moment end in the order in which they were granted.
    Lease(TaskId),
}

/// A silent timer: when its moment comes, a queue is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// A delayed task becomes ready.
    Start(TaskId),
    /// A paused queue opens.
    Opening(QueueRef),
}

/// A [`Wakeup`] in one word, because each delayed task has one: the kind above, the id below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WakeupKey(u64);

const KIND_BITS: u32 = 2;
const ID_BITS: u32 = u64::BITS - KIND_BITS;
const _: () =
    assert!(tenure_record::id::ID_MAX < 1 << ID_BITS, "every id leaves room for the kind");

impl WakeupKey {
    /// Not before any other.
    pub(crate) const LAST: Self = Self(u64::MAX);

    /// The start of a task, without a branch: the hot path asks for it.
    #[inline]
    pub(crate) fn start(id: TaskId) -> Self {
        Self(id.0)
    }

    pub(crate) fn wakeup(self) -> Wakeup {
        let id = self.0 & ((1 << ID_BITS) - 1);
        match self.0 >> ID_BITS {
            0 => Wakeup::Start(TaskId(id)),
            _ => Wakeup::Opening(QueueRef(id as u32)),
        }
    }
}

impl From<Wakeup> for WakeupKey {
    fn from(wakeup: Wakeup) -> Self {
        match wakeup {
            Wakeup::Start(id) => Self::start(id),
            Wakeup::Opening(queue) => Self(1 << ID_BITS | u64::from(queue.0)),
        }
    }
}

/// A recorded timer whose moment has come. The order is that of firing: the one that is late the
/// longest first. Lateness makes moments of the two clocks comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DueTimer {
    late_ms: Reverse<u64>,
    pub timer: TimerRef,
    pub at: Timestamp,
}

/// All timers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TimerIndex {
    /// Recorded timers other than leases, one set per [`Clock`].
    recorded: [BTreeSet<(Timestamp, TimerRef)>; 2],
    /// Leases by their end, by log time.
    leases: BTreeMap<(Timestamp, LeaseId), TaskId>,
    /// Silent timers that are ahead, one set per [`Clock`].
    silent: [BTreeSet<(Timestamp, WakeupKey)>; 2],
}

impl TimerIndex {
    /// A recorded timer has another moment than before, or none.
    pub(crate) fn moved(
        &mut self,
        clock: Clock,
        timer: TimerRef,
        before: Option<Timestamp>,
        after: Option<Timestamp>,
    ) {
        let set = &mut self.recorded[clock as usize];
        if let Some(at) = before {
            set.remove(&(at, timer));
        }
        if let Some(at) = after {
            set.insert((at, timer));
        }
    }

    pub(crate) fn lease_begun(&mut self, until: Timestamp, lease: LeaseId, task: TaskId) {
        self.leases.insert((until, lease), task);
    }

    pub(crate) fn lease_over(&mut self, until: Timestamp, lease: LeaseId) {
        self.leases.remove(&(until, lease));
    }

    pub(crate) fn wake_at(&mut self, clock: Clock, at: Timestamp, wakeup: Wakeup) {
        self.silent[clock as usize].insert((at, wakeup.into()));
    }

    pub(crate) fn let_sleep(&mut self, clock: Clock, at: Timestamp, wakeup: Wakeup) {
        self.silent[clock as usize].remove(&(at, wakeup.into()));
    }

    /// Takes the first wakeup out if its moment has come.
    pub(crate) fn pop_wakeup(
        &mut self,
        clock: Clock,
        now: Timestamp,
    ) -> Option<(Timestamp, WakeupKey)> {
        let set = &mut self.silent[clock as usize];
        set.first().is_some_and(|(at, _)| *at <= now).then(|| set.pop_first())?
    }

    /// The next moment on a clock, recorded or silent.
    pub(crate) fn next(&self, clock: Clock) -> Option<Timestamp> {
        let recorded = self.recorded(clock).next().map(|(at, _)| at);
        recorded.into_iter().chain(self.next_wakeup(clock)).min()
    }

    /// The next moment of a silent timer on a clock.
    pub(crate) fn next_wakeup(&self, clock: Clock) -> Option<Timestamp> {
        self.silent[clock as usize].first().map(|(at, _)| *at)
    }

    /// The recorded timers on a clock, in the order in which they fire.
    pub(crate) fn recorded(&self, clock: Clock) -> impl Iterator<Item = (Timestamp, TimerRef)> {
        let leases = (clock == Clock::Log).then_some(&self.leases).into_iter().flatten();
        let leases = leases.map(|((at, _), task_id)| (*at, TimerRef::Lease(*task_id)));
        merge(self.recorded[clock as usize].iter().copied(), leases)
    }

    /// The recorded timers whose moment has come, in the order in which they fire.
    pub(crate) fn due(&self, now: Now) -> impl Iterator<Item = DueTimer> {
        merge(self.due_on(Clock::Log, now), self.due_on(Clock::Wall, now))
    }

    fn due_on(&self, clock: Clock, now: Now) -> impl Iterator<Item = DueTimer> {
        let reached = now.on(clock);
        let is_due = move |at: Timestamp, timer: TimerRef| match timer {
            TimerRef::Lease(_) => at <= planted::over_by(reached),
            TimerRef::Task(_)
            | TimerRef::Run(_)
            | TimerRef::Join(..)
            | TimerRef::Node(..)
            | TimerRef::Timer(..) => at <= reached,
        };
        let due = self.recorded(clock).take_while(move |(at, timer)| is_due(*at, *timer));
        due.map(move |(at, timer)| DueTimer {
            late_ms: Reverse(reached.0.saturating_sub(at.0)),
            timer,
            at,
        })
    }
}

/// Two sequences that are in order, as one that is.
fn merge<T: Ord>(
    first: impl Iterator<Item = T>,
    second: impl Iterator<Item = T>,
) -> impl Iterator<Item = T> {
    let (mut first, mut second) = (first.peekable(), second.peekable());
    std::iter::from_fn(move || match (first.peek(), second.peek()) {
        (Some(a), Some(b)) if b < a => second.next(),
        (Some(_), _) => first.next(),
        (None, _) => second.next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now { log: Timestamp(1_000), wall: Timestamp(50_000) };

    fn some(at: u64) -> Option<Timestamp> {
        Some(Timestamp(at))
    }

    #[test]
    fn what_is_due_fires_by_moment_then_kind_then_id_on_both_clocks() {
        let (run, node, group) = (RunId(7), TokenId(3), GroupId(2));
        let late_wall = TimerRef::Timer(RunId(1), TokenId(1));
        let in_order = [
            (Clock::Log, 100, TimerRef::Timer(run, node)),
            (Clock::Log, 200, TimerRef::Task(TaskId(9))),
            (Clock::Log, 200, TimerRef::Run(run)),
            (Clock::Log, 200, TimerRef::Join(run, group)),
            (Clock::Log, 200, TimerRef::Node(RunId(6), node)),
            (Clock::Log, 200, TimerRef::Node(run, TokenId(1))),
            (Clock::Log, 200, TimerRef::Node(run, node)),
            // Late for 800 ms by the other clock, as those above are.
            (Clock::Wall, 49_200, TimerRef::Timer(RunId(5), node)),
            (Clock::Log, 200, TimerRef::Timer(run, TokenId(9))),
            (Clock::Log, 200, TimerRef::Lease(TaskId(8))),
            (Clock::Wall, 49_500, late_wall),
            (Clock::Log, 501, TimerRef::Run(RunId(1))),
            (Clock::Log, 1_000, TimerRef::Lease(TaskId(3))),
            (Clock::Log, 1_000, TimerRef::Lease(TaskId(1))),
        ];
        let mut timers = TimerIndex::default();
        let leases = [(200, 40, 8), (1_000, 41, 3), (1_000, 42, 1), (1_001, 43, 2)];
        for (at, lease, task) in leases {
            timers.lease_begun(Timestamp(at), LeaseId(lease), TaskId(task));
        }
        for (clock, at, timer) in in_order.into_iter().rev() {
            if !matches!(timer, TimerRef::Lease(_)) {
                timers.moved(clock, timer, None, some(at));
            }
        }
        timers.moved(Clock::Log, TimerRef::Run(RunId(2)), None, some(1_001));
        timers.moved(Clock::Wall, late_wall, some(49_500), some(50_001));
        timers.moved(Clock::Wall, late_wall, some(50_001), some(49_500));
        let due: Vec<_> = timers.due(NOW).map(|due| (due.at.0, due.timer)).collect();
        assert_eq!(due, in_order.map(|(_, at, timer)| (at, timer)));
    }

    #[test]
    fn a_wakeup_survives_its_key_and_costs_two_words() {
        let wakeups = [
            Wakeup::Start(TaskId(1)),
            Wakeup::Start(TaskId(tenure_record::id::ID_MAX)),
            Wakeup::Opening(QueueRef(0)),
            Wakeup::Opening(QueueRef(u32::MAX)),
        ];
        let keys = wakeups.map(WakeupKey::from);
        assert_eq!(keys.map(WakeupKey::wakeup), wakeups);
        assert!(keys.is_sorted() && keys[3] < WakeupKey::LAST);
        assert_eq!(size_of::<(Timestamp, WakeupKey)>(), 16);
        assert_eq!(size_of::<(Timestamp, TimerRef)>(), 24);
    }

    #[test]
    fn the_next_moment_is_the_first_of_all_kinds() {
        let mut timers = TimerIndex::default();
        assert_eq!(timers.next(Clock::Log), None);
        timers.wake_at(Clock::Log, Timestamp(30), Wakeup::Start(TaskId(1)));
        assert_eq!(timers.next(Clock::Log), some(30));
        timers.lease_begun(Timestamp(20), LeaseId(1), TaskId(2));
        assert_eq!(timers.next(Clock::Log), some(20));
        timers.moved(Clock::Log, TimerRef::Task(TaskId(2)), None, some(10));
        assert_eq!((timers.next(Clock::Log), timers.next(Clock::Wall)), (some(10), None));
        assert_eq!(timers.pop_wakeup(Clock::Log, Timestamp(29)), None);
        let popped = timers.pop_wakeup(Clock::Log, Timestamp(30));
        assert_eq!(popped, Some((Timestamp(30), WakeupKey::start(TaskId(1)))));
        assert_eq!(timers.next_wakeup(Clock::Log), None);
    }
}
