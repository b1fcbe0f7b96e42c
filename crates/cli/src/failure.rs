//! Why a verb could not do what it was asked: one sentence, and an exit code.

use std::path::PathBuf;
use std::{fmt, io};

use serde_json::{Value, json};
use tenure_log::{Fault, Lsn};
use tenure_sdk::{RunState, TaskError, TaskState};

/// The log holds something that it should not, as `Fault` has it.
const EXIT_DATA: u8 = 65;
/// Come back, or ask for something else.
const EXIT_REFUSED: u8 = 1;
/// There is no such folder, as `Fault` has it.
const EXIT_NO_INPUT: u8 = 66;
/// The command line asks for something that cannot be.
const EXIT_USAGE: u8 = 2;
/// There is no server, or no way to it.
const EXIT_UNREACHABLE: u8 = 3;
/// A read or a write failed, as `Fault` has it.
const EXIT_IO: u8 = 74;
/// The system would not give what every program needs.
const EXIT_SYSTEM: u8 = 71;

/// Why a verb ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The log cannot be read.
    Log(Fault),
    /// A frame is sound, but what is in it is no record that this binary knows.
    Record { at: RecordLocation, found: String },
    /// The log is whole, and what it says breaks a law.
    Unsound { at: RecordLocation, law: String, found: String },
    /// The log changed under our eyes.
    InMotion,
    /// The server could not begin, or had to end.
    Server(tenure_server::Failure),
    /// The server said no.
    Refused(tenure_sdk::Error),
    /// There was no answer.
    Unreachable { url: String, error: tenure_sdk::Error },
    /// The disk under a folder could not be measured.
    Probe { folder: PathBuf, error: std::io::Error },
    /// What was asked for makes no sense.
    Usage(String),
    /// A task that was waited for did not come to a good end.
    Ended { task_id: u64, state: TaskState, error: Option<TaskError> },
    /// A run that was waited for did not come to a good end.
    RunEnded { run_id: u64, state: RunState, error: Option<String> },
    /// Today's rules would decide a record of a run differently.
    Different { run_id: u64, lsn: u64 },
    /// It stopped in the middle, or nobody knows where. `said` is the cause in other words, if there
    /// are better ones; `told` says what is done and how to go on.
    HalfDone { cause: Box<Failure>, said: Option<String>, told: String },
    /// The system gave no threads.
    NoRuntime(std::io::Error),
    /// A worker's guard could not be started.
    NoGuard(std::io::Error),
    /// A file that was named on the command line cannot be read.
    Unreadable { file: PathBuf, cause: io::Error },
    /// A data folder is not well; what is wrong was printed.
    Ill { folder: PathBuf },
    /// A definition has faults; they were printed.
    Faulty { faults: usize },
    /// There is not enough room for a copy.
    NoRoom { folder: PathBuf, needed: u64, free: u64 },
    /// There is no archive in that folder.
    NoArchive { folder: PathBuf, cause: io::Error },
    /// Some of an archive cannot be read; what was printed.
    ArchiveDamaged { folder: PathBuf, places: usize },
    /// An archive does not have it.
    NotArchived { folder: PathBuf, what: &'static str, id: u64 },
}

/// A record and the frame that it is in.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordLocation {
    pub(crate) file: String,
    pub(crate) offset: u64,
    pub(crate) lsn: Lsn,
}

impl Failure {
    /// What the process ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Log(fault) => fault.exit_code(),
            Failure::Record { .. }
            | Failure::Unsound { .. }
            | Failure::Ill { .. }
            | Failure::ArchiveDamaged { .. } => EXIT_DATA,
            Failure::NoArchive { .. } => EXIT_NO_INPUT,
            Failure::InMotion
            | Failure::Refused(_)
            | Failure::Ended { .. }
            | Failure::RunEnded { .. }
            | Failure::Different { .. }
            | Failure::NotArchived { .. }
            | Failure::Faulty { .. } => EXIT_REFUSED,
            Failure::Usage(_) | Failure::Unreadable { .. } => EXIT_USAGE,
            Failure::HalfDone { cause, .. } => cause.exit_code(),
            Failure::Unreachable { .. } => EXIT_UNREACHABLE,
            Failure::Probe { .. } | Failure::NoRoom { .. } => EXIT_IO,
            Failure::NoRuntime(_) | Failure::NoGuard(_) => EXIT_SYSTEM,
            Failure::Server(failure) => failure.exit_code(),
        }
    }

    /// The law that was broken and where, for programs; none for any other failure.
    pub(crate) fn violation(&self) -> Option<Value> {
        let Failure::Unsound { at: RecordLocation { file, offset, lsn }, law, found } = self else {
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
            Failure::Record { at: RecordLocation { file, offset, lsn }, found } => write!(
                f,
                "{file} has a sound frame at offset {offset}, but its record with LSN {lsn} cannot \
                 be read: {found}; use the binary that wrote it, or a newer one"
            ),
            Failure::Unsound { at: RecordLocation { file, offset, lsn }, law, found } => write!(
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
            Failure::Probe { folder, error } => write!(
                f,
                "the disk under {} cannot be measured: {error}; name a folder that can be written",
                folder.display()
            ),
            Failure::Usage(sentence) => f.write_str(sentence),
            Failure::Ended { task_id, state, error: Some(error) } => {
                write!(f, "task {task_id} is {state}: {} ({})", error.message, error.code)
            }
            Failure::Ended { task_id, state, error: None } => write!(
                f,
                "task {task_id} is {state}; `tenure task history {task_id}` says how it came to that"
            ),
            Failure::RunEnded { run_id, state, error: Some(error) } => {
                write!(f, "run {run_id} is {state}: {error}")
            }
            Failure::RunEnded { run_id, state, error: None } => write!(
                f,
                "run {run_id} is {state}; `tenure run history {run_id}` says how it came to that"
            ),
            Failure::Different { run_id, lsn } => write!(
                f,
                "today's rules would decide the record with LSN {lsn} of run {run_id} differently; \
                 what is recorded stays as it is"
            ),
            Failure::HalfDone { said: Some(said), told, .. } => write!(f, "{said}; {told}"),
            Failure::HalfDone { cause, said: None, told } => write!(f, "{cause}; {told}"),
            Failure::NoRuntime(error) => {
                write!(f, "the system gave no threads to work with: {error}")
            }
            Failure::NoGuard(error) => write!(
                f,
                "the process that ends the children of a worker cannot be started: {error}; see \
                 that this binary can still be run from where it was started"
            ),
            Failure::Unreadable { file, cause } => {
                write!(f, "cannot read {}: {cause}; name a file with a definition", file.display())
            }
            Failure::Ill { folder } => {
                write!(f, "{} is not well; what is bad is above", folder.display())
            }
            Failure::NoRoom { folder, needed, free } => write!(
                f,
                "the copy needs {needed} bytes, and the disk of {} has {free} free; make room, or \
                 give a folder on another disk; nothing was copied",
                folder.display()
            ),
            Failure::NoArchive { folder, cause } => write!(
                f,
                "there is no archive in {}: {cause}; name the folder that the server archives into \
                 with --archive",
                folder.display()
            ),
            Failure::ArchiveDamaged { folder, places } => {
                let places = if *places == 1 { "a place" } else { "places" };
                write!(
                    f,
                    "the archive {} is damaged in {places} named above; all else was read",
                    folder.display()
                )
            }
            Failure::NotArchived { folder, what, id } => write!(
                f,
                "{what} {id} is not in the archive {}; one that is still kept is shown by `tenure \
                 {what} get {id}`",
                folder.display()
            ),
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

impl From<tenure_sdk::Error> for Failure {
    fn from(error: tenure_sdk::Error) -> Self {
        Failure::Refused(error)
    }
}
