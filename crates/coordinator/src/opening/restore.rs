//! A folder put back from a copy. It is made beside the place where it is wanted, and gets its name
//! only when all of it is there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use tenure_core::command::{Command, IdJump};
use tenure_core::shelf::Shelf;
use tenure_core::state::StateHash;
use tenure_core::{Draft, Verdict, decide};
use tenure_log::{Batch, Fault};
use tenure_record::codec;
use tenure_record::event::Record;
use tenure_record::id::Lsn;
use tenure_record::time::Now;
use tenure_wal::disk::Disk;
use tenure_wal::disk::private;
use tenure_wal::disk::read_only::ReadOnlyDisk;
use tenure_wal::disk::real::RealDisk;
use tenure_wal::{Claim, Options, Wal};

use super::fresh_seed;
use crate::engine::Error;
use crate::recover::{Recovery, recover_beside};
use crate::shelf::{FileShelf, shelf_fault};

/// What follows the name of a folder that is being put back.
const PART: &str = ".restoring";

/// The folder of the files that artifacts are made of.
pub(crate) const BLOBS: &str = "blobs";

/// A folder that was put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restoration {
    /// The last record of the copy that is in it.
    pub lsn: Lsn,
    /// The hash of the state after that record.
    pub state_hash: StateHash,
    /// How many tasks there are.
    pub tasks: u64,
    /// Bytes that were copied.
    pub bytes: u64,
}

/// Puts a copy into a folder that does not exist or is empty, up to a record or to its end. The
/// copy stays as it is. Ids that were given after it was taken are never given again.
pub fn restore(
    from: &Path,
    to: &Path,
    until: Option<Lsn>,
    progress: &mut dyn FnMut(u64),
) -> Result<Restoration, Error> {
    let source = ReadOnlyDisk::open(from)?;
    check_free(to)?;
    let part = part_of(to, PART);
    // What an earlier try has left.
    match fs::remove_dir_all(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(no_folder(&part, error));
        }
        Ok(()) | Err(_) => {}
    }
    let disk = RealDisk::open(&part).map_err(|cause| no_folder(&part, cause))?;
    let blobs = copy_blobs(from, &part, progress)?;
    let entropy = u128::from(fresh_seed()) << 64 | u128::from(fresh_seed());
    let options = Options::new(entropy);
    // Without one it takes more memory, and no more than that.
    let shelf = FileShelf::unnamed(&part).ok().map(FileShelf::shared);
    let mut restoration =
        put_back(&source, &disk, options, shelf, until, &mut |bytes| progress(blobs + bytes))?;
    restoration.bytes += blobs;
    fs::rename(&part, to).map_err(|cause| no_folder(to, cause))?;
    sync_parent(to)?;
    Ok(restoration)
}

/// Puts a log into a folder that has no name yet. When this says that it is done, no crash takes any
/// of it away: the folder may get its name. Before that it is not used, whatever is in it.
pub fn put_back<S: Disk, D: Disk>(
    from: &S,
    to: &D,
    options: Options,
    shelf: Option<Arc<dyn Shelf>>,
    until: Option<Lsn>,
    progress: &mut dyn FnMut(u64),
) -> Result<Restoration, Error> {
    let until = until.map(|lsn| tenure_log::Lsn(lsn.0));
    let copied = tenure_wal::restore(from, to, options, until, progress)?;
    let claim = Claim::new(to, options)?;
    let (mut recovery, proof) = recover_beside(claim, fresh_seed(), shelf, |_| {})?;
    proof.check()?;
    let facts = recovery.state.facts();
    let restoration = Restoration {
        lsn: Lsn(copied.lsn.0),
        state_hash: facts.try_hash().map_err(shelf_fault)?,
        tasks: facts.task_count(),
        bytes: copied.bytes,
    };
    jump(&mut recovery)?;
    Ok(restoration)
}

/// Makes the name of a folder durable.
pub(super) fn sync_parent(folder: &Path) -> Result<(), Error> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync(parent.unwrap_or(Path::new(".")))
}

pub(super) fn sync(folder: &Path) -> Result<(), Error> {
    let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|cause| no_folder(folder, cause))
}

/// Copies the files that artifacts are made of, and says how many bytes that were.
fn copy_blobs(from: &Path, to: &Path, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
    let (from, to) = (from.join(BLOBS), to.join(BLOBS));
    if !from.is_dir() {
        return Ok(0);
    }
    let failed = |cause| no_folder(&to, cause);
    let mut bytes = 0;
    for folder in fs::read_dir(&from).map_err(failed)? {
        let folder = folder.map_err(failed)?;
        // The others hold what is half-written.
        if folder.file_name().len() != 2 {
            continue;
        }
        let target = to.join(folder.file_name());
        private::create_folders(&target).map_err(failed)?;
        for blob in fs::read_dir(folder.path()).map_err(failed)? {
            let blob = blob.map_err(failed)?;
            let target = target.join(blob.file_name());
            bytes += private::copy(&blob.path(), &target).map_err(failed)?;
            fs::File::open(&target).and_then(|file| file.sync_all()).map_err(failed)?;
            progress(bytes);
        }
        sync(&target)?;
    }
    sync(&to)?;
    Ok(bytes)
}

/// Makes the next ids others than those that may have been given since the copy was taken.
fn jump<D: Disk>(recovery: &mut Recovery<Wal<D>>) -> Result<(), Error> {
    let (state, wal) = (&recovery.state, &mut recovery.log);
    let at = recovery.at.max(state.facts().last_at());
    let now = Now { log: at, wall: at };
    let verdict = decide(&mut Draft::new(state), &Command::SkipIds(IdJump::Restore), now, 0);
    let verdict = verdict.map_err(|rejection| Error::Refused(rejection.into()))?;
    if let Verdict::Append(event, _) = verdict {
        let mut batch = Batch::default();
        let record = Record { lsn: state.last_lsn().next(), at, wall: at, event };
        batch.push(|out| codec::encode(&record, out));
        wal.append(&mut batch, at.0)?;
        wal.sync()?;
    }
    Ok(wal.close(at.0)?)
}

/// A folder that has anything in it is left alone.
pub(super) fn check_free(folder: &Path) -> Result<(), Error> {
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Fault::NotEmpty { folder: folder.display().to_string() }.into()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(no_folder(folder, error)),
    }
}

/// The folder beside another one in which that one is made.
pub(super) fn part_of(folder: &Path, suffix: &str) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(super) fn no_folder(folder: &Path, cause: io::Error) -> Error {
    Fault::NoFolder { folder: folder.display().to_string(), cause }.into()
}
