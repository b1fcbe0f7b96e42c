//! Tenure as a library: a folder is opened, and tasks are submitted, leased and reported on from
//! any thread of this process.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tenure_code::Code;
use tenure_core::command::{
    CancelTask, CompleteTask, Extended, FailTask, Heartbeat, LeaseRef, LeaseTasks, NewTask,
    ReleaseTask, ReportTasks, Reported, Retry, SubmitTasks, Submitted,
};
use tenure_core::shelf::Shelf;
use tenure_core::state::QueueView;
use tenure_log::{Backup, BackupSource, Fault, Note, ReadLog, Since};
use tenure_record::id::{Lsn, TaskId};
use tenure_record::name::{Invalid, QueueName, Reason, WorkerName};
use tenure_record::state::TaskState;
use tenure_record::terms::Payload;

use crate::feed::{Feed, Followed, Follower, Position};
use crate::filter::TaskFilter;
use crate::history::{History, Step, histories, history};
use crate::inbox::{Inbox, Load};
use crate::info::{Grant, Status, TaskInfo, TaskPage};
use crate::limits::HISTORIES_BYTES_MAX;
use crate::memory::Memory;
use crate::names::NameRange;
use crate::opening::Opening;
use crate::pending::Pending;
use crate::recover::Failure;
use crate::refusal::Refusal;
use crate::request::{
    GetStatus, GetTask, Lease, ListQueues, ListTasks, Request, RequestClass, RetryTask,
    TakeSnapshot,
};
use crate::shelf::{FileShelf, ShelfUse};
use crate::snapshot::SnapshotInfo;
use crate::supply::Supply;

/// A folder of tasks that is open. Clones are the same one; the last that goes closes it.
#[derive(Clone, Debug)]
pub struct Tenure {
    running: Arc<Running>,
}

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) inbox: Inbox,
    pub(crate) feed: Feed,
    pub(crate) reader: Mutex<Box<dyn ReadLog>>,
    pub(crate) backups: Mutex<Box<dyn BackupSource>>,
    pub(crate) notes: Vec<Note>,
    pub(crate) start: Start,
    pub(crate) shelf: Option<FileShelf>,
    pub(crate) thread: Mutex<Option<JoinHandle<Result<(), Fault>>>>,
}

impl From<Running> for Tenure {
    fn from(running: Running) -> Self {
        Self { running: Arc::new(running) }
    }
}

/// What a folder was opened from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The last record of the snapshot; none if the whole log was replayed.
    pub snapshot: Option<Lsn>,
    /// Records that were applied after it.
    pub records: u64,
}

/// Why something was not done.
#[derive(Debug)]
pub enum Error {
    /// A name or a value is not one that is allowed.
    Invalid(Invalid),
    /// The rules, or the load, or the disk say no.
    Refused(Refusal),
    /// The folder cannot be opened or read.
    Failed(Failure),
}

impl Error {
    /// The stable error code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Error::Invalid(_) => Code::InvalidRequest,
            Error::Refused(refusal) => refusal.code(),
            Error::Failed(_) => Code::Unavailable,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(invalid) => invalid.fmt(f),
            Error::Refused(refusal) => refusal.fmt(f),
            Error::Failed(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Error::Invalid(invalid)
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

/// A task with the defaults; set what should be different.
pub fn new_task(queue: &str, payload: impl Into<Vec<u8>>) -> Result<NewTask, Invalid> {
    Ok(NewTask::new(QueueName::parse(queue)?, Payload::parse("payload", payload.into())?))
}

impl Tenure {
    /// Opens a folder, which is made if it is missing. Nothing that was acknowledged is lost,
    /// however the last process ended.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Opening::default().open(folder, |_| {})
    }

    /// What the folder was opened from.
    #[must_use]
    pub fn start(&self) -> Start {
        self.running.start
    }

    /// What people should hear of, though the folder is sound.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.running.notes
    }

    /// Sends a request. The pending response is a future; [`Pending::wait`] sleeps on it.
    #[must_use]
    pub fn ask<R: Request>(&self, request: R) -> Pending<R> {
        Pending::ask(&self.running.inbox, request)
    }

    /// How much waits to be decided.
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

    /// Whether a request of this class and of about this many bytes would be let in just now.
    ///
    /// # Errors
    /// The refusal that it would get.
    pub fn room_for(&self, class: RequestClass, bytes: usize) -> Result<(), Refusal> {
        self.running.inbox.room_for(class, bytes)
    }

    /// Submits a task.
    pub fn submit(&self, task: NewTask) -> Result<TaskId, Error> {
        let submitted = self.submit_all(vec![task])?;
        Ok(submitted.first().map_or(TaskId::NONE, |task| task.task_id))
    }

    /// Submits tasks, all or none.
    pub fn submit_all(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, Error> {
        self.serve(SubmitTasks { tasks })
    }

    /// Takes up to `max` tasks for a worker, and waits for the first if there is none.
    pub fn lease(
        &self,
        worker: &str,
        queues: &[&str],
        max: u32,
        wait: Duration,
    ) -> Result<Vec<Grant>, Error> {
        let queues: Result<_, _> = queues.iter().map(|queue| QueueName::parse(queue)).collect();
        let request = LeaseTasks {
            worker: WorkerName::parse(worker)?,
            queues: queues?,
            tasks_max: NonZeroU32::new(max).unwrap_or(NonZeroU32::MIN),
            lease_ms: None,
        };
        self.serve(Lease { request, wait_ms: wait.as_millis() as u64 })
    }

    /// Says that a worker is still at it.
    pub fn heartbeat(&self, report: impl Into<Heartbeat>) -> Result<Extended, Error> {
        self.serve(report.into())
    }

    /// Says that a task is done.
    pub fn complete(
        &self,
        lease: LeaseRef,
        output: impl Into<Vec<u8>>,
    ) -> Result<TaskState, Error> {
        let output = Payload::parse("output", output.into())?;
        Ok(self.serve(CompleteTask::plain(lease, output))?.state)
    }

    /// Says that an attempt failed; another one may follow, as the task's backoff says.
    pub fn fail(&self, lease: LeaseRef, reason: &str, retry: Retry) -> Result<TaskState, Error> {
        let reason = Reason::keep_end(reason);
        let fail = FailTask { lease, reason, code: None, retry, checkpoint: None, worker: None };
        Ok(self.serve(fail)?.state)
    }

    /// Gives a lease back. It costs the task nothing.
    pub fn release(&self, report: impl Into<ReleaseTask>) -> Result<TaskState, Error> {
        Ok(self.serve(report.into())?.state)
    }

    /// Makes many reports at once; each stands for itself.
    pub fn report(&self, reports: ReportTasks) -> Result<Vec<Reported>, Error> {
        self.serve(reports)
    }

    /// Asks a task to stop.
    pub fn cancel(&self, task_id: TaskId) -> Result<TaskState, Error> {
        Ok(self.serve(CancelTask { task_id, grace_ms: None })?.state)
    }

    /// Gives an ended task another round.
    pub fn retry(&self, task_id: TaskId) -> Result<TaskState, Error> {
        Ok(self.serve(RetryTask(task_id))?.state)
    }

    /// A task.
    pub fn task(&self, task_id: TaskId) -> Result<TaskInfo, Error> {
        Ok(*self.serve(GetTask { task_id, wait_ms: 0 })?)
    }

    /// A task once it has ended, or as it is when the time is up.
    pub fn wait(&self, task_id: TaskId, timeout: Duration) -> Result<TaskInfo, Error> {
        Ok(*self.serve(GetTask { task_id, wait_ms: timeout.as_millis() as u64 })?)
    }

    /// Tasks, newest first.
    pub fn tasks(&self, filter: TaskFilter) -> Result<TaskPage, Error> {
        self.serve(ListTasks(filter))
    }

    /// All queues, by name.
    pub fn queues(&self) -> Result<Vec<QueueView>, Error> {
        let (mut range, mut queues) = (NameRange::default(), Vec::new());
        loop {
            let page = self.serve(ListQueues(range.clone()))?;
            queues.extend(page.items);
            match page.next {
                Some(next) => range.after = Some(next),
                None => return Ok(queues),
            }
        }
    }

    /// How things stand.
    pub fn status(&self) -> Result<Status, Error> {
        Ok(*self.serve(GetStatus)?)
    }

    /// Takes a snapshot of all that was asked before, and waits until it is there.
    pub fn snapshot(&self) -> Result<SnapshotInfo, Error> {
        self.serve(TakeSnapshot)
    }

    /// What happened to a task, from the log.
    pub fn history(&self, task_id: TaskId) -> Result<History, Error> {
        let last = self.task(task_id)?.last_lsn;
        Ok(history(&mut self.reader(), task_id, last)?)
    }

    /// What happened to many tasks, each with its last record, from the log. None if it is more than
    /// one caller should hold: then ask for fewer at a time.
    pub fn histories(&self, tasks: &[(TaskId, Lsn)]) -> Result<Option<Vec<History>>, Error> {
        // One alone has a bound of its own.
        let bytes_max = if tasks.len() > 1 { HISTORIES_BYTES_MAX } else { usize::MAX };
        Ok(histories(&mut self.reader(), tasks, bytes_max)?)
    }

    /// What tells this log from every other one; a copy has the same.
    pub fn log_id(&self) -> Result<u128, Error> {
        Ok(self.reader().log_id()?)
    }

    /// A copy of all that is released now, to be read beside everything else.
    pub fn back_up(&self, since: Since) -> Result<Backup, Error> {
        let source = self.running.backups.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(source.begin_backup(since)?)
    }

    /// Follows what happens after a place.
    #[must_use]
    pub fn watch(&self, after: Position) -> Watch {
        Watch { follower: self.follow(after), ready: VecDeque::new() }
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

    /// Lets nothing in any more; what was let in is still dealt with.
    pub fn close_door(&self, why: &str) {
        self.running.inbox.close(why);
    }

    /// Waits until it ends, by [`Tenure::close_door`] or because the log failed. Only one caller
    /// hears how.
    pub fn join(&self) -> Result<(), Error> {
        Ok(self.running.join()?)
    }

    /// Ends in good order: what was asked is answered, and nothing more is taken.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.running.stop()?)
    }

    /// Where another state of this process may lay what is large.
    pub(crate) fn shelf(&self) -> Option<Arc<dyn Shelf>> {
        self.running.shelf.clone().map(FileShelf::shared)
    }

    pub(crate) fn reader(&self) -> Box<dyn ReadLog> {
        self.running.reader.lock().unwrap_or_else(PoisonError::into_inner).fork()
    }

    /// Sends a request, and waits for its response.
    pub(crate) fn serve<R: Request>(&self, request: R) -> Result<R::Response, Error> {
        Ok(self.ask(request).wait()?)
    }
}

impl Running {
    fn stop(&self) -> Result<(), Fault> {
        self.inbox.close("this Tenure was closed");
        self.join()
    }

    fn join(&self) -> Result<(), Fault> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        match thread.map(JoinHandle::join) {
            Some(Ok(ended)) => {
                self.shelf.iter().for_each(FileShelf::retire);
                ended
            }
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever wants to hear of a fault calls `close`.
        let _ = self.stop();
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where it stands; whoever goes on after this sees nothing twice.
    pub position: Position,
    /// To which task.
    pub task_id: TaskId,
    /// In which queue.
    pub queue: String,
    /// What.
    pub step: Step,
}

/// Follows what happens.
#[derive(Debug)]
pub struct Watch {
    follower: Follower<Box<dyn ReadLog>>,
    ready: VecDeque<Change>,
}

impl Watch {
    /// The next change; nothing if none comes in time or if Tenure was closed.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Change>, Error> {
        let start = Instant::now();
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Ok(Some(change));
            }
            let ready = &mut self.ready;
            let found = self.follower.next(|record, transition| {
                let position = Position { lsn: record.lsn, index: Some(transition.index) };
                ready.push_back(Change {
                    position,
                    task_id: transition.task_id,
                    queue: transition.queue.to_owned(),
                    step: Step::of(record, transition),
                });
            })?;
            match found {
                Followed::Frame => {}
                Followed::Closed => return Ok(None),
                Followed::Trimmed(oldest) => return Err(Refusal::Trimmed { oldest }.into()),
                Followed::UpToDate => {
                    let left = timeout.saturating_sub(start.elapsed());
                    if left.is_zero() || !self.follower.wait(left) {
                        return Ok(None);
                    }
                }
            }
        }
    }
}
