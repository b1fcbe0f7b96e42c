//! Large payloads over gRPC: asked for, listed and pushed, they are what was submitted.

use tenure_proto::v1;
use tenure_sdk::{NewTask, TaskFilter};

use crate::grpc::server::{Server, Stream, completes, hello};

/// Bytes that are no text, and that no other task has.
fn bytes(task: u8, len: usize) -> Vec<u8> {
    let mut number = u64::from(task) + 7;
    let next = std::iter::repeat_with(|| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
        (number >> 40) as u8
    });
    next.take(len).collect()
}

#[tokio::test]
async fn large_payloads_are_seen_leased_and_pushed_as_they_were_submitted() {
    const BYTES: usize = 1 << 20;
    let server = Server::start("large");
    let (client, wire) = (server.client().await, server.wire().await);
    let mut ids = Vec::new();
    for task in 0..6 {
        let taken = client.tasks().submit(NewTask::new("q", bytes(task, BYTES))).await.unwrap();
        assert!(taken.payload.as_bytes() == bytes(task, BYTES));
        ids.push(taken.id);
    }
    for (task, id) in (0..).zip(&ids) {
        assert!(client.tasks().get(*id).await.unwrap().payload.as_bytes() == bytes(task, BYTES));
    }
    let page =
        client.tasks().list(TaskFilter { limit: Some(100), ..Default::default() }).await.unwrap();
    assert!(page.items[0].payload.as_bytes() == bytes(5, BYTES));
    assert_eq!(page.items.len(), 1, "the one that passes the bound is the last");

    let request = v1::LeaseRequest {
        worker: "w".to_owned(),
        queues: vec!["q".to_owned()],
        max: Some(100),
        ..Default::default()
    };
    let leased = wire.workers().lease(request).await.unwrap().into_inner().leases;
    assert_eq!(leased.len(), 2, "an answer is bounded");
    let mut stream = Stream::open(&wire, hello("v", 5_000)).await;
    stream.credit(4).await;
    let pushed = stream.leases(4).await;
    for (task, lease) in (0..).zip(leased.iter().chain(&pushed)) {
        assert!(lease.payload == bytes(task, BYTES), "task {}", lease.task_id);
    }
    let report = v1::CompleteReport {
        task_id: leased[0].task_id,
        lease_id: leased[0].lease_id,
        output: bytes(99, BYTES),
        ..Default::default()
    };
    let done = wire.workers().complete(report).await.unwrap().into_inner();
    assert_eq!(done.state(), v1::TaskState::Completed);
    assert!(done.output == bytes(99, BYTES) && done.payload == bytes(0, BYTES));
    let reports = Some(completes(1, &pushed));
    stream.say(v1::WorkRequest { reports, ..Default::default() }).await;
    let results = loop {
        let next = stream.next().await;
        if let Some(results) = next.results.into_iter().next() {
            break results;
        }
    };
    assert!(results.results.iter().all(|result| result.state() == v1::TaskState::Completed));
}
