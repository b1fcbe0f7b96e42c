//! Log time and wall time for the rules. Leases run on log time, which starts where the log left off
//! and advances with the monotonic clock, so that no jump of the wall clock stretches or shortens
//! them. Calendar moments follow the wall clock itself.

use tenure_record::time::{Now, Timestamp, WallOffset};

use crate::limits::{CLOCK_JUMP_MS, WALL_ROUNDING_MS};

/// What the machine's clocks say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Milliseconds since any moment in this process's life; never goes back.
    pub monotonic_ms: u64,
    /// Milliseconds since 1970; may be set ahead and back.
    pub wall_ms: u64,
}

/// A wall clock that was set, or a machine that slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// How far, in milliseconds; back if negative.
    pub by_ms: i64,
}

/// Log time and wall time for one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogClock {
    /// Log time when the monotonic clock said zero.
    start_ms: u64,
    /// How far the wall clock was ahead of log time when a jump was looked for last.
    ahead_ms: i64,
    /// The offset of the wall clock that the rules are told while the clock stays near it.
    offset: WallOffset,
}

impl LogClock {
    /// Begins where the log left off, or later if the wall clock says so.
    #[must_use]
    pub(crate) fn start(last: Timestamp, reading: Reading) -> Self {
        let log_ms = last.0.max(reading.wall_ms);
        Self {
            start_ms: log_ms.saturating_sub(reading.monotonic_ms),
            ahead_ms: reading.wall_ms as i64 - log_ms as i64,
            offset: WallOffset::between(Timestamp(log_ms), Timestamp(reading.wall_ms)),
        }
    }

    /// What the rules are told. Readings of two clocks differ by a millisecond or two when neither
    /// was set, because they are taken one after the other and rounded. Such a difference is left
    /// out, so that records of clocks that agree need not say both.
    #[must_use]
    pub(crate) fn now(&self, reading: Reading) -> Now {
        let log = Timestamp(self.start_ms.saturating_add(reading.monotonic_ms));
        let (told, wall) = (self.offset.wall(log), Timestamp(reading.wall_ms));
        let is_near = told.0.abs_diff(wall.0) <= WALL_ROUNDING_MS;
        Now { log, wall: if is_near { told } else { wall } }
    }

    /// Follows the wall clock where it has moved away from log time, and gives what the rules are
    /// told.
    pub(crate) fn follow(&mut self, reading: Reading) -> Now {
        let now = self.now(reading);
        self.offset = now.offset();
        now
    }

    /// The offset of the wall clock by which moments of log time are shown.
    #[must_use]
    pub(crate) fn offset(&self) -> WallOffset {
        self.offset
    }

    /// A jump of the wall clock since this was called last.
    pub(crate) fn jump(&mut self, reading: Reading) -> Option<ClockJump> {
        let log = Timestamp(self.start_ms.saturating_add(reading.monotonic_ms));
        let ahead_ms = reading.wall_ms as i64 - log.0 as i64;
        let by_ms = ahead_ms - self.ahead_ms;
        (by_ms.unsigned_abs() > CLOCK_JUMP_MS).then(|| {
            self.ahead_ms = ahead_ms;
            ClockJump { by_ms }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(monotonic_ms: u64, wall_ms: u64) -> Reading {
        Reading { monotonic_ms, wall_ms }
    }

    #[test]
    fn log_time_goes_on_from_the_log_even_if_the_wall_clock_was_set_back() {
        let clock = LogClock::start(Timestamp(9_000), reading(50, 2_000));
        assert_eq!(clock.now(reading(50, 2_000)).log, Timestamp(9_000));
        assert_eq!(clock.now(reading(150, 2_100)).log, Timestamp(9_100));
    }

    #[test]
    fn the_wall_clock_is_told_as_it_is_however_far_log_time_is_ahead() {
        let clock = LogClock::start(Timestamp(9_000), reading(50, 2_000));
        let now = clock.now(reading(150, 2_100));
        assert_eq!(now, Now { log: Timestamp(9_100), wall: Timestamp(2_100) });
        assert_eq!(now.log_ahead_ms(), 7_000);
        let ahead = clock.now(reading(150, 20_000));
        assert_eq!((ahead.wall, ahead.log_ahead_ms()), (Timestamp(20_000), 0));
    }

    #[test]
    fn clocks_that_agree_but_for_rounding_are_told_alike() {
        let mut clock = LogClock::start(Timestamp(9_000), reading(50, 2_000));
        for wall_ms in [2_098, 2_101, 2_102] {
            let now = clock.follow(reading(150, wall_ms));
            assert_eq!(now, Now { log: Timestamp(9_100), wall: Timestamp(2_100) });
        }
        // A clock that is slewed is followed in steps, and each is told until the next.
        assert_eq!(clock.follow(reading(1_150, 3_103)).wall, Timestamp(3_103));
        assert_eq!(clock.follow(reading(2_150, 4_102)).wall, Timestamp(4_103));
        assert_eq!(clock.offset(), WallOffset(-6_997));
    }

    #[test]
    fn a_wall_clock_that_jumps_does_not_move_log_time() {
        let mut clock = LogClock::start(Timestamp::ZERO, reading(0, 10_000));
        let ahead = reading(1_000, 911_000);
        assert_eq!(clock.now(ahead), Now { log: Timestamp(11_000), wall: Timestamp(911_000) });
        assert_eq!(clock.jump(ahead), Some(ClockJump { by_ms: 900_000 }));
        assert_eq!(clock.jump(ahead), None, "a jump is told once");
        let back = reading(2_000, 12_000);
        assert_eq!(clock.jump(back), Some(ClockJump { by_ms: -900_000 }));
        assert_eq!(clock.now(back), Now::both(Timestamp(12_000)));
    }
}
