//! Why a verb could not do what it was asked: one sentence, and an exit code.

use std::path::PathBuf;
use std::{fmt, io};

use serde_json::{Value, json};
use tenure_wal::{Fault, Lsn};

/// The log holds something that it should not, as `Fault` has it.
const EXIT_DATA: u8 = 65;
/// Come back, or ask for something else.
const EXIT_REFUSED: u8 = 1;
/// Ask in another way.
const EXIT_USAGE: u8 = 2;

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
    /// A file that was named on the command line cannot be read.
    Unreadable { file: PathBuf, cause: io::Error },
    /// A definition has faults; they were printed.
    Faulty { faults: usize },
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
            Failure::InMotion | Failure::Faulty { .. } => EXIT_REFUSED,
            Failure::Unreadable { .. } => EXIT_USAGE,
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
            Failure::Unreadable { file, cause } => {
                write!(f, "cannot read {}: {cause}; name a file with a definition", file.display())
            }
            Failure::Faulty { faults: 1 } => write!(f, "the definition has a fault"),
            Failure::Faulty { faults } => write!(f, "the definition has {faults} faults"),
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
