//! What the doors make of any bytes, for fuzzing. Never compiled into what ships.

use axum::body::Bytes;
use prost::Message;
use tenure_api as api;
use tenure_core::command::{Command, SubmitTasks};
use tenure_proto::v1;

use crate::grpc::{fast_path, hello};
use crate::json;
use crate::problem::Problem;
use crate::wire::flow::{self, SignalCommand};
use crate::wire::report::{self, About};
use crate::wire::{list, request};

/// The task and the run that requests are about.
pub const ID: u64 = 1;
const ABOUT: About = About::Address(ID);
/// What bytes ask for, if it is something that the rules decide.
pub type Asked = Result<Option<Command>, Problem>;
/// One who reads requests.
pub type Door = fn(&Bytes) -> Asked;

/// Those who read requests over HTTP, by what they are for.
pub const HTTP: [(&str, Door); 14] = [
    ("submit", |body| Ok(Some(submit(vec![request::new_task(json::parse(body)?)?])))),
    ("batch", |body| {
        let api::NewTasks { tasks } = json::parse(body)?;
        Ok(Some(Command::SubmitTasks(request::new_tasks(tasks.into_iter())?)))
    }),
    ("lease", |body| Ok(Some(Command::LeaseTasks(request::lease(&json::parse(body)?)?.0)))),
    ("heartbeat", |body| {
        Ok(Some(Command::Heartbeat(report::heartbeat(ABOUT, &json::parse(body)?)?)))
    }),
    ("complete", |body| {
        Ok(Some(Command::CompleteTask(report::complete(ABOUT, json::parse(body)?)?.0)))
    }),
    ("fail", |body| Ok(Some(Command::FailTask(report::fail(ABOUT, &json::parse(body)?)?)))),
    ("release", |body| {
        Ok(Some(Command::ReleaseTask(report::release(ABOUT, &json::parse(body)?)?)))
    }),
    ("reports", |body| Ok(Some(Command::ReportTasks(report::batch(json::parse(body)?)?.0)))),
    ("cancel", |body| Ok(Some(Command::CancelTask(request::cancel(ID, &json::parse(body)?)?)))),
    ("queue", |body| {
        Ok(Some(Command::ConfigureQueue(request::configure("q", json::parse(body)?)?)))
    }),
    ("worker", |body| request::registration("w", json::parse(body)?).map(|_| None)),
    ("start", |body| Ok(Some(Command::StartRun(flow::start("w", json::parse(body)?)?)))),
    ("signal", |body| {
        let signal = flow::signal(api::RunRef::Id(ID), "s", json::parse(body)?)?;
        Ok(match signal {
            SignalCommand::Run(signal) => Some(Command::SignalRun(signal)),
            SignalCommand::ByKey(_) => None,
        })
    }),
    ("list", |body| {
        let text = std::str::from_utf8(body).map_err(|_| Problem::invalid("no text"))?;
        list::cursor::<u64>(Some(text))?;
        list::tag(Some(text))?;
        Ok(None)
    }),
];

/// Those who read requests over gRPC, by what they are for.
pub const GRPC: [(&str, Door); 8] = [
    ("submit", |body| {
        let task: v1::NewTask = message(body)?;
        Ok(Some(submit(vec![request::new_task(task.into())?])))
    }),
    ("batch", |body| {
        let batch: v1::SubmitBatchRequest = message(body)?;
        let tasks = batch.tasks.into_iter().map(Into::into);
        Ok(Some(Command::SubmitTasks(request::new_tasks(tasks)?)))
    }),
    ("lease", |body| {
        let lease: v1::LeaseRequest = message(body)?;
        Ok(Some(Command::LeaseTasks(request::lease(&lease.into())?.0)))
    }),
    ("complete", |body| {
        let complete: v1::CompleteReport = message(body)?;
        Ok(Some(Command::CompleteTask(report::complete(About::Report, complete.into())?.0)))
    }),
    ("fail", |body| {
        let fail: v1::FailReport = message(body)?;
        Ok(Some(Command::FailTask(report::fail(About::Report, &fail.into())?)))
    }),
    ("reports", |body| Ok(Some(Command::ReportTasks(fast_path::reports(message(body)?, None)?.0)))),
    ("hello", |body| hello::hello(message(body)?).map(|_| None)),
    ("list", |body| {
        let list: v1::ListTasksRequest = message(body)?;
        request::filter(list.into()).map(|_| None)
    }),
];

fn submit(tasks: Vec<tenure_core::command::NewTask>) -> Command {
    Command::SubmitTasks(SubmitTasks { tasks })
}

fn message<M: Message + Default>(body: &Bytes) -> Result<M, Problem> {
    M::decode(body.clone()).map_err(|error| Problem::invalid(error.to_string()))
}
