//! Workflows and runs over gRPC, and the SDK's words for them.

use std::time::Duration;

use tenure_proto::v1;
use tenure_sdk::{
    Definition, Event, EventFilter, NewRun, Page, PageQuery, Run, RunFilter, RunState, Signal,
    SignalOutcome, TaskFilter,
};

use crate::grpc::server::{LONG, Server};

const DOUBLE: &str = "
workflow: double
input_schema: {type: object, required: [n]}
initial_node: work
nodes:
  - {ref: work, kind: task, task: {queue: q}, input_mapping: {n: input.n}}
  - {ref: ask, kind: signal, signal: {name: go, schema: {type: object}}}
transitions:
  - {ref: then, from: work, to: ask, condition: outputs.work.n > 1}
output_mapping: {n: outputs.work.n, said: outputs.ask}
";

#[tokio::test]
async fn a_run_goes_from_its_definition_to_its_end() {
    let server = Server::start("runs");
    let (client, wire) = (server.client().await, server.wire().await);
    let put = client.workflows().put(Definition::yaml(DOUBLE).named("double")).await.unwrap();
    assert_eq!((put.name.as_str(), put.version, put.existed), ("double", 1, false));
    assert!(client.workflows().put(Definition::yaml(DOUBLE)).await.unwrap().existed);
    let listed = client.workflows().list(PageQuery::default()).await.unwrap().items;
    assert_eq!((listed.len(), listed[0].nodes, listed[0].definition.as_bytes().len()), (1, 2, 0));
    let shown = client.workflows().get("double", Some(1)).await.unwrap();
    assert!(shown.definition.as_bytes().starts_with(b"{\"initial_node\""), "as JSON");

    let filter = EventFilter { after: Some("0".to_owned()), run: Some(1), ..Default::default() };
    let mut watch = client.watch(filter).await.unwrap();
    let new = NewRun::of("double").input(r#"{"n":21}"#).key("k").tag("a", "b");
    let run = client.runs().start(new.clone()).await.unwrap();
    assert_eq!((run.id, run.state, run.version), (1, RunState::Running, 1));
    assert_eq!(client.runs().start(new).await.unwrap().id, 1, "the same key gives the same run");
    let lease = v1::LeaseRequest {
        worker: "w".to_owned(),
        queues: vec!["q".to_owned()],
        ..Default::default()
    };
    let leases = wire.workers().lease(lease).await.unwrap().into_inner().leases;
    let task = client.tasks().get(leases[0].task_id).await.unwrap();
    assert_eq!((task.run.unwrap(), &leases[0].payload[..]), (of_run(), &br#"{"n":21}"#[..]));
    let done = v1::CompleteReport {
        task_id: leases[0].task_id,
        lease_id: leases[0].lease_id,
        output: br#"{"n":42}"#.to_vec(),
        artifacts: Vec::new(),
        worker: None,
    };
    wire.workers().complete(done).await.unwrap();
    let waiting = client.runs().get(1).await.unwrap();
    assert_eq!((waiting.state, waiting.live_tokens), (RunState::Waiting, 1));

    let signal = Signal::new("go").payload(r#"{"ok":true}"#).id("s1");
    let given = client.runs().signal(1, signal.clone()).await.unwrap();
    assert_eq!((given.outcome, given.token), (SignalOutcome::Given, Some(2)));
    let again = client.runs().signal(1, signal).await.unwrap();
    assert_eq!(again.outcome, SignalOutcome::Known);
    let over = client.runs().wait(1, LONG).await.unwrap();
    assert_eq!(over.state, RunState::Completed);
    assert_eq!(over.output.as_bytes(), br#"{"n":42,"said":{"ok":true}}"#);
    assert!(over.error.is_empty() && over.finished_at.is_some());

    let mut heard = Vec::new();
    while heard.last().is_none_or(|name| name != "RunFinished") {
        let event = tokio::time::timeout(LONG, watch.next()).await.unwrap().unwrap().unwrap();
        let run_id = match &event {
            Event::Task(event) => event.run_id,
            Event::Run(event) => Some(event.run_id),
        };
        assert_eq!(run_id, Some(1));
        heard.push(event.name().to_owned());
    }
    let names = [
        "RunStarted",
        "TaskCreated",
        "LeaseGranted",
        "TaskCompleted",
        "SignalReceived",
        "RunFinished",
    ];
    assert_eq!(heard, names);
}

fn of_run() -> tenure_sdk::api::TaskOfRun {
    tenure_sdk::api::TaskOfRun { run_id: 1, node: "work".to_owned(), token: 1 }
}

#[tokio::test]
async fn runs_are_listed_looked_into_and_canceled() {
    let server = Server::start("runs-listed");
    let client = server.client().await;
    client.workflows().put(Definition::yaml(DOUBLE)).await.unwrap();
    for n in 0..3 {
        let run = NewRun::of("double").input(format!("{{\"n\":{n}}}")).tag("n", n.to_string());
        client.runs().start(run).await.unwrap();
    }
    let ids = |page: &Page<Run>| page.items.iter().map(|run| run.id).collect::<Vec<_>>();
    let filter =
        RunFilter { workflow: Some("double".to_owned()), limit: Some(2), ..Default::default() };
    let page = client.runs().list(filter.clone()).await.unwrap();
    assert_eq!(ids(&page), [3, 2]);
    let rest = client.runs().list(RunFilter { cursor: page.next_cursor, ..filter }).await.unwrap();
    assert_eq!((ids(&rest), rest.next_cursor), (vec![1], None));
    let canceled = client.runs().cancel(2).await.unwrap();
    assert_eq!(canceled.state, RunState::Canceled);
    assert_eq!(client.runs().cancel(2).await.unwrap().state, RunState::Canceled);
    let filter = RunFilter { state: Some(RunState::Canceled), ..Default::default() };
    assert_eq!(ids(&client.runs().list(filter).await.unwrap()), [2]);
    let filter = RunFilter { tag: Some("n:2".to_owned()), ..Default::default() };
    assert_eq!(ids(&client.runs().list(filter).await.unwrap()), [3]);
    let tasks =
        client.tasks().list(TaskFilter { run: Some(2), ..Default::default() }).await.unwrap();
    assert_eq!(tasks.items.iter().map(|task| task.id).collect::<Vec<_>>(), [2]);
    let tokens = client.runs().tokens(2, PageQuery::default()).await.unwrap().items;
    assert_eq!((tokens[0].node.as_str(), tokens[0].state.as_str()), ("work", "canceled"));
    let history = client.runs().history(2).await.unwrap();
    assert_eq!(history.items.len(), 2);
    let cause = String::from_utf8_lossy(history.items[1].cause.as_bytes());
    assert!(cause.contains("RunCancelRequested"), "{cause}");
    let status = client.status().await.unwrap();
    assert_eq!((status.runs["RUNNING"], status.runs["CANCELED"], status.workflows), (2, 1, 1));
    let still = client.runs().wait(1, Duration::from_millis(20)).await.unwrap();
    assert_eq!(still.state, RunState::Running, "as it is when the time is up");
}

#[tokio::test]
async fn a_refusal_has_the_same_code_as_over_http() {
    let server = Server::start("runs-refused");
    let client = server.client().await;
    let bad = DOUBLE.replace("kind: task", "kind: dance").replace("from: work", "from: nowhere");
    let refused = client.workflows().put(Definition::yaml(bad)).await.unwrap_err();
    assert_eq!((refused.code().as_str(), refused.is_definite()), ("invalid_request", true));
    let pointers: Vec<_> = refused.faults().iter().map(|it| it.pointer.as_str()).collect();
    assert!(pointers.contains(&"/nodes/0/kind"), "{pointers:?}");
    assert!(pointers.contains(&"/transitions/0/from"), "{pointers:?}");
    let other = client.workflows().put(Definition::yaml(DOUBLE).named("x")).await.unwrap_err();
    assert_eq!(other.faults()[0].pointer, "/workflow");
    // More faults than metadata may hold.
    let nodes =
        (0..100).map(|n| format!("  - {{ref: n{n}, kind: dance{n}}}\n")).collect::<String>();
    let many = format!("workflow: many\ninitial_node: n0\nnodes:\n{nodes}");
    let many = client.workflows().put(Definition::yaml(many)).await.unwrap_err();
    assert_eq!(many.code().as_str(), "invalid_request");
    assert!(many.faults().len() > 10, "{}", many.faults().len());

    client.workflows().put(Definition::yaml(DOUBLE)).await.unwrap();
    let start =
        |run: NewRun| async { client.runs().start(run).await.unwrap_err().code().to_string() };
    assert_eq!(start(NewRun::of("nobody")).await, "not_found");
    assert_eq!(start(NewRun::of("double")).await, "invalid_request", "its schema says no");
    assert_eq!(start(NewRun::of("double").input("{")).await, "invalid_request");
    assert_eq!(start(NewRun::of("double").input(r#"{"n":1}"#).version(9)).await, "not_found");
    let large = format!("{{\"n\":{:?}}}", "x".repeat(1 << 20));
    assert_eq!(start(NewRun::of("double").input(large)).await, "payload_too_large");
    assert_eq!(client.runs().get(9).await.unwrap_err().code().as_str(), "not_found");
    assert_eq!(client.runs().history(9).await.unwrap_err().code().as_str(), "not_found");
    assert_eq!(client.runs().cancel(9).await.unwrap_err().code().as_str(), "not_found");
    let run = client.runs().start(NewRun::of("double").input(r#"{"n":1}"#)).await.unwrap().id;
    let unknown = client.runs().signal(run, Signal::new("stop")).await.unwrap_err();
    assert_eq!(unknown.code().as_str(), "not_found");
    client.runs().cancel(run).await.unwrap();
    let late = client.runs().signal(run, Signal::new("go")).await.unwrap_err();
    assert_eq!(late.code().as_str(), "conflict");
}
