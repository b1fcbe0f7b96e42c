//! The SDK's worker against the real binary.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tenure_sdk::{Failure, LeasedTask, NewTask, Output, Stop, TaskState, Worker};
use tokio::sync::{Notify, mpsc};

use crate::grpc::server::{LONG, Server};

async fn echo(task: LeasedTask) -> Result<Output, Failure> {
    Ok(Output::from(task.payload_bytes().to_vec()))
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_are_all_done_once() {
    let server = Server::start("many");
    let client = server.client().await;
    let ids =
        client.tasks().submit_batch((0..2_000).map(|n| NewTask::new("q", n.to_string()))).await;
    let ids = ids.unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&runs);
    let worker = Worker::new(client.clone()).slots(100).handle("q", move |task| {
        count.fetch_add(1, Ordering::Relaxed);
        echo(task)
    });
    let drain = worker.drain_handle();
    let running = tokio::spawn(worker.run());
    for (n, id) in ids.iter().enumerate() {
        let task = client.tasks().wait(*id, LONG).await.unwrap();
        assert_eq!(
            (task.state, task.output.as_bytes()),
            (TaskState::Completed, n.to_string().as_bytes())
        );
    }
    drain.drain();
    tokio::time::timeout(LONG, running).await.unwrap().unwrap().unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_goes_on_from_its_checkpoint_and_says_how_far_it_is() {
    let server = Server::start("sdk-checkpoint");
    let client = server.client().await;
    let watching = client.clone();
    let worker = Worker::new(client.clone()).handle("q", move |task: LeasedTask| {
        let client = watching.clone();
        async move {
            match task.checkpoint_bytes() {
                b"" => {
                    task.progress(0.25, "first");
                    task.save_checkpoint_bytes("1");
                    // The server knows both before the attempt ends.
                    loop {
                        let seen = client.tasks().get(task.id()).await?;
                        let progress = seen.progress.unwrap_or_default();
                        if (progress.fraction, seen.checkpoint.as_bytes())
                            == (Some(0.25), &b"1"[..])
                        {
                            break;
                        }
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    Err(Failure::new("again").retry_after(Duration::from_millis(1)))
                }
                b"1" => Err(Failure::release_for(Duration::from_millis(1)).checkpoint("2")),
                left => Ok(Output::from(left.to_vec())),
            }
        }
    });
    let drain = worker.drain_handle();
    let running = tokio::spawn(worker.run());
    let task = client.tasks().submit(NewTask::new("q", "")).await.unwrap();
    let task = client.tasks().wait(task.id, LONG).await.unwrap();
    assert_eq!((task.state, task.output.as_bytes()), (TaskState::Completed, &b"2"[..]));
    assert_eq!((task.failures, task.attempt, task.progress), (1, 3, None));
    drain.drain();
    tokio::time::timeout(LONG, running).await.unwrap().unwrap().unwrap();
}

/// A payload, a checkpoint and an output as values.
#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Sum {
    numbers: Vec<i64>,
    done: usize,
}

async fn add(task: LeasedTask) -> Result<Output, Failure> {
    let sum: Sum = task.payload()?;
    match task.checkpoint::<Sum>()? {
        None => {
            task.save_checkpoint(&Sum { done: 1, ..sum })?;
            Err(Failure::new("again").retry_after(Duration::from_millis(1)))
        }
        Some(saved) => Output::json(&saved.numbers[saved.done..].iter().sum::<i64>()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_checkpoints_and_outputs_are_values() {
    let server = Server::start("sdk-values");
    let client = server.client().await;
    let idle = Worker::new(client.clone()).handle("q", add).slots(0).run().await.unwrap_err();
    assert_eq!((idle.code().as_str(), idle.is_definite()), ("invalid_request", true));
    let worker = Worker::new(client.clone()).handle("q", add).slots(2);
    let drain = worker.drain_handle();
    let running = tokio::spawn(worker.run());
    let sum = Sum { numbers: vec![1, 2, 3], done: 0 };
    let task = client.tasks().submit(NewTask::json("q", &sum).unwrap()).await.unwrap();
    assert_eq!(task.payload.parse::<Sum>().unwrap(), sum);
    let task = client.tasks().wait(task.id, LONG).await.unwrap();
    assert_eq!((task.state, task.output.parse::<i64>().unwrap()), (TaskState::Completed, 5));
    let wrong = client.tasks().submit(NewTask::new("q", "[]")).await.unwrap();
    let wrong = client.tasks().wait(wrong.id, LONG).await.unwrap();
    assert_eq!((wrong.state, wrong.failures), (TaskState::Failed, 1), "another try is no use");
    assert_eq!(wrong.error.unwrap().code, "invalid_payload");
    drain.drain();
    tokio::time::timeout(LONG, running).await.unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_reported_as_the_handler_says() {
    let server = Server::start("failures");
    let client = server.client().await;
    let worker = Worker::new(client.clone()).slots(4).handle("q", |task: LeasedTask| async move {
        match (&task.payload_bytes()[..], task.attempt()) {
            (b"last", _) => Err(Failure::permanent("never").code("c")),
            (b"panic", _) => panic!("on purpose"),
            (b"large", _) => Ok(Output::from(vec![0; (1 << 20) + 1])),
            (b"again", 1) => Err(Failure::new("later").retry_after(Duration::from_millis(20))),
            (b"back", 1) => Err(Failure::release()),
            _ => Ok(Output::from(())),
        }
    });
    let worker =
        worker.handle_blocking("b", |task: LeasedTask| Ok(task.payload_bytes().to_vec().into()));
    let drain = worker.drain_handle();
    let running = tokio::spawn(worker.run());
    let submit = async |payload: &str| {
        let task = client.tasks().submit(NewTask::new("q", payload).max_failures(2)).await.unwrap();
        client.tasks().wait(task.id, LONG).await.unwrap()
    };
    let last = submit("last").await;
    let error = last.error.clone().unwrap();
    assert_eq!((last.state, &*error.code, last.failures), (TaskState::Failed, "c", 1));
    let again = submit("again").await;
    assert_eq!((again.state, again.failures, again.attempt), (TaskState::Completed, 1, 2));
    let back = submit("back").await;
    assert_eq!((back.state, back.failures, back.attempt), (TaskState::Completed, 0, 2));
    assert_eq!(submit("large").await.error.unwrap().code, "payload_too_large");
    let panicked = client.tasks().submit(NewTask::new("q", "panic").max_failures(1)).await.unwrap();
    let panicked = client.tasks().wait(panicked.id, LONG).await.unwrap();
    assert_eq!(
        (panicked.state, &*panicked.error.clone().unwrap().code),
        (TaskState::Failed, "panic")
    );
    let blocking = client.tasks().submit(NewTask::new("b", "x")).await.unwrap();
    assert_eq!(client.tasks().wait(blocking.id, LONG).await.unwrap().output.as_bytes(), b"x");
    drain.drain();
    running.await.unwrap().unwrap();
}

/// Where the worker in a process of its own finds the server.
const ADDRESS: &str = "TENURE_TEST_ADDRESS";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is started and killed by another test"]
async fn a_worker_that_never_ends() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let client = tenure_sdk::Client::connect(address).await.unwrap();
    let worker = Worker::new(client).disconnect_grace(Duration::from_millis(200));
    worker.handle("q", |_| std::future::pending()).run().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_a_worker_that_dies_is_finished_by_another() {
    let server = Server::start("dies");
    let client = server.client().await;
    let id = client.tasks().submit(NewTask::new("q", "x")).await.unwrap().id;
    let mut dying = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "grpc::worker::a_worker_that_never_ends", "--ignored"])
        .env(ADDRESS, &server.address)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while client.tasks().get(id).await.unwrap().state != TaskState::Leased {
        assert!(dying.try_wait().unwrap().is_none(), "it never ends by itself");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    dying.kill().unwrap();
    dying.wait().unwrap();
    let worker = Worker::new(client.clone()).handle("q", echo);
    let drain = worker.drain_handle();
    let running = tokio::spawn(worker.run());
    let task = client.tasks().wait(id, LONG).await.unwrap();
    assert_eq!((task.state, task.attempt, task.expiries), (TaskState::Completed, 2, 1));
    drain.drain();
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_reaches_the_handler() {
    let server = Server::start("reaches");
    let client = server.client().await;
    let (began, mut begun) = mpsc::unbounded_channel();
    let worker = Worker::new(client.clone()).handle("q", move |task: LeasedTask| {
        let began = began.clone();
        async move {
            began.send(task.traceparent().map(str::to_owned)).unwrap();
            task.canceled().await;
            assert!(task.is_canceled() && !task.is_lost());
            Err(Failure::new("canceled"))
        }
    });
    let drain = worker.drain_handle();
    let running = tokio::spawn(worker.run());
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let id = client.tasks().submit(NewTask::new("q", "").traceparent(parent)).await.unwrap().id;
    assert_eq!(begun.recv().await.unwrap().as_deref(), Some(parent));
    client.tasks().cancel(id, None).await.unwrap();
    let task = client.tasks().wait(id, Duration::from_secs(5)).await.unwrap();
    assert_eq!(task.state, TaskState::Canceled, "long before the lease would have ended");
    drain.drain();
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_finishes_what_has_begun_and_takes_nothing_new() {
    let server = Server::start("drains");
    let client = server.client().await;
    let (go, began) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (wait, tell) = (Arc::clone(&go), Arc::clone(&began));
    let worker = Worker::new(client.clone()).slots(2).handle("q", move |task: LeasedTask| {
        let (wait, tell) = (Arc::clone(&wait), Arc::clone(&tell));
        async move {
            tell.notify_one();
            wait.notified().await;
            echo(task).await
        }
    });
    let drain = worker.drain_handle();
    let running = tokio::spawn(worker.run());
    let first = client.tasks().submit(NewTask::new("q", "1")).await.unwrap().id;
    began.notified().await;
    drain.drain();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let second = client.tasks().submit(NewTask::new("q", "2")).await.unwrap().id;
    go.notify_one();
    tokio::time::timeout(LONG, running).await.unwrap().unwrap().unwrap();
    assert_eq!(client.tasks().get(first).await.unwrap().state, TaskState::Completed);
    let second = client.tasks().get(second).await.unwrap();
    assert_eq!((second.state, second.attempt), (TaskState::Waiting, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_come_while_the_runtime_is_busy() {
    let server = Server::start("busy");
    let client = server.client().await;
    // Every thread of this runtime is blocked for several leases.
    let worker = Worker::new(client.clone()).slots(16).handle("q", |task: LeasedTask| async move {
        std::thread::sleep(Duration::from_millis(1_500));
        echo(task).await
    });
    let drain = worker.drain_handle();
    let lease = Duration::from_millis(400);
    let tasks = (0..8).map(|n| NewTask::new("q", n.to_string()).lease(lease));
    let ids = client.tasks().submit_batch(tasks).await.unwrap();
    let running = tokio::spawn(worker.run());
    for id in ids {
        let task = client.tasks().wait(id, LONG).await.unwrap();
        let seen = (task.state, task.attempt, task.expiries);
        assert_eq!(seen, (TaskState::Completed, 1, 0), "a busy runtime must not lose leases");
    }
    drain.drain();
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_outlives_a_crash_of_the_server() {
    let mut server = Server::start("outlives");
    let client = server.client().await;
    let (began, mut begun) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let wait = Arc::clone(&go);
    let worker = Worker::new(client.clone()).handle("q", move |task: LeasedTask| {
        let (began, wait) = (began.clone(), Arc::clone(&wait));
        async move {
            began.send(()).unwrap();
            wait.notified().await;
            echo(task).await
        }
    });
    let drain = worker.drain_handle();
    let running = tokio::spawn(worker.run());
    let id = client.tasks().submit(NewTask::new("q", "x")).await.unwrap().id;
    begun.recv().await.unwrap();
    server.crash_and_restart();
    go.notify_one();
    let task = client.tasks().wait(id, LONG).await.unwrap();
    assert_eq!((task.state, task.attempt), (TaskState::Completed, 1), "the lease was kept");
    drain.drain();
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_takes_too_long_gives_everything_back() {
    let server = Server::start("patience");
    let client = server.client().await;
    let (began, mut begun) = mpsc::unbounded_channel();
    let (async_began, clean_began, blocking_began) = (began.clone(), began.clone(), began);
    let (cleaned, mut clean) = mpsc::unbounded_channel();
    let (free, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let worker = Worker::new(client.clone())
        .slots(3)
        .drain_timeout(Duration::from_millis(100))
        .handle("async", move |task: LeasedTask| {
            let began = async_began.clone();
            async move {
                began.send(()).unwrap();
                task.canceled().await;
                Err(Failure::new("it is no failure to be told to leave"))
            }
        })
        .handle_with_cleanup("clean", move |task: LeasedTask| {
            let (began, cleaned) = (clean_began.clone(), cleaned.clone());
            async move {
                began.send(()).unwrap();
                task.canceled().await;
                tokio::time::sleep(Duration::from_millis(100)).await;
                cleaned.send(task.stop()).unwrap();
                Err(Failure::release())
            }
        })
        .handle_blocking("blocking", move |_| {
            blocking_began.send(()).unwrap();
            let _ = held.lock().unwrap().recv();
            Ok(Output::from(()))
        });
    let drain = worker.drain_handle();
    let running = tokio::spawn(worker.run());
    let queues = ["async", "clean", "blocking"];
    let ids =
        client.tasks().submit_batch(queues.map(|queue| NewTask::new(queue, "x"))).await.unwrap();
    for _ in queues {
        begun.recv().await.unwrap();
    }
    drain.drain();
    tokio::time::timeout(LONG, running).await.unwrap().unwrap().unwrap();
    assert_eq!(clean.recv().await, Some(Some(Stop::Leaving)), "it was waited for");
    for id in ids {
        let task = client.tasks().get(id).await.unwrap();
        let seen = (task.state, task.failures, task.expiries);
        assert_eq!(seen, (TaskState::Waiting, 0, 0), "{}", task.queue);
    }
    drop(free);
}
