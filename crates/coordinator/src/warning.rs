//! Warnings: conditions that an operator should know of while the engine goes on.

use std::fmt;
use std::io;
use std::sync::Arc;

use tenure_log::Fault;

use crate::clock::ClockJump;

/// The callback that hears warnings. Clones share it.
#[derive(Clone)]
pub struct WarningHandler(Arc<dyn Fn(&Warning) + Send + Sync>);

impl WarningHandler {
    /// A handler that calls a closure, on whichever thread the warning occurs.
    pub fn new(handler: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        Self(Arc::new(handler))
    }

    pub(crate) fn call(&self, warning: &Warning) {
        (self.0)(warning);
    }
}

impl Default for WarningHandler {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for WarningHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WarningHandler")
    }
}

/// A condition that an operator should know of. The engine goes on.
#[derive(Debug)]
pub enum Warning {
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

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::LogTimeAhead { by_ms } => write!(
                f,
                "log time is {} s ahead of the wall clock: an earlier start had a clock that was far \
                 ahead, or this one is behind. Leases, delays, timeouts and retention run on log time \
                 and are right; `run_at`, `until` and shown times follow the wall clock. Check the \
                 machine's clock; to get rid of it, start with an empty data folder",
                by_ms / 1_000
            ),
            Warning::Narrowed { folder, count } => write!(
                f,
                "other users could read {count} of the files and folders of {folder}; their modes \
                 were narrowed, to 0600 and 0700"
            ),
            Warning::Readable { folder, mode } => write!(
                f,
                "other users can see the names in the data folder {folder} (mode {mode:04o}), which is \
                 left as it is because it has foreign files; run `chmod 700 {folder}`"
            ),
            Warning::ForeignFiles { folder, names, count } => {
                let others = count.saturating_sub(names.len() as u64);
                let others = if others > 0 { format!(" and {others} more") } else { String::new() };
                write!(
                    f,
                    "not from Tenure, and left alone, in the data folder {folder}: {names:?}{others}; \
                     move them elsewhere"
                )
            }
            Warning::Jump(jump) => write!(
                f,
                "the wall clock jumped by {} ms; leases are not touched, calendar moments follow it",
                jump.by_ms
            ),
            Warning::Snapshot(fault) => write!(
                f,
                "a snapshot could not be written: {fault}; the log is kept, and another one is \
                 tried in a minute"
            ),
            Warning::NoShelf(cause) => write!(
                f,
                "the file `shelf` cannot be made: {cause}; large payloads are kept in memory until \
                 the next start"
            ),
            Warning::ShelfRefuses(cause) => write!(
                f,
                "the shelf takes no more: {cause}; large payloads are kept in memory meanwhile; make \
                 room on the disk"
            ),
        }
    }
}
