//! Why a verb could not do what it was asked: one sentence, and an exit code.

use std::fmt;

use tenure_wal::{Fault, Lsn};

/// The log holds something that it should not, as `Fault` has it.
const EXIT_DATA: u8 = 65;
/// Come back, or ask for something else.
const EXIT_REFUSED: u8 = 1;

/// Why a verb ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The log cannot be read.
    Log(Fault),
    /// A frame is sound, but what is in it is no record that this binary knows.
    Record { file: String, offset: u64, lsn: Lsn, found: String },
    /// The log changed under our eyes.
    InMotion,
    /// The server could not begin, or had to end.
    Server(tenure_server::Failure),
}

impl Failure {
    /// What the process ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Log(fault) => fault.exit_code(),
            Failure::Record { .. } => EXIT_DATA,
            Failure::InMotion => EXIT_REFUSED,
            Failure::Server(failure) => failure.exit_code(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Log(fault) => fault.fmt(f),
            Failure::Record { file, offset, lsn, found } => write!(
                f,
                "{file} has a sound frame at offset {offset}, but its record with LSN {lsn} cannot \
                 be read: {found}; use the binary that wrote it, or a newer one"
            ),
            Failure::Server(failure) => failure.fmt(f),
            Failure::InMotion => write!(
                f,
                "the log changed while it was read, because a server is writing it; run this again"
            ),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Failure::Log(fault)
    }
}
