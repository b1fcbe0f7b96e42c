//! The shelf: a scratch file beside the log, in which large payloads and outputs lie so that they
//! need not lie in memory. It is no truth: the log has every byte of it, and each start begins with
//! an empty one.

mod plan;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::shelf::{Shelf, Shelved};
use tenure_log::Fault;

use self::plan::{CHUNK_BYTES, Emptied, Plan, Stretch, chunks_for};
use crate::limits::SHELF_SPARES_BYTES;
use crate::warning::{Warning, WarningHandler};

/// Its name in the data folder.
pub const SHELF_FILE: &str = "shelf";
/// One that nobody else shall find has this name, and only for a moment.
pub(crate) const UNNAMED_FILE: &str = "shelf.tmp";

/// A shelf in a file.
#[derive(Clone, Debug)]
pub struct FileShelf(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: File,
    path: PathBuf,
    plan: Mutex<Plan>,
    strings: AtomicU64,
    refused: AtomicU64,
    /// People were told that it takes nothing, and it has taken nothing since.
    is_refusing: AtomicBool,
    /// The disk cannot be given back a part of a file.
    keeps_holes: AtomicBool,
    on_warning: WarningHandler,
}

/// How full a shelf is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShelfUse {
    /// Payloads and outputs that lie on it.
    pub strings: u64,
    /// What they take of the file.
    pub bytes: u64,
    /// What the file takes of the disk, about.
    pub held_bytes: u64,
    /// Those that it could not take, and that are in memory instead.
    pub refused: u64,
}

impl FileShelf {
    /// An empty shelf in a folder that is ours. What an earlier process has left goes: a file that
    /// somebody may still read is not written to.
    pub fn open(folder: &Path, on_warning: WarningHandler) -> io::Result<Self> {
        Self::make(folder.join(SHELF_FILE), on_warning)
    }

    /// An empty shelf that has no name, for a state that is looked at and thrown away. It is gone
    /// with its last reader, however the process ends.
    pub fn unnamed(folder: &Path) -> io::Result<Self> {
        let path = folder.join(format!("{}-{UNNAMED_FILE}", std::process::id()));
        let shelf = Self::make(path, WarningHandler::default())?;
        fs::remove_file(&shelf.0.path)?;
        Ok(shelf)
    }

    fn make(path: PathBuf, on_warning: WarningHandler) -> io::Result<Self> {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut options = OpenOptions::new();
        // Payloads are nobody else's business, least of all in a folder for temporary files.
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path)?;
        Ok(Self(Arc::new(Inner {
            file,
            path,
            plan: Mutex::default(),
            strings: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            is_refusing: AtomicBool::new(false),
            keeps_holes: AtomicBool::new(!CAN_PUNCH),
            on_warning,
        })))
    }

    /// The same, for a state.
    #[must_use]
    pub fn shared(self) -> Arc<dyn Shelf> {
        Arc::new(self)
    }

    /// Takes its name away: nobody is served any more, and the disk gets its room back when the last
    /// reader is gone.
    pub(crate) fn retire(&self) {
        let path = &self.0.path;
        let is_ours = |there: &fs::Metadata| {
            let ours = self.0.file.metadata();
            ours.is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
        };
        // If this fails, the next start does it.
        if fs::symlink_metadata(path).is_ok_and(|there| is_ours(&there)) {
            let _ = fs::remove_file(path);
        }
    }

    /// How full it is.
    #[must_use]
    pub fn in_use(&self) -> ShelfUse {
        let (bytes, held_bytes) = self.0.plan().bytes();
        let strings = self.0.strings.load(Ordering::Relaxed);
        let refused = self.0.refused.load(Ordering::Relaxed);
        ShelfUse { strings, bytes, held_bytes, refused }
    }
}

impl Shelf for FileShelf {
    fn keep(&self, bytes: &[u8]) -> Option<Arc<dyn Shelved>> {
        match self.0.put(bytes) {
            Ok(stretches) => {
                self.0.strings.fetch_add(1, Ordering::Relaxed);
                self.0.is_refusing.store(false, Ordering::Relaxed);
                let (len, crc) = (bytes.len(), crc32c::crc32c(bytes));
                Some(Arc::new(Kept { shelf: Arc::clone(&self.0), stretches, len, crc }))
            }
            Err(cause) => {
                self.0.refused.fetch_add(1, Ordering::Relaxed);
                if !self.0.is_refusing.swap(true, Ordering::Relaxed) {
                    self.0.on_warning.call(&Warning::ShelfRefuses(cause));
                }
                None
            }
        }
    }
}

impl Inner {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, bytes: &[u8]) -> io::Result<Box<[Stretch]>> {
        let stretches = self.find_room(bytes.len())?;
        let mut rest = bytes;
        for stretch in &stretches {
            let (piece, after) = rest.split_at(rest.len().min(stretch.bytes() as usize));
            if let Err(error) = self.file.write_all_at(piece, stretch.offset()) {
                self.plan().give_back(&stretches);
                return Err(error);
            }
            rest = after;
        }
        Ok(stretches.into_boxed_slice())
    }

    /// Takes chunks, unless they would have to be taken from what the log may need.
    fn find_room(&self, bytes: usize) -> io::Result<Vec<Stretch>> {
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        let chunks = chunks_for(bytes).ok_or_else(too_large)?;
        let mut plan = self.plan();
        let fresh = u64::from(plan.fresh(chunks)) * CHUNK_BYTES;
        if fresh > 0 {
            let disk = rustix::fs::fstatvfs(&self.file)?;
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            if free < SHELF_SPARES_BYTES + fresh {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        plan.take(chunks).ok_or_else(too_large)
    }

    fn take_back(self: &Arc<Self>, stretches: &[Stretch]) {
        let mut plan = self.plan();
        plan.give_back(stretches);
        if self.keeps_holes.load(Ordering::Relaxed) {
            return;
        }
        let Some(idle) = plan.take_idle() else { return };
        drop(plan);
        let (shelf, idle) = (Arc::clone(self), Arc::<[Stretch]>::from(idle));
        let empty = {
            let idle = Arc::clone(&idle);
            move || shelf.empty(&idle)
        };
        // The one who frees last is the writer as a rule, and has no time for the disk.
        if std::thread::Builder::new().name("shelf".to_owned()).spawn(empty).is_err() {
            self.plan().emptied(&idle, Emptied::AsBefore);
        }
    }

    /// Gives the blocks of free chunks back to the disk, and those that became too many meanwhile.
    fn empty(&self, first: &[Stretch]) {
        let mut idle = first.to_vec();
        loop {
            let punched = idle.iter().try_for_each(|stretch| punch(&self.file, *stretch));
            let mut plan = self.plan();
            if punched.is_err() {
                self.keeps_holes.store(true, Ordering::Relaxed);
                return plan.emptied(&idle, Emptied::AsBefore);
            }
            plan.emptied(&idle, Emptied::Hollow);
            match plan.take_idle() {
                Some(more) => idle = more,
                None => return,
            }
        }
    }
}

#[cfg(target_os = "linux")]
const CAN_PUNCH: bool = true;
#[cfg(not(target_os = "linux"))]
const CAN_PUNCH: bool = false;

#[cfg(target_os = "linux")]
fn punch(file: &File, stretch: Stretch) -> io::Result<()> {
    use rustix::fs::FallocateFlags;
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(rustix::fs::fallocate(file, how, stretch.offset(), stretch.bytes())?)
}

#[cfg(not(target_os = "linux"))]
fn punch(_file: &File, _stretch: Stretch) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Bytes that lie on the shelf. Their place is free when the last that holds them lets go.
#[derive(Debug)]
struct Kept {
    shelf: Arc<Inner>,
    stretches: Box<[Stretch]>,
    len: usize,
    crc: u32,
}

impl Kept {
    fn try_read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.len];
        let mut rest = &mut bytes[..];
        for stretch in &self.stretches {
            let (piece, after) = rest.split_at_mut(rest.len().min(stretch.bytes() as usize));
            self.shelf.file.read_exact_at(piece, stretch.offset())?;
            rest = after;
        }
        match crc32c::crc32c(&bytes) == self.crc {
            true => Ok(bytes),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl Shelved for Kept {
    fn len(&self) -> usize {
        self.len
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        self.try_read().map_err(|cause| {
            let path = self.shelf.path.display();
            let lost = match cause.kind() == io::ErrorKind::InvalidData {
                true => "a payload is not what was written".to_owned(),
                false => format!("a payload cannot be read ({cause})"),
            };
            let message = format!(
                "{lost} in {path}, which no other program may write to; nothing is lost, as the log \
                 has it: start again, and look after the disk"
            );
            io::Error::new(cause.kind(), message)
        })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.shelf.strings.fetch_sub(1, Ordering::Relaxed);
        self.shelf.take_back(&self.stretches);
    }
}

/// The fault of a start or a restore that cannot read what it has just spilled.
pub(crate) fn shelf_fault(cause: io::Error) -> Fault {
    Fault::io("read", SHELF_FILE, cause)
}

#[cfg(test)]
mod tests;
