//! What is refused about workflows and runs, and how it is said.

use serde_json::{Value, json};

use crate::flows::definitions::{ASK, complete, lease, line, put_yaml, start};
use crate::server::Server;

fn assert_refused((status, problem): (u16, Value), expected: (u16, &str), says: &str) {
    assert_eq!((status, problem["code"].as_str().unwrap()), expected, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(says), "{detail:?} does not say {says:?}");
    assert_eq!(problem["status"], status);
}

const INVALID: (u16, &str) = (400, "invalid_request");
const NOT_FOUND: (u16, &str) = (404, "not_found");

#[test]
fn a_definition_is_refused_with_all_its_faults() {
    let server = Server::start("flow-faults");
    let mut bad = line();
    bad["initial_node"] = json!("nowhere");
    bad["nodes"][1]["kind"] = json!("dance");
    bad["transitions"][0]["condition"] = json!("1 +");
    bad["color"] = json!("red");
    let (status, problem) = server.put("/v1/workflows/other", &bad);
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{problem}");
    let faults = problem["faults"].as_array().unwrap();
    let pointers: Vec<_> = faults.iter().map(|it| it["pointer"].as_str().unwrap()).collect();
    for pointer in
        ["/workflow", "/initial_node", "/nodes/1/kind", "/transitions/0/condition", "/color"]
    {
        assert!(pointers.contains(&pointer), "{pointer} is not in {pointers:?}");
    }
    assert!(faults.iter().all(|it| it["message"].is_string() && it["code"].is_string()));
    let (status, problem) = put_yaml(&server, "ask", &ASK.replace("kind: signal", "kind: sing"));
    assert_eq!(status, 400);
    let kind =
        problem["faults"].as_array().unwrap().iter().find(|it| it["pointer"] == "/nodes/0/kind");
    assert_eq!(kind.unwrap()["line"], 6, "{problem}");
    for text in ["", "[", "{}", "null", "[1]", "\u{1}"] {
        assert_eq!(put_yaml(&server, "x", text).0, 400, "{text:?}");
        assert_eq!(server.put_as("/v1/workflows/x", "application/json", text).0, 400, "{text:?}");
    }
    let (_, list) = server.get("/v1/workflows");
    assert_eq!(list["items"], json!([]), "nothing was registered");
}

#[test]
fn the_name_in_the_address_and_in_the_definition_must_agree() {
    let server = Server::start("flow-names");
    let (status, problem) = server.put("/v1/workflows/another", &line());
    assert_eq!(status, 400);
    assert_eq!(problem["faults"].as_array().unwrap().len(), 1);
    assert_eq!(problem["faults"][0]["pointer"], "/workflow");
    let message = problem["faults"][0]["message"].as_str().unwrap();
    assert!(message.contains("another") && message.contains("line"), "{message}");
}

#[test]
fn a_start_that_cannot_be_is_refused_and_leaves_no_trace() {
    let server = Server::start("flow-starts");
    server.put("/v1/workflows/line", &line());
    let lsn = || server.get("/v1/status").1["lsn"].clone();
    let before = lsn();
    let post = |body: Value| server.post("/v1/workflows/line/runs", &body);
    assert_refused(post(json!({"input": {"n": "x"}})), INVALID, "/n");
    assert_refused(post(json!({"input": {}})), INVALID, "input");
    assert_refused(post(json!({})), INVALID, "input");
    assert_refused(post(json!({"inputs": {"n": 1}})), INVALID, "inputs");
    assert_refused(post(json!({"input": {"n": 1}, "version": 2})), NOT_FOUND, "version 2");
    assert_refused(post(json!({"input": {"n": 1}, "version": 0})), INVALID, "version is 0");
    assert_refused(post(json!({"input": {"n": 1}, "version": -1})), INVALID, "version is -1");
    assert_refused(post(json!({"input": {"n": 1}, "key": ""})), INVALID, "key");
    assert_refused(post(json!({"input": {"n": 1}, "tags": {"": "x"}})), INVALID, "tag key");
    assert_refused(post(json!([1])), INVALID, "a JSON object");
    let nobody = server.post("/v1/workflows/nobody/runs", &json!({}));
    assert_refused(nobody, NOT_FOUND, "there is no workflow \"nobody\"");
    let deep = format!("{{\"input\": {}{}}}", "[".repeat(100), "]".repeat(100));
    let deep = server.post_text("/v1/workflows/line/runs", &deep);
    assert_refused(deep, (400, "json_too_deep"), "nested deeper");
    let large = format!("{{\"input\": {{\"n\": 1, \"x\": \"{}\"}}}}", "x".repeat(1 << 20));
    let large = server.post_text("/v1/workflows/line/runs", &large);
    assert_refused(large, (413, "payload_too_large"), "1048576");
    let huge = "x".repeat(2 << 20);
    let huge = server.post_text("/v1/workflows/line/runs", &huge);
    assert_refused(huge, (413, "payload_too_large"), "bytes");
    assert_eq!(lsn(), before, "nothing was written");
    assert_eq!(server.get("/v1/runs").1["items"], json!([]));
}

#[test]
fn what_is_not_there_is_not_found_and_what_is_wrong_is_named() {
    let server = Server::start("flow-reads");
    server.put("/v1/workflows/line", &line());
    let run = start(&server, "line", &json!({"n": 1}));
    for path in [
        "/v1/runs/99",
        "/v1/runs/99/tokens",
        "/v1/runs/99/graph",
        "/v1/runs/99/history",
        "/v1/runs/x",
    ] {
        assert_refused(server.get(path), NOT_FOUND, "");
    }
    assert_refused(server.post("/v1/runs/99/cancel", &json!({})), NOT_FOUND, "no run 99");
    assert_refused(server.post("/v1/runs/99/signals/x", &json!({})), NOT_FOUND, "no run 99");
    assert_refused(server.get("/v1/workflows/nobody"), NOT_FOUND, "nobody");
    assert_refused(server.get("/v1/workflows/line?version=7"), NOT_FOUND, "version 7");
    assert_refused(server.get("/v1/workflows/line?version=0"), INVALID, "version is 0");
    assert_refused(server.get("/v1/runs?state=DONE"), INVALID, "TIMED_OUT");
    assert_refused(server.get("/v1/runs?limit=0"), INVALID, "limit is 0");
    assert_refused(server.get("/v1/runs?limit=1001"), INVALID, "limit is 1001");
    assert_refused(server.get("/v1/runs?cursor=x"), INVALID, "cursor");
    assert_refused(server.get("/v1/runs?tag=x"), INVALID, "key:value");
    assert_refused(server.get("/v1/runs?flow=x"), INVALID, "flow");
    assert_refused(server.get("/v1/runs/1/tokens?cursor=x"), INVALID, "cursor");
    assert_refused(server.get("/v1/runs/1?wait_ms=60001"), INVALID, "wait_ms is 60001");
    assert_refused(server.get("/v1/runs/1?wait_ms=-1"), INVALID, "wait_ms is -1");
    assert_refused(server.get("/v1/tasks?run=x"), INVALID, "run");
    assert_refused(server.get("/v1/events?run=x"), INVALID, "run");
    let cancel = format!("/v1/runs/{run}/cancel");
    assert_refused(server.post(&cancel, &json!({"grace_ms": 5})), INVALID, "grace_ms");
    assert_refused(server.delete("/v1/runs/1"), (405, "method_not_allowed"), "DELETE");
    complete(&server, &lease(&server, 1)[0], &json!({"n": 2}));
    assert_refused(server.post(&cancel, &json!({})), (409, "conflict"), "COMPLETED");
}

#[test]
fn a_signal_that_nobody_can_want_is_refused() {
    let server = Server::start("flow-bad-signals");
    put_yaml(&server, "ask", ASK);
    let run = start(&server, "ask", &json!({"id": "t1"}));
    let post =
        |name: &str, body: Value| server.post(&format!("/v1/runs/{run}/signals/{name}"), &body);
    assert_refused(post("nothing", json!({})), NOT_FOUND, "\"nothing\"");
    assert_refused(post("approval", json!({})), INVALID, "the payload");
    assert_refused(post("approval", json!({"payload": {"no": 1}})), INVALID, "yes");
    assert_refused(post("approval", json!({"pay": 1})), INVALID, "pay");
    let yes = json!({"yes": true});
    let long = "x".repeat(257);
    let body = json!({"payload": yes, "correlation": long});
    assert_refused(post("approval", body), INVALID, "correlation: ");
    let body = json!({"payload": yes, "signal_id": ""});
    assert_refused(post("approval", body), INVALID, "signal_id is empty");
    let body = json!({"payload": yes, "signal_id": 7});
    assert_refused(post("approval", body), INVALID, "");
    let (_, run) = server.get(&format!("/v1/runs/{run}"));
    assert_eq!((&run["state"], &run["kept_signals"]), (&json!("WAITING"), &json!(0)));
}

#[test]
fn a_definition_that_would_hurt_is_refused_before_it_does() {
    let server = Server::start("flow-bombs");
    let levels =
        (1..12).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(",")));
    let bomb = format!("a0: &a0 [x,x,x,x,x,x,x,x,x]\n{}", levels.collect::<String>());
    assert_refused(put_yaml(&server, "x", &bomb), INVALID, "alias");
    let deep = format!("workflow: {}{}", "[".repeat(5_000), "]".repeat(5_000));
    assert_refused(put_yaml(&server, "x", &deep), INVALID, "");
    let deep = format!("{{\"workflow\": {}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    assert_refused(server.put_as("/v1/workflows/x", "application/json", &deep), INVALID, "");
    let nested = format!("{}true{}", "(".repeat(2_000), ")".repeat(2_000));
    let mut bad = line();
    bad["transitions"][0]["condition"] = json!(nested);
    assert_refused(server.put("/v1/workflows/line", &bad), INVALID, "/transitions/0/condition");
    let twice = r#"{"workflow": "x", "workflow": "y"}"#;
    assert_refused(
        server.put_as("/v1/workflows/x", "application/json", twice),
        INVALID,
        "workflow",
    );
    let large = format!("# {}\n{ASK}", "x".repeat(2 << 20));
    assert_refused(put_yaml(&server, "ask", &large), (413, "payload_too_large"), "bytes");
    let text = format!("{ASK}# {}", "x".repeat(1 << 20));
    assert_refused(put_yaml(&server, "ask", &text), INVALID, "at most 1048576");
    assert_eq!(put_yaml(&server, "ask", ASK).0, 201, "it is well");
    server.assert_well("after all that", 400);
}
