//! The methods of the gRPC services with their admission classes. The class of a method comes from
//! the request that the method serves.

use tenure_coordinator::request::{
    CancelRun, CancelTask, CompleteTask, ConfigureQueue, DeleteQueue, DeleteWorkflow, ExplainTask,
    FailTask, GetQueue, GetRun, GetStatus, GetTask, GetWorkflow, Heartbeat, Lease, ListQueues,
    ListRuns, ListTasks, ListTokens, ListWorkers, ListWorkflows, PauseQueue, RegisterWorker,
    RegisterWorkflow, ReleaseTask, ReportTasks, ResumeQueue, RetryTask, SignOff, SignalRun,
    StartRun, StartRuns, SubmitTask, SubmitTasks, TakeSnapshot, UnparkRun,
};
use tenure_coordinator::{Request, RequestClass};

/// How a call is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Intake {
    /// By the class of the request that the method serves.
    Class(RequestClass),
    /// Always.
    Open,
    /// Always: each message of the client's stream is admitted for itself.
    Stream,
}

const fn serves<R: Request>() -> Intake {
    Intake::Class(R::CLASS)
}

/// Reads files or the log, and sends no request of its own.
const FILES: Intake = Intake::Class(RequestClass::Other);

const METHODS: [(&str, Intake); 43] = [
    ("Tasks/Submit", serves::<SubmitTask>()),
    ("Tasks/SubmitBatch", serves::<SubmitTasks>()),
    ("Tasks/SubmitStream", Intake::Stream),
    ("Tasks/Get", serves::<GetTask>()),
    ("Tasks/List", serves::<ListTasks>()),
    ("Tasks/Cancel", serves::<CancelTask>()),
    ("Tasks/Retry", serves::<RetryTask>()),
    ("Tasks/Explain", serves::<ExplainTask>()),
    ("Tasks/History", FILES),
    ("Workers/Work", Intake::Stream),
    ("Workers/Lease", serves::<Lease>()),
    ("Workers/Heartbeat", serves::<Heartbeat>()),
    ("Workers/Complete", serves::<CompleteTask>()),
    ("Workers/Fail", serves::<FailTask>()),
    ("Workers/Release", serves::<ReleaseTask>()),
    ("Workers/Report", serves::<ReportTasks>()),
    ("Workers/Register", serves::<RegisterWorker>()),
    ("Workers/SignOff", serves::<SignOff>()),
    ("Workers/ListWorkers", serves::<ListWorkers>()),
    ("Queues/List", serves::<ListQueues>()),
    ("Queues/Get", serves::<GetQueue>()),
    ("Queues/Configure", serves::<ConfigureQueue>()),
    ("Queues/Pause", serves::<PauseQueue>()),
    ("Queues/Resume", serves::<ResumeQueue>()),
    ("Queues/Delete", serves::<DeleteQueue>()),
    ("Workflows/Put", serves::<RegisterWorkflow>()),
    ("Workflows/Get", serves::<GetWorkflow>()),
    ("Workflows/List", serves::<ListWorkflows>()),
    ("Workflows/Delete", serves::<DeleteWorkflow>()),
    ("Runs/Start", serves::<StartRun>()),
    ("Runs/StartBatch", serves::<StartRuns>()),
    ("Runs/Get", serves::<GetRun>()),
    ("Runs/List", serves::<ListRuns>()),
    ("Runs/ListTokens", serves::<ListTokens>()),
    ("Runs/History", FILES),
    ("Runs/Cancel", serves::<CancelRun>()),
    ("Runs/Unpark", serves::<UnparkRun>()),
    ("Runs/Signal", serves::<SignalRun>()),
    ("Runs/Redecide", FILES),
    ("Events/Watch", Intake::Open),
    ("Status/Get", serves::<GetStatus>()),
    ("Status/TakeSnapshot", serves::<TakeSnapshot>()),
    ("Status/Backup", FILES),
];

fn intake(path: &str) -> Intake {
    let Some(name) = path.strip_prefix("/tenure.v1.") else { return Intake::Open };
    let found = METHODS.iter().find(|(known, _)| *known == name);
    // A method that does not exist is refused like a read.
    found.map_or(FILES, |(_, intake)| *intake)
}

/// The admission class of a call; none if it is always admitted.
pub(crate) fn class_of(path: &str) -> Option<RequestClass> {
    match intake(path) {
        Intake::Class(class) => Some(class),
        Intake::Open | Intake::Stream => None,
    }
}

/// Whether the client sends more than one message.
pub(crate) fn is_stream(path: &str) -> bool {
    intake(path) == Intake::Stream || path.starts_with("/grpc.reflection.")
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use tenure_proto::v1;

    use super::*;

    /// The parts of a descriptor set that name methods.
    #[derive(Message)]
    struct Files {
        #[prost(message, repeated, tag = "1")]
        files: Vec<File>,
    }

    #[derive(Message)]
    struct File {
        #[prost(message, repeated, tag = "6")]
        services: Vec<Service>,
    }

    #[derive(Message)]
    struct Service {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(message, repeated, tag = "2")]
        methods: Vec<Method>,
    }

    #[derive(Message)]
    struct Method {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(bool, tag = "5")]
        client_streaming: bool,
    }

    #[test]
    fn every_method_of_the_contract_has_an_admission_class() {
        let files = Files::decode(v1::FILE_DESCRIPTOR_SET).unwrap().files;
        let services = files.iter().flat_map(|file| &file.services);
        let methods = services.flat_map(|service| {
            service.methods.iter().map(move |method| {
                (format!("{}/{}", service.name, method.name), method.client_streaming)
            })
        });
        let mut declared: Vec<_> = methods.collect();
        let is_stream = |intake| intake == Intake::Stream;
        let mut known: Vec<_> =
            METHODS.map(|(name, intake)| (name.to_owned(), is_stream(intake))).into();
        declared.sort();
        known.sort();
        assert_eq!(known, declared);
    }

    #[test]
    fn reports_of_workers_are_the_last_calls_to_be_refused() {
        use RequestClass::{Other, Report, Submit};
        assert_eq!(class_of("/tenure.v1.Runs/Start"), Some(Submit));
        assert_eq!(class_of("/tenure.v1.Runs/StartBatch"), Some(Submit));
        assert_eq!(class_of("/tenure.v1.Tasks/SubmitBatch"), Some(Submit));
        assert_eq!(class_of("/tenure.v1.Runs/Cancel"), Some(Other));
        assert_eq!(class_of("/tenure.v1.Workers/Report"), Some(Report));
        assert_eq!(class_of("/tenure.v1.Tasks/NoSuchMethod"), Some(Other));
        assert_eq!(class_of("/tenure.v1.Workers/Work"), None);
        assert_eq!(class_of("/grpc.health.v1.Health/Check"), None);
        assert!(Report < Other && Other < Submit);
    }
}
