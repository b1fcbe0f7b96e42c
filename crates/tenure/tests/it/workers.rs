//! The worker loop on threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure::{
    Code, Drain, Error, Failure, LeaseRequest, NewTask, Stop, TaskId, TaskState, Tenure, Worker,
};

use crate::Folder;

const LONG: Duration = Duration::from_secs(30);

/// A worker on a thread.
struct Running {
    drain: Drain,
    thread: JoinHandle<Result<(), Error>>,
}

fn start(worker: Worker) -> Running {
    let drain = worker.drain();
    Running { drain, thread: std::thread::spawn(move || worker.run()) }
}

impl Running {
    fn end(self) -> Result<(), Error> {
        self.drain.start();
        self.thread.join().unwrap()
    }
}

fn submit(tenure: &Tenure, task: NewTask) -> TaskId {
    tenure.submit(task).wait().unwrap().task_id
}

#[test]
fn a_worker_runs_handlers_side_by_side() {
    let folder = Folder::new();
    let tenure = folder.open();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen_running, seen_most) = (Arc::clone(&running), Arc::clone(&most));
    let barrier = Arc::new(std::sync::Barrier::new(4));
    let worker = tenure.worker("w").slots(4).handle("q", move |task| {
        let now = seen_running.fetch_add(1, Ordering::SeqCst) + 1;
        seen_most.fetch_max(now, Ordering::SeqCst);
        barrier.wait();
        seen_running.fetch_sub(1, Ordering::SeqCst);
        Ok(task.payload_bytes().to_vec())
    });
    let worker = start(worker);
    let tasks = (0..40).map(|n| NewTask::new("q").payload(n.to_string()));
    let ids = tenure.submit_batch(tasks).wait().unwrap();
    for (n, task) in ids.iter().enumerate() {
        let task = tenure.wait(task.task_id, LONG).wait().unwrap();
        assert_eq!(&*task.output.read().unwrap(), n.to_string().as_bytes());
    }
    worker.end().unwrap();
    assert_eq!((running.load(Ordering::SeqCst), most.load(Ordering::SeqCst)), (0, 4));
    assert!(tenure.workers().wait().unwrap().is_empty(), "it has signed off");
}

#[test]
fn a_handler_that_panics_is_a_failure_and_takes_nobody_with_it() {
    let folder = Folder::new();
    let tenure = folder.open();
    let worker = start(tenure.worker("w").handle("q", |task| match task.payload_bytes() {
        b"bad" => panic!("no way"),
        _ => Ok("fine"),
    }));
    let bad = submit(&tenure, NewTask::new("q").payload("bad").max_failures(1));
    let good = submit(&tenure, NewTask::new("q"));
    let bad = tenure.wait(bad, LONG).wait().unwrap();
    assert_eq!(bad.state, TaskState::Failed);
    assert_eq!(
        (&*bad.errors[0].code, &*bad.errors[0].message),
        ("panic", "the handler panicked: no way")
    );
    assert_eq!(tenure.wait(good, LONG).wait().unwrap().state, TaskState::Completed);
    worker.end().unwrap();
}

#[test]
fn heartbeats_keep_a_lease_that_is_shorter_than_its_handler() {
    let folder = Folder::new();
    let tenure = folder.open();
    let lease = Duration::from_millis(400);
    let worker = start(tenure.worker("w").lease(lease).handle("q", move |task| {
        // Three leases long: without heartbeats it would be lost and leased again.
        assert_eq!(task.wait_for_stop(3 * lease), None);
        Ok(task.attempt().to_string())
    }));
    let id = submit(&tenure, NewTask::new("q"));
    let task = tenure.wait(id, LONG).wait().unwrap();
    assert_eq!((&*task.output.read().unwrap(), task.attempt, task.expiries), (&b"1"[..], 1, 0));
    worker.end().unwrap();
}

#[test]
fn a_cancel_reaches_the_handler_at_once() {
    let folder = Folder::new();
    let tenure = folder.open();
    let (begun, wait) = channel();
    let worker = start(tenure.worker("w").handle("q", move |task| -> Result<(), Failure> {
        begun.send(()).unwrap();
        // The lease has half a minute, so no heartbeat is due before that is over.
        assert_eq!(task.wait_for_stop(Duration::from_secs(8)), Some(Stop::Canceled));
        Err(Failure::new("stopped"))
    }));
    let id = submit(&tenure, NewTask::new("q"));
    wait.recv_timeout(LONG).unwrap();
    tenure.cancel(id).wait().unwrap();
    assert_eq!(tenure.wait(id, LONG).wait().unwrap().state, TaskState::Canceled);
    worker.end().unwrap();
}

#[test]
fn a_lost_lease_reaches_the_handler_and_its_result_is_dropped() {
    let folder = Folder::new();
    let tenure = folder.open();
    let (stopped, seen) = channel();
    let worker = start(tenure.worker("w").handle("q", move |task| {
        stopped.send(task.wait_for_stop(LONG)).unwrap();
        stopped.send(task.wait_for_stop(Duration::ZERO)).unwrap();
        Ok("too late")
    }));
    let id = submit(&tenure, NewTask::new("q"));
    while tenure.get(id).wait().unwrap().state != TaskState::Leased {
        std::thread::yield_now();
    }
    // The grace is over at once, so the lease is revoked.
    tenure.cancel_within(id, Duration::ZERO).wait().unwrap();
    assert!(seen.recv_timeout(LONG).unwrap().is_some());
    let task = tenure.wait(id, LONG).wait().unwrap();
    assert_eq!(task.state, TaskState::Canceled);
    worker.end().unwrap();
    let task = tenure.get(id).wait().unwrap();
    assert!(task.output.is_empty(), "{task:?}");
}

#[test]
fn a_drain_waits_for_handlers_and_takes_nothing_new() {
    let folder = Folder::new();
    let tenure = folder.open();
    let (begun, wait) = channel();
    let (go_on, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let worker = start(tenure.worker("w").handle("q", move |_| {
        begun.send(()).unwrap();
        gate.lock().unwrap().recv().unwrap();
        Ok("done")
    }));
    let first = submit(&tenure, NewTask::new("q"));
    wait.recv_timeout(LONG).unwrap();
    worker.drain.start();
    let second = submit(&tenure, NewTask::new("q"));
    go_on.send(()).unwrap();
    worker.end().unwrap();
    assert_eq!(tenure.get(first).wait().unwrap().state, TaskState::Completed);
    assert_eq!(tenure.get(second).wait().unwrap().state, TaskState::Waiting);
    // The request for work that the worker had parked grants nothing any more.
    assert_eq!(tenure.lease(LeaseRequest::new("next", ["q"])).wait().unwrap().len(), 1);
}

#[test]
fn a_drain_that_takes_too_long_releases_what_still_runs() {
    let folder = Folder::new();
    let tenure = folder.open();
    let (told, stop) = channel();
    let (begun, wait) = channel();
    let worker = tenure.worker("w").drain_timeout(Duration::from_millis(50));
    let worker = start(worker.handle("q", move |task| {
        task.save_checkpoint_bytes("here");
        begun.send(()).unwrap();
        told.send(task.wait_for_stop(LONG)).unwrap();
        Ok("nobody waits for this")
    }));
    let id = submit(&tenure, NewTask::new("q"));
    wait.recv_timeout(LONG).unwrap();
    worker.end().unwrap();
    assert_eq!(stop.recv_timeout(LONG).unwrap(), Some(Stop::Leaving));
    let task = tenure.get(id).wait().unwrap();
    assert_eq!((task.state, task.failures, task.expiries), (TaskState::Waiting, 0, 0));
    assert_eq!(task.checkpoint.as_deref(), Some(&b"here"[..]));
}

#[test]
fn checkpoints_and_failures_reach_the_next_attempt() {
    let folder = Folder::new();
    let tenure = folder.open();
    let worker = start(tenure.worker("w").handle("q", |task| match task.attempt() {
        1 => {
            task.save_checkpoint(&3)?;
            Err(Failure::new("once more").retry_after(Duration::ZERO))
        }
        _ => Ok(task.checkpoint::<u32>()?.unwrap().to_string()),
    }));
    let id = submit(&tenure, NewTask::new("q"));
    let task = tenure.wait(id, LONG).wait().unwrap();
    assert_eq!((&*task.output.read().unwrap(), task.failures), (&b"3"[..], 1));
    let unfit = submit(&tenure, NewTask::new("typed").payload("not json"));
    let typed = start(
        tenure
            .worker("typed")
            .handle("typed", |task| task.payload::<u32>().map(|number| number.to_string())),
    );
    let unfit = tenure.wait(unfit, LONG).wait().unwrap();
    assert_eq!((unfit.state, &*unfit.errors[0].code), (TaskState::Failed, "invalid_payload"));
    typed.end().unwrap();
    worker.end().unwrap();
}

#[test]
fn a_worker_that_cannot_work_says_why() {
    let folder = Folder::new();
    let tenure = folder.open();
    let error = tenure.worker("w").run().unwrap_err();
    assert!(error.message().contains("handlers for 0 queues"), "{error}");
    let error = tenure.worker("w").handle("q", |_| Ok(())).slots(0).run().unwrap_err();
    assert_eq!(error.message(), "slots is 0; it must be from 1 to 1000");
    let worker = start(tenure.worker("w").handle("q", |_| Ok(())));
    while tenure.status().wait().unwrap().parked_leases == 0 {
        std::thread::yield_now();
    }
    tenure.close().unwrap();
    assert_eq!(worker.thread.join().unwrap().unwrap_err().code(), Code::Unavailable);
}
