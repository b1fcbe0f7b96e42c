//! Bugs that can be put in on purpose, one at a time, so that the tests show that they would be
//! noticed. Without the feature `planted` there are none, and nothing of this is compiled in.
#![cfg_attr(not(feature = "planted"), allow(unreachable_pub, reason = "only tests enter"))]

use tenure_record::id::LeaseId;
use tenure_record::time::{Now, Timestamp};

/// A bug that the rules could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A heartbeat extends the task's lease whoever sends it.
    HeartbeatOfAnyone,
    /// An attempt is counted when it is handed out, and the grant's record does not say it.
    AttemptCountedLate,
    /// What has not ended for long enough is forgotten too.
    PurgedTooEarly,
    /// A snapshot leaves one attempt out.
    SnapshotForgets,
    /// A lease's id is what the wall clock says.
    LeaseIdFromAClock,
    /// A lease that a newer one has overtaken still counts.
    OldLeaseHolds,
    /// A report after the end of its lease counts as long as no tick has noticed.
    LateIsNotLost,
    /// A lease is taken back a little before its end.
    ExpiredTooEarly,
    /// What a record does depends on when it is applied.
    ApplyLooksAtAClock,
    /// What a record does depends on the order in which a map gives its entries.
    MergeInMapOrder,
    /// A join that has fired fires again when a late branch settles.
    JoinFiresTwice,
    /// What a loser has written goes on instead of what the winner has.
    LoserPromoted,
    /// A token gets lost between two steps of a cascade.
    TokenLostInCascade,
    /// A signal that was given to a token is still there for the next.
    SignalGivenTwice,
    /// Artifacts of branches that lost are kept.
    ArtifactOfALoserKept,
    /// A run is forgotten as soon as it is over.
    RunPurgedTooEarly,
    /// A child run is forgotten by its own age, although its parent is there.
    ChildPurgedAlone,
    /// Nothing is ever forgotten.
    KeptForEver,
    /// However much ends with a scope, all of it ends in one record.
    EndInOneRecord,
    /// What ends in a record is not counted, so that one record ends as much as there is.
    EndsUncounted,
    /// However much follows from the reports of a request, all of it is one record.
    ReportsInOneRecord,
    /// What is ending is still granted to workers.
    EndingIsGranted,
}

#[cfg(feature = "planted")]
mod switch {
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<super::Bug>> = const { Cell::new(None) };
        static TURNS: Cell<u64> = const { Cell::new(0) };
    }

    /// Puts a bug in, for this thread.
    pub fn plant(bug: Option<super::Bug>) {
        PLANTED.set(bug);
    }

    pub(crate) fn has(bug: super::Bug) -> bool {
        PLANTED.get() == Some(bug)
    }

    /// Another number each time, as a clock or the place of a map in memory would give.
    pub(crate) fn turn() -> u64 {
        TURNS.set(TURNS.get() + 1);
        TURNS.get()
    }
}

#[cfg(not(feature = "planted"))]
mod switch {
    pub(crate) const fn has(_: super::Bug) -> bool {
        false
    }

    pub(crate) const fn turn() -> u64 {
        0
    }
}

#[cfg(feature = "planted")]
pub use switch::plant;

pub(crate) use switch::{has, turn};

/// The id of a lease.
pub(crate) fn lease_id(next: LeaseId, now: Now) -> LeaseId {
    if has(Bug::LeaseIdFromAClock) { LeaseId(now.wall.0) } else { next }
}

/// A moment, as it is stored.
pub(crate) fn stored(at: Timestamp) -> Timestamp {
    if has(Bug::ApplyLooksAtAClock) { at.plus_ms(turn()) } else { at }
}

/// Up to when leases are over.
pub(crate) fn over_by(now: Timestamp) -> Timestamp {
    if has(Bug::ExpiredTooEarly) { now.plus_ms(100) } else { now }
}

/// Things in the order in which they are taken.
pub(crate) fn ordered<T>(mut things: Vec<T>) -> Vec<T> {
    if has(Bug::MergeInMapOrder) && turn().is_multiple_of(2) {
        things.reverse();
    }
    things
}
