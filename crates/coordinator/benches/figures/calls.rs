//! Requests of the benchmarks in one line each.

use std::num::NonZeroU32;

use tenure_coordinator::request::{GetStatus, Lease};
use tenure_coordinator::{Engine, Grant, Refusal, Status};
use tenure_core::command::{LeaseTasks, NewTask};
use tenure_record::name::{Invalid, QueueName, WorkerName};
use tenure_record::terms::Payload;

/// A task with the defaults.
pub(crate) fn new_task(queue: &str, payload: impl Into<Vec<u8>>) -> Result<NewTask, Invalid> {
    Ok(NewTask::new(QueueName::parse(queue)?, Payload::parse("payload", payload.into())?))
}

/// Leases up to `max` tasks of a queue, without waiting for one.
pub(crate) fn lease(
    engine: &Engine,
    worker: &str,
    queue: &str,
    max: u32,
) -> Result<Vec<Grant>, Refusal> {
    let request = LeaseTasks {
        worker: WorkerName::parse(worker).expect("a short name"),
        queues: vec![QueueName::parse(queue).expect("a short name")],
        tasks_max: NonZeroU32::new(max).unwrap_or(NonZeroU32::MIN),
        lease_ms: None,
    };
    engine.ask(Lease { request, wait_ms: 0 }).wait()
}

/// The status of the engine.
pub(crate) fn status(engine: &Engine) -> Status {
    *engine.ask(GetStatus).wait().expect("it runs")
}
