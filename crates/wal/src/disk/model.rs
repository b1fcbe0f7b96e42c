//! A disk in memory that keeps what is durable apart from what is only written, and can crash
//! between any two calls.
//!
//! A crash keeps, for each file, any subset of the sectors written since its last sync, and, for
//! the folder, any prefix of the names changed since its last sync. Calls can be made to fail; what
//! a failed sync left undone is not made up for by the next.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, DiskFile};

/// What a disk writes as a whole or not at all.
pub const SECTOR_BYTES: usize = 512;

/// A disk in memory. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ModelDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Every file ever made, by number; names point to them.
    files: Vec<FileState>,
    /// The names as they are seen now.
    names: BTreeMap<String, usize>,
    /// The names as a crash would leave them at the least.
    durable_names: BTreeMap<String, usize>,
    /// Changes of names that are not durable, oldest first.
    pending_names: Vec<NameChange>,
    locked: bool,
    calls: u64,
    fault: Option<PlannedFault>,
    room_bytes: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct FileState {
    /// As it is seen now.
    seen: Vec<u8>,
    /// As a crash would leave it at the least.
    durable: Vec<u8>,
    /// Sectors that differ or may differ, written since the last sync, in order of their first
    /// write.
    dirty: Vec<usize>,
    /// Which sectors those are.
    is_dirty: Vec<bool>,
    /// Sectors of a sync that failed. They are seen as they were written, may or may not be on the
    /// disk, and no later sync writes them: that is what page caches do.
    doubtful: Vec<usize>,
}

impl FileState {
    fn of(image: Vec<u8>) -> Self {
        Self { seen: image.clone(), durable: image, ..Self::default() }
    }

    /// Sectors that a crash may or may not leave as they were written last.
    fn unsure(&self) -> impl Iterator<Item = usize> {
        let only_doubtful = self.doubtful.iter().filter(|sector| !self.dirty.contains(sector));
        self.dirty.iter().chain(only_doubtful).copied()
    }
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Read,
    Write,
    /// Needs no room. Like the rest it is made again by the standard library when it is
    /// interrupted.
    Look,
    /// Makes names or contents durable, or changes them.
    Other,
}

#[derive(Clone, Debug)]
enum NameChange {
    Set(String, usize),
    Rename(String, String),
    Remove(String),
}

/// Makes calls fail.
#[derive(Clone, Copy, Debug)]
pub struct PlannedFault {
    /// The first call that fails, counted from 1 over all calls.
    pub at_call: u64,
    /// What it says.
    pub kind: FaultKind,
    /// Whether all later calls fail too.
    pub lasting: bool,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The device says no.
    Eio,
    /// There is no room.
    Enospc,
    /// A signal came: nothing was done, and it can be done again.
    Eintr,
    /// A write takes only a part.
    Short,
    /// A write is taken whole and never arrives, and nobody says so.
    Lost,
    /// A write arrives with one bit changed, and nobody says so.
    Changed,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Whole,
    Short,
    Lost,
    Changed,
}

/// Which unsynced sectors survive a crash: for each file and dirty sector, in order.
pub trait Survival {
    /// Whether this sector has what was written last.
    fn keeps(&mut self, file: usize, sector: usize) -> bool;
    /// How many of the changed names survive, at most `pending`.
    fn names(&mut self, pending: usize) -> usize;
}

impl ModelDisk {
    /// How many calls were made so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Makes calls fail from now on.
    pub fn plan(&self, fault: Option<PlannedFault>) {
        self.state().fault = fault;
    }

    /// Bounds the bytes of all files together.
    pub fn limit_room(&self, bytes: Option<u64>) {
        self.state().room_bytes = bytes;
    }

    /// The bytes of all files together.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.state().used_bytes()
    }

    /// Unsynced sectors of all files, and changed names.
    #[must_use]
    pub fn pending(&self) -> (Vec<(usize, usize)>, usize) {
        let state = self.state();
        let sectors = state.files.iter().enumerate();
        let sectors = sectors.flat_map(|(at, file)| file.unsure().map(move |s| (at, s)));
        (sectors.collect(), state.pending_names.len())
    }

    /// The disk as it is after a crash at this moment. The original goes on as if nothing was.
    #[must_use]
    pub fn crashed(&self, survival: &mut dyn Survival) -> Self {
        let state = self.state();
        let mut names = state.durable_names.clone();
        let kept = survival.names(state.pending_names.len());
        for change in state.pending_names.iter().take(kept) {
            change.apply(&mut names);
        }
        let files = state.files.iter().enumerate().map(|(at, file)| {
            // Nobody can open it any more.
            if !state.is_named(at) {
                return FileState::default();
            }
            let mut image = file.durable.clone();
            for sector in file.unsure() {
                if survival.keeps(at, sector) {
                    copy_sector(&file.seen, &mut image, sector);
                }
            }
            FileState::of(image)
        });
        let files = files.collect();
        let crashed =
            State { files, names: names.clone(), durable_names: names, ..State::default() };
        Self { state: Arc::new(Mutex::new(crashed)) }
    }

    /// The disk as it is after the process was killed: everything written is seen, and what was
    /// not durable still is not.
    #[must_use]
    pub fn killed(&self) -> Self {
        let state = self.state();
        let files = state.files.iter().enumerate();
        let files = files.map(|(at, file)| match state.is_named(at) {
            true => file.clone(),
            false => FileState::default(),
        });
        let next = State {
            files: files.collect(),
            names: state.names.clone(),
            durable_names: state.durable_names.clone(),
            pending_names: state.pending_names.clone(),
            room_bytes: state.room_bytes,
            ..State::default()
        };
        Self { state: Arc::new(Mutex::new(next)) }
    }

    /// The bytes of a file as they are seen.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        state.names.get(name).map(|at| state.files[*at].seen.clone())
    }

    /// Puts a file there, durable, whatever was under that name.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        let mut state = self.state();
        let at = state.files.len();
        state.files.push(FileState::of(bytes));
        state.names.insert(name.to_owned(), at);
        state.durable_names.insert(name.to_owned(), at);
    }

    /// Takes a file away, durably.
    pub fn take(&self, name: &str) {
        let mut state = self.state();
        state.names.remove(name);
        state.durable_names.remove(name);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, and fails it if that was planned. What is given back with the state is what
    /// becomes of a write.
    fn call(&self, does: Does) -> io::Result<(MutexGuard<'_, State>, Fate)> {
        let mut state = self.state();
        state.calls += 1;
        let calls = state.calls;
        let due = state
            .fault
            .filter(|fault| calls == fault.at_call || (fault.lasting && calls > fault.at_call));
        match due.map(|fault| fault.kind) {
            None => Ok((state, Fate::Whole)),
            Some(FaultKind::Eio) => Err(io::Error::from_raw_os_error(5)),
            Some(FaultKind::Enospc) if matches!(does, Does::Read | Does::Look) => {
                Ok((state, Fate::Whole))
            }
            Some(FaultKind::Enospc) => Err(io::Error::from_raw_os_error(28)),
            Some(FaultKind::Eintr) if matches!(does, Does::Read | Does::Write) => {
                Err(io::ErrorKind::Interrupted.into())
            }
            Some(FaultKind::Eintr) => Ok((state, Fate::Whole)),
            Some(FaultKind::Short) => Ok((state, Fate::Short)),
            Some(FaultKind::Lost) => Ok((state, Fate::Lost)),
            Some(FaultKind::Changed) => Ok((state, Fate::Changed)),
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            NameChange::Set(name, file) => drop(names.insert(name.clone(), *file)),
            NameChange::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            NameChange::Remove(name) => drop(names.remove(name)),
        }
    }
}

impl State {
    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    fn used_bytes(&self) -> u64 {
        self.names.values().map(|at| self.files[*at].seen.len() as u64).sum()
    }

    /// Whether a file can still be reached by a name, whatever a crash does to the names.
    fn is_named(&self, file: usize) -> bool {
        let mut named = self.names.values().chain(self.durable_names.values());
        named.any(|at| *at == file)
            || self
                .pending_names
                .iter()
                .any(|change| matches!(change, NameChange::Set(_, at) if *at == file))
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn copy_sector(from: &[u8], to: &mut Vec<u8>, sector: usize) {
    let start = sector * SECTOR_BYTES;
    let end = (start + SECTOR_BYTES).min(from.len());
    if to.len() < end {
        to.resize(end, 0);
    }
    to[start..end].copy_from_slice(&from[start..end]);
}

/// A file on the model.
#[derive(Debug)]
pub struct ModelFile {
    disk: ModelDisk,
    at: usize,
}

/// The model's folder, taken.
#[derive(Debug)]
pub struct ModelLock {
    disk: ModelDisk,
}

impl Drop for ModelLock {
    fn drop(&mut self) {
        self.disk.state().locked = false;
    }
}

impl Disk for ModelDisk {
    type File = ModelFile;
    type Lock = ModelLock;

    fn name(&self) -> String {
        "the model".to_owned()
    }

    fn lock(&self) -> io::Result<Option<ModelLock>> {
        let mut state = self.state();
        if std::mem::replace(&mut state.locked, true) {
            return Ok(None);
        }
        Ok(Some(ModelLock { disk: self.clone() }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let (state, _) = self.call(Does::Look)?;
        Ok(state.names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<ModelFile> {
        let (state, _) = self.call(Does::Look)?;
        Ok(ModelFile { disk: self.clone(), at: state.find(name)? })
    }

    fn create(&self, name: &str) -> io::Result<ModelFile> {
        let (mut state, _) = self.call(Does::Other)?;
        let at = state.files.len();
        state.files.push(FileState::default());
        state.change_name(NameChange::Set(name.to_owned(), at));
        Ok(ModelFile { disk: self.clone(), at })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (mut state, _) = self.call(Does::Other)?;
        state.find(from)?;
        state.change_name(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (mut state, _) = self.call(Does::Look)?;
        state.find(name)?;
        state.change_name(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_folder(&self) -> io::Result<()> {
        let (mut state, _) = self.call(Does::Other)?;
        state.durable_names = state.names.clone();
        state.pending_names.clear();
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let (state, _) = self.call(Does::Look)?;
        Ok(state.room_bytes.map_or(u64::MAX, |room| room.saturating_sub(state.used_bytes())))
    }
}

impl DiskFile for ModelFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let (state, _) = self.disk.call(Does::Read)?;
        let from = state.files[self.at].seen.get(offset as usize..).unwrap_or_default();
        let count = from.len().min(into.len());
        into[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let (mut state, fate) = self.disk.call(Does::Write)?;
        let bytes = match fate {
            Fate::Lost => return Ok(bytes.len()),
            Fate::Short => &bytes[..bytes.len().div_ceil(2)],
            Fate::Whole | Fate::Changed => bytes,
        };
        let end = offset as usize + bytes.len();
        let grows = end.saturating_sub(state.files[self.at].seen.len()) as u64;
        // What lies in room that was taken before needs no more of it.
        let room = state.room_bytes.filter(|_| grows > 0);
        if room.is_some_and(|room| state.used_bytes() + grows > room) {
            return Err(io::Error::from_raw_os_error(28));
        }
        let file = &mut state.files[self.at];
        if file.seen.len() < end {
            file.seen.resize(end, 0);
        }
        file.seen[offset as usize..end].copy_from_slice(bytes);
        if fate == Fate::Changed {
            file.seen[offset as usize + bytes.len() / 2] ^= 1;
        }
        for sector in offset as usize / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            if file.is_dirty.len() <= sector {
                file.is_dirty.resize(sector + 1, false);
            }
            if !std::mem::replace(&mut file.is_dirty[sector], true) {
                file.dirty.push(sector);
            }
        }
        Ok(bytes.len())
    }

    fn size(&self) -> io::Result<u64> {
        let (state, _) = self.disk.call(Does::Look)?;
        Ok(state.files[self.at].seen.len() as u64)
    }

    fn sync(&self) -> io::Result<()> {
        let called = self.disk.call(Does::Other).map(drop);
        let mut state = self.disk.state();
        let file = &mut state.files[self.at];
        let dirty = std::mem::take(&mut file.dirty);
        dirty.iter().for_each(|sector| file.is_dirty[*sector] = false);
        if let Err(error) = called {
            file.doubtful.extend(dirty);
            return Err(error);
        }
        for sector in dirty {
            copy_sector(&file.seen, &mut file.durable, sector);
            file.doubtful.retain(|doubtful| *doubtful != sector);
        }
        Ok(())
    }
}
