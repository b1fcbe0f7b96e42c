//! The engine: a data folder that is open, with the coordinator on a thread of its own. Requests are
//! sent with [`Engine::ask`]; the log is read beside the writer.

use std::fmt;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tenure_code::Code;
use tenure_core::shelf::Shelf;
use tenure_log::{Backup, BackupSource, Fault, Note, ReadLog, Since};
use tenure_record::id::{Lsn, RunId, TaskId};

use crate::feed::{Feed, Follower, Position};
use crate::history::{History, histories, history};
use crate::inbox::{Inbox, Load};
use crate::limits::HISTORIES_BYTES_MAX;
use crate::memory::Memory;
use crate::opening::EngineOptions;
use crate::pending::Pending;
use crate::recover::Failure;
use crate::refusal::Refusal;
use crate::request::{GetRun, GetTask, Request, RequestClass};
use crate::run_history::{RunHistory, run_history};
use crate::shelf::{FileShelf, ShelfUse};
use crate::supply::Supply;

/// A data folder that is open. Clones share it; when the last one is dropped, it is closed.
#[derive(Clone, Debug)]
pub struct Engine {
    running: Arc<Running>,
}

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) inbox: Inbox,
    pub(crate) feed: Feed,
    pub(crate) reader: Mutex<Box<dyn ReadLog>>,
    pub(crate) backups: Mutex<Box<dyn BackupSource>>,
    pub(crate) notes: Vec<Note>,
    pub(crate) recovered: RecoveryInfo,
    pub(crate) shelf: Option<FileShelf>,
    pub(crate) thread: Mutex<Option<JoinHandle<Result<(), Fault>>>>,
}

impl From<Running> for Engine {
    fn from(running: Running) -> Self {
        Self { running: Arc::new(running) }
    }
}

/// What a data folder was opened from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryInfo {
    /// The last record of the snapshot; none if the whole log was replayed.
    pub snapshot: Option<Lsn>,
    /// Records that were applied after it.
    pub records: u64,
}

/// Why the engine cannot be opened, read or asked.
#[derive(Debug)]
pub enum Error {
    /// The rules, admission control or the disk refuse the request.
    Refused(Refusal),
    /// The folder cannot be opened or read.
    Failed(Failure),
}

impl Error {
    /// The stable error code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Error::Refused(refusal) => refusal.code(),
            Error::Failed(_) => Code::Unavailable,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(refusal) => refusal.fmt(f),
            Error::Failed(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Refused(refusal) => refusal.source(),
            Error::Failed(failure) => failure.source(),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Error::Refused(refusal)
    }
}

impl<F: Into<Failure>> From<F> for Error {
    fn from(failure: F) -> Self {
        Error::Failed(failure.into())
    }
}

impl Engine {
    /// Opens a folder with the defaults; a missing folder is created. Nothing that was acknowledged is
    /// lost, however the last process ended.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        EngineOptions::default().open(folder, |_| {})
    }

    /// What the folder was opened from.
    #[must_use]
    pub fn recovery_info(&self) -> RecoveryInfo {
        self.running.recovered
    }

    /// What recovery found that an operator should know of, though the folder is sound.
    #[must_use]
    pub fn recovery_warnings(&self) -> &[Note] {
        &self.running.notes
    }

    /// Sends a request. The pending response is a future; [`Pending::wait`] sleeps on it.
    #[must_use]
    pub fn ask<R: Request>(&self, request: R) -> Pending<R> {
        Pending::ask(&self.running.inbox, request)
    }

    /// How many requests wait to be decided.
    #[must_use]
    pub fn load(&self) -> Load {
        self.running.inbox.load()
    }

    /// Whether workers found more work than they took, lately.
    #[must_use]
    pub fn supply(&self) -> Supply {
        self.running.inbox.supply()
    }

    /// The memory budget of the process.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        self.running.inbox.memory()
    }

    /// How full the shelf is; nothing is on one that could not be made.
    #[must_use]
    pub fn shelf_use(&self) -> ShelfUse {
        self.running.shelf.as_ref().map(FileShelf::in_use).unwrap_or_default()
    }

    /// Whether a request of this class and of about this many bytes would be admitted now.
    ///
    /// # Errors
    /// The refusal that it would get.
    pub fn room_for(&self, class: RequestClass, bytes: usize) -> Result<(), Refusal> {
        self.running.inbox.room_for(class, bytes)
    }

    /// The history of a task. It reads the log.
    pub fn history(&self, task_id: TaskId) -> Result<History, Error> {
        let task = self.ask(GetTask { task_id, wait_ms: 0 }).wait()?;
        Ok(history(&mut self.reader(), task_id, task.last_lsn)?)
    }

    /// The histories of many tasks, each given with its last record, from the log. None if they
    /// together exceed what one caller may hold: then ask for fewer at a time.
    pub fn histories(&self, tasks: &[(TaskId, Lsn)]) -> Result<Option<Vec<History>>, Error> {
        // One alone has a bound of its own.
        let bytes_max = if tasks.len() > 1 { HISTORIES_BYTES_MAX } else { usize::MAX };
        Ok(histories(&mut self.reader(), tasks, bytes_max)?)
    }

    /// The decisions about a run and their causes. It reads the log.
    pub fn run_history(&self, run_id: RunId) -> Result<RunHistory, Error> {
        let run = self.ask(GetRun { run_id, wait_ms: 0 }).wait()?;
        Ok(run_history(&mut self.reader(), run_id, run.last_lsn, &run.definition)?)
    }

    /// The identity of the log; a copy has the same.
    pub fn log_id(&self) -> Result<u128, Error> {
        Ok(self.reader().log_id()?)
    }

    /// Begins a backup of everything that is released now. It is read beside the writer.
    pub fn back_up(&self, since: Since) -> Result<Backup, Error> {
        let source = self.running.backups.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(source.begin_backup(since)?)
    }

    /// A cursor behind a position, for callers that poll or wait by themselves.
    #[must_use]
    pub fn follow(&self, after: Position) -> Follower<Box<dyn ReadLog>> {
        self.running.feed.follow(self.reader(), after)
    }

    /// The last record that is released.
    #[must_use]
    pub fn last_lsn(&self) -> Lsn {
        self.running.feed.last()
    }

    /// Admits no more requests. Requests that were admitted are still served.
    pub fn begin_shutdown(&self, why: &str) {
        self.running.inbox.close(why);
    }

    /// Waits until the engine ends, by [`Engine::begin_shutdown`] or because the log failed. Only one
    /// caller hears how.
    ///
    /// # Panics
    /// The coordinator panicked: its panic goes on here.
    pub fn join(&self) -> Result<(), Error> {
        match self.running.join() {
            Ok(ended) => Ok(ended?),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Shuts down in order: requests that were admitted are answered, and no more are admitted.
    ///
    /// # Errors
    /// The log failed, or the coordinator panicked.
    pub fn close(self) -> Result<(), Error> {
        match self.running.stop() {
            Ok(ended) => Ok(ended?),
            Err(_) => Err(Failure::Panicked.into()),
        }
    }

    /// Where another state of this process may put large payloads.
    pub(crate) fn shelf(&self) -> Option<Arc<dyn Shelf>> {
        self.running.shelf.clone().map(FileShelf::shared)
    }

    pub(crate) fn reader(&self) -> Box<dyn ReadLog> {
        self.running.reader.lock().unwrap_or_else(PoisonError::into_inner).fork()
    }
}

impl Running {
    fn stop(&self) -> std::thread::Result<Result<(), Fault>> {
        self.inbox.close("this engine was closed");
        self.join()
    }

    fn join(&self) -> std::thread::Result<Result<(), Fault>> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return Ok(Ok(())) };
        let ended = thread.join();
        if ended.is_ok() {
            self.shelf.iter().for_each(FileShelf::retire);
        }
        ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Callers that want to hear of a fault call `close`.
        let _ = self.stop();
    }
}
