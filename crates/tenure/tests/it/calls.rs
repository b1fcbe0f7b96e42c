//! Every verb, blocking and async.

use std::error::Error as _;
use std::time::Duration;

use futures_core::Stream;
use tenure::{
    Code, Failure, Heartbeat, LeaseRequest, NewRun, NewTask, QueueUpdate, Release, Reports,
    RunQuery, Signal, Since, SubmitOutcome, TaskQuery, TaskState, Tenure,
};

use crate::Folder;
use crate::executor::drive;

const LONG: Duration = Duration::from_secs(30);

const APPROVAL: &str = "
workflow: approval
initial_node: ask
nodes:
  - {ref: ask, kind: task, task: {queue: ask}}
  - {ref: decide, kind: signal, signal: {name: decided}}
transitions:
  - {from: ask, to: decide}
";

#[test]
fn a_task_goes_from_submit_to_completion() {
    let folder = Folder::new();
    let tenure = folder.open();
    let task = NewTask::new("mail").payload("ada").key("welcome/ada").tag("to", "ada").priority(5);
    let first = tenure.submit(task.clone()).wait().unwrap();
    let again = tenure.submit(task).wait().unwrap();
    assert_eq!((first.outcome, again.outcome), (SubmitOutcome::Created, SubmitOutcome::Existed));
    assert_eq!(first.task_id, again.task_id);
    let explained = tenure.explain(first.task_id).wait().unwrap();
    assert_eq!(explained.task.state, TaskState::Waiting);
    let grants = tenure.lease(LeaseRequest::new("anna", ["mail"]).max(10)).wait().unwrap();
    let lease = grants[0].lease();
    let heartbeat = Heartbeat::new(lease).progress(0.5, "half").checkpoint("5");
    assert!(!tenure.heartbeat(heartbeat).wait().unwrap().cancel_requested);
    let done = tenure.complete(lease, "sent").wait().unwrap();
    assert_eq!((done.state, &*done.output.read().unwrap()), (TaskState::Completed, &b"sent"[..]));
    let again = tenure.complete(lease, "other").wait().unwrap();
    assert_eq!(&*again.output.read().unwrap(), b"sent", "a repeated report gets the same answer");
    let steps = tenure.history(first.task_id).wait().unwrap().steps;
    assert_eq!(steps.last().unwrap().to, TaskState::Completed);
    let page = tenure.list(TaskQuery::new().queue("mail").tag("to", "ada")).wait().unwrap();
    assert_eq!(page.tasks.len(), 1);
    tenure.close().unwrap();
}

#[test]
fn failures_releases_cancels_and_retries_do_what_they_say() {
    let folder = Folder::new();
    let tenure = folder.open();
    let tasks = (0..4).map(|_| NewTask::new("mail"));
    let ids: Vec<_> =
        tenure.submit_batch(tasks).wait().unwrap().iter().map(|task| task.task_id).collect();
    let grants = tenure.lease(LeaseRequest::new("anna", ["mail"]).max(4)).wait().unwrap();
    let leases: Vec<_> = grants.iter().map(tenure::Grant::lease).collect();
    let permanent = Failure::permanent("no mailbox").code("no_mailbox");
    assert_eq!(tenure.fail(leases[0], permanent).wait().unwrap().state, TaskState::Failed);
    let released = tenure.fail(leases[1], Failure::release()).wait().unwrap();
    assert_eq!((released.state, released.failures), (TaskState::Waiting, 0));
    let reports = Reports::new()
        .release(Release::new(leases[2]).delay(Duration::from_secs(60)))
        .heartbeat(leases[3])
        .complete(leases[0], "too late");
    let reported = tenure.report(reports).wait().unwrap();
    assert!(reported[0].result.as_ref().unwrap().extended.is_some(), "heartbeats come first");
    assert_eq!(reported[1].result.as_ref().unwrap_err().code(), Code::LeaseLost);
    assert_eq!(reported[2].result.as_ref().unwrap().state, TaskState::Waiting);
    assert!(tenure.cancel(ids[3]).wait().unwrap().cancel_requested);
    assert_eq!(tenure.cancel(ids[2]).wait().unwrap().state, TaskState::Canceled);
    assert_eq!(tenure.retry(ids[0]).wait().unwrap().state, TaskState::Waiting);
}

#[test]
fn an_error_has_a_code_a_message_and_a_source() {
    let folder = Folder::new();
    let tenure = folder.open();
    let error = tenure.submit(NewTask::new("a/b")).wait().unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (Code::InvalidRequest, false));
    assert!(error.message().contains("U+002F"), "{error}");
    let error = tenure.submit(NewTask::new("q").priority(101)).wait().unwrap_err();
    assert_eq!(error.message(), "priority is 101; it must be from -100 to 100");
    let error = tenure.submit(NewTask::new("q").payload(vec![0; (1 << 20) + 1])).wait();
    assert_eq!(error.unwrap_err().code(), Code::PayloadTooLarge);
    let error = tenure.get(tenure::TaskId(7)).wait().unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    let error = Tenure::open(folder.path()).unwrap_err();
    assert!(error.message().contains("in use by another process"), "{error}");
    let file = folder.path().join("not-a-folder");
    std::fs::write(&file, "").unwrap();
    let error = Tenure::open(&file).unwrap_err();
    assert!(error.source().is_some(), "{error:?}");
}

#[test]
fn a_closed_engine_refuses_calls_and_answers_those_that_wait() {
    let folder = Folder::new();
    let tenure = folder.open();
    let id = tenure.submit(NewTask::new("mail")).wait().unwrap().task_id;
    let waiting = tenure.wait(id, LONG);
    let parked = tenure.lease(LeaseRequest::new("anna", ["other"]).wait(LONG));
    tenure.clone().close().unwrap();
    assert!(parked.wait().unwrap().is_empty());
    assert_eq!(waiting.wait().unwrap_err().code(), Code::Unavailable);
    assert_eq!(tenure.get(id).wait().unwrap_err().code(), Code::Unavailable);
    assert_eq!(folder.open().get(id).wait().unwrap().state, TaskState::Waiting);
}

#[test]
fn queues_are_configured_paused_and_deleted() {
    let folder = Folder::new();
    let tenure = folder.open();
    let queues = tenure.queues();
    let update = QueueUpdate::new("mail").retention(LONG).dead_letter_queue("dead");
    let queue = queues.configure(update).wait().unwrap().unwrap();
    assert_eq!(queue.settings.retention_ms, Some(30_000));
    queues.pause("mail").wait().unwrap();
    let id = tenure.submit(NewTask::new("mail")).wait().unwrap().task_id;
    assert!(tenure.lease(LeaseRequest::new("anna", ["mail"])).wait().unwrap().is_empty());
    queues.resume("mail").wait().unwrap();
    assert_eq!(tenure.lease(LeaseRequest::new("anna", ["mail"])).wait().unwrap().len(), 1);
    assert_eq!(queues.delete("mail").wait().unwrap_err().code(), Code::Conflict);
    let names: Vec<_> =
        queues.list().wait().unwrap().iter().map(|queue| queue.name.to_string()).collect();
    assert_eq!(names, ["dead", "mail"]);
    queues.delete("dead").wait().unwrap_err();
    assert!(queues.get("nobody").wait().unwrap().is_none());
    assert_eq!(tenure.get(id).wait().unwrap().attempt, 1);
}

#[test]
fn a_run_goes_on_by_tasks_and_signals() {
    let folder = Folder::new();
    let tenure = folder.open();
    let (workflows, runs) = (tenure.workflows(), tenure.runs());
    let faulty = workflows.put_yaml("workflow: x").wait().unwrap_err();
    assert!(faulty.message().contains("fault"), "{faulty}");
    assert_eq!(workflows.put_yaml(APPROVAL).wait().unwrap().version, 1);
    assert_eq!(workflows.get("approval").wait().unwrap().version, 1);
    assert_eq!(workflows.list().wait().unwrap().len(), 1);
    let run = runs.start(NewRun::of("approval").key("order/1")).wait().unwrap().run;
    assert_eq!(runs.get_by_key("approval", "order/1").wait().unwrap().id, run.id);
    let request = LeaseRequest::new("anna", ["ask"]).wait(LONG);
    let grant = &tenure.lease(request).wait().unwrap()[0];
    assert_eq!(grant.run.as_ref().unwrap().run_id, run.id);
    tenure.complete(grant.lease(), r#"{"asked": true}"#).wait().unwrap();
    runs.signal(run.id, Signal::new("decided").payload("true")).wait().unwrap();
    let over = runs.wait(run.id, LONG).wait().unwrap();
    assert_eq!(over.state, "COMPLETED");
    assert_eq!(runs.tokens(run.id, None).wait().unwrap().tokens.len(), 2);
    assert!(!runs.history(run.id).wait().unwrap().steps.is_empty());
    let batch = [NewRun::of("approval"), NewRun::of("approval")];
    let started = runs.start_batch(batch).wait().unwrap();
    runs.cancel(started[0].run_id).wait().unwrap();
    let page = runs.list(RunQuery::new().workflow("approval").state("RUNNING")).wait().unwrap();
    assert_eq!(page.runs.len(), 1);
    let by_key = Signal::new("decided").or_start(NewRun::of("approval"));
    let signaled = runs.signal_by_key("approval", "order/2", by_key).wait().unwrap();
    assert_eq!(signaled.outcome, SubmitOutcome::Created);
    assert_eq!(workflows.delete("approval").wait().unwrap_err().code(), Code::Conflict);
}

#[test]
fn a_backup_is_taken_beside_calls_and_restored() {
    let folder = Folder::new();
    let (copy, restored) = (Folder::new(), Folder::new());
    let tenure = folder.open();
    let id = tenure.submit(NewTask::new("mail").payload("kept")).wait().unwrap().task_id;
    assert_eq!(tenure.snapshot().wait().unwrap().tasks, 1);
    let backup = tenure.backup(copy.path(), Since::Snapshot).wait().unwrap();
    assert_eq!(backup.lsn, tenure.status().wait().unwrap().released);
    let later = tenure.submit(NewTask::new("mail")).wait().unwrap().task_id;
    let refused = tenure.backup(copy.path(), Since::Oldest).wait().unwrap_err();
    assert!(refused.message().contains("has something in it"), "{refused}");
    let refused = Tenure::open(copy.path()).unwrap_err();
    assert!(refused.message().contains("is a backup"), "{refused}");
    tenure::restore(copy.path(), restored.path(), None).unwrap();
    let again = restored.open();
    assert_eq!(&*again.get(id).wait().unwrap().payload.read().unwrap(), b"kept");
    assert_eq!(again.get(later).wait().unwrap_err().code(), Code::NotFound);
    let fresh = again.submit(NewTask::new("mail")).wait().unwrap().task_id;
    assert!(fresh > later, "ids that were given after the backup are not given again");
}

/// Sends two calls before it awaits the first, and follows what happens as a stream.
async fn converse(tenure: &Tenure) {
    let mut watch = tenure.watch(tenure.position());
    let first = tenure.submit(NewTask::new("mail"));
    let second = tenure.submit(NewTask::new("mail"));
    let ids = [first.await.unwrap().task_id, second.await.unwrap().task_id];
    let ended = tenure.wait(ids[0], LONG);
    let request = LeaseRequest::new("anna", ["mail"]).wait(LONG);
    for grant in tenure.lease(request).await.unwrap() {
        tenure.complete(grant.lease(), ()).await.unwrap();
    }
    assert_eq!(ended.await.unwrap().state, TaskState::Completed);
    let mut changes = Vec::new();
    while changes.len() < 4 {
        let next =
            std::future::poll_fn(|context| std::pin::Pin::new(&mut watch).poll_next(context));
        let change = next.await.unwrap().unwrap();
        changes.extend(change.task().map(|task| (task.task_id, task.step.to)));
    }
    let expected = [
        (ids[0], TaskState::Waiting),
        (ids[1], TaskState::Waiting),
        (ids[0], TaskState::Leased),
        (ids[0], TaskState::Completed),
    ];
    assert_eq!(changes, expected);
    assert!(!tenure.history(ids[0]).await.unwrap().steps.is_empty());
}

#[test]
fn calls_are_futures_for_the_smallest_executor() {
    let folder = Folder::new();
    drive(converse(&folder.open()));
}

#[tokio::test]
async fn calls_are_futures_for_tokio() {
    let folder = Folder::new();
    let tenure = folder.open();
    converse(&tenure).await;
    let shared = tenure.clone();
    let id = tokio::spawn(async move { shared.submit(NewTask::new("mail")).await }).await;
    assert_eq!(tenure.get(id.unwrap().unwrap().task_id).await.unwrap().state, TaskState::Waiting);
}

#[test]
fn a_lease_call_that_is_dropped_keeps_no_task() {
    let folder = Folder::new();
    let tenure = folder.open();
    let parked = tenure.lease(LeaseRequest::new("gone", ["mail"]).wait(LONG));
    drop(parked);
    tenure.submit(NewTask::new("mail")).wait().unwrap();
    let request = LeaseRequest::new("anna", ["mail"]).wait(LONG);
    assert_eq!(tenure.lease(request).wait().unwrap().len(), 1);
}

#[test]
fn warnings_and_options_reach_the_engine() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path()).unwrap();
    std::fs::write(folder.path().join("foreign.txt"), "").unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let tenure = Tenure::builder(folder.path())
        .durability(tenure::Durability::Os)
        .retention(Duration::from_secs(60))
        .memory_max(64 << 20)
        .on_warning(move |warning| tell.send(warning.to_string()).unwrap())
        .open()
        .unwrap();
    assert!(told.try_iter().any(|warning| warning.contains("foreign.txt")));
    assert_eq!(tenure.recovery_info().records, 0);
    assert!(tenure.recovery_warnings().is_empty());
    tenure.close().unwrap();
}
