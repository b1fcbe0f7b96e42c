//! Requests and responses of every kind as values, so that an actor can send any of them and a law
//! can look at any of them. Made from the coordinator's table of requests.

use tenure_coordinator::request::*;
use tenure_coordinator::{Envelope, Refusal, Request, RunInfo, TaskInfo};

use crate::callers::{CallerId, Callers};

/// What became of a request.
pub(crate) type Outcome = Result<AnyResponse, Refusal>;

macro_rules! define_any {
    ($($name:ident($class:ident) -> $response:ty $(, $weight:expr)?;)*) => {
        /// A request of any kind.
        #[derive(Clone, Debug)]
        pub(crate) enum AnyRequest {
            $($name($name),)*
        }

        /// The response to a request of any kind.
        #[derive(Clone, Debug)]
        #[allow(dead_code, reason = "some responses are only printed in a trace")]
        pub(crate) enum AnyResponse {
            $($name(<$name as Request>::Response),)*
        }

        impl AnyRequest {
            pub(crate) fn name(&self) -> &'static str {
                match self {
                    $(AnyRequest::$name(_) => <$name as Request>::NAME,)*
                }
            }

            /// The request on its way to the coordinator.
            pub(crate) fn seal(self, callers: &Callers, id: CallerId) -> Envelope {
                match self {
                    $(AnyRequest::$name(request) => {
                        request.seal(callers.responder(id, AnyResponse::$name))
                    })*
                }
            }
        }

        $(impl From<$name> for AnyRequest {
            fn from(request: $name) -> Self {
                AnyRequest::$name(request)
            }
        })*
    };
}

tenure_coordinator::each_request!(define_any);

impl AnyResponse {
    /// The task that it shows.
    pub(crate) fn task(&self) -> Option<&TaskInfo> {
        if let AnyResponse::GetTask(task)
        | AnyResponse::CompleteTask(task)
        | AnyResponse::FailTask(task)
        | AnyResponse::ReleaseTask(task)
        | AnyResponse::CancelTask(task)
        | AnyResponse::RetryTask(task) = self
        {
            return Some(task);
        }
        if let AnyResponse::SubmitTask(submitted) = self {
            return Some(&submitted.task);
        }
        if let AnyResponse::ExplainTask(explained) = self { Some(&explained.task) } else { None }
    }

    /// The run that it shows.
    pub(crate) fn run(&self) -> Option<&RunInfo> {
        if let AnyResponse::GetRun(run)
        | AnyResponse::CancelRun(run)
        | AnyResponse::UnparkRun(run) = self
        {
            return Some(run);
        }
        if let AnyResponse::StartRun(started) = self { Some(&started.run) } else { None }
    }
}
