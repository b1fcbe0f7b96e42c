//! Creating files and folders that only their owner can read: payloads, keys and results are in
//! them. The mode is given when they are created, so no umask makes them wider.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The mode of new folders.
pub const FOLDER_MODE: u32 = 0o700;
/// The mode of new files.
pub const FILE_MODE: u32 = 0o600;

/// Creates a folder; its parent must exist.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(path)
}

/// Creates a folder and those above it that are missing.
pub fn create_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).recursive(true).create(path)
}

/// Options for opening a file; one that is created is private.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Creates a file for writing; one that exists is emptied.
pub fn create_file(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// Copies a file and returns its length. The copy does not inherit the mode of the original.
pub fn copy(from: &Path, to: &Path) -> io::Result<u64> {
    let mut source = File::open(from)?;
    // An older copy may have another mode.
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    io::copy(&mut source, &mut options().write(true).create_new(true).open(to)?)
}
