//! The coordinator on a thread of its own, with the machine's clocks.

use std::fmt;
use std::io;
use std::time::{Duration, Instant, SystemTime};

use tenure_log::{Fault, Log};

use crate::clock::{ClockJump, Reading};
use crate::inbox::{Inbox, WakesFor};
use crate::planted;
use crate::step::{Coordinator, Next};

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct MachineClock {
    start: Instant,
    /// What the wall clock showed beyond whole milliseconds then: with it, both clocks reach the
    /// next millisecond together.
    phase: Duration,
}

impl MachineClock {
    /// The monotonic clock begins now.
    #[must_use]
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let nanos = wall.map_or(0, |wall| wall.subsec_nanos() % 1_000_000);
        Self { start: Instant::now(), phase: Duration::from_nanos(nanos.into()) }
    }

    /// What they say.
    #[must_use]
    pub fn read(&self) -> Reading {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Reading {
            monotonic_ms: (self.start.elapsed() + self.phase).as_millis() as u64,
            // A machine that believes it is before 1970 gets the best that can be said of it.
            wall_ms: wall.map_or(0, |wall| wall.as_millis() as u64),
        }
    }
}

/// Something that people should hear of while it runs. Nobody has to do anything at once.
#[derive(Debug)]
pub enum Trouble {
    /// At the start, log time is far ahead of the wall clock.
    LogTimeAhead {
        /// How far.
        by_ms: u64,
    },
    /// Other users could read what is in the data folder, and no longer can.
    Narrowed {
        /// Which folder.
        folder: String,
        /// How many files and folders.
        count: u64,
    },
    /// Other users can read the names in the data folder, which is not only ours.
    Readable {
        /// Which folder.
        folder: String,
        /// Its mode.
        mode: u32,
    },
    /// There is something in the data folder that is not Tenure's.
    ForeignFiles {
        /// Which folder.
        folder: String,
        /// The first names.
        names: Vec<String>,
        /// How many there are.
        count: u64,
    },
    /// The wall clock was set.
    Jump(ClockJump),
    /// A snapshot could not be written.
    Snapshot(Fault),
    /// There is no shelf.
    NoShelf(io::Error),
    /// The shelf has begun to refuse.
    ShelfRefuses(io::Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::LogTimeAhead { by_ms } => write!(
                f,
                "log time is {} s ahead of the wall clock: an earlier start had a clock that was far \
                 ahead, or this one is behind. Leases, delays, timeouts and retention run on log time \
                 and are right; `run_at`, `until` and shown times follow the wall clock. Check the \
                 machine's clock; to get rid of it, start with an empty data folder",
                by_ms / 1_000
            ),
            Trouble::Narrowed { folder, count } => write!(
                f,
                "other users could read {count} of the files and folders of {folder}; their modes \
                 were narrowed, to 0600 and 0700"
            ),
            Trouble::Readable { folder, mode } => write!(
                f,
                "other users can see the names in the data folder {folder} (mode {mode:04o}), which is \
                 left as it is because it has foreign files; run `chmod 700 {folder}`"
            ),
            Trouble::ForeignFiles { folder, names, count } => {
                let others = count.saturating_sub(names.len() as u64);
                let others = if others > 0 { format!(" and {others} more") } else { String::new() };
                write!(
                    f,
                    "not from Tenure, and left alone, in the data folder {folder}: {names:?}{others}; \
                     move them elsewhere"
                )
            }
            Trouble::Jump(jump) => write!(
                f,
                "the wall clock jumped by {} ms; leases are not touched, calendar moments follow it",
                jump.by_ms
            ),
            Trouble::Snapshot(fault) => write!(
                f,
                "a snapshot could not be written: {fault}; the log is kept, and another one is \
                 tried in a minute"
            ),
            Trouble::NoShelf(cause) => write!(
                f,
                "the file `shelf` cannot be made: {cause}; large payloads are kept in memory until \
                 the next start"
            ),
            Trouble::ShelfRefuses(cause) => write!(
                f,
                "the shelf takes no more: {cause}; large payloads are kept in memory meanwhile; make \
                 room on the disk"
            ),
        }
    }
}

/// Steps until the inbox is closed and everything is settled, or until the log fails.
///
/// # Errors
/// A fault of the log. Everybody who waits was told that it is over, and nobody was told anything
/// that is not durable.
pub fn run<L: Log>(
    mut coordinator: Coordinator<L>,
    inbox: &Inbox,
    clock: MachineClock,
    tell: fn(&Trouble),
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
        let jump = coordinator.take_jump().map(Trouble::Jump);
        let failure = coordinator.take_snapshot_failure().map(Trouble::Snapshot);
        jump.iter().chain(&failure).for_each(tell);
        match next {
            Next::Now => {}
            _ if may_close => return coordinator.close(clock.read()),
            Next::WhenRung => inbox.wait(WakesFor::Anything, None),
            Next::WithinMs(ms) => inbox.wait(WakesFor::Anything, Some(Duration::from_millis(ms))),
            Next::WhenLogged(ms) => inbox.wait(WakesFor::TheBell, ms.map(Duration::from_millis)),
        }
    }
}
