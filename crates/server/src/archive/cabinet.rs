//! The archive's files: `tasks-…` and `runs-…`, each a row of whole zstd frames. What was put is
//! durable after `sync`, and only then may it be forgotten. A file is left behind only when it ends
//! with a whole frame; so none but the newest of its kind can have a torn end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp as Moment;
use tenure_coordinator::private;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

use super::read::{ArchiveFile, ArchiveFrames, Kind, Piece, archive_files};
use crate::artifacts::blobs::sync_folder;
use crate::limits::{ARCHIVE_FILE_BYTES, ARCHIVE_FRAME_BYTES, ARCHIVE_LEVEL};

/// Held by the server that writes.
const LOCK: &str = "archive.lock";
/// Says whose archive it is.
const OWNER: &str = "archive.json";
/// What is called so is being written.
const UNFINISHED: &str = ".part";

/// Why a folder cannot be an archive.
#[derive(Debug)]
pub enum NoArchive {
    /// Another server writes it.
    InUse,
    /// It has the tasks of another log, which have the same numbers.
    Foreign,
    /// It is in the data folder, or the other way around.
    InData,
    /// The system says no.
    Disk(io::Error),
}

impl From<io::Error> for NoArchive {
    fn from(error: io::Error) -> Self {
        NoArchive::Disk(error)
    }
}

/// The folder of an archive, which is ours as long as this lives.
#[derive(Debug)]
pub(crate) struct Cabinet {
    folder: PathBuf,
    rows: [Row; 2],
    packer: Packer,
    lock: File,
}

/// What went wrong, and with which file.
#[derive(Debug)]
pub(crate) struct CabinetError {
    pub(crate) path: PathBuf,
    pub(crate) cause: io::Error,
}

/// Files of one kind.
#[derive(Debug)]
struct Row {
    kind: Kind,
    /// Whether the newest file was looked at since the start.
    is_resumed: bool,
    open: Option<OpenFile>,
    /// Lines of the frame that is being filled.
    lines: Vec<u8>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    named: ArchiveFile,
    /// Up to here it is durable, and whole frames.
    synced: u64,
    written: u64,
}

struct Packer(Compressor<'static>);

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Packer")
    }
}

impl Cabinet {
    /// Makes the folder if it is missing, and sees that it can be written.
    pub(crate) fn open(folder: &Path, data: &Path) -> Result<Self, NoArchive> {
        private::create_folders(folder)?;
        let folder = folder.canonicalize()?;
        if let Ok(data) = data.canonicalize()
            && (folder.starts_with(&data) || data.starts_with(&folder))
        {
            // If it was made just now, it is empty, and goes.
            let _ = fs::remove_dir(&folder);
            return Err(NoArchive::InData);
        }
        let mut options = private::options();
        let lock = options.create(true).truncate(false).write(true).open(folder.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(NoArchive::InUse),
            Err(fs::TryLockError::Error(error)) => return Err(error.into()),
        }
        // It may be open to others on purpose, so it is left as it is.
        let mode = fs::metadata(&folder)?.mode() & 0o7777;
        if mode & 0o077 != 0 {
            tracing::warn!(
                "other users can enter the archive {} (mode {mode:04o}); unless that is meant, run \
                 `chmod -R go= {}`",
                folder.display(),
                folder.display()
            );
        }
        let probe = folder.join(format!("probe{UNFINISHED}"));
        private::create_file(&probe)?.write_all(b"?")?;
        fs::remove_file(&probe)?;
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            // What a crash cut off before it had a name.
            if path.to_str().is_some_and(|path| path.ends_with(UNFINISHED)) {
                fs::remove_file(path)?;
            }
        }
        let mut compressor = Compressor::new(ARCHIVE_LEVEL)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        let rows = [Kind::Tasks, Kind::Runs].map(Row::new);
        Ok(Self { folder, rows, packer: Packer(compressor), lock })
    }

    /// Takes it for this log, if it is no other's.
    pub(crate) fn claim(&self, log_id: u128) -> Result<(), NoArchive> {
        let owner = self.folder.join(OWNER);
        let wanted = format!("{{\"format\": 1, \"log\": \"{log_id:032x}\"}}\n");
        match File::open(&owner) {
            Ok(file) => {
                let mut found = String::new();
                file.take(1 << 10).read_to_string(&mut found)?;
                if found == wanted { Ok(()) } else { Err(NoArchive::Foreign) }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let unfinished = self.folder.join(format!("{OWNER}{UNFINISHED}"));
                let mut file = private::create_file(&unfinished)?;
                file.write_all(wanted.as_bytes())?;
                file.sync_all()?;
                fs::rename(&unfinished, &owner)?;
                Ok(sync_folder(&self.folder)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Looks at what the last server left, and cuts off what a failure left. Called before anything
    /// is put.
    pub(crate) fn begin(&mut self) -> Result<(), CabinetError> {
        self.stands().map_err(at(&self.folder))?;
        let folder = &self.folder;
        self.rows.iter_mut().try_for_each(|row| row.mend().and_then(|()| row.resume(folder)))
    }

    /// Whether the folder is still the one that was opened. A disk that is no longer mounted leaves an
    /// empty folder in its place, on another disk.
    fn stands(&self) -> io::Result<()> {
        let (ours, there) = (self.lock.metadata()?, fs::metadata(self.folder.join(LOCK))?);
        match (ours.dev(), ours.ino()) == (there.dev(), there.ino()) {
            true => Ok(()),
            false => Err(io::Error::other(
                "the folder is not the one that was opened at the start; bring that back, or start \
                 the server again",
            )),
        }
    }

    /// Puts a line, which may not be written yet.
    pub(crate) fn put(&mut self, kind: Kind, line: &[u8]) -> Result<u64, CabinetError> {
        let row = self.rows.iter_mut().find(|row| row.kind == kind);
        let row = row.expect("every kind has its row");
        row.lines.extend_from_slice(line);
        row.lines.push(b'\n');
        match row.lines.len() >= ARCHIVE_FRAME_BYTES {
            true => row.write(&self.folder, &mut self.packer),
            false => Ok(0),
        }
    }

    /// Makes durable what was put, and says how many bytes were written for it.
    pub(crate) fn sync(&mut self) -> Result<u64, CabinetError> {
        let mut bytes = 0;
        for row in &mut self.rows {
            bytes += row.write(&self.folder, &mut self.packer)?;
            row.sync()?;
        }
        Ok(bytes)
    }

    /// Forgets what was put and is not durable. What of it is in a file is cut off by the next
    /// `begin`.
    pub(crate) fn drop_unsynced(&mut self) {
        self.rows.iter_mut().for_each(|row| row.lines.clear());
    }
}

/// Today, in UTC.
fn today() -> String {
    Moment::now().strftime("%Y-%m-%d").to_string()
}

fn at(path: &Path) -> impl Fn(io::Error) -> CabinetError + '_ {
    |cause| CabinetError { path: path.to_owned(), cause }
}

impl Row {
    fn new(kind: Kind) -> Self {
        Self { kind, is_resumed: false, open: None, lines: Vec::new() }
    }

    /// Cuts off what was written and is not durable, and leaves that file: whether what is behind a
    /// failed sync is on disk, nobody knows.
    fn mend(&mut self) -> Result<(), CabinetError> {
        let Some(open) = self.open.as_mut().filter(|open| open.written > open.synced) else {
            return Ok(());
        };
        let path = &open.named.path;
        open.file.set_len(open.synced).map_err(at(path))?;
        open.file.sync_all().map_err(at(path))?;
        self.open = None;
        Ok(())
    }

    /// Goes on with the newest file, without what a crash has left at its end.
    fn resume(&mut self, folder: &Path) -> Result<(), CabinetError> {
        if self.is_resumed {
            return Ok(());
        }
        let files = archive_files(folder).map_err(at(folder))?;
        if let Some(newest) = files.into_iter().rfind(|file| file.kind == self.kind) {
            self.open = resumed(newest)?;
        }
        self.is_resumed = true;
        Ok(())
    }

    /// Writes the lines as a frame.
    fn write(&mut self, folder: &Path, packer: &mut Packer) -> Result<u64, CabinetError> {
        if self.lines.is_empty() {
            return Ok(0);
        }
        let frame = packer.0.compress(&self.lines).map_err(at(folder))?;
        let (day, bytes) = (today(), frame.len() as u64);
        let fits = self.open.as_ref().is_some_and(|open| {
            open.named.day == day && open.written + bytes <= ARCHIVE_FILE_BYTES
        });
        match self.open.as_mut().filter(|_| fits) {
            Some(open) => {
                let from = open.written;
                // What a write that fails leaves behind is cut off, however much it is.
                open.written += bytes;
                open.file.write_all_at(&frame, from).map_err(at(&open.named.path))?;
            }
            None => {
                // It is left for good, so what is in it must be durable.
                self.sync()?;
                self.open = Some(begun(folder, self.kind, &day, &frame)?);
            }
        }
        self.lines.clear();
        Ok(bytes)
    }

    fn sync(&mut self) -> Result<(), CabinetError> {
        let Some(open) = self.open.as_mut().filter(|open| open.written > open.synced) else {
            return Ok(());
        };
        open.file.sync_data().map_err(at(&open.named.path))?;
        open.synced = open.written;
        Ok(())
    }
}

/// A new file with its first frame: it has its name only when that is durable.
fn begun(folder: &Path, kind: Kind, day: &str, frame: &[u8]) -> Result<OpenFile, CabinetError> {
    let files = archive_files(folder).map_err(at(folder))?;
    let numbers = files.iter().filter(|file| file.kind == kind && file.day == day);
    let number = numbers.map(|file| file.number).max().unwrap_or(0) + 1;
    let named = ArchiveFile::new(folder, kind, day, number);
    let unfinished = folder.join(format!("{}{UNFINISHED}", kind.as_str()));
    let write = || {
        let mut file = private::create_file(&unfinished)?;
        file.write_all(frame)?;
        file.sync_all()?;
        fs::rename(&unfinished, &named.path)?;
        sync_folder(folder)?;
        Ok(file)
    };
    let file = write().map_err(|cause| {
        // On a full disk it should not take room.
        let _ = fs::remove_file(&unfinished);
        CabinetError { path: unfinished.clone(), cause }
    })?;
    let bytes = frame.len() as u64;
    Ok(OpenFile { file, named, synced: bytes, written: bytes })
}

/// A file of an earlier server, up to its last whole frame. None if it is damaged in the middle: then
/// it is left as it is, and another one is begun.
fn resumed(newest: ArchiveFile) -> Result<Option<OpenFile>, CabinetError> {
    let path = &newest.path;
    let mut frames = ArchiveFrames::open(path).map_err(at(path))?;
    let (mut end, mut torn) = (0, 0);
    while let Some(piece) = frames.next_piece() {
        match piece {
            Piece::Frame { .. } => end = frames.offset(),
            Piece::Damaged { offset, bytes } => {
                tracing::error!(
                    "the archive file {} is damaged: {bytes} bytes at offset {offset} cannot be \
                     read; it is left as it is, and another one is begun",
                    path.display()
                );
                return Ok(None);
            }
            Piece::Unfinished { bytes, .. } => torn = bytes,
        }
    }
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(at(path))?;
    if torn > 0 {
        tracing::warn!(
            "{bytes} bytes at the end of the archive file {} were cut off: a crash has left them \
             unfinished, and nothing in them was forgotten",
            path.display(),
            bytes = torn
        );
        file.set_len(end).map_err(at(path))?;
        file.sync_all().map_err(at(path))?;
    }
    Ok(Some(OpenFile { file, named: newest, synced: end, written: end }))
}

#[cfg(test)]
mod tests;
