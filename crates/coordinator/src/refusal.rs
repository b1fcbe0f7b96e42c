//! Why a request was refused: by the rules, by admission control, or because the coordinator stops.

use std::fmt;
use std::sync::Arc;

use tenure_code::Code;
use tenure_core::Rejection;
use tenure_record::id::Lsn;

use crate::memory::Memory;

/// Why nothing was done.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// By the rules.
    Rejected(Rejection),
    /// There is too much to do. Come back in a moment.
    Overloaded {
        /// What there is too much of.
        what: &'static str,
        /// How much of it is allowed.
        limit: usize,
    },
    /// The disk is nearly full: no new work is taken.
    DiskFull,
    /// The memory budget is nearly used up: no new work is taken.
    MemoryFull {
        /// How many bytes are in use, about.
        used: u64,
        /// How many bytes the budget has.
        max: u64,
    },
    /// What was to be read is no longer in the log.
    Trimmed {
        /// The oldest record that is there.
        oldest: Lsn,
    },
    /// The coordinator has stopped, or is about to.
    Unavailable(Arc<str>),
}

impl Refusal {
    /// New work is refused, because this budget is nearly used up.
    #[must_use]
    pub fn memory_full(memory: &Memory) -> Self {
        Refusal::MemoryFull { used: memory.used(), max: memory.max() }
    }

    /// The stable error code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Refusal::Rejected(rejection) => rejection.code(),
            Refusal::Overloaded { .. } => Code::Overloaded,
            Refusal::DiskFull => Code::DiskFull,
            Refusal::MemoryFull { .. } => Code::MemoryFull,
            Refusal::Trimmed { .. } => Code::LogTrimmed,
            Refusal::Unavailable(_) => Code::Unavailable,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Rejected(rejection) => rejection.fmt(f),
            Refusal::Overloaded { what, limit } => {
                write!(f, "there are {limit} {what} already; try again in a moment")
            }
            Refusal::DiskFull => write!(
                f,
                "the disk is nearly full, so no new work is taken; reports and reads go on; make \
                 room in the data folder"
            ),
            Refusal::MemoryFull { used, max } => write!(
                f,
                "{used} of {max} bytes of memory are in use, so no new work is taken; reports and \
                 reads go on; try again when tasks and runs were finished and forgotten, or raise \
                 --memory-max"
            ),
            Refusal::Trimmed { oldest } => write!(
                f,
                "the log begins at LSN {oldest} by now; ask for the state, and go on from there"
            ),
            Refusal::Unavailable(why) => write!(f, "nothing can be done: {why}"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Refusal::Rejected(rejection)
    }
}
