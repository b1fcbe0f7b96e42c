//! The folder on the machine's own disk.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::giving_back::GivingBack;
use super::{Disk, DiskFile};

/// The file whose lock says that the folder is taken. It is never removed: a lock on a name that
/// can vanish keeps nobody out.
const LOCK_FILE: &str = "LOCK";

/// A folder that exists.
#[derive(Clone, Debug)]
pub struct RealDisk {
    folder: Arc<Path>,
    removed: Arc<GivingBack>,
}

impl RealDisk {
    /// Uses a folder; it is made if only it is missing.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder: PathBuf = folder.into();
        match fs::create_dir(&folder) {
            // The new name must survive as well as what is written under it.
            Ok(()) => sync_folder(folder.parent().filter(|p| !p.as_os_str().is_empty()))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        Ok(Self { folder: folder.into(), removed: Arc::default() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

pub(super) fn sync_folder(folder: Option<&Path>) -> io::Result<()> {
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// The names of the files in a folder, in no order.
pub(super) fn file_names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// Bytes that can still be written in a folder.
pub(super) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(folder)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// A folder that is taken. A child process that is just being started has a copy of the open file
/// for a moment, so closing ours would not free it at once: it is unlocked.
#[derive(Debug)]
pub struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // If this fails, closing the file does it.
        let _ = self.0.unlock();
    }
}

impl Disk for RealDisk {
    type File = File;
    type Lock = Locked;

    fn name(&self) -> String {
        self.folder.display().to_string()
    }

    fn lock(&self) -> io::Result<Option<Locked>> {
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(self.path(LOCK_FILE))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Locked(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        file_names(&self.folder)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(self.path(name))
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).open(self.path(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.removed.remove(&self.folder, name)
    }

    fn sync_folder(&self) -> io::Result<()> {
        sync_folder(Some(&self.folder))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        free_bytes(&self.folder)
    }
}

impl DiskFile for File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn write_beside(&self, bytes: &[u8], offset: u64, beside: &mut dyn FnMut()) -> io::Result<()> {
        let write = || DiskFile::write_all_at(self, bytes, offset).and_then(|()| self.sync());
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("large frame".to_owned());
            let writing = thread.spawn_scoped(scope, write);
            beside();
            match writing {
                Ok(writing) => writing.join().expect("a write does not panic"),
                // Without a thread it is written when the other work is done.
                Err(_) => write(),
            }
        })
    }
}
