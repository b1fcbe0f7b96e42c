//! Typed requests. One table row declares a request: its name, its admission class, its response and
//! its weight. The [`Envelope`] that carries a request to the writer and the [`Ready`] reply that
//! waits in the outbox are generated from the table, so a response always has the type that its
//! request promises.

mod response;
mod types;
mod weight;

use std::fmt;
use std::sync::Arc;

pub use self::response::{Response, SignaledRun, StartedRun, SubmittedTask};
pub use self::types::*;
use self::weight::{
    ITEM_BYTES, archived_bytes, checkpoint_bytes, report_bytes, runs_bytes, signal_by_key_bytes,
    task_bytes, tasks_bytes,
};

use tenure_core::command::{Extended, LeaseRef, Registered, Reported, Signaled, Started};
use tenure_core::command::{Submitted, Swept};
use tenure_core::state::{Facts, QueueView};
use tenure_record::id::RunId;

use crate::artifact_info::ArtifactInfo;
use crate::due::{DueItems, RunTasks};
use crate::info::{Explained, Grant, Status, TaskInfo, TaskPage};
use crate::names::NamePage;
use crate::refusal::Refusal;
use crate::run_info::{RunInfo, RunPage, TokenPage, WorkflowInfo, WorkflowPage};
use crate::snapshot::SnapshotInfo;
use crate::workers::WorkerInfo;

/// Calls a macro with the table of all requests. A row is
/// `Name(Class) -> Response, |request| weight in bytes;`, and the weight may be left out.
#[macro_export]
macro_rules! each_request {
    ($callback:ident) => {
        $callback! {
            SubmitTask(Submit) -> SubmittedTask, |it| task_bytes(&it.0);
            SubmitTasks(Submit) -> Vec<Submitted>, |it| tasks_bytes(&it.tasks);
            Lease(Other) -> Vec<Grant>;
            Heartbeat(Report) -> Extended,
                |it| ITEM_BYTES + checkpoint_bytes(it.checkpoint.as_ref());
            CompleteTask(Report) -> Box<TaskInfo>, |it| ITEM_BYTES + it.output.as_bytes().len();
            FailTask(Report) -> Box<TaskInfo>, |it| {
                ITEM_BYTES + it.reason.as_str().len() + checkpoint_bytes(it.checkpoint.as_ref())
            };
            ReleaseTask(Report) -> Box<TaskInfo>,
                |it| ITEM_BYTES + checkpoint_bytes(it.checkpoint.as_ref());
            ReportTasks(Report) -> Vec<Reported>, report_bytes;
            DropLeases(Report) -> Swept;
            SignOff(Report) -> usize;
            CancelTask(Other) -> Box<TaskInfo>;
            RetryTask(Submit) -> Box<TaskInfo>;
            GetTask(Other) -> Box<TaskInfo>;
            ExplainTask(Other) -> Box<Explained>;
            ListTasks(Other) -> TaskPage;
            GetQueue(Other) -> Option<Box<QueueView>>;
            ListQueues(Other) -> NamePage<QueueView>;
            PauseQueue(Other) -> Option<Box<QueueView>>;
            ResumeQueue(Other) -> Option<Box<QueueView>>;
            ConfigureQueue(Other) -> Option<Box<QueueView>>;
            DeleteQueue(Other) -> ();
            RegisterWorker(Other) -> ();
            ListWorkers(Other) -> NamePage<WorkerInfo>;
            RegisterWorkflow(Submit) -> Registered,
                |it| ITEM_BYTES + it.definition.source.bytes();
            DeleteWorkflow(Other) -> ();
            GetWorkflow(Other) -> Box<WorkflowInfo>;
            ListWorkflows(Other) -> WorkflowPage;
            StartRun(Submit) -> StartedRun, |it| ITEM_BYTES + it.input.bytes();
            StartRuns(Submit) -> Vec<Started>, |it| runs_bytes(&it.runs);
            CancelRun(Other) -> Box<RunInfo>;
            UnparkRun(Other) -> Box<RunInfo>;
            SignalRun(Submit) -> Signaled, |it| ITEM_BYTES + it.payload.bytes();
            SignalByKey(Submit) -> SignaledRun, signal_by_key_bytes;
            GetRun(Other) -> Box<RunInfo>;
            FindRun(Other) -> RunId;
            ListRuns(Other) -> RunPage;
            ListTokens(Other) -> TokenPage;
            ListArtifacts(Other) -> Vec<ArtifactInfo>;
            ListDue(Other) -> Box<DueItems>;
            ListRunTasks(Other) -> RunTasks;
            PurgeArchived(Other) -> Swept, archived_bytes;
            GetStatus(Other) -> Box<Status>;
            GetFacts(Other) -> Box<Facts>;
            TakeSnapshot(Other) -> SnapshotInfo;
            Maintain(Other) -> ();
        }
    };
}

/// The admission class of a request. Under load, later classes are refused before earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestClass {
    /// A worker's report about a lease. A refused report makes another worker repeat the work.
    Report,
    /// A read, or a change of what exists.
    Other,
    /// New work.
    Submit,
}

/// Something that a caller can ask of the coordinator.
pub trait Request: Clone + fmt::Debug + Send + Sized + 'static {
    /// What the caller gets unless the request is refused.
    type Response: Response;

    /// The name of the request, as in the table.
    const NAME: &'static str;

    /// The admission class.
    const CLASS: RequestClass;

    /// Memory that the request takes while it waits, in bytes, about.
    fn weight(&self) -> usize;

    /// The request on its way to the writer.
    fn seal(self, to: Responder<Self>) -> Envelope;

    /// A reply that waits for its record.
    fn ready(to: Responder<Self>, outcome: Result<Self::Response, Refusal>) -> Ready;
}

/// The receiving end of a response.
pub trait Respond<R: Request>: fmt::Debug + Send + Sync {
    /// Whether the caller no longer waits. The coordinator asks before it grants a lease.
    fn is_gone(&self) -> bool;

    /// Delivers the outcome, or gives it back if the caller is gone.
    fn respond(
        &self,
        outcome: Result<R::Response, Refusal>,
    ) -> Result<(), Result<R::Response, Refusal>>;

    /// Hears that the coordinator is gone and no outcome will follow.
    fn abandon(&self) {}
}

/// The way back to the caller of one request.
#[derive(Debug)]
pub struct Responder<R: Request>(Option<Arc<dyn Respond<R>>>);

impl<R: Request> Responder<R> {
    /// A responder that delivers to this end.
    #[must_use]
    pub fn new(end: Arc<dyn Respond<R>>) -> Self {
        Self(Some(end))
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.0.as_ref().is_none_or(|end| end.is_gone())
    }

    /// Delivers the outcome. Leases of a response whose caller is gone are added to `lost`.
    fn respond(mut self, outcome: Result<R::Response, Refusal>, lost: &mut Vec<LeaseRef>) {
        let end = self.0.take().expect("a responder is used once");
        if let Err(Ok(unclaimed)) = end.respond(outcome) {
            lost.extend(unclaimed.leases());
        }
    }
}

impl<R: Request> Drop for Responder<R> {
    fn drop(&mut self) {
        if let Some(end) = &self.0 {
            end.abandon();
        }
    }
}

macro_rules! define_requests {
    ($($name:ident($class:ident) -> $response:ty $(, $weight:expr)?;)*) => {
        /// A request and the responder of its caller.
        #[derive(Debug)]
        #[allow(missing_docs, reason = "each variant is the request of its name")]
        pub enum Envelope {
            $($name($name, Responder<$name>),)*
        }

        /// A response, or a refusal, that waits until the records that it depends on are durable.
        #[derive(Debug)]
        #[allow(missing_docs, reason = "each variant is the outcome of the request of its name")]
        pub enum Ready {
            $($name(Responder<$name>, Result<$response, Refusal>),)*
        }

        /// The names of all requests.
        pub const REQUEST_NAMES: &[&str] = &[$(stringify!($name)),*];

        $(impl Request for $name {
            type Response = $response;
            const NAME: &'static str = stringify!($name);
            const CLASS: RequestClass = RequestClass::$class;

            fn weight(&self) -> usize {
                let weigh: fn(&Self) -> usize = define_requests!(@weight $($weight)?);
                weigh(self)
            }

            fn seal(self, to: Responder<Self>) -> Envelope {
                Envelope::$name(self, to)
            }

            fn ready(to: Responder<Self>, outcome: Result<$response, Refusal>) -> Ready {
                Ready::$name(to, outcome)
            }
        })*

        impl Envelope {
            pub(crate) fn class(&self) -> RequestClass {
                match self {
                    $(Envelope::$name(..) => <$name as Request>::CLASS,)*
                }
            }

            pub(crate) fn weight(&self) -> usize {
                match self {
                    $(Envelope::$name(request, _) => request.weight(),)*
                }
            }

            /// The reply to a request that is refused.
            pub(crate) fn refuse(self, refusal: Refusal) -> Ready {
                match self {
                    $(Envelope::$name(_, to) => Ready::$name(to, Err(refusal)),)*
                }
            }
        }

        impl Ready {
            /// How many items the outcome holds, about.
            pub(crate) fn weight(&self) -> usize {
                1 + match self {
                    $(Ready::$name(_, outcome) => outcome.as_ref().map_or(0, Response::weight),)*
                }
            }

            /// Delivers the outcome. Leases that no caller took are added to `lost`.
            pub(crate) fn respond(self, lost: &mut Vec<LeaseRef>) {
                match self {
                    $(Ready::$name(to, outcome) => to.respond(outcome, lost),)*
                }
            }

            /// The refusal of a request whose outcome must not be delivered.
            pub(crate) fn refuse(self, refusal: Refusal) -> Self {
                match self {
                    $(Ready::$name(to, _) => Ready::$name(to, Err(refusal)),)*
                }
            }
        }
    };
    (@weight $weight:expr) => { $weight };
    (@weight) => { |_| ITEM_BYTES };
}

each_request!(define_requests);
