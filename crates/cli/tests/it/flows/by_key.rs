//! Runs by key, batches of runs, and workflows that are deleted.

use serde_json::{Value, json};

use crate::flows::definitions::{ASK, line, put_yaml};
use crate::server::Server;

fn put(server: &Server, definition: &Value) -> (u16, Value) {
    let name = definition["workflow"].as_str().unwrap();
    server.put(&format!("/v1/workflows/{name}"), definition)
}

#[test]
fn a_run_has_every_verb_by_its_key() {
    let mut server = Server::start("flow-by-key");
    put_yaml(&server, "ask", ASK);
    let body = json!({"input": {"id": "t1"}, "key": "a/b c"});
    let (_, run) = server.post("/v1/workflows/ask/runs", &body);
    let by_key = "/v1/workflows/ask/runs/by-key/a%2Fb%20c";
    assert_eq!(server.get(by_key), (200, run.clone()));
    let (_, waited) = server.get(&format!("{by_key}?wait_ms=1"));
    assert_eq!(waited["state"], "WAITING");
    for part in ["tokens", "history?limit=5", "artifacts"] {
        let by_id = server.get(&format!("/v1/runs/{}/{part}", run["id"]));
        assert_eq!(server.get(&format!("{by_key}/{part}")), by_id, "{part}");
        assert_eq!(by_id.0, 200, "{part}");
    }
    let (_, listed) = server.get("/v1/runs?workflow=ask&key=a%2Fb%20c");
    assert_eq!(listed["items"], json!([run]));
    assert_eq!(server.get("/v1/runs?workflow=ask&key=other").1["items"], json!([]));
    let (status, missing) = server.get("/v1/workflows/ask/runs/by-key/other");
    assert_eq!((status, &missing["code"]), (404, &json!("not_found")));
    let (status, wrong) = server.delete(by_key);
    assert_eq!((status, &wrong["code"]), (405, &json!("method_not_allowed")));
    server.crash_and_come_back();
    let (status, canceled) = server.post(&format!("{by_key}/cancel"), &json!({}));
    assert_eq!((status, &canceled["state"]), (200, &json!("CANCELED")));
    let document = server.get("/openapi.json").1;
    let verb = &document["paths"]["/v1/workflows/{name}/runs/by-key/{key}/cancel"]["post"];
    assert_eq!(verb["parameters"][1]["name"], "key", "{verb}");
}

#[test]
fn a_signal_by_key_begins_the_run_once() {
    let mut server = Server::start("flow-signal-start");
    put_yaml(&server, "ask", ASK);
    let path = "/v1/workflows/ask/runs/by-key/k/signals/approval";
    let (status, missing) = server.post(path, &json!({"payload": {"yes": true}}));
    assert_eq!((status, &missing["code"]), (404, &json!("not_found")));
    let body = json!({
        "payload": {"yes": true}, "correlation": "t1", "signal_id": "s",
        "start": {"input": {"id": "t1"}, "tags": {"by": "signal"}},
    });
    let (status, begun) = server.post(path, &body);
    assert_eq!((status, &begun["outcome"], &begun["run_id"]), (201, &json!("given"), &json!(1)));
    let (status, again) = server.post(path, &body);
    assert_eq!((status, &again["outcome"], &again["run_id"]), (200, &json!("known"), &json!(1)));
    server.crash_and_come_back();
    assert_eq!(server.post(path, &body).1["outcome"], "known");
    let (_, run) = server.get("/v1/workflows/ask/runs/by-key/k");
    assert_eq!((&run["state"], &run["output"]), (&json!("COMPLETED"), &json!({"yes": true})));
    assert_eq!(run["tags"], json!({"by": "signal"}));
    let mut other = body.clone();
    other["payload"] = json!({"yes": false});
    assert_eq!(server.post(path, &other).1["code"], "conflict");
    let (_, history) = server.get("/v1/workflows/ask/runs/by-key/k/history");
    assert_eq!(history["items"][0]["cause"], json!({"event": "RunStarted", "signal": "approval"}));
    assert_eq!(server.get("/v1/runs").1["items"].as_array().unwrap().len(), 1);
    let (status, wrong) = server.post("/v1/runs/1/signals/approval", &body);
    assert_eq!((status, &wrong["code"]), (400, &json!("invalid_request")), "start needs a key");
}

#[test]
fn runs_begin_together_or_not_at_all() {
    let mut server = Server::start("flow-batch");
    put(&server, &line());
    let path = "/v1/workflows/line/runs/batch";
    let run = |n: u64| json!({"input": {"n": n}});
    let (status, refused) =
        server.post(path, &json!({"runs": [run(1), {"input": {"n": "x"}}, run(3)]}));
    assert_eq!((status, &refused["code"]), (400, &json!("invalid_request")));
    assert!(refused["detail"].as_str().unwrap().starts_with("runs[1]: "), "{refused}");
    assert_eq!(server.get("/v1/runs").1["items"], json!([]));
    let keyed = json!({"input": {"n": 1}, "key": "k"});
    let (status, begun) = server.post(path, &json!({"runs": [keyed, run(2), keyed]}));
    assert_eq!((status, &begun), (201, &json!({"ids": [1, 2, 1]})));
    let (status, again) = server.post(path, &json!({"runs": [keyed, run(3)]}));
    assert_eq!((status, &again), (201, &json!({"ids": [1, 3]})));
    let many: Vec<_> = (0..1_001).map(run).collect();
    let (status, refused) = server.post(path, &json!({"runs": many}));
    assert_eq!((status, &refused["code"]), (413, &json!("payload_too_large")));
    let (status, begun) = server.post(path, &json!({"runs": many[..500]}));
    assert_eq!((status, begun["ids"].as_array().unwrap().len()), (201, 500), "{begun}");
    server.crash_and_come_back();
    assert_eq!(server.get("/v1/queues/q").1["depth"], 503);
}

#[test]
fn a_workflow_is_deleted_when_nothing_needs_it() {
    let mut server = Server::start_with("flow-delete", &["--retention", "1ms"], &[]);
    let caller = json!({
        "workflow": "caller", "initial_node": "call",
        "nodes": [{"ref": "call", "kind": "workflow", "workflow": {"name": "line"}}],
    });
    put(&server, &line());
    put(&server, &caller);
    let (status, refused) = server.delete("/v1/workflows/line");
    assert_eq!((status, &refused["code"]), (409, &json!("conflict")));
    assert!(refused["detail"].as_str().unwrap().contains("caller"), "{refused}");
    assert_eq!(server.delete("/v1/workflows/caller").0, 204);
    server.post("/v1/workflows/line/runs", &json!({"input": {"n": 1}}));
    let (status, refused) = server.delete("/v1/workflows/line");
    assert_eq!((status, &refused["code"]), (409, &json!("conflict")));
    assert!(refused["detail"].as_str().unwrap().contains("has one run"), "{refused}");
    server.post("/v1/runs/1/cancel", &json!({}));
    while server.get("/v1/runs/1").0 == 200 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(server.delete("/v1/workflows/line?version=1").0, 204);
    assert_eq!(server.delete("/v1/workflows/line").0, 404);
    server.crash_and_come_back();
    assert_eq!(
        put(&server, &line()),
        (201, json!({"name": "line", "version": 2, "existed": false}))
    );
}
