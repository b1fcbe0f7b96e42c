//! The handle of an open data folder: opening, closing, status, snapshots and backups.

use std::path::{Path, PathBuf};

use tenure_coordinator::request::{GetStatus, ListWorkers, TakeSnapshot};
use tenure_coordinator::{
    Engine, NamePage, NameRange, Note, Position, RecoveryInfo, Request, Restoration, Since,
    SnapshotInfo, Status, WorkerInfo,
};
use tenure_record::id::Lsn;

use crate::builder::Builder;
use crate::call::Call;
use crate::error::Error;
use crate::queues::Queues;
use crate::runs::Runs;
use crate::watch::Watch;
use crate::worker::Worker;
use crate::workflows::Workflows;

/// An open data folder.
///
/// Clones share the folder and are cheap. When the last clone is dropped, the engine stops in order;
/// [`Tenure::close`] does the same and reports faults. All methods can be called from any thread:
/// calls that come together are written to the log together.
#[derive(Clone, Debug)]
pub struct Tenure {
    engine: Engine,
}

/// A backup that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupInfo {
    /// The last record in the backup.
    pub lsn: Lsn,
    /// The oldest record to which the backup can be restored.
    pub since: Lsn,
    /// The number of bytes that were copied.
    pub bytes: u64,
}

impl Tenure {
    /// Opens a folder with the defaults; a missing folder is created.
    ///
    /// # Errors
    /// See [`Builder::open`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder(folder.as_ref()).open()
    }

    /// Opens a folder with other options than the defaults.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use tenure::{Durability, Tenure};
    ///
    /// let tenure = Tenure::builder("data")
    ///     .durability(Durability::Sync)
    ///     .retention(Duration::from_secs(24 * 3600))
    ///     .memory_max(512 << 20)
    ///     .on_warning(|warning| eprintln!("tenure: {warning}"))
    ///     .open()?;
    /// # Ok::<(), tenure::Error>(())
    /// ```
    pub fn builder(folder: impl Into<PathBuf>) -> Builder {
        Builder::new(folder.into())
    }

    pub(crate) fn of(engine: Engine) -> Self {
        Self { engine }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Sends a request that was checked, and maps its response.
    pub(crate) fn call<R: Request, T: Send + 'static>(
        &self,
        request: Result<R, Error>,
        show: impl FnOnce(R::Response) -> T + Send + 'static,
    ) -> Call<T> {
        match request {
            Ok(request) => {
                let pending = self.engine.ask(request);
                Call::new(async move { Ok(show(pending.await?)) })
            }
            Err(error) => Call::failed(error),
        }
    }

    /// Reads all pages of a list that goes by name.
    pub(crate) fn each_page<R, T>(&self, list: fn(NameRange) -> R) -> Call<Vec<T>>
    where
        R: Request<Response = NamePage<T>>,
        T: Send + 'static,
    {
        let engine = self.engine.clone();
        let mut pending = engine.ask(list(NameRange::default()));
        Call::new(async move {
            let mut items = Vec::new();
            loop {
                let page = pending.await?;
                items.extend(page.items);
                let Some(next) = page.next else { return Ok(items) };
                let range = NameRange { after: Some(next), ..NameRange::default() };
                pending = engine.ask(list(range));
            }
        })
    }

    /// The queues: settings, pauses, counts.
    #[must_use]
    pub fn queues(&self) -> Queues<'_> {
        Queues::new(self)
    }

    /// The workflows: definitions and their versions.
    #[must_use]
    pub fn workflows(&self) -> Workflows<'_> {
        Workflows::new(self)
    }

    /// The runs of workflows.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        Runs::new(self)
    }

    /// The workers that were seen lately, by name.
    pub fn workers(&self) -> Call<Vec<WorkerInfo>> {
        self.each_page(ListWorkers)
    }

    /// A worker of this process, which leases tasks and runs handlers. The name should be unique: two
    /// workers of one name look like one.
    pub fn worker(&self, name: impl Into<String>) -> Worker {
        Worker::new(self.clone(), name.into())
    }

    /// The counters and positions of the engine.
    pub fn status(&self) -> Call<Status> {
        self.call(Ok(GetStatus), |status| *status)
    }

    /// Takes a snapshot of everything that was decided before, and returns once it is durable.
    pub fn snapshot(&self) -> Call<SnapshotInfo> {
        self.call(Ok(TakeSnapshot), |snapshot| snapshot)
    }

    /// Copies everything that was acknowledged into a folder, which must not exist or be empty. The
    /// engine goes on meanwhile. [`restore`] makes a data folder of the copy. Files of artifacts, which
    /// only a server stores, are not in it.
    pub fn backup(&self, folder: impl Into<PathBuf>, since: Since) -> Call<BackupInfo> {
        let (engine, folder) = (self.engine.clone(), folder.into());
        Call::on_thread(move || {
            let backup = engine.back_up(since)?;
            let (lsn, since, bytes) = (Lsn(backup.lsn.0), Lsn(backup.since.0), backup.bytes());
            tenure_coordinator::copy_backup(&backup, &folder)?;
            Ok(BackupInfo { lsn, since, bytes })
        })
    }

    /// Follows the changes of all tasks and runs after a position, from the log and as they happen.
    #[must_use]
    pub fn watch(&self, after: Position) -> Watch {
        Watch::new(self.engine.follow(after))
    }

    /// The position behind the last change that is durable.
    #[must_use]
    pub fn position(&self) -> Position {
        Position::after(self.engine.last_lsn())
    }

    /// What the folder was opened from: a snapshot, and the number of records replayed after it.
    #[must_use]
    pub fn recovery_info(&self) -> RecoveryInfo {
        self.engine.recovery_info()
    }

    /// What recovery found that an operator should know of, though the folder is sound.
    #[must_use]
    pub fn recovery_warnings(&self) -> &[Note] {
        self.engine.recovery_warnings()
    }

    /// Stops in order: calls that were admitted are answered, later calls fail with `unavailable`.
    /// Other clones of the handle are closed as well. It blocks until everything is durable.
    ///
    /// # Errors
    /// The log failed before. Nothing that was acknowledged is lost.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.engine.close()?)
    }
}

/// Makes a data folder of a backup, up to a record or to its end. The backup stays as it is, and ids
/// that were given out after it was taken are never given again.
///
/// # Errors
/// The backup cannot be read or is damaged, or the folder is not empty.
pub fn restore(
    backup: impl AsRef<Path>,
    folder: impl AsRef<Path>,
    until: Option<Lsn>,
) -> Result<Restoration, Error> {
    let restored =
        tenure_coordinator::restore(backup.as_ref(), folder.as_ref(), until, &mut |_| {});
    Ok(restored?)
}
