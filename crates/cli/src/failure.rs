//! Why a verb could not do what it was asked: one sentence, and an exit code.

use std::fmt;

use serde_json::{Value, json};
use tenure_wal::{Fault, Lsn};

/// The log holds something that it should not, as `Fault` has it.
const EXIT_DATA: u8 = 65;
/// Come back, or ask for something else.
const EXIT_REFUSED: u8 = 1;
/// There is no server, or no way to it.
const EXIT_UNREACHABLE: u8 = 3;
/// The system would not give what every program needs.
const EXIT_SYSTEM: u8 = 71;

/// Why a verb ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The log cannot be read.
    Log(Fault),
    /// A frame is sound, but what is in it is no record that this binary knows.
    Record { at: Place, found: String },
    /// The log is whole, and what it says breaks a law.
    Unsound { at: Place, law: String, found: String },
    /// The log changed under our eyes.
    InMotion,
    /// The server could not begin, or had to end.
    Server(tenure_server::Failure),
    /// The server said no.
    Refused(tenure_sdk::Error),
    /// There was no answer.
    Unreachable { url: String, error: tenure_sdk::Error },
    /// The system gave no threads.
    NoRuntime(std::io::Error),
    /// A worker's guard could not be started.
    NoGuard(std::io::Error),
}

/// A record and the frame that it is in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) offset: u64,
    pub(crate) lsn: Lsn,
}

impl Failure {
    /// What the process ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Log(fault) => fault.exit_code(),
            Failure::Record { .. } | Failure::Unsound { .. } => EXIT_DATA,
            Failure::InMotion | Failure::Refused(_) => EXIT_REFUSED,
            Failure::Unreachable { .. } => EXIT_UNREACHABLE,
            Failure::NoRuntime(_) | Failure::NoGuard(_) => EXIT_SYSTEM,
            Failure::Server(failure) => failure.exit_code(),
        }
    }

    /// The law that was broken and where, for programs; none for any other failure.
    pub(crate) fn violation(&self) -> Option<Value> {
        let Failure::Unsound { at: Place { file, offset, lsn }, law, found } = self else {
            return None;
        };
        Some(json!({
            "lsn": lsn.0,
            "file": file,
            "offset": offset,
            "law": law,
            "found": found,
        }))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Log(fault) => fault.fmt(f),
            Failure::Record { at: Place { file, offset, lsn }, found } => write!(
                f,
                "{file} has a sound frame at offset {offset}, but its record with LSN {lsn} cannot \
                 be read: {found}; use the binary that wrote it, or a newer one"
            ),
            Failure::Unsound { at: Place { file, offset, lsn }, law, found } => write!(
                f,
                "the log is unsound: {file}, frame at offset {offset}, LSN {lsn}: {found}, which breaks \
                 the law {law}; nothing was changed; keep a copy of the folder, and report this: \
                 no correct Tenure writes such a log"
            ),
            Failure::Server(failure) => failure.fmt(f),
            Failure::Refused(error) => error.fmt(f),
            Failure::Unreachable { url, error } => write!(
                f,
                "no answer from {url}: {}; start a server with `tenure serve`, or name another \
                 with --server",
                error.message()
            ),
            Failure::NoRuntime(error) => {
                write!(f, "the system gave no threads to work with: {error}")
            }
            Failure::NoGuard(error) => write!(
                f,
                "the process that ends the children of a worker cannot be started: {error}; see \
                 that this binary can still be run from where it was started"
            ),
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

impl From<tenure_sdk::Error> for Failure {
    fn from(error: tenure_sdk::Error) -> Self {
        Failure::Refused(error)
    }
}
