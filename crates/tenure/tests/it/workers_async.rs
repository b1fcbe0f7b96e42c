//! The worker loop in an async task, with tokio and with no runtime at all.

use std::future::Future;
use std::time::Duration;

use tenure::{Failure, LeasedTask, NewTask, Output, Stop, TaskState, Tenure};

use crate::Folder;
use crate::executor::drive;

const LONG: Duration = Duration::from_secs(30);

async fn shout(task: LeasedTask) -> Result<Output, Failure> {
    match task.payload_bytes() {
        b"bad" => panic!("no way"),
        b"worse" => Err(Failure::permanent("never")),
        bytes => Ok(bytes.to_ascii_uppercase().into()),
    }
}

async fn work(tenure: &Tenure) {
    let worker =
        tenure.worker("w").slots(8).handle_async("q", shout).handle("b", |_| Ok("blocked"));
    let drain = worker.drain();
    let running = worker.run_async();
    let talk = async {
        let tasks = (0..20).map(|n| NewTask::new("q").payload(format!("a{n}")));
        let ids = tenure.submit_batch(tasks).await.unwrap();
        let bad = tenure.submit(NewTask::new("q").payload("bad").max_failures(1)).await.unwrap();
        let worse = tenure.submit(NewTask::new("q").payload("worse")).await.unwrap();
        let blocking = tenure.submit(NewTask::new("b")).await.unwrap();
        for (n, task) in ids.iter().enumerate() {
            let task = tenure.wait(task.task_id, LONG).await.unwrap();
            assert_eq!(&*task.output.read().unwrap(), format!("A{n}").as_bytes());
        }
        for task in [bad, worse] {
            let task = tenure.wait(task.task_id, LONG).await.unwrap();
            assert_eq!(task.state, TaskState::Failed);
        }
        let task = tenure.wait(blocking.task_id, LONG).await.unwrap();
        assert_eq!(&*task.output.read().unwrap(), b"blocked");
        drain.start();
    };
    both(running, talk).await.unwrap();
}

/// Polls two futures until both are ready.
async fn both<T>(first: impl Future<Output = T>, second: impl Future<Output = ()>) -> T {
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    let (mut output, mut is_over) = (None, false);
    std::future::poll_fn(move |context| {
        if !is_over {
            is_over = second.as_mut().poll(context).is_ready();
        }
        if output.is_none()
            && let std::task::Poll::Ready(ready) = first.as_mut().poll(context)
        {
            output = Some(ready);
        }
        match (is_over, output.take()) {
            (true, Some(ready)) => std::task::Poll::Ready(ready),
            (_, ready) => {
                output = ready;
                std::task::Poll::Pending
            }
        }
    })
    .await
}

#[test]
fn an_async_worker_needs_no_runtime() {
    let folder = Folder::new();
    drive(work(&folder.open()));
}

#[tokio::test]
async fn an_async_worker_runs_in_tokio() {
    let folder = Folder::new();
    let tenure = folder.open();
    work(&tenure).await;
    // Handlers may use what the runtime offers, and leases outlive theirs by heartbeats.
    let worker = tenure.worker("w").lease(Duration::from_millis(300));
    let worker = worker.handle_async("slow", |task: LeasedTask| async move {
        tokio::time::sleep(Duration::from_millis(900)).await;
        Ok(task.attempt().to_string())
    });
    let drain = worker.drain();
    let running = tokio::spawn(worker.run_async());
    let id = tenure.submit(NewTask::new("slow")).await.unwrap().task_id;
    let task = tenure.wait(id, LONG).await.unwrap();
    assert_eq!((&*task.output.read().unwrap(), task.expiries), (&b"1"[..], 0));
    drain.start();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_worker_that_is_dropped_releases_its_leases() {
    let folder = Folder::new();
    let tenure = folder.open();
    let (begun, mut wait) = tokio::sync::mpsc::unbounded_channel();
    let worker = tenure.worker("w").handle_async("q", move |task: LeasedTask| {
        begun.send(()).unwrap();
        async move {
            assert_eq!(task.stopped().await, Stop::Canceled, "it is dropped instead");
            Ok(())
        }
    });
    let running = tokio::spawn(worker.run_async());
    let id = tenure.submit(NewTask::new("q")).await.unwrap().task_id;
    wait.recv().await.unwrap();
    running.abort();
    while tenure.get(id).await.unwrap().state != TaskState::Waiting {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(tenure.get(id).await.unwrap().failures, 0);
}
