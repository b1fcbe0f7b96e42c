//! Runs that are too wide to end in one record: the end is decided at once, is complete soon, and
//! survives a kill in between.

use std::time::Instant;

use serde_json::{Value, json};

use crate::client::tenure::{LONG, tenure};
use crate::flows::definitions::{ASK, complete, lease, put_yaml, start};
use crate::flows::events::events;
use crate::server::Server;

const CHILDREN: u64 = 3_000;

/// A parent whose children each wait for a signal.
fn parent() -> String {
    format!(
        "
workflow: parent
initial_node: begin
nodes:
  - {{ref: begin, kind: pass}}
  - {{ref: ask, kind: workflow, workflow: {{name: ask}}, input_mapping: {{id: '\"x\"'}}}}
transitions:
  - {{from: begin, to: ask, spawn_count: {CHILDREN}}}
"
    )
}

/// Waits for something that the server brings about by itself.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::yield_now();
    }
}

/// How many runs are in a state.
fn runs(server: &Server, state: &str) -> u64 {
    server.get("/v1/status").1["runs"][state].as_u64().unwrap()
}

/// A parent all of whose children wait.
fn begun(server: &Server) -> u64 {
    assert_eq!(put_yaml(server, "ask", ASK).0 / 100, 2);
    assert_eq!(put_yaml(server, "parent", &parent()).0 / 100, 2);
    let run = start(server, "parent", &json!({}));
    wait_until("all children begin", || runs(server, "WAITING") == CHILDREN + 1);
    run
}

/// The parent and each of its children, over in this state.
fn assert_all_over(server: &Server, run: u64, state: &str) {
    let (_, over) = server.get(&format!("/v1/runs/{run}?wait_ms=60000"));
    assert_eq!((&over["state"], &over["ending"]), (&json!(state), &Value::Null), "{over}");
    assert_eq!((&over["live_tokens"], &over["root"]), (&json!(0), &json!(run)));
    // Children may be over a few records after their parent.
    wait_until("nothing is ending", || server.get("/v1/status").1["ending_runs"] == 0);
    let newest = &server.get("/v1/runs?workflow=ask&limit=1").1["items"][0];
    assert_eq!((&newest["state"], &newest["root"]), (&json!("CANCELED"), &json!(run)));
    assert_eq!((runs(server, "RUNNING"), runs(server, "WAITING")), (0, 0));
}

fn assert_sound(server: &Server) {
    let verified = server.tenure(&["wal", "verify"]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}

#[test]
fn a_wide_run_is_canceled_at_once_and_over_soon() {
    let mut server = Server::start("ending-wide");
    let run = begun(&server);
    server.post("/v1/tasks", &json!({"queue": "q"}));
    let held = lease(&server, 1).remove(0);
    let (status, canceled) = server.post(&format!("/v1/runs/{run}/cancel"), &json!({}));
    assert_eq!((status, &canceled["state"]), (200, &json!("RUNNING")), "{canceled}");
    let ending = &canceled["ending"];
    assert_eq!((&ending["state"], &ending["error"]), (&json!("CANCELED"), &Value::Null));
    assert!(ending["since"].is_string() && canceled["parked"].is_null(), "{canceled}");
    let beat = json!({"lease_id": held["lease_id"]});
    let (status, beat) = server.post(&format!("/v1/tasks/{}/heartbeat", held["task_id"]), &beat);
    assert_eq!(status, 200, "an unrelated worker is heard meanwhile: {beat}");
    assert_all_over(&server, run, "CANCELED");
    assert_eq!(runs(&server, "CANCELED"), CHILDREN + 1);
    let (_, history) = server.get(&format!("/v1/runs/{run}/history"));
    let items = history["items"].as_array().unwrap();
    let begun = items.iter().position(|item| item["cause"]["event"] == "RunCancelRequested");
    let after = &items[begun.unwrap()..];
    assert_eq!(after[0]["decisions"][0]["decision"], "EndScope", "{}", after[0]);
    assert!(after.len() > 3, "over several records");
    for item in &after[1..] {
        assert_eq!(item["cause"]["event"], "EndContinued");
    }
    let told = events(&server, &format!("?run={run}&after=0"), 3);
    let names: Vec<_> = told.iter().map(|(_, event)| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["RunStarted", "RunEnding", "RunFinished"]);
    let told = tenure(&server, &["run", "history", &run.to_string()]).good();
    assert!(told.contains("the run begins to end as CANCELED"), "{told}");
    let metrics = server.text("/metrics");
    for line in ["tenure_runs_ending 0", "tenure_runs_parked 0", "tenure_records_oversized_total 0"]
    {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    assert_eq!(server.terminate(), Some(0));
    assert_sound(&server);
}

#[test]
fn a_kill_in_the_middle_of_an_ending_does_not_stop_it() {
    let mut server = Server::start("ending-killed");
    // A kill may come after the last record of an ending; then another run is tried.
    let was_cut = (1..=5).any(|ended: u64| {
        let run = begun(&server);
        let (_, canceled) = server.post(&format!("/v1/runs/{run}/cancel"), &json!({}));
        assert_eq!(canceled["ending"]["state"], "CANCELED", "{canceled}");
        server.kill();
        let dump = server.tenure(&["wal", "dump"]).stdout;
        let is_whole = String::from_utf8(dump).unwrap().lines().any(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            let decisions = record["decisions"].as_array().cloned().unwrap_or_default();
            decisions.iter().any(|it| it["decision"] == "FinishRun" && it["run_id"] == run)
        });
        server.restart();
        assert_all_over(&server, run, "CANCELED");
        assert_eq!(runs(&server, "CANCELED"), ended * (CHILDREN + 1));
        !is_whole
    });
    assert!(was_cut, "no kill came in the middle");
    assert_eq!(server.terminate(), Some(0));
    assert_sound(&server);
}

#[test]
fn a_workflow_that_calls_itself_twice_stops_at_its_limit_of_runs() {
    let mut server = Server::start("ending-self-calls");
    let definition = "
workflow: twice
limits: {max_runs: 200}
initial_node: a
nodes:
  - {ref: a, kind: pass}
  - {ref: b, kind: workflow, workflow: {name: twice}}
transitions:
  - {from: a, to: b, spawn_count: 2}
";
    assert_eq!(put_yaml(&server, "twice", definition).0, 201);
    let run = start(&server, "twice", &json!({}));
    let (_, over) = server.get(&format!("/v1/runs/{run}?wait_ms=60000"));
    assert_eq!(over["state"], "FAILED", "{over}");
    let (error, causes) = (&over["error"], over["error"]["causes"].as_array());
    let first = causes.and_then(|causes| causes.last()).unwrap_or(error);
    assert_eq!(first["code"], "LIMIT_RUNS", "{error}");
    wait_until("nothing is ending", || server.get("/v1/status").1["ending_runs"] == 0);
    assert_eq!((runs(&server, "RUNNING"), runs(&server, "WAITING")), (0, 0));
    let all: u64 = server.get("/v1/status").1["runs"]
        .as_object()
        .unwrap()
        .values()
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert!(all <= 201, "{all} runs were started");
    server.assert_well("after it", 400);
    assert_eq!(server.terminate(), Some(0));
    assert_sound(&server);
}

#[test]
fn a_thousand_completions_beside_a_wide_fan_out_are_all_taken() {
    let mut server = Server::start("ending-reports");
    let definition = "
workflow: wide
initial_node: begin
nodes:
  - {ref: begin, kind: pass}
  - {ref: part, kind: task, task: {queue: q}, input_mapping: {item: piece}}
  - {ref: after, kind: pass}
transitions:
  - {ref: fan, from: begin, to: part, foreach: {collection: input.parts, item_var: piece}}
  - {from: part, to: after}
";
    assert_eq!(put_yaml(&server, "wide", definition).0, 201);
    // In one record the branches that begin with the reports would need more than 20 MB.
    let parts: Vec<_> = (0..100_000).map(|n| n.to_string()).collect();
    let run = start(&server, "wide", &json!({"parts": parts}));
    let mut leases = Vec::new();
    while leases.len() < 1_000 {
        leases.extend(lease(&server, 1_000 - leases.len() as u64));
    }
    let report = |lease: &Value| {
        let (task_id, lease_id) = (&lease["task_id"], &lease["lease_id"]);
        json!({"task_id": task_id, "lease_id": lease_id, "output": lease["payload"]["item"]})
    };
    let reports: Vec<_> = leases.iter().map(report).collect();
    let (status, answer) = server.post("/v1/reports", &json!({"complete": reports}));
    assert_eq!(status, 200, "{answer}");
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 1_000);
    for (result, lease) in results.iter().zip(&leases) {
        assert_eq!((&result["task_id"], &result["ok"]), (&lease["task_id"], &json!(true)));
    }
    let (_, shown) = server.get(&format!("/v1/runs/{run}"));
    assert_eq!((&shown["state"], &shown["parked"]), (&json!("RUNNING"), &Value::Null), "{shown}");
    let next = lease(&server, 1).remove(0);
    assert_eq!(complete(&server, &next, &json!(1)).0, 200, "and it goes on");
    assert_eq!(server.terminate(), Some(0));
    assert_sound(&server);
}

#[test]
fn a_deadline_ends_children_with_long_names_and_the_server_lives() {
    let mut server = Server::start("ending-long-names");
    let queue = "q".repeat(250);
    let child = format!(
        "
workflow: child
initial_node: work
nodes:
  - {{ref: work, kind: task, task: {{queue: {queue}}}}}
"
    );
    let parent = "
workflow: parent
timeout_ms: 5000
initial_node: begin
nodes:
  - {ref: begin, kind: pass}
  - {ref: call, kind: workflow, workflow: {name: child}}
transitions:
  - {from: begin, to: call, spawn_count: 2500}
";
    assert_eq!(put_yaml(&server, "child", &child).0, 201);
    assert_eq!(put_yaml(&server, "parent", parent).0, 201);
    let run = start(&server, "parent", &json!({}));
    let (_, over) = server.get(&format!("/v1/runs/{run}?wait_ms=60000"));
    assert_eq!(over["state"], "TIMED_OUT", "{over}");
    assert_eq!(over["error"]["code"], "RUN_TIMEOUT");
    let ended = || server.get("/v1/status").1["ending_runs"] == 0;
    wait_until("nothing is ending", ended);
    let (_, status) = server.get("/v1/status");
    assert_eq!((&status["runs"]["RUNNING"], &status["parked_runs"]), (&json!(0), &json!(0)));
    assert_eq!((&status["tasks"]["WAITING"], &status["tasks"]["LEASED"]), (&json!(0), &json!(0)));
    assert!(status["tasks"]["CANCELED"].as_u64().unwrap() > 1_000, "too few to matter: {status}");
    let (_, history) = server.get(&format!("/v1/runs/{run}/history"));
    let items = history["items"].as_array().unwrap();
    let parts = items.iter().filter(|item| item["cause"]["event"] == "EndContinued").count();
    assert!(parts > 1, "over several records, however long the names are: {parts}");
    server.assert_well("after it", 400);
    assert_eq!(server.terminate(), Some(0));
    assert_sound(&server);
}
