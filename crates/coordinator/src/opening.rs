//! How a folder is opened: what is durable when, and what is kept.

use std::path::Path;
use std::sync::Mutex;
use std::time::SystemTime;

use tenure_wal::disk::real::RealDisk;
use tenure_wal::{Claim, Durability, Fault, Log, LogThread, Options};

use crate::embedded::{Error, Running, Start, Tenure};
use crate::inbox::Inbox;
use crate::planted;
use crate::recover::{Progress, recover_beside};
use crate::shelf::FileShelf;
use crate::step::Coordinator;
use crate::thread::{MachineClock, Trouble, run};
use crate::upkeep::Upkeep;

/// How a folder is opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    durability: Durability,
    upkeep: Upkeep,
    tell: fn(&Trouble),
}

impl Default for Opening {
    fn default() -> Self {
        Self { durability: Durability::default(), upkeep: Upkeep::default(), tell: |_| {} }
    }
}

impl Opening {
    /// When a call returns: after its record is durable, or earlier.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// When snapshots are taken, and what is kept.
    #[must_use]
    pub fn upkeep(self, upkeep: Upkeep) -> Self {
        Self { upkeep, ..self }
    }

    /// Who is told of what people should hear of while it runs.
    #[must_use]
    pub fn on_trouble(self, tell: fn(&Trouble)) -> Self {
        Self { tell, ..self }
    }

    /// Opens a folder, which is made if it is missing, and tells how far the replay is.
    pub fn open(
        self,
        folder: impl AsRef<Path>,
        progress: impl FnMut(Progress),
    ) -> Result<Tenure, Error> {
        let folder = folder.as_ref();
        let name = || folder.display().to_string();
        let disk =
            RealDisk::open(folder).map_err(|cause| Fault::NoFolder { folder: name(), cause })?;
        let seed = fresh_seed();
        let entropy = u128::from(seed) << 64 | u128::from(fresh_seed());
        let options = Options { durability: self.durability, ..Options::new(entropy) };
        let claim = Claim::new(&disk, options)?;
        // Only now: another process may have had it until here.
        let shelf = match FileShelf::open(folder, self.tell) {
            Ok(shelf) => Some(shelf),
            Err(cause) => {
                (self.tell)(&Trouble::NoShelf(cause));
                None
            }
        };
        let (recovery, proof) =
            recover_beside(claim, seed, shelf.clone().map(FileShelf::shared), progress)?;
        let inbox = Inbox::default();
        let bell = inbox.clone();
        let recovery = recovery
            .map_log(|wal| LogThread::start(wal, move || bell.ring()))
            .map_err(|cause| Fault::NoFolder { folder: name(), cause })?;
        let reader = Mutex::new(recovery.log.reader());
        let notes = recovery.notes.clone();
        let start = Start {
            snapshot: recovery.kept.newest.map(|newest| newest.lsn),
            records: recovery.records,
        };
        let clock = MachineClock::start();
        // Some bugs are about the beginning, which is on this thread.
        planted::plant_named();
        let coordinator =
            Coordinator::new(recovery, inbox.clone(), clock.read(), seed).with_upkeep(self.upkeep);
        // Indexes were built meanwhile.
        proof.check()?;
        let feed = coordinator.feed().clone();
        let door = inbox.clone();
        let thread = std::thread::Builder::new()
            .name("coordinator".to_owned())
            .spawn(move || run(coordinator, &door, clock, self.tell))
            .map_err(|cause| Fault::NoFolder { folder: name(), cause })?;
        let thread = Mutex::new(Some(thread));
        Ok(Running { inbox, feed, reader, notes, start, shelf, thread }.into())
    }
}

/// A number that differs from start to start and that strangers cannot foretell.
pub(crate) fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut hasher = RandomState::new().build_hasher();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    hasher.write_u128(now.map_or(0, |now| now.as_nanos()));
    hasher.write_u32(std::process::id());
    hasher.finish()
}
