//! Bugs that can be put in on purpose, one at a time, so that the tests show that they would be
//! noticed. Without the feature `planted` there are none, and nothing of this is compiled in.
#![cfg_attr(
    not(feature = "planted"),
    allow(unreachable_pub, dead_code, reason = "only tests enter")
)]

/// A bug that a coordinator could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// An outcome is told while the record that it saw is not yet durable.
    ReleasedOneEarly,
    /// A lease that is over is taken away in memory, and nothing is written.
    ExpiryWithoutARecord,
    /// A parked worker that went away is given work all the same.
    GrantedToTheGone,
    /// Work that was granted to somebody who was gone is not given back.
    LostGrantKept,
    /// After a restart log time begins at the wall clock, whatever the log says.
    ClockFromTheWall,
    /// A task's key is kept in memory only.
    KeyOutsideTheRecord,
    /// A snapshot has what was decided since its last durable record.
    SnapshotTooEarly,
    /// A snapshot is believed whatever hash its footer has, and what it lacks is not missed.
    SnapshotHashUnchecked,
    /// The log is never trimmed.
    TrimForgotten,
    /// Marks do not count as part of the log that a snapshot saves.
    MarksUncounted,
    /// Somebody who waited long enough is not told so.
    ReaderForgotten,
    /// Whatever comes is let in.
    InboxUnbounded,
    /// Timers of runs come due and nothing happens.
    TimersSleep,
    /// A wide group begins its first branches, and nobody begins the rest.
    DispatchForgotten,
    /// What is ending is forgotten after its first record.
    EndingForgotten,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::ReleasedOneEarly,
        Self::ExpiryWithoutARecord,
        Self::GrantedToTheGone,
        Self::LostGrantKept,
        Self::ClockFromTheWall,
        Self::KeyOutsideTheRecord,
    ];
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

    /// Puts a bug in that is named in the environment, for this thread: so a server in a process of
    /// its own can have it.
    pub(crate) fn plant_named() {
        let Ok(name) = std::env::var("TENURE_PLANTED") else { return };
        let bug = super::Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name);
        plant(Some(bug.expect("TENURE_PLANTED names a bug")));
    }

    pub(crate) fn has(bug: super::Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(not(feature = "planted"))]
mod switch {
    pub(crate) const fn plant_named() {}

    pub(crate) const fn has(_: super::Bug) -> bool {
        false
    }
}

#[cfg(feature = "planted")]
pub use switch::plant;

pub(crate) use switch::{has, plant_named};

use std::borrow::Cow;

use tenure_record::event::{Event, LeaseExpired, Record};

/// A record as it is written, which should be as it is applied.
pub(crate) fn written<'r, 'a>(record: &'r Record<'a>) -> Cow<'r, Record<'a>> {
    if !has(Bug::ExpiryWithoutARecord) && !has(Bug::KeyOutsideTheRecord) {
        return Cow::Borrowed(record);
    }
    let mut record = record.clone();
    if has(Bug::ExpiryWithoutARecord) && matches!(record.event, Event::LeaseExpired(_)) {
        record.event = Event::LeaseExpired(LeaseExpired { leases: Vec::new() });
    }
    if let Event::TaskCreated(event) = &mut record.event
        && has(Bug::KeyOutsideTheRecord)
    {
        for task in &mut event.tasks {
            (task.key, task.submit_hash) = (None, None);
        }
    }
    Cow::Owned(record)
}
