//! Lines on stderr about runs.

use std::io::Read;

use serde_json::{Value, json};

use crate::flows::definitions::{ASK, lease, line, put_yaml, start};
use crate::server::Server;

#[test]
fn every_step_of_a_run_and_each_refused_one_has_its_line() {
    let args = ["--log", "transitions", "--log-format", "json"];
    let (mut server, mut stderr) = Server::start_listening("flow-lines", &args);
    server.put("/v1/workflows/line", &line());
    put_yaml(&server, "ask", ASK);
    let failed = start(&server, "line", &json!({"n": 1}));
    let held = lease(&server, 1).remove(0);
    let fail = json!({
        "lease_id": held["lease_id"], "reason": "no", "code": "SMTP", "retryable": false,
    });
    server.post(&format!("/v1/tasks/{}/fail", held["task_id"]), &fail);
    assert_eq!(server.post(&format!("/v1/runs/{failed}/cancel"), &json!({})).0, 409);
    let asked = start(&server, "ask", &json!({"id": "1"}));
    let signal = json!({"payload": {"yes": true}, "correlation": "1"});
    server.post(&format!("/v1/runs/{asked}/signals/approval"), &signal);
    assert_eq!(server.terminate(), Some(0));
    let mut text = String::new();
    stderr.read_to_string(&mut text).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |run: u64, event: &str| {
        let found = lines.iter().find(|line| {
            let fields = fields(line);
            fields["run"] == run && fields["event"] == event && fields["task"].is_null()
        });
        found.unwrap_or_else(|| panic!("no {event} of run {run} in {text}"))
    };
    assert_eq!(fields(of(failed, "RunStarted"))["workflow"], "line");
    let over = of(failed, "RunFinished");
    assert_eq!((&over["level"], &fields(over)["to"]), (&json!("WARN"), &json!("FAILED")));
    assert_eq!(fields(over)["code"], "SMTP");
    let refused = of(failed, "CancelRun");
    assert_eq!((&fields(refused)["code"], &refused["level"]), (&json!("conflict"), &json!("WARN")));
    assert_eq!(fields(of(asked, "SignalReceived"))["signal"], "approval");
    let over = of(asked, "RunFinished");
    assert_eq!((&over["level"], &fields(over)["to"]), (&json!("INFO"), &json!("COMPLETED")));
    let created = lines.iter().find(|line| fields(line)["event"] == "TaskCreated").unwrap();
    assert_eq!(fields(created)["run"], failed, "a task names its run");
}

/// The fields of a line, wherever its format puts them.
fn fields(line: &Value) -> &Value {
    if line["fields"].is_object() { &line["fields"] } else { line }
}
