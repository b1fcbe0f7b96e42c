//! News from outside.

use serde_json::{Value, json};

use crate::flows::definitions::{ASK, put_yaml, start};
use crate::server::Server;

#[test]
fn a_signal_is_given_once_to_the_one_who_waits_for_it() {
    let server = Server::start("flow-signal");
    put_yaml(&server, "ask", ASK);
    let run = start(&server, "ask", &json!({"id": "t1"}));
    assert_eq!(server.get(&format!("/v1/runs/{run}")).1["state"], "WAITING");
    let (_, tokens) = server.get(&format!("/v1/runs/{run}/tokens"));
    let waits = json!({"name": "approval", "correlation": "t1"});
    assert_eq!(
        (&tokens["items"][0]["signal"], tokens["items"][0]["state"].as_str()),
        (&waits, Some("waiting_for_signal"))
    );
    let path = format!("/v1/runs/{run}/signals/approval");
    let (status, refused) = server.post(&path, &json!({"payload": {}, "correlation": "t1"}));
    assert_eq!((status, &refused["code"]), (400, &json!("invalid_request")), "its schema says no");
    let (status, other) = server
        .post(&path, &json!({"payload": {"yes": false}, "correlation": "t2", "signal_id": "b"}));
    assert_eq!((status, &other["outcome"]), (200, &json!("kept")), "nobody waits for that one");
    assert_eq!(server.get(&format!("/v1/runs/{run}")).1["kept_signals"], 1);
    let body = json!({"payload": {"yes": true}, "correlation": "t1", "signal_id": "a"});
    let (status, given) = server.post(&path, &body);
    assert_eq!((status, &given["outcome"], &given["token"]), (200, &json!("given"), &json!(1)));
    let (_, over) = server.get(&format!("/v1/runs/{run}?wait_ms=20000"));
    assert_eq!((&over["state"], &over["output"]), (&json!("COMPLETED"), &json!({"yes": true})));
    let (status, again) = server.post(&path, &body);
    assert_eq!((status, &again["outcome"]), (200, &json!("known")), "also when the run is over");
    let (status, late) =
        server.post(&path, &json!({"payload": {"yes": true}, "correlation": "t1"}));
    assert_eq!((status, &late["code"]), (409, &json!("conflict")));
}

#[test]
fn a_run_keeps_so_many_signals_and_no_more() {
    let server = Server::start("flow-signals-full");
    put_yaml(&server, "ask", ASK);
    let run = start(&server, "ask", &json!({"id": "t1"}));
    let path = format!("/v1/runs/{run}/signals/approval");
    let body = json!({"payload": {"yes": true}, "correlation": "other"}).to_string();
    for _ in 0..1_000 {
        assert_eq!(server.post_text(&path, &body).0, 200);
    }
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = server.raw(&request).to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 429"), "{answer}");
    assert!(answer.contains("retry-after: 1"), "{answer}");
    let (status, full) = server.post_text(&path, &body);
    assert_eq!((status, &full["code"]), (429, &json!("overloaded")));
    assert!(full["detail"].as_str().unwrap().contains("1000 signals"), "{full}");
    let wanted = json!({"payload": {"yes": true}, "correlation": "t1"});
    assert_eq!(
        server.post(&path, &wanted).1["outcome"],
        "given",
        "the one who waits still gets it"
    );
    assert_eq!(server.get(&format!("/v1/runs/{run}")).1["output"], json!({"yes": true}));
    let (_, none) = server.get("/v1/runs?state=WAITING");
    assert_eq!((&none["items"], &none["next_cursor"]), (&json!([]), &Value::Null));
}
