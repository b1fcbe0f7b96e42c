//! The coordinator on a thread of its own, with the machine's clocks.

use std::time::{Duration, Instant, SystemTime};

use tenure_log::{Fault, Log};

use crate::clock::Reading;
use crate::inbox::{Inbox, WakesFor};
use crate::planted;
use crate::step::{Coordinator, Next};
use crate::warning::{Warning, WarningHandler};

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineClock {
    start: Instant,
    /// What the wall clock showed beyond whole milliseconds then: with it, both clocks reach the
    /// next millisecond together.
    phase: Duration,
}

impl MachineClock {
    /// The monotonic clock begins now.
    #[must_use]
    pub(crate) fn start() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let nanos = wall.map_or(0, |wall| wall.subsec_nanos() % 1_000_000);
        Self { start: Instant::now(), phase: Duration::from_nanos(nanos.into()) }
    }

    /// What they say.
    #[must_use]
    pub(crate) fn read(&self) -> Reading {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Reading {
            monotonic_ms: (self.start.elapsed() + self.phase).as_millis() as u64,
            // A machine that believes it is before 1970 gets the best that can be said of it.
            wall_ms: wall.map_or(0, |wall| wall.as_millis() as u64),
        }
    }
}

/// Steps until the inbox is closed and everything is settled, or until the log fails.
///
/// # Errors
/// A fault of the log. Everybody who waits was told that it is over, and nobody was told anything
/// that is not durable.
pub(crate) fn run<L: Log>(
    mut coordinator: Coordinator<L>,
    inbox: &Inbox,
    clock: MachineClock,
    on_warning: &WarningHandler,
) -> Result<(), Fault> {
    planted::plant_named();
    loop {
        let stepped = coordinator.step(clock.read()).and_then(|next| {
            let is_over = next != Next::Now && inbox.is_closed();
            Ok((next, is_over && coordinator.may_close(coordinator.now(clock.read()))?))
        });
        let (next, may_close) = match stepped {
            Ok(stepped) => stepped,
            Err(fault) => {
                coordinator.turn_away(&fault.to_string());
                coordinator.feed().close();
                return Err(fault);
            }
        };
        let jump = coordinator.take_jump().map(Warning::Jump);
        let failure = coordinator.take_snapshot_failure().map(Warning::Snapshot);
        jump.iter().chain(&failure).for_each(|warning| on_warning.call(warning));
        match next {
            Next::Now => {}
            _ if may_close => return coordinator.close(clock.read()),
            Next::WhenRung => inbox.wait(WakesFor::Anything, None),
            Next::WithinMs(ms) => inbox.wait(WakesFor::Anything, Some(Duration::from_millis(ms))),
            Next::WhenLogged(ms) => inbox.wait(WakesFor::TheBell, ms.map(Duration::from_millis)),
        }
    }
}
