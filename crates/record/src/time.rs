//! Time as data. Nothing in this crate asks a clock; the caller passes the time in.

use std::fmt;

use crate::codec::number_field;

/// A moment, in milliseconds since 1970 in UTC.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Before everything; as a `not_before` it means "at once".
    pub const ZERO: Self = Self(0);
    /// After everything.
    pub const MAX: Self = Self(u64::MAX);

    /// This moment plus that many milliseconds.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// Which clock a moment is meant on.
///
/// Spans of time (leases, timeouts, grace, delays, backoff) run on log time, which no jump of the
/// wall clock can stretch or shorten. Calendar moments (`run_at`, `until` of a timer) follow the wall
/// clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Log time: it only goes forward, at the pace of the monotonic clock.
    #[default]
    Log = 0,
    /// The wall clock, which may be set ahead and back.
    Wall = 1,
}

impl Clock {
    fn from_number(number: u64) -> Option<Self> {
        [Self::Log, Self::Wall].into_iter().find(|clock| *clock as u64 == number)
    }
}

number_field! {
    Clock: |clock: Clock| clock as u64, Clock::from_number;
}

/// What both clocks say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Log time, and the `at` of the record that is written.
    pub log: Timestamp,
    /// The wall clock itself, which may be ahead of log time or behind it.
    pub wall: Timestamp,
}

impl Now {
    /// Both clocks at the same moment, as they are when nothing ever jumped.
    #[must_use]
    pub fn both(at: Timestamp) -> Self {
        Self { log: at, wall: at }
    }

    /// How far log time is ahead of the wall clock; zero if it is not.
    #[must_use]
    pub fn log_ahead_ms(&self) -> u64 {
        self.log.0.saturating_sub(self.wall.0)
    }

    /// What that clock says.
    #[must_use]
    pub fn on(&self, clock: Clock) -> Timestamp {
        match clock {
            Clock::Log => self.log,
            Clock::Wall => self.wall,
        }
    }
}
