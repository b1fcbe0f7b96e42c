//! What can go wrong with a log. Each fault names the file and says what to do.

use std::fmt;
use std::io;

use crate::Lsn;

/// Why a log cannot be opened, read or written.
#[derive(Debug)]
pub enum Fault {
    /// The folder is not there, or is no folder.
    NoFolder {
        /// Which folder.
        folder: String,
        /// What the system said.
        cause: io::Error,
    },
    /// A folder that is to be made has something in it.
    NotEmpty {
        /// Which folder.
        folder: String,
    },
    /// Another process has it.
    InUse {
        /// Which folder.
        folder: String,
    },
    /// Bytes that were durable are not what was written.
    Corrupt(Corruption),
    /// Written by a newer version.
    Newer {
        /// Which file.
        file: String,
        /// Its format.
        version: u32,
    },
    /// A file of another log, or one that does not belong here.
    Foreign {
        /// Which file.
        file: String,
        /// What is strange about it.
        found: String,
    },
    /// A read, write, sync or rename failed. After a failed write or sync nothing in the page
    /// cache can be trusted, so it is never tried again.
    Io {
        /// What was being done.
        doing: &'static str,
        /// With which file.
        file: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The log has gone on under another writer. This one has nothing to say any more.
    Deposed {
        /// Where this writer believed the log to go on.
        lsn: Lsn,
        /// In which time in office.
        epoch: u64,
    },
    /// A copy does not go as far as is wanted.
    Beyond {
        /// Where the copy is.
        folder: String,
        /// The last record that is wanted.
        wanted: Lsn,
        /// The last record that is there.
        last: Lsn,
    },
    /// There is no room for the frame. Nothing was written.
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
    pub(crate) fn io(doing: &'static str, file: &str, cause: io::Error) -> Self {
        Fault::Io { doing, file: file.to_owned(), cause }
    }

    /// What was found in a file that one can do without: no advice, and not its name.
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
            | Fault::Newer { .. }
            | Fault::Foreign { .. }
            | Fault::Deposed { .. }
            | Fault::Beyond { .. }
            | Fault::Full => self.to_string(),
        }
    }

    /// The exit code of a process that ends because of it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Fault::NoFolder { .. } | Fault::Beyond { .. } => 66,
            Fault::NotEmpty { .. } | Fault::InUse { .. } | Fault::Deposed { .. } => 73,
            Fault::Corrupt(_) | Fault::Newer { .. } | Fault::Foreign { .. } => 65,
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
            Fault::Corrupt(Corruption { file, offset, lsn, found }) => write!(
                f,
                "the log is corrupt: {file} at offset {offset}, LSN {lsn}: {found}; nothing was \
                 changed; look with `tenure wal verify`, and restore from a backup or a replica"
            ),
            Fault::Newer { file, version } => write!(
                f,
                "{file} has format {version} and this binary reads up to {}; use the newer binary",
                crate::FORMAT
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

impl std::error::Error for Fault {}
