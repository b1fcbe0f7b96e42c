//! A folder that is only looked at. Whatever would change it is refused.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_log::Fault;

use super::{Disk, DiskFile, real};

/// A folder that exists, and stays as it is.
#[derive(Clone, Debug)]
pub struct ReadOnlyDisk {
    folder: Arc<Path>,
}

impl ReadOnlyDisk {
    /// Uses a folder; one that is missing is not made.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Fault> {
        let folder: PathBuf = folder.into();
        match fs::metadata(&folder) {
            Ok(found) if found.is_dir() => Ok(Self { folder: folder.into() }),
            Ok(_) => Err(no_folder(&folder, io::ErrorKind::NotADirectory.into())),
            Err(cause) => Err(no_folder(&folder, cause)),
        }
    }
}

fn no_folder(folder: &Path, cause: io::Error) -> Fault {
    Fault::NoFolder { folder: folder.display().to_string(), cause }
}

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for ReadOnlyDisk {
    type File = ReadOnlyFile;
    type Lock = ();

    fn name(&self) -> String {
        self.folder.display().to_string()
    }

    /// Refused: a lock, held for a moment only, could keep a server from starting.
    fn lock(&self) -> io::Result<Option<()>> {
        refused()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        real::file_names(&self.folder)
    }

    fn open(&self, name: &str) -> io::Result<ReadOnlyFile> {
        File::open(self.folder.join(name)).map(ReadOnlyFile)
    }

    fn create(&self, _: &str) -> io::Result<ReadOnlyFile> {
        refused()
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        refused()
    }

    fn sync_folder(&self) -> io::Result<()> {
        refused()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        real::free_bytes(&self.folder)
    }
}

/// A file that is open for reading.
#[derive(Debug)]
pub struct ReadOnlyFile(File);

impl DiskFile for ReadOnlyFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(&self.0, into, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        refused()
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn sync(&self) -> io::Result<()> {
        refused()
    }
}
