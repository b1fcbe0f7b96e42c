//! The folder on the machine's own disk.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::giving_back::GivingBack;
use super::{Disk, DiskFile, private};

/// The file that is locked besides the folder, for file systems that cannot lock a folder, and for
/// people and tools that look for it. The server never removes it.
pub const LOCK_FILE: &str = "LOCK";

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
        match private::create_folder(&folder) {
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

/// Whether a process has locked the folder for writing.
pub fn is_locked(folder: &Path) -> io::Result<bool> {
    let is_taken = |file: &File| match file.try_lock() {
        Ok(()) => file.unlock().map(|()| false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) if cannot_lock_folders(&error) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    };
    if is_taken(&File::open(folder)?)? {
        return Ok(true);
    }
    match File::open(folder.join(LOCK_FILE)) {
        Ok(file) => is_taken(&file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Locks on a folder and on the lock file in it. The folder's is the one that counts: removing the
/// file does not free it. A child process that is just being started has copies of the descriptors for
/// a moment, so closing ours would not free them at once: they are unlocked.
#[derive(Debug)]
pub struct Locked {
    folder: File,
    file: File,
    scope: Scope,
}

/// What was locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    FolderAndFile,
    /// The file system cannot lock folders.
    File,
}

impl Drop for Locked {
    fn drop(&mut self) {
        // If this fails, closing them does it.
        let _ = self.file.unlock();
        let _ = self.folder.unlock();
    }
}

/// Network file systems emulate `flock` by locks that need a descriptor open for writing, which a
/// folder's never is.
fn cannot_lock_folders(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let unsupported = [Errno::BADF, Errno::INVAL, Errno::OPNOTSUPP, Errno::NOLCK, Errno::NOSYS];
    unsupported.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Whether a path leads to this open file or folder.
fn leads_to(path: &Path, open: &File) -> io::Result<bool> {
    let open = open.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Disk for RealDisk {
    type File = File;
    type Lock = Locked;

    fn name(&self) -> String {
        self.folder.display().to_string()
    }

    fn lock(&self) -> io::Result<Option<Locked>> {
        let folder = File::open(&self.folder)?;
        let scope = match folder.try_lock() {
            Ok(()) => Scope::FolderAndFile,
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) if cannot_lock_folders(&error) => Scope::File,
            Err(TryLockError::Error(error)) => return Err(error),
        };
        let mut options = private::options();
        let file = options.create(true).write(true).truncate(false).open(self.path(LOCK_FILE))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Locked { folder, file, scope })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn is_held(&self, lock: &Locked) -> io::Result<bool> {
        Ok(leads_to(&self.folder, &lock.folder)?
            && match lock.scope {
                // Whoever removes the lock file does not get the folder.
                Scope::FolderAndFile => true,
                Scope::File => leads_to(&self.path(LOCK_FILE), &lock.file)?,
            })
    }

    fn list(&self) -> io::Result<Vec<String>> {
        file_names(&self.folder)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(self.path(name))
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let mut options = private::options();
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
