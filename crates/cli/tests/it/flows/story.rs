//! Runs from their definition to their end.

use serde_json::{Value, json};

use crate::flows::definitions::{FAN, complete, lease, line, put_yaml, start};
use crate::server::{self, Server};

#[test]
fn a_run_goes_from_its_definition_to_its_end() {
    let server = Server::start("flow-story");
    let (status, version) = server.put("/v1/workflows/line", &line());
    assert_eq!((status, &version), (201, &json!({"name": "line", "version": 1, "existed": false})));
    let body = json!({"input": {"n": 7}, "key": "seven", "tags": {"who": "ada"}});
    let (status, run) = server.post("/v1/workflows/line/runs", &body);
    assert_eq!((status, &run["state"], &run["id"]), (201, &json!("RUNNING"), &json!(1)));
    assert_eq!((&run["workflow"], &run["version"]), (&json!("line"), &json!(1)));
    assert_eq!((&run["input"], &run["context"]), (&json!({"n": 7}), &json!({})));
    assert_eq!((&run["output"], &run["error"], &run["parent"]), NOTHING);
    assert_eq!((&run["key"], &run["tags"]), (&json!("seven"), &json!({"who": "ada"})));

    let [task] = &lease(&server, 5)[..] else { panic!("one task") };
    assert_eq!(task["payload"], json!({"n": 7}));
    let (_, shown) = server.get(&format!("/v1/tasks/{}", task["task_id"]));
    assert_eq!(shown["run"], json!({"run_id": 1, "node": "double", "token": 1}));
    let (_, tokens) = server.get("/v1/runs/1/tokens");
    assert_eq!(tokens["items"][0]["state"], "executing");
    let (status, done) = complete(&server, task, &json!({"n": 14}));
    assert_eq!((status, &done["state"]), (200, &json!("COMPLETED")));

    let (_, run) = server.get("/v1/runs/1?wait_ms=20000");
    assert_eq!((&run["state"], &run["output"]), (&json!("COMPLETED"), &json!({"doubled": 14})));
    assert_eq!(run["context"], json!({"doubled": 14}));
    assert!(run["finished_at"].is_string() && run["live_tokens"] == 0, "{run}");
    let (_, status) = server.get("/v1/status");
    assert_eq!((&status["runs"]["COMPLETED"], &status["workflows"]), (&json!(1), &json!(1)));
    let metrics = server.text("/metrics");
    assert!(metrics.contains("tenure_runs{state=\"COMPLETED\"} 1"), "{metrics}");
    assert!(metrics.contains("tenure_workflows 1"), "{metrics}");
}

const NOTHING: (&Value, &Value, &Value) = (&Value::Null, &Value::Null, &Value::Null);

#[test]
fn two_siblings_may_be_completed_in_one_report() {
    let server = Server::start("flow-siblings");
    assert_eq!(put_yaml(&server, "fan", FAN).0, 201);
    let run = start(&server, "fan", &json!({"parts": ["a", "b"]}));
    let mut leases = lease(&server, 2);
    if leases.len() == 1 {
        leases.extend(lease(&server, 1));
    }
    // The later branch first: the merge goes by branch all the same.
    let report = |at: usize| {
        let (lease, item) = (&leases[at], &leases[at]["payload"]["item"]);
        json!({"task_id": lease["task_id"], "lease_id": lease["lease_id"], "output": item})
    };
    let (status, results) =
        server.post("/v1/reports", &json!({"complete": [report(1), report(0)]}));
    assert_eq!(status, 200);
    let oks: Vec<_> = results["results"].as_array().unwrap().iter().map(|it| &it["ok"]).collect();
    assert_eq!(oks, [&json!(true), &json!(true)]);
    let (_, history) = server.get(&format!("/v1/runs/{run}/history"));
    let items = history["items"].as_array().unwrap();
    let [begun, first, second] = &items[..] else { panic!("all that happened is in {history}") };
    assert_eq!(begun["cause"]["event"], "RunStarted");
    assert_eq!(first["lsn"], second["lsn"], "one record");
    let causes = [&first["cause"]["task_id"], &second["cause"]["task_id"]];
    assert_eq!(causes, [&leases[1]["task_id"], &leases[0]["task_id"]], "each its own cause");
    let (_, run) = server.get(&format!("/v1/runs/{run}?wait_ms=20000"));
    assert_eq!((&run["state"], &run["output"]), (&json!("COMPLETED"), &json!({"all": ["a", "b"]})));
}

#[test]
fn a_reader_waits_for_the_end_of_a_run_and_no_longer_than_it_said() {
    let server = Server::start("flow-wait");
    server.put("/v1/workflows/line", &line());
    let run = start(&server, "line", &json!({"n": 1}));
    let (status, shown) = server.get(&format!("/v1/runs/{run}?wait_ms=50"));
    assert_eq!((status, &shown["state"]), (200, &json!("RUNNING")), "as it is when time is up");
    let address = server.address.clone();
    let reader = std::thread::spawn(move || {
        server::get_from(&address, &format!("/v1/runs/{run}?wait_ms=60000"))
    });
    while server.get("/v1/status").1["parked_readers"] != 1 {
        std::thread::yield_now();
    }
    complete(&server, &lease(&server, 1)[0], &json!({"n": 2}));
    assert_eq!(reader.join().unwrap().1["state"], "COMPLETED");
    let (_, again) = server.get(&format!("/v1/runs/{run}?wait_ms=60000"));
    assert_eq!(again["state"], "COMPLETED", "who comes later does not wait");
}

#[test]
fn a_canceled_run_takes_its_tasks_along_and_their_workers_hear_of_it() {
    let server = Server::start("flow-cancel");
    put_yaml(&server, "fan", FAN);
    let run = start(&server, "fan", &json!({"parts": [1, 2]}));
    let held = lease(&server, 1).remove(0);
    let path = format!("/v1/runs/{run}/cancel");
    let (status, canceled) = server.post(&path, &json!({}));
    assert_eq!((status, &canceled["state"]), (200, &json!("CANCELED")));
    assert_eq!(server.post(&path, &json!({})).0, 200, "a cancel may come twice");
    let (status, late) = complete(&server, &held, &json!(1));
    assert_eq!((status, &late["code"]), (409, &json!("lease_lost")));
    let beat = json!({"lease_id": held["lease_id"]});
    let (status, late) = server.post(&format!("/v1/tasks/{}/heartbeat", held["task_id"]), &beat);
    assert_eq!((status, &late["code"]), (409, &json!("lease_lost")));
    let (_, tasks) = server.get(&format!("/v1/tasks?run={run}"));
    let states: Vec<_> =
        tasks["items"].as_array().unwrap().iter().map(|task| task["state"].clone()).collect();
    assert_eq!(states, ["CANCELED", "CANCELED"]);
    let (status, kept) = server.post(&format!("/v1/tasks/{}/retry", held["task_id"]), &json!({}));
    assert_eq!((status, &kept["code"]), (409, &json!("conflict")), "its run is over");
}

#[test]
fn a_run_that_fails_says_why() {
    let server = Server::start("flow-fails");
    server.put("/v1/workflows/line", &line());
    let run = start(&server, "line", &json!({"n": 1}));
    let held = lease(&server, 1).remove(0);
    let fail = json!({
        "lease_id": held["lease_id"], "reason": "no such card", "code": "FORBIDDEN",
        "retryable": false,
    });
    server.post(&format!("/v1/tasks/{}/fail", held["task_id"]), &fail);
    let (_, run) = server.get(&format!("/v1/runs/{run}?wait_ms=20000"));
    assert_eq!((&run["state"], &run["output"]), (&json!("FAILED"), &Value::Null));
    let error = &run["error"];
    assert_eq!((&error["code"], &error["node"]), (&json!("FORBIDDEN"), &json!("double")));
    assert_eq!(error["message"], "no such card");
    let (_, tasks) = server.get("/v1/runs?state=FAILED");
    assert_eq!(tasks["items"].as_array().unwrap().len(), 1);
}

#[test]
fn what_was_acknowledged_of_a_run_survives_a_kill() {
    let mut server = Server::start("flow-killed");
    put_yaml(&server, "fan", FAN);
    let run = start(&server, "fan", &json!({"parts": [0, 1, 2, 3]}));
    for done in 0..4 {
        let held = lease(&server, 1).remove(0);
        let (status, _) = complete(&server, &held, &held["payload"]["item"]);
        assert_eq!(status, 200);
        let (_, before) = server.get(&format!("/v1/runs/{run}"));
        let (_, tokens) = server.get(&format!("/v1/runs/{run}/tokens"));
        server.crash_and_come_back();
        assert_eq!(server.get(&format!("/v1/runs/{run}")).1, before, "after {done}");
        assert_eq!(server.get(&format!("/v1/runs/{run}/tokens")).1, tokens, "after {done}");
    }
    let (_, over) = server.get(&format!("/v1/runs/{run}"));
    assert_eq!(
        (&over["state"], &over["output"]),
        (&json!("COMPLETED"), &json!({"all": [0, 1, 2, 3]}))
    );
}
