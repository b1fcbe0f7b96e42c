//! What the doors make of any bytes, for fuzzing. Never compiled into what ships.

use axum::body::Bytes;
use prost::Message;
use tenure_core::command::{Command, SubmitTasks};
use tenure_proto::v1;
use tenure_record::name::QueueName;

use crate::grpc::parse as grpc;
use crate::json;
use crate::problem::Problem;
use crate::wire::list;
use crate::wire::report::{CompleteBody, FailBody, HeartbeatBody, ReleaseBody, ReportsBody};
use crate::wire::request::{BatchBody, CancelBody, LeaseBody, NewTaskBody, QueueBody, WorkerBody};
use crate::wire::run_request::{SignalBody, StartBody};

/// The task and the run that requests are about.
pub const ID: u64 = 1;
/// What bytes ask for, if it is something that the rules decide.
pub type Asked = Result<Option<Command>, Problem>;
/// One who reads requests.
pub type Door = fn(&Bytes) -> Asked;

/// Those who read requests over HTTP, by what they are for.
pub const HTTP: [(&str, Door); 14] = [
    ("submit", |body| Ok(Some(submit(vec![json::parse::<NewTaskBody<'_>>(body)?.parse()?])))),
    ("batch", |body| {
        let tasks = json::parse::<BatchBody<'_>>(body)?.tasks.into_iter();
        Ok(Some(submit(tasks.map(NewTaskBody::parse).collect::<Result<_, _>>()?)))
    }),
    ("lease", |body| Ok(Some(Command::LeaseTasks(json::parse::<LeaseBody>(body)?.parse()?.0)))),
    ("heartbeat", |body| {
        Ok(Some(Command::Heartbeat(json::parse::<HeartbeatBody<'_>>(body)?.parse(ID)?)))
    }),
    ("complete", |body| {
        Ok(Some(Command::CompleteTask(json::parse::<CompleteBody<'_>>(body)?.parse(ID)?.0)))
    }),
    ("fail", |body| Ok(Some(Command::FailTask(json::parse::<FailBody<'_>>(body)?.parse(ID)?)))),
    ("release", |body| {
        Ok(Some(Command::ReleaseTask(json::parse::<ReleaseBody<'_>>(body)?.parse(ID)?)))
    }),
    ("reports", |body| {
        Ok(Some(Command::ReportTasks(json::parse::<ReportsBody<'_>>(body)?.parse()?.0)))
    }),
    ("cancel", |body| Ok(Some(Command::CancelTask(json::parse::<CancelBody>(body)?.parse(ID)?)))),
    ("queue", |body| {
        let name = QueueName::parse("q")?;
        Ok(Some(Command::ConfigureQueue(json::parse::<QueueBody>(body)?.parse(name)?)))
    }),
    ("worker", |body| json::parse::<WorkerBody>(body)?.parse("w").map(|_| None)),
    ("start", |body| {
        Ok(Some(Command::StartRun(json::parse::<StartBody<'_>>(body)?.parse("w".to_owned())?)))
    }),
    ("signal", |body| {
        let signal = json::parse::<SignalBody<'_>>(body)?.parse(ID, "s".to_owned())?;
        Ok(Some(Command::SignalRun(signal)))
    }),
    ("list", |body| {
        let text = std::str::from_utf8(body).map_err(|_| Problem::invalid("no text"))?;
        list::cursor::<u64>(Some(text))?;
        list::tag(Some(text))?;
        Ok(None)
    }),
];

/// The same over gRPC.
pub const GRPC: [(&str, Door); 8] = [
    ("submit", |body| Ok(Some(submit(vec![grpc::new_task(message(body)?)?])))),
    ("batch", |body| {
        let batch: v1::SubmitBatchRequest = message(body)?;
        Ok(Some(Command::SubmitTasks(grpc::batch(batch.tasks)?)))
    }),
    ("lease", |body| Ok(Some(Command::LeaseTasks(grpc::lease(&message(body)?)?.0)))),
    ("complete", |body| Ok(Some(Command::CompleteTask(grpc::complete(message(body)?)?.0)))),
    ("fail", |body| Ok(Some(Command::FailTask(grpc::fail(&message(body)?)?)))),
    ("reports", |body| Ok(Some(Command::ReportTasks(grpc::reports(message(body)?, None)?.0)))),
    ("hello", |body| grpc::hello(message(body)?).map(|_| None)),
    ("list", |body| grpc::filter(&message(body)?).map(|_| None)),
];

fn submit(tasks: Vec<tenure_core::command::NewTask>) -> Command {
    Command::SubmitTasks(SubmitTasks { tasks })
}

fn message<M: Message + Default>(body: &Bytes) -> Result<M, Problem> {
    M::decode(body.clone()).map_err(|error| Problem::invalid(error.to_string()))
}
