//! Time as data. Nothing in this crate asks a clock; whoever calls in brings the time along.

use std::fmt;

/// A moment, in milliseconds since 1970 in UTC.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Before everything; as a `not_before` it means "at once".
    pub const ZERO: Self = Self(0);
    /// After everything.
    pub const MAX: Self = Self(u64::MAX);

    /// This moment and so many milliseconds.
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

/// The two clocks that a decision may look at.
///
/// Durations that somebody was promised (leases, timeouts, grace) run on log time, which no jump
/// of the wall clock can shorten. Appointments (`run_at`, delays, backoff) follow the wall clock,
/// held back to the last logged moment so that it never goes backward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Log time: monotonic, and the `at` of the record that is written.
    pub log: Timestamp,
    /// The larger of the wall clock and the last logged moment.
    pub wall: Timestamp,
}

impl Now {
    /// Both clocks at the same moment, as they are when nothing ever jumped.
    #[must_use]
    pub fn both(at: Timestamp) -> Self {
        Self { log: at, wall: at }
    }
}
