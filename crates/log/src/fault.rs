//! What can go wrong with a log: a sentence that says what to do, and an exit code.
//!
//! All providers share one type. Above the interface a fault is printed and ends the process; only
//! four kinds are acted upon (`Full`, `Corrupt`, `Io`, `Deposed`). A type per provider would make
//! every signature generic and change nothing for its readers.

use std::fmt;
use std::io;

use crate::frame::FORMAT;
use crate::lsn::Lsn;

/// Why a log cannot be opened, read or written.
#[derive(Debug)]
pub enum Fault {
    /// The folder does not exist, or is not a folder.
    NoFolder {
        /// Which folder.
        folder: String,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// A folder that is to be created exists and is not empty.
    NotEmpty {
        /// Which folder.
        folder: String,
    },
    /// Another process holds the lock.
    InUse {
        /// Which folder.
        folder: String,
    },
    /// The folder was moved, replaced or unmounted while this process used it.
    Replaced {
        /// Which folder.
        folder: String,
    },
    /// Another user could change the folder while a server uses it.
    Exposed {
        /// Which folder.
        folder: String,
        /// What is wrong with it.
        found: String,
        /// What to do.
        advice: String,
    },
    /// The folder is a backup, which must be restored before it can be served.
    IsBackup {
        /// Which folder.
        folder: String,
    },
    /// Bytes that were durable are not what was written.
    Corrupt(Corruption),
    /// Written in a format that this binary does not read.
    Format {
        /// Which file.
        file: String,
        /// Its format.
        version: u32,
    },
    /// A file of another log, or one that does not belong here.
    Foreign {
        /// Which file.
        file: String,
        /// What is wrong with it.
        found: String,
    },
    /// A read, write, sync or rename failed. After a failed write or sync nothing in the page
    /// cache can be trusted, so it is never tried again.
    Io {
        /// What was being done.
        doing: &'static str,
        /// With which file.
        file: String,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The log continued under another writer, so the append of this one was refused.
    Deposed {
        /// Where this writer expected the log to continue.
        lsn: Lsn,
        /// The epoch of this writer.
        epoch: u64,
    },
    /// A copy ends before the record that is wanted.
    Beyond {
        /// Where the copy is.
        folder: String,
        /// The last record that is wanted.
        wanted: Lsn,
        /// The last record of the copy.
        last: Lsn,
    },
    /// There is no room. Nothing was written, and the operation may be repeated.
    Full,
}

/// Where durable bytes are not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// Which file.
    pub file: String,
    /// Where in it.
    pub offset: u64,
    /// The record that was expected there.
    pub lsn: Lsn,
    /// What is wrong, and how it is known that it was durable.
    pub found: String,
}

impl Fault {
    /// A failed operation on a file.
    #[must_use]
    pub fn io(doing: &'static str, file: &str, cause: io::Error) -> Self {
        Fault::Io { doing, file: file.to_owned(), cause }
    }

    /// The content of a snapshot that cannot be read where it is kept.
    #[must_use]
    pub fn snapshot_source(cause: io::Error) -> Self {
        Self::io("read", "the content of a snapshot", cause)
    }

    /// The finding alone, without the name of the file and without advice.
    #[must_use]
    pub fn finding(&self) -> String {
        match self {
            Fault::Corrupt(Corruption { offset, found, .. }) => {
                format!("{found}, at offset {offset}")
            }
            Fault::Io { doing, cause, .. } => format!("cannot {doing} it: {cause}"),
            Fault::NoFolder { .. }
            | Fault::NotEmpty { .. }
            | Fault::InUse { .. }
            | Fault::Replaced { .. }
            | Fault::Exposed { .. }
            | Fault::IsBackup { .. }
            | Fault::Format { .. }
            | Fault::Foreign { .. }
            | Fault::Deposed { .. }
            | Fault::Beyond { .. }
            | Fault::Full => self.to_string(),
        }
    }

    /// The exit code of a process that ends with this fault.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Fault::NoFolder { .. } | Fault::Beyond { .. } => 66,
            Fault::NotEmpty { .. }
            | Fault::InUse { .. }
            | Fault::Replaced { .. }
            | Fault::IsBackup { .. }
            | Fault::Deposed { .. } => 73,
            Fault::Exposed { .. } => 77,
            Fault::Corrupt(_) | Fault::Format { .. } | Fault::Foreign { .. } => 65,
            Fault::Io { .. } | Fault::Full => 74,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoFolder { folder, cause } => write!(
                f,
                "cannot use the data folder {folder}: {cause}; make it, or give another with --data"
            ),
            Fault::NotEmpty { folder } => write!(
                f,
                "{folder} has something in it already, which is left alone; give a folder that is \
                 empty or does not exist"
            ),
            Fault::InUse { folder } => write!(
                f,
                "the data folder {folder} is in use by another process; stop that one first, or \
                 give another folder with --data"
            ),
            Fault::Replaced { folder } => write!(
                f,
                "the data folder {folder} was moved, replaced or unmounted while it was in use; \
                 nothing that was acknowledged is lost; put it back and start again"
            ),
            Fault::Exposed { folder, found, advice } => {
                write!(f, "the data folder {folder} {found}; {advice}")
            }
            Fault::IsBackup { folder } => write!(
                f,
                "{folder} is a backup: a server on it would give out ids that were given out since it \
                 was taken; run `tenure restore {folder} --data DIR` and serve from DIR"
            ),
            Fault::Corrupt(Corruption { file, offset, lsn, found }) => write!(
                f,
                "the log is corrupt: {file} at offset {offset}, LSN {lsn}: {found}; nothing was \
                 changed; look with `tenure wal verify`, and restore from a backup or a replica"
            ),
            Fault::Format { file, version } if *version > FORMAT => write!(
                f,
                "{file} has format {version} and this binary reads format {FORMAT}; use the newer \
                 binary"
            ),
            Fault::Format { file, version } => write!(
                f,
                "{file} has format {version}, which no release has written, and this binary reads \
                 format {FORMAT}; start with an empty data folder"
            ),
            Fault::Foreign { file, found } => write!(
                f,
                "{file} does not belong to this log: {found}; move it out of the data folder"
            ),
            Fault::Io { doing, file, cause } => write!(
                f,
                "cannot {doing} {file}: {cause}; mend the disk and start again, nothing that was \
                 durable is lost"
            ),
            Fault::Deposed { lsn, epoch } => write!(
                f,
                "another process writes this log now: the batch of epoch {epoch} at LSN {lsn} was \
                 refused; nothing is lost, and there is nothing to do here"
            ),
            Fault::Beyond { folder, wanted, last } => write!(
                f,
                "{folder} ends with LSN {last}, so it cannot give LSN {wanted}; ask for that one or \
                 an earlier one"
            ),
            Fault::Full => write!(f, "the disk is full; make room in the data folder"),
        }
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Fault::NoFolder { cause, .. } | Fault::Io { cause, .. } => Some(cause),
            Fault::NotEmpty { .. }
            | Fault::InUse { .. }
            | Fault::Replaced { .. }
            | Fault::Exposed { .. }
            | Fault::IsBackup { .. }
            | Fault::Corrupt(_)
            | Fault::Format { .. }
            | Fault::Foreign { .. }
            | Fault::Deposed { .. }
            | Fault::Beyond { .. }
            | Fault::Full => None,
        }
    }
}
