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

/// How far the wall clock is ahead of log time, in milliseconds; negative where it is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallOffset(pub i64);

impl WallOffset {
    /// The clocks agree, as they do while the wall clock is never set.
    pub const ZERO: Self = Self(0);

    /// From log time to the wall clock. Exact for all moments: the difference wraps around, and
    /// [`WallOffset::wall`] wraps back.
    #[must_use]
    pub fn between(log: Timestamp, wall: Timestamp) -> Self {
        Self(wall.0.wrapping_sub(log.0).cast_signed())
    }

    /// What the wall clock says at a moment of log time.
    #[must_use]
    pub fn wall(self, log: Timestamp) -> Timestamp {
        Timestamp(log.0.wrapping_add(self.0.cast_unsigned()))
    }

    /// The moment of the wall clock that is shown for a moment of log time. A sentinel (zero, and
    /// the end of time) is shown as it is, and a moment before 1970 as 1970.
    #[must_use]
    pub fn shown(self, log: Timestamp) -> Timestamp {
        match log {
            Timestamp::ZERO | Timestamp::MAX => log,
            Timestamp(ms) => Timestamp(ms.saturating_add_signed(self.0)),
        }
    }

    fn zigzag(self) -> u64 {
        ((self.0 << 1) ^ (self.0 >> 63)).cast_unsigned()
    }

    fn unzigzag(number: u64) -> Self {
        Self((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

number_field! {
    WallOffset: WallOffset::zigzag, |number: u64| Some(WallOffset::unzigzag(number));
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

    /// How far the wall clock is from log time.
    #[must_use]
    pub fn offset(&self) -> WallOffset {
        WallOffset::between(self.log, self.wall)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_leads_from_log_time_to_the_wall_clock_at_any_moment() {
        let moments = [0, 1, 1_000, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX].map(Timestamp);
        for log in moments {
            for wall in moments {
                let offset = WallOffset::between(log, wall);
                assert_eq!(offset.wall(log), wall, "{log:?} {wall:?}");
                assert_eq!(WallOffset::unzigzag(offset.zigzag()), offset);
            }
        }
    }

    #[test]
    fn a_sentinel_is_shown_as_it_is() {
        let behind = WallOffset(-5);
        assert_eq!(behind.shown(Timestamp(12)), Timestamp(7));
        assert_eq!(behind.shown(Timestamp(3)), Timestamp::ZERO);
        assert_eq!(behind.shown(Timestamp::ZERO), Timestamp::ZERO);
        assert_eq!(behind.shown(Timestamp::MAX), Timestamp::MAX);
    }
}
