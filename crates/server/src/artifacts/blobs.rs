//! Files under the hash of their bytes, beside the log: `blobs/ab/cdef…`. One is written under
//! another name, synced, renamed and its folder synced before anybody may name it. What nobody names
//! any more is removed, but never what was touched lately.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::SystemTime;

use sha2::Digest;
use tenure_coordinator::private;
use tenure_record::artifact::Sha256;

use crate::limits::{BLOB_GRACE, BLOB_UPLOADS_MAX};

/// What is called so is being written.
const UNFINISHED: &str = "unfinished";
const COPY_BYTES: usize = 256 << 10;

/// The folder of blobs.
#[derive(Debug)]
pub(crate) struct Blobs {
    folder: PathBuf,
    /// Tells files apart that are being written.
    next: AtomicU64,
    uploads: AtomicUsize,
    is_used: AtomicBool,
    /// Held while a blob is touched and while one is removed, so that nobody removes what somebody is
    /// about to name.
    door: Mutex<()>,
}

/// A blob that is being written.
#[derive(Debug)]
pub(crate) struct Upload {
    file: File,
    path: PathBuf,
    hasher: sha2::Sha256,
    bytes: u64,
    is_kept: bool,
}

/// Why a blob was not kept.
#[derive(Debug)]
pub(crate) enum NotKept {
    /// Its bytes have another hash.
    Differs(Sha256),
    /// The disk says no.
    Disk(io::Error),
}

impl From<io::Error> for NotKept {
    fn from(error: io::Error) -> Self {
        NotKept::Disk(error)
    }
}

/// Why the bytes of a blob cannot be had.
#[derive(Debug)]
pub(crate) enum Lost {
    /// There is no such file.
    Missing,
    /// Its bytes are others.
    Damaged,
    /// The disk says no.
    Disk(io::Error),
}

/// A place among those who upload, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place<'a>(&'a Blobs);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.uploads.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How the blobs of a data folder are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobsSeen {
    /// How many are whole.
    pub whole: u64,
    /// Those whose bytes are not what their names say.
    pub damaged: Vec<String>,
}

/// Reads every blob of a data folder, which nobody need be serving from, and changes nothing.
pub fn look_at_blobs(data: &Path) -> io::Result<BlobsSeen> {
    let blobs = Blobs::new(data);
    let mut seen = BlobsSeen::default();
    for (sha256, bytes) in blobs.list()? {
        match blobs.check(sha256, bytes) {
            Ok(()) => seen.whole += 1,
            Err(Lost::Damaged) => seen.damaged.push(blobs.path(sha256).display().to_string()),
            // It was swept since it was listed.
            Err(Lost::Missing) => {}
            Err(Lost::Disk(error)) => return Err(error),
        }
    }
    Ok(seen)
}

impl Blobs {
    fn new(data: &Path) -> Self {
        let folder = data.join("blobs");
        let is_used = AtomicBool::new(folder.is_dir());
        let (next, uploads) = (AtomicU64::new(0), AtomicUsize::new(0));
        Self { folder, next, uploads, is_used, door: Mutex::new(()) }
    }

    /// The blobs of a data folder. What a crash left half-written goes.
    pub(crate) fn open(data: &Path) -> io::Result<Self> {
        let blobs = Self::new(data);
        let unfinished = blobs.folder.join(UNFINISHED);
        if unfinished.is_dir() {
            for entry in fs::read_dir(&unfinished)? {
                fs::remove_file(entry?.path())?;
            }
        }
        Ok(blobs)
    }

    /// Whether there ever was one.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// A place among those who upload, if there is one.
    pub(crate) fn place(&self) -> Option<Place<'_>> {
        let before = self.uploads.fetch_add(1, Ordering::Relaxed);
        let place = Place(self);
        (before < BLOB_UPLOADS_MAX).then_some(place)
    }

    /// Begins to write one.
    pub(crate) fn begin(&self) -> io::Result<Upload> {
        let folder = self.folder.join(UNFINISHED);
        private::create_folders(&folder)?;
        self.is_used.store(true, Ordering::Release);
        let path = folder.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        let file = private::create_file(&path)?;
        Ok(Upload { file, path, hasher: sha2::Sha256::new(), bytes: 0, is_kept: false })
    }

    /// Keeps what was written, if it is what it should be. It is durable when this returns.
    pub(crate) fn keep(&self, upload: Upload, sha256: Sha256) -> Result<u64, NotKept> {
        let mut upload = upload;
        let found = Sha256(upload.hasher.finalize_reset().into());
        if found != sha256 {
            return Err(NotKept::Differs(found));
        }
        upload.file.sync_all()?;
        let path = self.path(sha256);
        let folder = path.parent().unwrap_or(&self.folder);
        if !folder.is_dir() {
            private::create_folders(folder)?;
            sync_folder(&self.folder)?;
            sync_folder(self.folder.parent().unwrap_or(&self.folder))?;
        }
        let _held = self.hold();
        fs::rename(&upload.path, &path)?;
        upload.is_kept = true;
        // The name is not durable until the folder is.
        sync_folder(folder)?;
        Ok(upload.bytes)
    }

    /// Keeps these bytes.
    pub(crate) fn keep_bytes(&self, bytes: &[u8]) -> io::Result<Sha256> {
        let sha256 = Sha256(sha2::Sha256::digest(bytes).into());
        if self.touch_whole(sha256)?.is_some() {
            return Ok(sha256);
        }
        let mut upload = self.begin()?;
        upload.write(bytes)?;
        match self.keep(upload, sha256) {
            Ok(_) => Ok(sha256),
            Err(NotKept::Disk(error)) => Err(error),
            Err(NotKept::Differs(_)) => Err(io::Error::other("the bytes changed while written")),
        }
    }

    /// How long a blob is, if it is there; from now on it counts as new.
    pub(crate) fn touch(&self, sha256: Sha256) -> io::Result<Option<u64>> {
        let _held = self.hold();
        let file = match File::open(self.path(sha256)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        file.set_modified(SystemTime::now())?;
        Ok(Some(file.metadata()?.len()))
    }

    /// The same for who has the bytes at hand: one that was damaged counts as not there.
    pub(crate) fn touch_whole(&self, sha256: Sha256) -> io::Result<Option<u64>> {
        let Some(bytes) = self.touch(sha256)? else { return Ok(None) };
        match self.check(sha256, bytes) {
            Ok(()) => Ok(Some(bytes)),
            Err(Lost::Damaged | Lost::Missing) => Ok(None),
            Err(Lost::Disk(error)) => Err(error),
        }
    }

    /// Opens a blob that should be so long.
    pub(crate) fn read(&self, sha256: Sha256, bytes: u64) -> Result<File, Lost> {
        let file = File::open(self.path(sha256)).map_err(|error| {
            match error.kind() == io::ErrorKind::NotFound {
                true => Lost::Missing,
                false => Lost::Disk(error),
            }
        })?;
        match file.metadata().map_err(Lost::Disk)?.len() == bytes {
            true => Ok(file),
            false => Err(Lost::Damaged),
        }
    }

    /// Looks whether a blob is whole.
    pub(crate) fn check(&self, sha256: Sha256, bytes: u64) -> Result<(), Lost> {
        let mut file = self.read(sha256, bytes)?;
        let (mut hasher, mut piece) = (sha2::Sha256::new(), vec![0; COPY_BYTES]);
        loop {
            match file.read(&mut piece).map_err(Lost::Disk)? {
                0 => break,
                some => hasher.update(&piece[..some]),
            }
        }
        match Sha256(hasher.finalize().into()) == sha256 {
            true => Ok(()),
            false => Err(Lost::Damaged),
        }
    }

    /// Every blob, with how long it is.
    pub(crate) fn list(&self) -> io::Result<Vec<(Sha256, u64)>> {
        let mut all = Vec::new();
        for folder in folders(&self.folder)? {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                if let Some(sha256) = hash_of(&entry.path()) {
                    all.push((sha256, entry.metadata()?.len()));
                }
            }
        }
        Ok(all)
    }

    /// Removes blobs that nobody names and that nobody touched lately, and says how many.
    pub(crate) fn sweep(&self, named: &BTreeSet<Sha256>) -> io::Result<u64> {
        let mut removed = 0;
        for folder in folders(&self.folder)? {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let Some(sha256) = hash_of(&path) else { continue };
                if named.contains(&sha256) {
                    continue;
                }
                let _held = self.hold();
                let touched_at = fs::metadata(&path)?.modified()?;
                let age = SystemTime::now().duration_since(touched_at).unwrap_or_default();
                if age >= BLOB_GRACE {
                    fs::remove_file(&path)?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    pub(crate) fn path(&self, sha256: Sha256) -> PathBuf {
        let text = sha256.to_string();
        self.folder.join(&text[..2]).join(&text[2..])
    }

    fn hold(&self) -> std::sync::MutexGuard<'_, ()> {
        self.door.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Upload {
    /// Writes on.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// How much was written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.is_kept {
            // What stays is removed at the next start.
            let _ = fs::remove_file(&self.path);
        }
    }
}

pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The folders with two letters.
fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut folders = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_one = path.file_name().is_some_and(|name| name.len() == 2);
        if is_one && path.is_dir() {
            folders.push(path);
        }
    }
    Ok(folders)
}

fn hash_of(path: &Path) -> Option<Sha256> {
    let folder = path.parent()?.file_name()?.to_str()?;
    let name = path.file_name()?.to_str()?;
    Sha256::parse(&format!("{folder}{name}")).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A folder that goes with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("tenure-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn age(path: &Path) {
        let long_ago = SystemTime::now() - 2 * BLOB_GRACE;
        File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }

    #[test]
    fn what_was_kept_is_there_under_its_hash_and_a_second_time_it_is_the_same() {
        let folder = Folder::new("blobs-kept");
        let blobs = Blobs::open(&folder.0).unwrap();
        assert!(!blobs.is_used());
        let sha256 = blobs.keep_bytes(b"hello").unwrap();
        assert_eq!(
            sha256.to_string(),
            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
        );
        assert_eq!(blobs.keep_bytes(b"hello").unwrap(), sha256);
        assert_eq!(blobs.touch(sha256).unwrap(), Some(5));
        blobs.check(sha256, 5).unwrap();
        assert_eq!(fs::read(blobs.path(sha256)).unwrap(), b"hello");
        assert_eq!(fs::read_dir(folder.0.join("blobs").join(UNFINISHED)).unwrap().count(), 0);
    }

    #[test]
    fn other_bytes_than_said_are_not_kept() {
        let folder = Folder::new("blobs-differ");
        let blobs = Blobs::open(&folder.0).unwrap();
        let mut upload = blobs.begin().unwrap();
        upload.write(b"hello").unwrap();
        let kept = blobs.keep(upload, Sha256([1; 32]));
        assert!(matches!(kept, Err(NotKept::Differs(found)) if found.0[0] == 0x2c));
        assert_eq!(blobs.touch(Sha256([1; 32])).unwrap(), None);
        assert_eq!(fs::read_dir(folder.0.join("blobs").join(UNFINISHED)).unwrap().count(), 0);
    }

    #[test]
    fn a_crash_half_way_leaves_nothing_after_the_next_start() {
        let folder = Folder::new("blobs-crash");
        let unfinished = folder.0.join("blobs").join(UNFINISHED);
        fs::create_dir_all(&unfinished).unwrap();
        fs::write(unfinished.join("7"), "half").unwrap();
        Blobs::open(&folder.0).unwrap();
        assert_eq!(fs::read_dir(unfinished).unwrap().count(), 0);
    }

    #[test]
    fn only_what_nobody_names_and_nobody_touched_lately_is_swept() {
        let folder = Folder::new("blobs-sweep");
        let blobs = Blobs::open(&folder.0).unwrap();
        let [named, new, old] =
            [b"named", b"brand", b"stale"].map(|bytes| blobs.keep_bytes(bytes).unwrap());
        age(&blobs.path(named));
        age(&blobs.path(old));
        let touched = blobs.keep_bytes(b"again").unwrap();
        age(&blobs.path(touched));
        blobs.touch(touched).unwrap();
        assert_eq!(blobs.sweep(&BTreeSet::from([named])).unwrap(), 1);
        assert_eq!(blobs.touch(old).unwrap(), None);
        for kept in [named, new, touched] {
            assert!(blobs.touch(kept).unwrap().is_some());
        }
    }

    #[test]
    fn what_is_missing_or_was_changed_is_told() {
        let folder = Folder::new("blobs-lost");
        let blobs = Blobs::open(&folder.0).unwrap();
        assert!(matches!(blobs.check(Sha256([1; 32]), 5), Err(Lost::Missing)));
        let sha256 = blobs.keep_bytes(b"hello").unwrap();
        assert!(matches!(blobs.check(sha256, 4), Err(Lost::Damaged)));
        fs::write(blobs.path(sha256), b"jello").unwrap();
        assert!(matches!(blobs.check(sha256, 5), Err(Lost::Damaged)));
        blobs.keep_bytes(b"hello").unwrap();
        blobs.check(sha256, 5).unwrap();
    }
}
