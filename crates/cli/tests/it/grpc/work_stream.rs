//! The stream for workers: credit, pushes, cancels, cuts and goodbyes.
//!
//! Proves P7.

use std::time::{Duration, Instant};

use tenure_proto::v1;
use tenure_sdk::{Client, NewTask, Task, TaskState};

use crate::grpc::server::{LONG, Server, Stream, code_of, completes, hello, lease_ref};

async fn until(client: &Client, id: u64, is_so: impl Fn(&Task) -> bool) -> Task {
    let start = Instant::now();
    loop {
        let task = client.tasks().get(id).await.unwrap();
        if is_so(&task) {
            return task;
        }
        assert!(start.elapsed() < LONG, "{task:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn leases_are_pushed_within_the_credit() {
    let server = Server::start("credit");
    let (client, wire) = (server.client().await, server.wire().await);
    let mut stream = Stream::open(&wire, hello("w", 5_000)).await;
    assert_eq!(stream.welcome.disconnect_grace_ms, 5_000);
    client.tasks().submit_batch((0..5).map(|n| NewTask::new("q", n.to_string()))).await.unwrap();
    assert!(stream.is_silent().await, "no credit, no work");
    stream.credit(2).await;
    let leases = stream.leases(2).await;
    assert!(stream.is_silent().await, "the credit is used up");
    // Reports and credit in one message.
    let message =
        v1::WorkRequest { credit: 4, reports: Some(completes(9, &leases)), ..Default::default() };
    stream.say(message).await;
    let (mut results, mut more) = (Vec::new(), Vec::new());
    while results.is_empty() || more.len() < 3 {
        let next = stream.next().await;
        results.extend(next.results);
        more.extend(next.leases);
    }
    assert_eq!((results[0].sequence, results[0].results.len()), (9, 2));
    assert!(results[0].results.iter().all(|result| result.state() == v1::TaskState::Completed));
    // One credit is left: the next task comes as soon as it is there.
    let id = client.tasks().submit(NewTask::new("q", "new")).await.unwrap().id;
    assert_eq!(stream.leases(1).await[0].task_id, id);
    let workers = client.workers().list(Default::default()).await.unwrap().items;
    assert_eq!((workers[0].name.as_str(), workers[0].active_leases), ("w", 4));
}

#[tokio::test]
async fn a_ping_is_answered_with_the_time() {
    let server = Server::start("ping");
    let wire = server.wire().await;
    let mut stream = Stream::open(&wire, hello("w", 0)).await;
    let ping = Some(v1::Ping { sequence: 4 });
    stream.say(v1::WorkRequest { ping, ..Default::default() }).await;
    let pong = stream.next().await.pong.unwrap();
    assert!(pong.sequence == 4 && pong.now >= stream.welcome.now);
}

#[tokio::test]
async fn a_cancel_is_pushed() {
    let server = Server::start("cancel");
    let (client, wire) = (server.client().await, server.wire().await);
    let mut stream = Stream::open(&wire, hello("w", 5_000)).await;
    let ids =
        client.tasks().submit_batch([NewTask::new("q", ""), NewTask::new("q", "")]).await.unwrap();
    stream.credit(2).await;
    let leases = stream.leases(2).await;
    client.tasks().cancel(ids[1], None).await.unwrap();
    let cancels = stream.next().await.cancels;
    let expected = v1::Cancel { task_id: ids[1], lease_id: leases[1].lease_id, lost: false };
    assert_eq!(cancels, [expected]);
    client.tasks().cancel(ids[0], Some(Duration::from_millis(50))).await.unwrap();
    assert!(!stream.next().await.cancels[0].lost);
    let cancels = stream.next().await.cancels;
    assert_eq!((cancels[0].task_id, cancels[0].lost), (ids[0], true), "its grace is over");
    let v1::LeaseRef { task_id, lease_id } = lease_ref(&leases[1]);
    let releases = vec![v1::ReleaseReport { task_id, lease_id, ..Default::default() }];
    stream.report(v1::Reports { sequence: 1, releases, ..Default::default() }).await;
    assert_eq!(stream.next().await.results[0].results[0].state(), v1::TaskState::Canceled);
}

#[tokio::test]
async fn a_cut_stream_loses_its_leases_after_the_grace() {
    let server = Server::start("cut");
    let (client, wire) = (server.client().await, server.wire().await);
    let id = client.tasks().submit(NewTask::new("q", "")).await.unwrap().id;
    let mut first = Stream::open(&wire, hello("first", 300)).await;
    first.credit(1).await;
    first.leases(1).await;
    let mut second = Stream::open(&wire, hello("second", 300)).await;
    second.credit(1).await;
    let cut_at = Instant::now();
    drop(first);
    let offered = second.leases(1).await;
    assert!(cut_at.elapsed() >= Duration::from_millis(300), "not before the grace");
    assert!(cut_at.elapsed() < Duration::from_secs(10), "and not after the lease");
    assert_eq!((offered[0].task_id, offered[0].attempt), (id, 2));
    assert_eq!(client.tasks().get(id).await.unwrap().expiries, 1);
}

#[tokio::test]
async fn a_worker_that_comes_back_takes_its_leases_over() {
    let server = Server::start("takeover");
    let (client, wire) = (server.client().await, server.wire().await);
    let ids =
        client.tasks().submit_batch([NewTask::new("q", ""), NewTask::new("q", "")]).await.unwrap();
    let mut first = Stream::open(&wire, hello("w", 400)).await;
    first.credit(2).await;
    let leases = first.leases(2).await;
    drop(first);
    let mut lost = lease_ref(&leases[0]);
    lost.lease_id += 100;
    let held = vec![lease_ref(&leases[0]), lost];
    let mut second = Stream::open(&wire, v1::Hello { held, ..hello("w", 400) }).await;
    let codes: Vec<_> = second.welcome.held.iter().map(|held| held.code.clone()).collect();
    assert_eq!(codes, ["", "lease_lost"]);
    until(&client, ids[1], |task| task.expiries == 1).await;
    let kept = client.tasks().get(ids[0]).await.unwrap();
    assert_eq!((kept.state, kept.expiries), (TaskState::Leased, 0));
    second.report(completes(1, &leases[..1])).await;
    assert_eq!(second.next().await.results[0].results[0].state(), v1::TaskState::Completed);
}

#[tokio::test]
async fn a_goodbye_gives_leases_back_at_once() {
    let server = Server::start("goodbye");
    let (client, wire) = (server.client().await, server.wire().await);
    let id = client.tasks().submit(NewTask::new("q", "")).await.unwrap().id;
    let mut stream = Stream::open(&wire, hello("w", 60_000)).await;
    stream.credit(5).await;
    stream.leases(1).await;
    let goodbye = Some(v1::Goodbye {});
    stream.say(v1::WorkRequest { goodbye, ..Default::default() }).await;
    assert!(stream.receive.message().await.unwrap().is_none(), "the stream ends well");
    let task = until(&client, id, |task| task.state == TaskState::Waiting).await;
    assert_eq!((task.expiries, task.failures, task.attempt), (0, 0, 1));
}

#[tokio::test]
async fn who_only_stops_sending_still_hears_what_became_of_it() {
    let server = Server::start("half");
    let (client, wire) = (server.client().await, server.wire().await);
    client.tasks().submit(NewTask::new("q", "")).await.unwrap();
    let mut stream = Stream::open(&wire, hello("w", 0)).await;
    stream.credit(1).await;
    let leases = stream.leases(1).await;
    stream.report(completes(3, &leases)).await;
    let Stream { send, mut receive, .. } = stream;
    drop(send);
    let results = receive.message().await.unwrap().unwrap().results;
    assert_eq!((results[0].sequence, results[0].results[0].state()), (3, v1::TaskState::Completed));
    assert!(receive.message().await.unwrap().is_none());
}

#[tokio::test]
async fn a_worker_that_drains_gets_nothing_more() {
    let server = Server::start("drain");
    let (client, wire) = (server.client().await, server.wire().await);
    let mut stream = Stream::open(&wire, hello("w", 5_000)).await;
    stream.credit(5).await;
    let drain = Some(v1::Drain {});
    stream.say(v1::WorkRequest { drain, ..Default::default() }).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let id = client.tasks().submit(NewTask::new("q", "")).await.unwrap().id;
    assert!(stream.is_silent().await);
    assert_eq!(client.tasks().get(id).await.unwrap().state, TaskState::Waiting);
}

#[tokio::test]
async fn a_stream_that_begins_wrong_is_refused() {
    let server = Server::start("wrong");
    let wire = server.wire().await;
    let first = v1::WorkRequest { credit: 1, ..Default::default() };
    let stream = wire.workers().work(tokio_stream::iter([first])).await.unwrap();
    let refused = stream.into_inner().message().await.unwrap_err();
    assert_eq!(refused.message(), "the first message must have a hello");
    let mut stream = Stream::open(&wire, hello("w", 0)).await;
    stream.credit(100_001).await;
    let refused = stream.receive.message().await.unwrap_err();
    assert_eq!(code_of(&refused), "invalid_request");
}

#[tokio::test]
async fn an_orderly_stop_ends_streams() {
    let mut server = Server::start("stop");
    let (client, wire) = (server.client().await, server.wire().await);
    let mut stream = Stream::open(&wire, hello("w", 60_000)).await;
    let mut watch = client.watch(tenure_sdk::EventFilter::default()).await.unwrap();
    let watching = tokio::spawn(async move { watch.next().await });
    let stopping = Instant::now();
    let stopped = tokio::task::spawn_blocking(move || server.stop());
    assert!(stream.next().await.drain.is_some());
    assert!(stream.receive.message().await.unwrap().is_none());
    drop((stream, client));
    assert_eq!(stopped.await.unwrap(), Some(0));
    assert!(stopping.elapsed() < Duration::from_secs(8), "{:?}", stopping.elapsed());
    watching.abort();
}
