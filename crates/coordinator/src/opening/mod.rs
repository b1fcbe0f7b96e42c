//! How a data folder is opened: what is durable when, and what is kept. Only this module knows the
//! log on the local disk; everything else uses the interface of `tenure-log`.

mod backup;
mod folder;
mod restore;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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

use crate::engine::{Engine, Error, RecoveryInfo, Running};
use crate::inbox::Inbox;
use crate::limits::LOG_TIME_AHEAD_MS_MAX;
use crate::memory::Memory;
use crate::planted;
use crate::recover::{Progress, Recovery, recover_beside};
use crate::shelf::FileShelf;
use crate::step::Coordinator;
use crate::thread::{MachineClock, run};
use crate::upkeep::Upkeep;
use crate::warning::{Warning, WarningHandler};

use folder::secure;

pub use backup::copy_backup;
pub use folder::is_data_file;
pub use restore::{Restoration, put_back, restore};
pub use tenure_wal::Durability;
pub use tenure_wal::disk::private;

/// How a folder is opened.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    durability: Durability,
    upkeep: Upkeep,
    memory: Memory,
    on_warning: WarningHandler,
}

impl EngineOptions {
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

    /// The callback that hears warnings.
    #[must_use]
    pub fn on_warning(self, handler: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        Self { on_warning: WarningHandler::new(handler), ..self }
    }

    /// Opens a folder, which is made if it is missing, and tells how far the replay is.
    pub fn open(
        self,
        folder: impl AsRef<Path>,
        progress: impl FnMut(Progress),
    ) -> Result<Engine, Error> {
        let folder = folder.as_ref();
        let name = || folder.display().to_string();
        let disk =
            RealDisk::open(folder).map_err(|cause| Fault::NoFolder { folder: name(), cause })?;
        let seed = fresh_seed();
        let entropy = u128::from(seed) << 64 | u128::from(fresh_seed());
        let options = Options { durability: self.durability, ..Options::new(entropy) };
        access::check(folder)?;
        let claim = Claim::new(&disk, options)?;
        secure(folder, &self.on_warning)?;
        // Only now: another process may have had it until here.
        let shelf = match FileShelf::open(folder, self.on_warning.clone()) {
            Ok(shelf) => Some(shelf),
            Err(cause) => {
                self.on_warning.call(&Warning::NoShelf(cause));
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
        let recovered = RecoveryInfo {
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
            self.on_warning.call(&Warning::LogTimeAhead { by_ms });
        }
        // Indexes were built meanwhile.
        proof.check()?;
        let feed = coordinator.feed().clone();
        let (door, published) = (inbox.clone(), feed.clone());
        let thread = std::thread::Builder::new()
            .name("coordinator".to_owned())
            .spawn(move || {
                let ended = catch_unwind(AssertUnwindSafe(|| {
                    run(coordinator, &door, clock, &self.on_warning)
                }));
                ended.unwrap_or_else(|panic| {
                    // Its own callers were told when it was dropped.
                    door.abandon("the engine broke one of its laws and has stopped");
                    published.close();
                    resume_unwind(panic)
                })
            })
            .map_err(|cause| Fault::NoFolder { folder: name(), cause })?;
        let thread = Mutex::new(Some(thread));
        Ok(Running { inbox, feed, reader, backups, notes, recovered, shelf, thread }.into())
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
