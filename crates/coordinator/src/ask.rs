//! What a caller can ask of the coordinator, what it is answered, and why it may be refused.

use std::fmt;
use std::sync::Arc;

use tenure_code::Code;
use tenure_core::Rejection;
use tenure_core::command::{
    Command, Extended, LeaseTasks, NewTask, Registered, Reported, Retention, Signaled, StartRun,
    Started, SubmitOutcome, Submitted, Swept,
};
use tenure_core::state::{Facts, QueueView};
use tenure_record::event::{IdsSkipped, QueueSettings, RunState};
use tenure_record::id::{Lsn, RunId, TaskId, TokenId};
use tenure_record::name::{QueueName, TaskKey, WorkerName};
use tenure_record::progress::Checkpoint;
use tenure_record::state::TaskState;

use crate::artifact_info::ArtifactInfo;
use crate::due::{DueItems, RunTasks};
use crate::filter::{RunFilter, TaskFilter};
use crate::info::{Explained, Grant, Status, TaskInfo, TaskPage};
use crate::memory::Memory;
use crate::names::{NamePage, NameRange};
use crate::run_info::{RunInfo, RunPage, TokenPage, WorkflowInfo, WorkflowPage};
use crate::snapshot::SnapshotInfo;
use crate::workers::{Registration, WorkerInfo};

/// Something that a caller wants.
#[derive(Clone, Debug)]
pub enum Ask {
    /// To change something.
    Command(Command),
    /// To submit one task, and to see it.
    Submit(NewTask),
    /// To change one task, and to see it after that.
    Change {
        /// What is to be done.
        command: Command,
        /// To which task.
        task_id: TaskId,
    },
    /// To begin a run, and to see it.
    StartRun(StartRun),
    /// To change one run, and to see it after that.
    ChangeRun {
        /// What is to be done.
        command: Command,
        /// To which run.
        run_id: RunId,
    },
    /// To have work, and to wait for it if there is none.
    Lease {
        /// Which work.
        request: LeaseTasks,
        /// How long to wait, at most [`crate::limits::WAIT_MS_MAX`].
        wait_ms: u64,
    },
    /// To know something.
    Query(Query),
    /// To be known as a worker.
    Register(Registration),
    /// To give back all leases of a worker, who leaves.
    SignOff(WorkerName),
    /// To have a snapshot with all that was asked before, and to hear when it is there.
    TakeSnapshot,
}

/// Something that a caller wants to know.
#[derive(Clone, Debug)]
pub enum Query {
    /// A task.
    Task(TaskId),
    /// A task once it has ended, or as it is when the time is up.
    TaskEnd {
        /// Which task.
        task_id: TaskId,
        /// How long to wait, at most [`crate::limits::WAIT_MS_MAX`].
        wait_ms: u64,
    },
    /// Why a task is not done yet.
    Explain(TaskId),
    /// Tasks, newest first.
    Tasks(TaskFilter),
    /// A run.
    Run(RunId),
    /// A run once it is over, or as it is when the time is up.
    RunEnd {
        /// Which run.
        run_id: RunId,
        /// How long to wait, at most [`crate::limits::WAIT_MS_MAX`].
        wait_ms: u64,
    },
    /// Runs, newest first.
    Runs(RunFilter),
    /// A run's tokens, by number.
    Tokens {
        /// Of which run.
        run_id: RunId,
        /// After this one.
        after: TokenId,
        /// At most so many.
        limit: usize,
    },
    /// The run of a workflow that holds a key.
    RunWithKey {
        /// The workflow.
        workflow: Arc<str>,
        /// The key.
        key: TaskKey,
    },
    /// A run's artifacts.
    Artifacts(RunId),
    /// A version of a workflow; the newest if none is given.
    Workflow {
        /// Its name.
        name: Arc<str>,
        /// Its version.
        version: Option<u32>,
    },
    /// The newest version of each workflow, by name.
    Workflows {
        /// After this name.
        after: Option<Arc<str>>,
        /// At most so many.
        limit: usize,
    },
    /// A queue.
    Queue(QueueName),
    /// Queues, by name.
    Queues(NameRange),
    /// Workers that were seen lately, by name.
    Workers(NameRange),
    /// How things stand.
    Status,
    /// Everything, as it is now. It stays so while others go on writing.
    Facts,
    /// What retention lets go, to be archived.
    Due,
    /// The tasks of a run, by their tokens.
    RunTasks {
        /// Of which run.
        run_id: RunId,
        /// After this token.
        after: TokenId,
        /// At most so many tokens.
        limit: usize,
    },
}

/// What a caller is told.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The tasks that were submitted, in their order.
    Submitted(Vec<Submitted>),
    /// The task that was submitted, or was there already, as it is now.
    Taken(SubmitOutcome, Box<TaskInfo>),
    /// The leases that were given, in their order; none if nothing came in time.
    Leased(Vec<Grant>),
    /// How long the lease goes on.
    Extended(Extended),
    /// The task's state after a report, a cancel or a retry.
    State(TaskId, TaskState),
    /// What became of each report.
    Reported(Vec<Reported>),
    /// How much was swept.
    Swept(Swept),
    /// A queue's settings after a change.
    Settings(QueueSettings),
    /// The ids that come next.
    Skipped(IdsSkipped),
    /// A workflow's version, and whether it is new.
    WorkflowVersion(Registered),
    /// The run that began, or was there already, as it is now.
    Began(SubmitOutcome, Box<RunInfo>),
    /// A run, and whether it is new.
    Started(Started),
    /// Runs that began together, in the order in which they were asked for.
    StartedMany(Vec<Started>),
    /// What was to be deleted is gone.
    Deleted,
    /// A run's state after a cancel.
    RunState(RunId, RunState),
    /// What became of a signal.
    Signaled(Signaled),
    /// What became of a signal by key: the run, whether the signal began it, and the rest.
    SignaledByKey(RunId, SubmitOutcome, Signaled),
    /// The run that holds a key.
    RunWithKey(RunId),
    /// A task.
    Task(Box<TaskInfo>),
    /// Why a task is not done yet.
    Explained(Box<Explained>),
    /// Tasks.
    Tasks(TaskPage),
    /// A run.
    Run(Box<RunInfo>),
    /// Runs.
    Runs(RunPage),
    /// A run's tokens.
    Tokens(TokenPage),
    /// A run's artifacts.
    Artifacts(Vec<ArtifactInfo>),
    /// A version of a workflow.
    Workflow(Box<WorkflowInfo>),
    /// Workflows, by name.
    Workflows(WorkflowPage),
    /// A queue, if it exists.
    Queue(Option<Box<QueueView>>),
    /// Queues, by name.
    Queues(NamePage<QueueView>),
    /// Workers, by name.
    Workers(NamePage<WorkerInfo>),
    /// It is known.
    Registered,
    /// How many leases were given back.
    SignedOff(usize),
    /// A snapshot that is there.
    Snapshot(SnapshotInfo),
    /// How things stand.
    Status(Box<Status>),
    /// Everything.
    Facts(Box<Facts>),
    /// What is to be archived.
    Due(Box<DueItems>),
    /// Tasks of a run.
    RunTasks(RunTasks),
}

/// Why nothing was done.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// By the rules.
    Rejected(Rejection),
    /// There is too much to do. Come back in a moment.
    Overloaded {
        /// What there is too much of.
        what: &'static str,
        /// How much of it is allowed.
        limit: usize,
    },
    /// The disk is nearly full: no new work is taken.
    DiskFull,
    /// The memory budget is nearly used up: no new work is taken.
    MemoryFull {
        /// How many bytes are in use, about.
        used: u64,
        /// How many bytes the budget has.
        max: u64,
    },
    /// What was to be read is no longer in the log.
    Trimmed {
        /// The oldest record that is there.
        oldest: Lsn,
    },
    /// The coordinator has stopped, or is about to.
    Unavailable(Arc<str>),
}

impl Refusal {
    /// New work is refused, because this budget is nearly used up.
    #[must_use]
    pub fn memory_full(memory: &Memory) -> Self {
        Refusal::MemoryFull { used: memory.used(), max: memory.max() }
    }

    /// The stable error code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Refusal::Rejected(rejection) => rejection.code(),
            Refusal::Overloaded { .. } => Code::Overloaded,
            Refusal::DiskFull => Code::DiskFull,
            Refusal::MemoryFull { .. } => Code::MemoryFull,
            Refusal::Trimmed { .. } => Code::LogTrimmed,
            Refusal::Unavailable(_) => Code::Unavailable,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Rejected(rejection) => rejection.fmt(f),
            Refusal::Overloaded { what, limit } => {
                write!(f, "there are {limit} {what} already; try again in a moment")
            }
            Refusal::DiskFull => write!(
                f,
                "the disk is nearly full, so no new work is taken; reports and reads go on; make \
                 room in the data folder"
            ),
            Refusal::MemoryFull { used, max } => write!(
                f,
                "{used} of {max} bytes of memory are in use, so no new work is taken; reports and \
                 reads go on; try again when tasks and runs were finished and forgotten, or raise \
                 --memory-max"
            ),
            Refusal::Trimmed { oldest } => write!(
                f,
                "the log begins at LSN {oldest} by now; ask for the state, and go on from there"
            ),
            Refusal::Unavailable(why) => write!(f, "nothing can be done: {why}"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Refusal::Rejected(rejection)
    }
}

/// What became of an ask.
pub type Outcome = Result<Answer, Refusal>;

/// Somebody who waits for an outcome.
pub trait Caller: Send {
    /// Whether nobody waits any more. Asked before anything is given to it.
    fn is_gone(&self) -> bool;

    /// Tells the outcome, or gives it back if nobody took it.
    fn tell(self, outcome: Outcome) -> Result<(), Outcome>;
}

/// An ask and who waits for its outcome.
#[derive(Debug)]
pub struct Request<C> {
    /// What is wanted.
    pub ask: Ask,
    /// By whom.
    pub caller: C,
}

/// How urgent a request is when there are too many: the later kinds are refused first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Word from a worker about a lease. Refusing it makes others do the work again.
    Report,
    /// Everything else about what exists.
    Other,
    /// New work.
    Submit,
}

impl Ask {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Ask::Command(command)
            | Ask::Change { command, .. }
            | Ask::ChangeRun { command, .. } => kind_of(command),
            Ask::Submit(_) | Ask::StartRun(_) => Kind::Submit,
            Ask::SignOff(_) => Kind::Report,
            Ask::Lease { .. } | Ask::Query(_) | Ask::Register(_) | Ask::TakeSnapshot => Kind::Other,
        }
    }

    /// Bytes that strangers made this hold, about.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Ask::Command(command)
            | Ask::Change { command, .. }
            | Ask::ChangeRun { command, .. } => weight_of(command),
            Ask::StartRun(start) => ITEM_BYTES + start.input.bytes(),
            Ask::Submit(task) => ITEM_BYTES + task.payload.as_bytes().len(),
            Ask::Lease { .. }
            | Ask::Query(_)
            | Ask::Register(_)
            | Ask::SignOff(_)
            | Ask::TakeSnapshot => ITEM_BYTES,
        }
    }
}

/// What a request or an item of one holds beside its texts, about.
const ITEM_BYTES: usize = 256;

fn weight_of(command: &Command) -> usize {
    match command {
        Command::SubmitTasks(command) => {
            let tasks = command.tasks.iter();
            tasks.map(|task| ITEM_BYTES + task.payload.as_bytes().len()).sum()
        }
        Command::CompleteTask(command) => ITEM_BYTES + command.output.as_bytes().len(),
        Command::ReportTasks(command) => {
            let outputs = command.completes.iter().map(|c| c.output.as_bytes().len());
            let reasons = command.fails.iter().map(|f| f.reason.as_str().len());
            let kept = command.heartbeats.iter().map(|heartbeat| &heartbeat.checkpoint);
            let kept = kept.chain(command.fails.iter().map(|fail| &fail.checkpoint));
            let kept = kept.chain(command.releases.iter().map(|release| &release.checkpoint));
            let items = command.heartbeats.len()
                + command.completes.len()
                + command.fails.len()
                + command.releases.len();
            let kept = kept.map(|kept| checkpoint_bytes(kept.as_ref()));
            items * ITEM_BYTES
                + outputs.sum::<usize>()
                + reasons.sum::<usize>()
                + kept.sum::<usize>()
        }
        Command::Heartbeat(command) => ITEM_BYTES + checkpoint_bytes(command.checkpoint.as_ref()),
        Command::FailTask(command) => {
            let reason = command.reason.as_str().len();
            ITEM_BYTES + reason + checkpoint_bytes(command.checkpoint.as_ref())
        }
        Command::ReleaseTask(command) => ITEM_BYTES + checkpoint_bytes(command.checkpoint.as_ref()),
        Command::LeaseTasks(_)
        | Command::CancelTask(_)
        | Command::RetryTask(_)
        | Command::ExpireLeases
        | Command::DropLeases(_)
        | Command::FireDeadlines
        | Command::PauseQueue(_)
        | Command::ResumeQueue(_)
        | Command::ConfigureQueue(_)
        | Command::DeleteQueue(_)
        | Command::DeleteWorkflow(_)
        | Command::PurgeTasks(_)
        | Command::CancelRun(_)
        | Command::ContinueDispatch
        | Command::ContinueEnding { .. }
        | Command::UnparkRun(_)
        | Command::SkipIds(_) => ITEM_BYTES,
        Command::ParkRun(command) => ITEM_BYTES + command.reason.len(),
        // A number each.
        Command::PurgeArchived(archived) => {
            ITEM_BYTES + 8 * (archived.tasks.len() + archived.runs.len())
        }
        Command::RegisterWorkflow(command) => ITEM_BYTES + command.definition.source.bytes(),
        Command::StartRun(command) => ITEM_BYTES + command.input.bytes(),
        Command::StartRuns(all) => all.runs.iter().map(|it| ITEM_BYTES + it.input.bytes()).sum(),
        Command::SignalRun(command) => ITEM_BYTES + command.payload.bytes(),
        Command::SignalByKey(command) => {
            let input = command.start.as_ref().map_or(0, |start| start.input.bytes());
            ITEM_BYTES + command.signal.payload.bytes() + input
        }
    }
}

fn checkpoint_bytes(checkpoint: Option<&Checkpoint>) -> usize {
    checkpoint.map_or(0, |checkpoint| checkpoint.as_bytes().len())
}

fn kind_of(command: &Command) -> Kind {
    match command {
        Command::SubmitTasks(_)
        | Command::RetryTask(_)
        | Command::RegisterWorkflow(_)
        | Command::StartRun(_)
        | Command::StartRuns(_)
        | Command::SignalRun(_)
        | Command::SignalByKey(_) => Kind::Submit,
        Command::Heartbeat(_)
        | Command::CompleteTask(_)
        | Command::FailTask(_)
        | Command::ReleaseTask(_)
        | Command::ReportTasks(_)
        | Command::DropLeases(_) => Kind::Report,
        Command::LeaseTasks(_)
        | Command::CancelTask(_)
        | Command::ExpireLeases
        | Command::FireDeadlines
        | Command::PauseQueue(_)
        | Command::ResumeQueue(_)
        | Command::ConfigureQueue(_)
        | Command::DeleteQueue(_)
        | Command::DeleteWorkflow(_)
        | Command::PurgeTasks(Retention { .. })
        | Command::PurgeArchived(_)
        | Command::CancelRun(_)
        | Command::ContinueDispatch
        | Command::ContinueEnding { .. }
        | Command::ParkRun(_)
        | Command::UnparkRun(_)
        | Command::SkipIds(_) => Kind::Other,
    }
}
