//! Requests, against a small server of our own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::exec::crew::{LONG, Worker, eventually};
use crate::server::Server;

/// `"hello"`, as gzip makes it.
const GZIPPED: [u8; 27] = [
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x53, 0xca, 0x48, 0xcd, 0xc9, 0xc9,
    0x57, 0x02, 0x00, 0xb2, 0xce, 0x03, 0x77, 0x07, 0x00, 0x00, 0x00,
];

/// What came in: method, path, headers, body.
#[derive(Clone, Debug)]
struct Seen {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: String,
}

/// The other side: it answers as the path says.
struct Site {
    address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    dropped: Arc<Mutex<u32>>,
}

impl Site {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (seen, dropped) = (Arc::default(), Arc::default());
        let site = Self { address, seen: Arc::clone(&seen), dropped: Arc::clone(&dropped) };
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, dropped) = (Arc::clone(&seen), Arc::clone(&dropped));
                std::thread::spawn(move || serve(stream.unwrap(), &seen, &dropped));
            }
        });
        site
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn seen(&self, path: &str) -> Vec<Seen> {
        self.seen.lock().unwrap().iter().filter(|seen| seen.path == path).cloned().collect()
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<Seen>>, dropped: &Mutex<u32>) {
    let Some(request) = read(&stream) else { return };
    let earlier = {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        seen.iter().filter(|other| other.path == request.path).count() - 1
    };
    let (status, headers, body) = match (request.path.as_str(), earlier) {
        ("/json", _) => ("200 OK", "", json!({"taken": true}).to_string().into()),
        ("/text", _) => ("201 Created", "", b"made\n".to_vec()),
        ("/empty", _) => ("204 No Content", "", Vec::new()),
        ("/flaky", 0) => ("500 Internal Server Error", "", b"try again".to_vec()),
        ("/busy", 0) => ("429 Too Many Requests", "Retry-After: 2\r\n", Vec::new()),
        ("/flaky" | "/busy", _) => ("200 OK", "", b"1".to_vec()),
        ("/redirect", _) => ("302 Found", "Location: /secret\r\n", Vec::new()),
        ("/huge", _) => ("200 OK", "", vec![b'x'; 3 << 20]),
        ("/gzip", _) => ("200 OK", "Content-Encoding: gzip\r\n", GZIPPED.to_vec()),
        ("/gzip-refused", _) => ("400 Bad Request", "Content-Encoding: gzip\r\n", GZIPPED.to_vec()),
        ("/identity", _) => ("200 OK", "Content-Encoding: identity\r\n", b"\"plain\"".to_vec()),
        ("/cut", 0) => return,
        ("/cut", _) => ("200 OK", "", b"2".to_vec()),
        ("/slow", _) => {
            // Until the other side goes away.
            stream.set_read_timeout(Some(LONG)).unwrap();
            if matches!(stream.read(&mut [0]), Ok(0) | Err(_)) {
                *dropped.lock().unwrap() += 1;
            }
            return;
        }
        _ => ("404 Not Found", "", b"there is no such thing".to_vec()),
    };
    let len = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {len}\r\nConnection: close\r\n\r\n");
    // Whoever has read enough goes away.
    let _ = stream.write_all(&[head.as_bytes(), &body].concat());
}

fn read(stream: &TcpStream) -> Option<Seen> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Seen { method, path, headers, body: String::from_utf8(body).unwrap() })
}

#[test]
fn an_answer_is_the_output_and_the_request_says_what_it_is_for() {
    let (server, site) = (Server::start("http-good"), Site::start());
    let _worker = Worker::start(&server, "http", &["--slots", "4"], &[]);
    let payload = json!({
        "url": site.url("/json"), "body": {"n": 1}, "method": "PUT", "headers": {"X-Own": "mine"},
    });
    let id = server.submit_with(
        &payload,
        &json!({"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}),
    );
    let task = server.ended(id);
    assert_eq!((&task["state"], &task["output"]), (&json!("COMPLETED"), &json!({"taken": true})));
    let seen = site.seen("/json").remove(0);
    assert_eq!((&*seen.method, &*seen.body), ("PUT", r#"{"n":1}"#));
    let (_, history) = server.get(&format!("/v1/tasks/{id}/history"));
    for (name, value) in [
        ("tenure-task-id", id.to_string()),
        ("tenure-lease-id", history["items"][1]["lease_id"].to_string()),
        ("tenure-attempt", "1".to_owned()),
        ("idempotency-key", id.to_string()),
        ("content-type", "application/json".to_owned()),
        ("x-own", "mine".to_owned()),
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned()),
    ] {
        assert_eq!(seen.headers.get(name), Some(&value), "{name}");
    }
    let whole = json!({"url": site.url("/text"), "order": 17});
    assert_eq!(server.ended(server.submit(&whole))["output"], "made");
    let seen: Value = serde_json::from_str(&site.seen("/text")[0].body).unwrap();
    assert_eq!(seen, whole, "without a body, the payload is sent");
    let empty = server.submit(&json!({"url": site.url("/empty")}));
    assert_eq!(server.ended(empty)["output"], Value::Null);
}

#[test]
fn what_may_pass_is_tried_again_under_the_same_key() {
    let (server, site) = (Server::start("http-again"), Site::start());
    let _worker = Worker::start(&server, "http", &["--slots", "4"], &[]);
    let flaky = server.submit(&json!({"url": site.url("/flaky")}));
    let cut = server.submit(&json!({"url": site.url("/cut")}));
    let began = Instant::now();
    let busy = server.submit(&json!({"url": site.url("/busy")}));
    for id in [flaky, cut, busy] {
        let task = server.ended(id);
        assert_eq!((&task["state"], &task["attempt"]), (&json!("COMPLETED"), &json!(2)));
    }
    assert!(began.elapsed() >= Duration::from_secs(2), "as Retry-After asked");
    let seen = site.seen("/flaky");
    assert_eq!(seen[0].headers["idempotency-key"], seen[1].headers["idempotency-key"]);
    assert_eq!(
        (&*seen[0].headers["tenure-attempt"], &*seen[1].headers["tenure-attempt"]),
        ("1", "2")
    );
    server.check_all(&[flaky, cut, busy]);
}

#[test]
fn a_refusal_is_final_and_says_what_was_answered() {
    let (server, site) = (Server::start("http-final"), Site::start());
    let _worker = Worker::start(&server, "http", &["--slots", "4"], &[]);
    for (payload, code, says) in [
        (json!({"url": site.url("/nothing")}), "http_404", "there is no such thing"),
        (json!({"url": site.url("/redirect")}), "http_302", "/secret"),
        (json!({"url": site.url("/huge")}), "output_too_large", "1048576"),
        (json!({"url": "/relative"}), "invalid_payload", "`url` must be"),
        (json!({}), "invalid_payload", "`url` must be"),
    ] {
        let task = server.ended(server.submit(&payload));
        assert_eq!((&task["state"], &task["attempt"]), (&json!("FAILED"), &json!(1)), "{task}");
        assert_eq!(task["error"]["code"], code);
        assert!(task["error"]["message"].as_str().unwrap().contains(says), "{}", task["error"]);
    }
    assert!(site.seen("/secret").is_empty(), "no redirect is followed");
}

#[test]
fn an_encoded_answer_is_never_kept_as_an_output() {
    let (server, site) = (Server::start("http-encoded"), Site::start());
    let _worker = Worker::start(&server, "http", &["--slots", "4"], &[]);
    for (path, code) in [("/gzip", "answer_encoded"), ("/gzip-refused", "http_400")] {
        let task = server.ended(server.submit(&json!({"url": site.url(path)})));
        assert_eq!((&task["state"], &task["attempt"]), (&json!("FAILED"), &json!(1)), "{task}");
        assert_eq!(task["error"]["code"], code);
        let said = task["error"]["message"].as_str().unwrap();
        assert!(said.contains("encoded as \"gzip\"") && !said.contains('\u{fffd}'), "{said}");
        assert_eq!(site.seen(path)[0].headers["accept-encoding"], "identity");
    }
    let task = server.ended(server.submit(&json!({"url": site.url("/identity")})));
    assert_eq!((&task["state"], &task["output"]), (&json!("COMPLETED"), &json!("plain")));
    let own = json!({"url": site.url("/json"), "headers": {"Accept-Encoding": "br"}});
    assert_eq!(server.ended(server.submit(&own))["state"], "COMPLETED");
    assert_eq!(site.seen("/json")[0].headers["accept-encoding"], "br", "the payload's own stays");
}

#[test]
fn who_cannot_be_reached_or_is_slow_is_tried_again() {
    let (server, site) = (Server::start("http-slow"), Site::start());
    let _worker = Worker::start(&server, "http", &["--slots", "4", "--timeout", "3s"], &[]);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let twice = json!({"max_failures": 2});
    let slow = server.submit_with(&json!({"url": site.url("/slow")}), &twice);
    let nobody = server.submit_with(&json!({"url": format!("http://{free}/")}), &twice);
    for (id, code) in [(slow, "timeout"), (nobody, "cannot_connect")] {
        let task = server.ended(id);
        assert_eq!((&task["state"], &task["attempt"]), (&json!("FAILED"), &json!(2)));
        assert_eq!(task["error"]["code"], code, "{}", task["error"]);
    }
}

#[test]
fn a_cancel_drops_the_request() {
    let (server, site) = (Server::start("http-cancel"), Site::start());
    let mut worker = Worker::start(&server, "http", &["--timeout", "1h"], &[]);
    let id = server.submit(&json!({"url": site.url("/slow")}));
    eventually("the request", || (!site.seen("/slow").is_empty()).then_some(()));
    server.cancel(id);
    assert_eq!(server.ended(id)["state"], "CANCELED");
    eventually("its end", || (*site.dropped.lock().unwrap() == 1).then_some(()));

    let id =
        server.submit_with(&json!({"url": site.url("/slow")}), &json!({"total_timeout_ms": 6_000}));
    assert_eq!(server.ended(id)["state"], "FAILED");
    eventually("its end", || (*site.dropped.lock().unwrap() == 2).then_some(()));

    let id = server.submit(&json!({"url": site.url("/slow")}));
    eventually("the request", || (site.seen("/slow").len() == 3).then_some(()));
    worker.signal("TERM");
    eventually("the drain", || worker.log().contains("drains").then_some(()));
    worker.signal("TERM");
    assert_eq!(worker.end(), Some(0));
    let task = server.task(id);
    assert_eq!((&task["state"], &task["failures"]), (&json!("WAITING"), &json!(0)));
}

#[test]
fn only_allowed_hosts_are_called() {
    let (server, site) = (Server::start("http-hosts"), Site::start());
    let _worker =
        Worker::start(&server, "http", &["--allow-host", &site.address, "--slots", "2"], &[]);
    let good = server.submit(&json!({"url": site.url("/json")}));
    assert_eq!(server.ended(good)["state"], "COMPLETED");
    let port = site.address.rsplit(':').next().unwrap();
    let bad = server.submit(&json!({"url": format!("http://localhost:{port}/json")}));
    let task = server.ended(bad);
    assert_eq!((&task["error"]["code"], &task["attempt"]), (&json!("host_not_allowed"), &json!(1)));
    assert_eq!(site.seen("/json").len(), 1);
}
