//! Bugs that can be put in on purpose, one at a time, so that the tests show that they would be
//! noticed. Without the feature `planted` there are none, and nothing of this is compiled in.
#![cfg_attr(not(feature = "planted"), allow(unreachable_pub, reason = "only tests enter"))]

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
}

#[cfg(feature = "planted")]
mod switch {
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<super::Bug>> = const { Cell::new(None) };
    }

    /// Puts a bug in, for this thread.
    pub fn plant(bug: Option<super::Bug>) {
        PLANTED.set(bug);
    }

    pub(crate) fn has(bug: super::Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(not(feature = "planted"))]
mod switch {
    pub(crate) const fn has(_: super::Bug) -> bool {
        false
    }
}

#[cfg(feature = "planted")]
pub use switch::plant;

pub(crate) use switch::has;
