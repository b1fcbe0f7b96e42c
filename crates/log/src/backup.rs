//! A consistent copy of a log in use, as a list of files that can be read one after the other.

use std::any::Any;
use std::fmt;

use crate::fault::Fault;
use crate::lsn::Lsn;

/// How far back a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// To the older of the two snapshots, or to the first record while there is no snapshot.
    Snapshot,
    /// To the oldest record that is stored.
    Oldest,
}

/// A log that can be copied as files while it is in use.
pub trait BackupSource: fmt::Debug + Send {
    /// Opens every file that belongs to a copy of what is released now.
    ///
    /// # Errors
    /// If a file cannot be opened or read.
    fn begin_backup(&self, since: Since) -> Result<Backup, Fault>;
}

/// A copy in the making. Trimming does not disturb it.
#[derive(Debug)]
pub struct Backup {
    /// The last record in the copy.
    pub lsn: Lsn,
    /// The oldest state that the copy can give: that of a snapshot, or the empty one.
    pub since: Lsn,
    /// The files, in the order in which to copy them.
    pub files: Vec<BackupFile>,
    /// Keeps the provider from reusing the files until the copy is dropped.
    pub hold: Box<dyn Any + Send>,
}

impl Backup {
    /// The number of bytes to copy.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// A file to copy.
#[derive(Debug)]
pub struct BackupFile {
    /// The name of the file, in the source and in the copy.
    pub name: String,
    /// The number of bytes to copy.
    pub bytes: u64,
    /// The size of the copy; zeros follow the bytes that were copied.
    pub size: u64,
    /// The open file.
    pub contents: Box<dyn BackupContents>,
}

impl BackupFile {
    /// Reads bytes to copy; fewer than asked for only at the end.
    ///
    /// # Errors
    /// If the file cannot be read, or is shorter than it was.
    pub fn read(&self, into: &mut [u8], offset: u64) -> Result<usize, Fault> {
        let wanted = self.bytes.saturating_sub(offset).min(into.len() as u64) as usize;
        let read = self.contents.read_at(&mut into[..wanted], offset);
        let read = read.map_err(|e| Fault::io("read", &self.name, e))?;
        match read == wanted {
            true => Ok(read),
            false => Err(Fault::io("read", &self.name, std::io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

/// The bytes of an open file.
pub trait BackupContents: fmt::Debug + Send {
    /// Reads at an offset until the slice is full or the file ends; returns the number of bytes.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn read_at(&self, into: &mut [u8], offset: u64) -> std::io::Result<usize>;
}
