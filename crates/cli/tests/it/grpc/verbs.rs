//! Each verb does what it does over HTTP, and a refusal has the same code.

use std::time::{Duration, Instant};

use tenure_proto::v1;
use tenure_sdk::{
    Event, EventFilter, NewTask, PageQuery, PauseQueue, QueueSettings, Setting, TaskFilter,
    TaskState,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

use crate::grpc::server::{LONG, Server, code_of, lease_ref};
use crate::server::{agent, url};

fn lease_request(max: u32) -> v1::LeaseRequest {
    v1::LeaseRequest {
        worker: "w".to_owned(),
        queues: vec!["q".to_owned()],
        max: Some(max),
        ..Default::default()
    }
}

fn queue(name: &str) -> v1::QueueRequest {
    v1::QueueRequest { queue: name.to_owned() }
}

fn after(id: &str) -> EventFilter {
    EventFilter { after: Some(id.to_owned()), ..EventFilter::default() }
}

/// The task that an event is about; zero for none.
fn task_of(event: &Event) -> u64 {
    match event {
        Event::Task(event) => event.task_id,
        Event::Run(_) => 0,
    }
}

#[tokio::test]
async fn tasks_are_submitted_seen_canceled_and_retried() {
    let server = Server::start("tasks");
    let (client, wire) = (server.client().await, server.wire().await);
    let task = client.tasks().submit(NewTask::new("q", "1").key("k").tag("a", "b")).await.unwrap();
    assert_eq!((task.state, task.attempt), (TaskState::Waiting, 0));
    let again = client.tasks().submit(NewTask::new("q", "1").key("k").tag("a", "b")).await.unwrap();
    assert_eq!(again.id, task.id, "the same key gives the same task");
    let other = client.tasks().submit(NewTask::new("q", "2").key("k")).await.unwrap_err();
    assert_eq!((other.code().as_str(), other.is_definite()), ("conflict", true));

    let ids = client
        .tasks()
        .submit_batch([NewTask::new("q", "3"), NewTask::new("q", "4")])
        .await
        .unwrap();
    assert_eq!(ids, [task.id + 1, task.id + 2]);

    let batch = |sequence, count| v1::SubmitStreamRequest {
        sequence,
        tasks: vec![v1::NewTask { queue: "s".to_owned(), ..Default::default() }; count],
    };
    let (send, batches) = tokio::sync::mpsc::channel(8);
    for batch in [batch(7, 2), batch(8, 10_001), batch(9, 1)] {
        send.send(batch).await.unwrap();
    }
    drop(send);
    let mut stream =
        wire.tasks().submit_stream(ReceiverStream::new(batches)).await.unwrap().into_inner();
    let mut acknowledged = Vec::new();
    while let Some(one) = stream.message().await.unwrap() {
        acknowledged.push((one.sequence, one.ids.len(), one.problem.map(|problem| problem.code)));
    }
    let too_large = Some("payload_too_large".to_owned());
    assert_eq!(acknowledged, [(7, 2, None), (8, 0, too_large), (9, 1, None)]);

    let filter = TaskFilter { queue: Some("q".to_owned()), limit: Some(2), ..Default::default() };
    let page = client.tasks().list(filter.clone()).await.unwrap();
    assert_eq!(page.items.iter().map(|task| task.id).collect::<Vec<_>>(), [ids[1], ids[0]]);
    let rest =
        client.tasks().list(TaskFilter { cursor: page.next_cursor, ..filter }).await.unwrap();
    assert_eq!(rest.items.len(), 1);
    let tagged = TaskFilter { tag: Some("a:b".to_owned()), ..Default::default() };
    assert_eq!(client.tasks().list(tagged).await.unwrap().items.len(), 1);

    assert_eq!(client.tasks().cancel(task.id, None).await.unwrap().state, TaskState::Canceled);
    assert_eq!(client.tasks().wait(task.id, LONG).await.unwrap().state, TaskState::Canceled);
    assert_eq!(client.tasks().retry(task.id).await.unwrap().state, TaskState::Waiting);
    let history = client.tasks().history(task.id).await.unwrap();
    let events: Vec<_> = history.items.iter().map(|step| step.event.as_str()).collect();
    assert_eq!(events, ["TaskCreated", "CancelRequested", "TaskRetried"]);
    let started = std::time::Instant::now();
    client.tasks().wait(task.id, Duration::from_millis(100)).await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(90), "it waits for the end");
}

#[tokio::test]
async fn a_task_that_fails_for_good_and_its_dead_letter_name_each_other() {
    let server = Server::start("dead-letters");
    let (client, wire) = (server.client().await, server.wire().await);
    let settings = |dead_letter_queue| QueueSettings { dead_letter_queue, ..Default::default() };
    let to = |queue: &str| settings(Setting::Set(queue.to_owned()));
    let own = client.queues().configure("q", to("q")).await.unwrap_err();
    assert_eq!(own.code().as_str(), "invalid_request");
    let configured = client.queues().configure("q", to("lost")).await.unwrap();
    assert_eq!(configured.dead_letter_queue.as_deref(), Some("lost"));
    let named = client.queues().delete("lost").await.unwrap_err();
    assert_eq!(named.code().as_str(), "conflict");

    let task = client.tasks().submit(NewTask::new("q", "1")).await.unwrap();
    let leases = wire.workers().lease(lease_request(1)).await.unwrap().into_inner().leases;
    let fail = v1::FailReport {
        task_id: task.id,
        lease_id: leases[0].lease_id,
        reason: "no".to_owned(),
        retryable: Some(false),
        ..Default::default()
    };
    let failed = wire.workers().fail(fail).await.unwrap().into_inner();
    let link = failed.dead_letter.unwrap();
    assert_eq!((failed.state(), failed.dead_letter_of), (v1::TaskState::Failed, None));
    let copy = client.tasks().get(link.task_id).await.unwrap();
    assert_eq!((copy.queue.as_str(), copy.payload.as_bytes()), ("lost", &b"1"[..]));
    assert_eq!(copy.dead_letter_of.map(|link| link.task_id), Some(task.id));

    let clear = client.queues().configure("q", settings(Setting::Clear)).await.unwrap();
    assert_eq!(clear.dead_letter_queue, None);
}

#[tokio::test]
async fn work_is_leased_and_reported_on() {
    let server = Server::start("reports");
    let (client, wire) = (server.client().await, server.wire().await);
    let payloads = ["a", "b", "c", "d", "e", "f"];
    client.tasks().submit_batch(payloads.map(|text| NewTask::new("q", text))).await.unwrap();
    let mut workers = wire.workers();
    let leases = workers.lease(lease_request(6)).await.unwrap().into_inner().leases;
    assert_eq!(
        leases.iter().map(|lease| &lease.payload[..]).collect::<Vec<_>>(),
        [b"a", b"b", b"c", b"d", b"e", b"f"]
    );
    let refs: Vec<_> = leases.iter().map(lease_ref).collect();
    let beat = v1::HeartbeatReport {
        task_id: refs[0].task_id,
        lease_id: refs[0].lease_id,
        progress: Some(0.5),
        message: Some("half".to_owned()),
        checkpoint: b"\xff3".to_vec(),
        lease_ms: Some(3_600_000),
        worker: None,
    };
    let beat = workers.heartbeat(beat).await.unwrap().into_inner();
    assert!(beat.expires_at > leases[0].expires_at + 3_000_000 && !beat.cancel_requested);
    let task = client.tasks().get(refs[0].task_id).await.unwrap();
    let progress = task.progress.clone().unwrap();
    assert_eq!((progress.fraction, progress.message.as_deref()), (Some(0.5), Some("half")));
    assert_eq!((task.checkpoint.as_bytes(), task.phase), (&b"\xff3"[..], None));

    let alive = |lease: &v1::LeaseRef| v1::HeartbeatReport {
        task_id: lease.task_id,
        lease_id: lease.lease_id,
        ..Default::default()
    };
    let release = |lease: &v1::LeaseRef| v1::ReleaseReport {
        task_id: lease.task_id,
        lease_id: lease.lease_id,
        delay_ms: Some(60_000),
        priority: Some(9),
        checkpoint: b"7".to_vec(),
        worker: None,
    };

    let complete = |lease: &v1::LeaseRef, output: &[u8]| v1::CompleteReport {
        task_id: lease.task_id,
        lease_id: lease.lease_id,
        output: output.to_vec(),
        artifacts: Vec::new(),
        worker: None,
    };
    let fail = |lease: &v1::LeaseRef| v1::FailReport {
        task_id: lease.task_id,
        lease_id: lease.lease_id,
        reason: "no".to_owned(),
        code: Some("why".to_owned()),
        retryable: Some(false),
        retry_after_ms: None,
        worker: None,
        checkpoint: b"8".to_vec(),
    };
    let done = workers.complete(complete(&refs[0], b"\xff")).await.unwrap().into_inner();
    assert_eq!((done.state(), &done.output[..]), (v1::TaskState::Completed, &b"\xff"[..]));
    let failed = workers.fail(fail(&refs[1])).await.unwrap().into_inner();
    let error = failed.error.clone().unwrap();
    assert_eq!(
        (failed.state(), &*error.code, &*error.message),
        (v1::TaskState::Failed, "why", "no")
    );
    let released = workers.release(release(&refs[2])).await.unwrap().into_inner();
    assert_eq!((released.state(), released.attempt), (v1::TaskState::Waiting, 1));
    assert_eq!((released.priority, released.phase.as_deref()), (9, Some("delayed")));
    assert_eq!((&failed.checkpoint[..], &released.checkpoint[..]), (&b"8"[..], &b"7"[..]));
    assert!(done.checkpoint.is_empty() && released.next_attempt_at.is_some());

    let mut stale = refs[5];
    stale.lease_id += 1_000;
    let reports = v1::Reports {
        sequence: 5,
        heartbeats: vec![alive(&refs[3]), alive(&stale)],
        completes: vec![complete(&refs[3], b"")],
        fails: vec![fail(&refs[4])],
        releases: vec![v1::ReleaseReport { delay_ms: None, ..release(&refs[5]) }],
    };
    let results = workers.report(reports).await.unwrap().into_inner();
    let codes: Vec<_> = results.results.iter().map(|result| result.code.as_str()).collect();
    assert_eq!((results.sequence, codes), (5, vec!["", "lease_lost", "", "", ""]));

    let late = workers.complete(complete(&stale, b"")).await.unwrap_err();
    assert_eq!(code_of(&late), "lease_lost");

    let register = v1::RegisterRequest {
        id: "w".to_owned(),
        queues: vec!["q".to_owned()],
        slots: Some(3),
        ..Default::default()
    };
    workers.register(register).await.unwrap();
    workers.lease(lease_request(2)).await.unwrap();
    let list = client.workers().list(PageQuery::default()).await.unwrap().items;
    assert_eq!((list[0].name.as_str(), list[0].slots, list[0].active_leases), ("w", Some(3), 1));
    let leave = v1::SignOffRequest { worker: "w".to_owned() };
    assert_eq!(workers.sign_off(leave).await.unwrap().into_inner().released, 1);
}

#[tokio::test]
async fn queues_are_seen_paused_and_configured() {
    let server = Server::start("queues");
    let (client, wire) = (server.client().await, server.wire().await);
    let mut queues = wire.queues();
    let missing = queues.get(queue("q")).await.unwrap_err();
    assert_eq!(code_of(&missing), "not_found");
    client.tasks().submit(NewTask::new("q", "")).await.unwrap();
    assert!(client.queues().pause("q", PauseQueue::default()).await.unwrap().paused);
    let leases = wire.workers().lease(lease_request(1)).await.unwrap().into_inner().leases;
    assert!(leases.is_empty(), "a paused queue gives nothing");
    assert!(!client.queues().resume("q").await.unwrap().paused);
    let configure = |retention_ms, clear: &[&str]| v1::ConfigureQueueRequest {
        queue: "q".to_owned(),
        retention_ms,
        clear: clear.iter().map(|name| (*name).to_owned()).collect(),
        ..Default::default()
    };
    let set = queues.configure(configure(Some(60_000), &[])).await.unwrap().into_inner();
    assert_eq!(set.retention_ms, Some(60_000));
    let kept = queues.configure(configure(None, &[])).await.unwrap().into_inner();
    assert_eq!(kept.retention_ms, Some(60_000));
    let cleared = queues.configure(configure(None, &["retention_ms"])).await.unwrap();
    assert_eq!(cleared.into_inner().retention_ms, None);
    let all = client.queues().list(PageQuery::default()).await.unwrap().items;
    assert_eq!((all.len(), all[0].depth), (1, 1));
}

#[tokio::test]
async fn a_refusal_has_its_code_and_a_sentence() {
    let server = Server::start_with("refusals", Some("0123456789abcdef"));
    let stranger = server.wire().await;
    let refused = stranger.tasks().get(v1::GetTaskRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert_eq!(code_of(&refused), "unauthorized");
    let health = tonic_health::pb::HealthCheckRequest { service: "tenure.v1.Tasks".to_owned() };
    let channel = tonic::transport::Endpoint::new(server.address.clone()).unwrap();
    let channel = channel.connect().await.unwrap();
    let mut client = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    let health = client.check(health).await.unwrap().into_inner();
    assert_eq!(health.status, 1, "health is open, and good");

    let client = server.client_with("0123456789abcdef").await;
    let wire = server.wire_with_key("0123456789abcdef").await;
    let missing = client.tasks().get(1).await.unwrap_err();
    assert_eq!(missing.code().as_str(), "not_found");
    assert!(missing.message().starts_with("there is no task 1"), "{missing}");
    let wrong = client.tasks().submit(NewTask::new("q", "").priority(101)).await.unwrap_err();
    assert_eq!(wrong.code().as_str(), "invalid_request");
    assert_eq!(wrong.message(), "priority is 101; it must be from -100 to 100");
    let large = client.tasks().submit(NewTask::new("q", vec![0; (1 << 20) + 1])).await.unwrap_err();
    assert_eq!(large.code().as_str(), "payload_too_large");
    let nothing = wire.tasks().submit(v1::SubmitRequest::default()).await.unwrap_err();
    assert_eq!(nothing.code(), Code::InvalidArgument);
    let id = client.tasks().submit(NewTask::new("q", "")).await.unwrap().id;
    assert_eq!(client.tasks().retry(id).await.unwrap_err().code().as_str(), "conflict");
    let leased = wire.workers().lease(lease_request(1)).await.unwrap().into_inner();
    let report = v1::Reports { completes: vec![done(&leased.leases[0])], ..Default::default() };
    wire.workers().report(report).await.unwrap();
    assert_eq!(client.tasks().cancel(id, None).await.unwrap_err().code().as_str(), "task_terminal");
    let future = client.watch(after("1000000")).await.unwrap_err();
    assert_eq!(future.code().as_str(), "invalid_request");
}

#[tokio::test]
async fn pages_of_other_origins_and_compressed_calls_are_refused() {
    let server = Server::start("pages");
    let wire = server.wire().await;
    for (name, value, status, code) in [
        ("origin", "http://localhost:3000", Code::PermissionDenied, "forbidden"),
        ("sec-fetch-site", "same-site", Code::PermissionDenied, "forbidden"),
        ("content-encoding", "gzip", Code::InvalidArgument, "unsupported_media_type"),
    ] {
        let mut request = tonic::Request::new(v1::GetTaskRequest { task_id: 1, wait_ms: 0 });
        request.metadata_mut().insert(name, value.parse().unwrap());
        let refused = wire.tasks().get(request).await.unwrap_err();
        assert_eq!(refused.code(), status, "{name}: {refused}");
        assert_eq!(code_of(&refused), code, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_idle_connection_was_closed_connects_again_by_itself() {
    let server = Server::start("idle");
    let client = server.client().await;
    let address = server.address.trim_start_matches("http://");
    let open = || {
        let metrics = agent().get(url(address, "/metrics")).call().unwrap();
        let metrics = metrics.into_body().read_to_string().unwrap();
        let line = metrics.lines().find_map(|line| line.strip_prefix("tenure_connections "));
        line.unwrap().parse::<u64>().unwrap()
    };
    assert!(open() > 1, "the client's, and the one that asks");
    let begun = Instant::now();
    while open() > 1 {
        assert!(begun.elapsed() < LONG, "a connection without a request is closed");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    client.tasks().submit(NewTask::new("q", "1")).await.unwrap();
}

fn done(lease: &v1::Lease) -> v1::CompleteReport {
    v1::CompleteReport {
        task_id: lease.task_id,
        lease_id: lease.lease_id,
        output: Vec::new(),
        artifacts: Vec::new(),
        worker: None,
    }
}

#[tokio::test]
async fn a_stranger_s_host_is_refused() {
    let server = Server::start("host");
    let elsewhere = tonic::transport::Endpoint::new(server.address.clone()).unwrap();
    let elsewhere = elsewhere.origin("http://tenure.example.org".parse().unwrap());
    let channel = elsewhere.connect().await.unwrap();
    let mut status = v1::status_client::StatusClient::new(channel);
    let refused = status.get(v1::GetStatusRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert_eq!(code_of(&refused), "bad_host");
}

#[tokio::test]
async fn a_method_that_is_not_there_is_unimplemented() {
    let server = Server::start("method");
    let client = server.client().await;
    let mut grpc = tonic::client::Grpc::new(
        tonic::transport::Endpoint::new(server.address.clone()).unwrap().connect().await.unwrap(),
    );
    grpc.ready().await.unwrap();
    let path = tonic::codegen::http::uri::PathAndQuery::from_static("/tenure.v2.Tasks/Get");
    let codec = tonic_prost::ProstCodec::<v1::GetTaskRequest, v1::Task>::default();
    let request = tonic::Request::new(v1::GetTaskRequest::default());
    let refused = grpc.unary(request, path, codec).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    assert_eq!(code_of(&refused), "method_not_allowed");
    client.status().await.unwrap();
}

#[tokio::test]
async fn the_schema_can_be_asked_for() {
    use tonic_reflection::pb::v1 as pb;
    let server = Server::start("reflection");
    let channel = tonic::transport::Endpoint::new(server.address.clone()).unwrap();
    let channel = channel.connect().await.unwrap();
    let mut client = pb::server_reflection_client::ServerReflectionClient::new(channel);
    let list = pb::ServerReflectionRequest {
        message_request: Some(pb::server_reflection_request::MessageRequest::ListServices(
            String::new(),
        )),
        ..Default::default()
    };
    let mut answers =
        client.server_reflection_info(tokio_stream::iter([list])).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap();
    let Some(pb::server_reflection_response::MessageResponse::ListServicesResponse(list)) =
        answer.message_response
    else {
        panic!("{answer:?}");
    };
    let names: Vec<_> = list.service.iter().map(|service| service.name.as_str()).collect();
    for name in ["Tasks", "Workers", "Queues", "Events", "Status"] {
        assert!(names.contains(&format!("tenure.v1.{name}").as_str()), "{names:?}");
    }
}

#[tokio::test]
async fn a_watch_goes_on_after_a_crash() {
    let mut server = Server::start("watch");
    let client = server.client().await;
    let filter = EventFilter { queue: Some("q".to_owned()), ..Default::default() };
    let mut watch = client.watch(filter).await.unwrap();
    client.tasks().submit(NewTask::new("other", "")).await.unwrap();
    let first = client.tasks().submit(NewTask::new("q", "").key("1")).await.unwrap().id;
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!((event.name(), task_of(&event)), ("TaskCreated", first));
    server.crash_and_restart();
    let second = client.tasks().submit(NewTask::new("q", "").key("2")).await.unwrap().id;
    let event = tokio::time::timeout(LONG, watch.next()).await.unwrap().unwrap().unwrap();
    assert_eq!((event.name(), task_of(&event)), ("TaskCreated", second));
    let filter = EventFilter { task: Some(first), ..after("0") };
    let mut all = client.watch(filter).await.unwrap();
    assert_eq!(task_of(&all.next().await.unwrap().unwrap()), first);
    let status = client.status().await.unwrap();
    assert_eq!((status.role.as_str(), status.tasks["WAITING"]), ("leader", 3));
}
