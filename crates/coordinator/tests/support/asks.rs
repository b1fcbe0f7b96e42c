//! Requests in one line each.

use std::num::NonZeroU32;

use tenure_coordinator::request::{GetTask, Lease};
use tenure_core::command::{
    CancelTask, CompleteTask, FailTask, Heartbeat, LeaseRef, LeaseTasks, NewTask, Retry, Start,
    SubmitTasks,
};
use tenure_record::id::{LeaseId, TaskId};
use tenure_record::name::{QueueName, Reason, TaskKey, WorkerName};
use tenure_record::terms::{LeaseMs, Payload, SpanMs};
use tenure_record::time::Timestamp;

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::parse(name).unwrap()
}

pub(crate) fn new_task(queue: &str, payload: impl Into<Vec<u8>>) -> NewTask {
    NewTask::new(self::queue(queue), Payload::parse("payload", payload.into()).unwrap())
}

pub(crate) fn task(queue: &str) -> NewTask {
    new_task(queue, "{}")
}

pub(crate) fn submit_task(task: NewTask) -> SubmitTasks {
    SubmitTasks { tasks: vec![task] }
}

pub(crate) fn submit(queue: &str) -> SubmitTasks {
    submit_task(task(queue))
}

pub(crate) fn submit_keyed(queue: &str, key: &str) -> SubmitTasks {
    submit_task(NewTask { key: Some(TaskKey::parse(key).unwrap()), ..task(queue) })
}

pub(crate) fn submit_delayed(queue: &str, delay_ms: i64) -> SubmitTasks {
    let span = SpanMs::parse("delay_ms", delay_ms).unwrap();
    submit_task(NewTask { start: Start::After(span), ..task(queue) })
}

pub(crate) fn submit_at(queue: &str, at_ms: u64) -> SubmitTasks {
    submit_task(NewTask { start: Start::At(Timestamp(at_ms)), ..task(queue) })
}

pub(crate) fn submit_with_timeout(queue: &str, total_timeout_ms: i64) -> SubmitTasks {
    let span = SpanMs::parse("total_timeout_ms", total_timeout_ms).unwrap();
    submit_task(NewTask { total_timeout_ms: Some(span), ..task(queue) })
}

pub(crate) fn request(worker: &str, queues: &[&str], lease_ms: i64) -> LeaseTasks {
    LeaseTasks {
        worker: WorkerName::parse(worker).unwrap(),
        queues: queues.iter().map(|name| queue(name)).collect(),
        tasks_max: NonZeroU32::MIN,
        lease_ms: Some(LeaseMs::parse(lease_ms).unwrap()),
    }
}

pub(crate) fn lease(worker: &str, queues: &[&str], wait_ms: u64) -> Lease {
    Lease { request: request(worker, queues, 30_000), wait_ms }
}

pub(crate) fn lease_ref(task: u64, lease: u64) -> LeaseRef {
    LeaseRef { task_id: TaskId(task), lease_id: LeaseId(lease) }
}

pub(crate) fn complete(lease: LeaseRef) -> CompleteTask {
    let output = Payload::parse("output", b"1".to_vec()).unwrap();
    CompleteTask { lease, output, artifacts: Vec::new(), worker: None }
}

pub(crate) fn fail(lease: LeaseRef) -> FailTask {
    let reason = Reason::keep_end("no luck");
    FailTask { lease, reason, code: None, retry: Retry::Never, checkpoint: None, worker: None }
}

pub(crate) fn heartbeat(lease: LeaseRef) -> Heartbeat {
    lease.into()
}

pub(crate) fn cancel(task: u64) -> CancelTask {
    CancelTask { task_id: TaskId(task), grace_ms: None }
}

pub(crate) fn get(task: u64) -> GetTask {
    GetTask { task_id: TaskId(task), wait_ms: 0 }
}

pub(crate) fn wait(task: u64, wait_ms: u64) -> GetTask {
    GetTask { task_id: TaskId(task), wait_ms }
}
