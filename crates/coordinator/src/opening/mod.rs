//! How a data folder is opened: what is durable when, and what is kept. Only this module knows the
//! log on the local disk; everything else uses the interface of `tenure-log`.

mod folder;
mod restore;

use std::path::Path;
use std::sync::Mutex;
use std::time::SystemTime;

use tenure_core::command::{Command, IdJump};
use tenure_core::{Draft, decide};
use tenure_log::{BackupSource, Fault, Log, ReadLog};
use tenure_record::time::Now;
use tenure_wal::disk::access;
use tenure_wal::disk::real::RealDisk;
use tenure_wal::{Claim, LogThread, Options};

use crate::embedded::{Error, Running, Start, Tenure};
use crate::inbox::Inbox;
use crate::limits::LOG_TIME_AHEAD_MS_MAX;
use crate::memory::Memory;
use crate::planted;
use crate::recover::{Progress, Recovery, recover_beside};
use crate::shelf::FileShelf;
use crate::step::Coordinator;
use crate::thread::{MachineClock, Trouble, run};
use crate::upkeep::Upkeep;

use folder::secure;

pub use folder::is_data_file;
pub use restore::{Restoration, put_back, restore};
pub use tenure_wal::Durability;
pub use tenure_wal::disk::private;

/// How a folder is opened.
#[derive(Clone, Debug)]
pub struct Opening {
    durability: Durability,
    upkeep: Upkeep,
    memory: Memory,
    tell: fn(&Trouble),
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            upkeep: Upkeep::default(),
            memory: Memory::default(),
            tell: |_| {},
        }
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

    /// The memory budget. Without one, only the pools are bounded, not the state.
    #[must_use]
    pub fn memory(self, memory: Memory) -> Self {
        Self { memory, ..self }
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
        access::check(folder)?;
        let claim = Claim::new(&disk, options)?;
        secure(folder, self.tell)?;
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
        check_ids(&recovery)?;
        let inbox = Inbox::new(self.memory);
        let bell = inbox.clone();
        let recovery = recovery
            .map_log(|wal| LogThread::start(wal, move || bell.ring()))
            .map_err(|cause| Fault::NoFolder { folder: name(), cause })?;
        let reader = recovery.log.reader();
        let backups = Mutex::new(Box::new(reader.fork()) as Box<dyn BackupSource>);
        let reader = Mutex::new(Box::new(reader) as Box<dyn ReadLog>);
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
        let by_ms = coordinator.now(clock.read()).log_ahead_ms();
        if by_ms > LOG_TIME_AHEAD_MS_MAX {
            (self.tell)(&Trouble::LogTimeAhead { by_ms });
        }
        // Indexes were built meanwhile.
        proof.check()?;
        let feed = coordinator.feed().clone();
        let door = inbox.clone();
        let thread = std::thread::Builder::new()
            .name("coordinator".to_owned())
            .spawn(move || run(coordinator, &door, clock, self.tell))
            .map_err(|cause| Fault::NoFolder { folder: name(), cause })?;
        let thread = Mutex::new(Some(thread));
        Ok(Running { inbox, feed, reader, backups, notes, start, shelf, thread }.into())
    }
}

/// Refuses to serve a log that needs a jump of its ids and has no room for one: ids that were given
/// before could be given again.
fn check_ids<L>(recovery: &Recovery<L>) -> Result<(), Error> {
    if !recovery.may_lack {
        return Ok(());
    }
    let jump = Command::SkipIds(IdJump::UncleanStart);
    let verdict = decide(&mut Draft::new(&recovery.state), &jump, Now::both(recovery.at), 0);
    verdict.map(|_| ()).map_err(|rejection| Error::Refused(rejection.into()))
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
