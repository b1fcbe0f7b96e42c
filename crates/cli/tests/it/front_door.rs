//! What the real binary lets in and what it refuses before a request is read: keys, web pages, media
//! types, malformed heads, silent connections, dripping uploads; and signals that must not end it.
//!
//! Proves P15 and P21.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::server::{Server, TENURE};
use serde_json::json;

const KEY: &str = "0123456789abcdef";
/// Longer than any timeout of a connection that is tested here.
const LONG: Duration = Duration::from_secs(60);

/// The status and all headers of an answer, in lower case.
fn head(stream: &mut TcpStream) -> (u16, String) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        // Goes on after a signal, which a plain read does not.
        let read = stream.read_exact(&mut byte);
        read.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&head)));
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head)
}

/// An answer with its body.
fn answer(stream: &mut TcpStream) -> (u16, String, String) {
    let (status, head) = head(stream);
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    (status, head, String::from_utf8(body).unwrap())
}

fn ask(server: &Server, request: &str) -> (u16, String, String) {
    let mut stream = server.connect();
    stream.write_all(request.as_bytes()).unwrap();
    answer(&mut stream)
}

/// How long it takes until a connection is closed without a word.
fn silence(stream: &mut TcpStream) -> Duration {
    let begun = Instant::now();
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Ok(_) => assert!(!said.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&said)),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    begun.elapsed()
}

#[test]
fn a_key_that_is_empty_blank_or_short_is_refused_at_start() {
    for (key, says) in [("", "is empty"), ("   ", "is empty"), ("\n", "is empty")] {
        let refused = Server::run("no-key", &["--listen", "0.0.0.0:0"], &[("TENURE_API_KEY", key)]);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(says) && said.contains("openssl rand"), "{said}");
        assert!(refused.stdout.is_empty(), "it was never ready");
    }
    for (key, says) in [("", "is empty"), ("s3cret", "6 bytes"), ("0123456789abcde", "15 bytes")] {
        for listen in ["127.0.0.1:0", "0.0.0.0:0"] {
            let refused = Server::run("bad-key", &["--listen", listen, "--api-key", key], &[]);
            let said = String::from_utf8(refused.stderr).unwrap();
            assert_eq!(refused.status.code(), Some(2), "{said}");
            assert!(said.contains(says), "{said}");
            assert!(key.is_empty() || !said.contains(key), "a key is never shown: {said}");
        }
    }
    let server = Server::start_with("good-key", &["--api-key", KEY], &[]);
    let status = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n";
    assert_eq!(ask(&server, &format!("{status}\r\n")).0, 401);
    assert_eq!(ask(&server, &format!("{status}Authorization: Bearer {KEY}\r\n\r\n")).0, 200);
}

#[test]
fn an_empty_key_is_wrong_usage_for_a_client() {
    let server = Server::start("client-empty-key");
    let url = format!("http://{}", server.address);
    let mut status = Command::new(TENURE);
    let status = status.args(["status", "--server", &url]).env("TENURE_API_KEY", "");
    let ran = status.output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.contains("the API key is empty") && said.contains("unset"), "{said}");
}

#[test]
fn a_body_without_its_media_type_is_refused_with_the_header_to_add() {
    let server = Server::start("media-types");
    let body = r#"{"queue": "commands", "payload": {"argv": ["id"]}}"#;
    let post = |headers: &str| {
        let length = body.len();
        let head = "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\n";
        ask(&server, &format!("{head}{headers}Content-Length: {length}\r\n\r\n{body}"))
    };
    for headers in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: application/json\r\nContent-Type: text/plain\r\n",
        "Content-Type: application/json\r\nContent-Encoding: br\r\n",
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
    ] {
        let (status, _, problem) = post(headers);
        assert_eq!(status, 415, "{headers}: {problem}");
        assert!(problem.contains("\"unsupported_media_type\""), "{problem}");
        let says = if headers.contains("Encoding") { "content-encoding" } else { "content-type: " };
        assert!(problem.contains(says), "{headers}: {problem}");
    }
    let definition = server.put_as("/v1/workflows/w", "text/plain", "workflow: w");
    assert_eq!((definition.0, &definition.1["code"]), (415, &json!("unsupported_media_type")));
    let method = "POST /tenure.v1.Tasks/Submit HTTP/1.1\r\nHost: localhost\r\n";
    let (status, _, problem) = ask(
        &server,
        &format!("{method}Content-Type: text/plain\r\nContent-Length: 5\r\n\r\n\0\0\0\0\0"),
    );
    assert_eq!(status, 415, "a gRPC method is no way around: {problem}");
    assert_eq!(server.get("/v1/tasks/1").0, 404, "nothing was taken");
    assert_eq!(post("Content-Type: application/json; charset=utf-8\r\n").0, 201);
    assert_eq!(post("Content-Type: application/json\r\nContent-Encoding: identity\r\n").0, 201);
    let cancel = "POST /v1/tasks/1/cancel HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(ask(&server, cancel).0, 200, "without a body there is nothing to say");
}

#[test]
fn pages_of_other_origins_are_refused_and_answers_stay_with_their_own() {
    let server = Server::start("pages");
    let port = server.address.rsplit_once(':').unwrap().1;
    let get = |path: &str, headers: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n");
        ask(&server, &format!("{head}{headers}\r\n"))
    };
    for stranger in [
        "Origin: http://localhost:3000\r\n".to_owned(),
        "Origin: http://localhost\r\n".to_owned(),
        format!("Origin: http://127.0.0.1:{port}\r\n"),
        format!("Origin: https://localhost:{port}\r\n"),
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n".to_owned(),
        "Sec-Fetch-Site: same-site\r\n".to_owned(),
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n".to_owned(),
    ] {
        for path in ["/v1/status?hash=true", "/healthz", "/nothing"] {
            let (status, head, problem) = get(path, &stranger);
            assert_eq!(status, 403, "{path} {stranger}: {problem}");
            assert!(head.contains("cross-origin-resource-policy: same-origin"), "{head}");
        }
    }
    for own in [
        String::new(),
        format!("Origin: http://localhost:{port}\r\nSec-Fetch-Site: same-origin\r\n"),
        "Sec-Fetch-Site: none\r\n".to_owned(),
    ] {
        assert_eq!(get("/v1/status", &own).0, 200, "{own}");
    }
    let link =
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    assert_eq!(get("/", link).0, 200, "a link to the page may be followed");
    for path in ["/", "/v1/status", "/healthz", "/nothing", "/openapi.json", "/metrics"] {
        let (_, head, _) = get(path, "");
        for line in [
            "cross-origin-resource-policy: same-origin",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
            "frame-ancestors 'none'",
            "default-src 'none'",
            "date: ",
        ] {
            assert!(head.contains(line), "{path}: {line} is missing in {head}");
        }
    }
}

#[test]
fn a_malformed_head_is_refused_and_ends_its_connection() {
    let server = Server::start("heads");
    let body = "Content-Type: application/json\r\n";
    for (what, head) in [
        ("no host", "GET /v1/status HTTP/1.1\r\n\r\n".to_owned()),
        (
            "two hosts",
            "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n".to_owned(),
        ),
        (
            "another target",
            "GET http://127.0.0.1:1/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        ),
        (
            "a coding before chunked",
            format!(
                "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\n{body}Transfer-Encoding: identity, chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
            ),
        ),
        (
            "chunked twice",
            format!(
                "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\n{body}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
            ),
        ),
    ] {
        let mut stream = server.connect();
        stream.write_all(head.as_bytes()).unwrap();
        let (status, head, problem) = answer(&mut stream);
        assert_eq!(status, 400, "{what}: {problem}");
        assert!(problem.contains("\"invalid_request\""), "{what}: {problem}");
        assert!(head.contains("connection: close"), "{what}: {head}");
        silence(&mut stream);
    }
    let foreign = "GET http://evil.example/v1/status HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert_eq!(ask(&server, foreign).0, 421, "the target counts as much as a Host header");
    assert_eq!(ask(&server, "GET /healthz HTTP/1.0\r\n\r\n").0, 200, "HTTP/1.0 has no host");
    assert_eq!(server.get("/v1/tasks/1").0, 404, "nothing was taken");
}

#[test]
fn a_request_with_two_lengths_is_the_last_of_its_connection() {
    let server = Server::start("lengths");
    let head = "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let second = "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    let chunks = "2\r\n{}\r\n0\r\n\r\n";
    for lengths in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    ] {
        let before = server.get("/v1/status").1["tasks"]["WAITING"].as_u64().unwrap();
        let mut stream = server.connect();
        stream.write_all(format!("{head}{lengths}\r\n{chunks}{second}").as_bytes()).unwrap();
        let mut said = String::new();
        // What was sent after it is not read, so that the end may be a reset.
        let _ = stream.read_to_string(&mut said);
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{lengths}: {said}");
        let after = server.get("/v1/status").1["tasks"]["WAITING"].as_u64().unwrap();
        assert_eq!(after - before, 1, "{lengths}: what hides behind it is not done");
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;

#[test]
fn http_2_without_an_authority_is_refused() {
    let server = Server::start("authority");
    let literal = |name: &str, value: &str| {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        [&[0, name.len() as u8][..], name, &[value.len() as u8], value].concat()
    };
    let status = |authority: Option<&str>, host: Option<&str>| {
        let mut headers =
            [literal(":method", "GET"), literal(":scheme", "http"), literal(":path", "/v1/status")]
                .concat();
        headers.extend(authority.map(|it| literal(":authority", it)).unwrap_or_default());
        headers.extend(host.map(|it| literal("host", it)).unwrap_or_default());
        let mut stream = server.connect();
        stream
            .write_all(
                &[PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[]), frame(HEADERS, 5, 1, &headers)]
                    .concat(),
            )
            .unwrap();
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).unwrap();
            let [a, b, c, kind, ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            stream.read_exact(&mut payload).unwrap();
            if kind == HEADERS {
                // The status comes first: 0x88 and 0x8c stand for 200 and 400 in the static table.
                return payload[0];
            }
        }
    };
    const OK: u8 = 0x88;
    const BAD_REQUEST: u8 = 0x8c;
    assert_eq!(status(None, None), BAD_REQUEST);
    assert_eq!(status(Some("localhost"), Some("evil.example")), BAD_REQUEST);
    assert_eq!(status(Some("localhost"), None), OK);
    assert_eq!(status(None, Some("localhost")), OK);
}

#[test]
fn a_connection_that_sends_no_request_is_closed_whatever_it_begins_with() {
    let server = Server::start("silent");
    let preface = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    let beginnings: [(&str, &[u8]); 4] = [
        ("nothing", b""),
        ("a part of the preface", b"PRI * HTTP"),
        ("a part of a request", b"GET /healthz"),
        ("HTTP/2 without a stream", &preface),
    ];
    std::thread::scope(|scope| {
        for (what, bytes) in beginnings {
            let mut stream = server.connect();
            scope.spawn(move || {
                stream.write_all(bytes).unwrap();
                let waited = silence(&mut stream);
                let expected = Duration::from_secs(9)..Duration::from_secs(25);
                assert!(expected.contains(&waited), "{what} was closed after {waited:?}");
            });
        }
        // One that has had its answer is idle, and that ends too.
        let mut used = server.connect();
        scope.spawn(move || {
            used.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            assert_eq!(answer(&mut used).0, 200);
            assert!(silence(&mut used) < Duration::from_secs(25));
        });
    });
    server.assert_well("silent connections", 400);
}

#[test]
fn silent_connections_make_room_and_requests_under_way_do_not() {
    let runner = ["sh", "-c", "ulimit -n 128 && exec \"$0\" \"$@\""].map(str::to_owned);
    let server = Server::start_under("crowded", &runner).unwrap();
    let body = json!({"worker": "w", "queues": ["q"], "wait_ms": 30_000}).to_string();
    let mut parked = server.connect();
    let length = body.len();
    write!(
        parked,
        "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let metric = |name: &str| {
        let metrics = server.text("/metrics");
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    let begun = Instant::now();
    while metric("tenure_parked_leases ") == 0 {
        assert!(begun.elapsed() < LONG, "the lease request is parked");
    }
    // Three times as many as there are places, and each of those who come with a request is served.
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.extend((0..20).map(|_| server.connect()));
        let begun = Instant::now();
        assert_eq!(server.text("/healthz"), "ok\n");
        assert!(begun.elapsed() < Duration::from_secs(5), "nobody waits for a timeout");
    }
    assert!(metric("tenure_connections_evicted_total ") > 100);
    assert_eq!(metric("tenure_connections_refused_total "), 0);
    assert_eq!(server.post("/v1/tasks", &json!({"queue": "q"})).0, 201);
    let (status, _, leases) = answer(&mut parked);
    assert_eq!(status, 200);
    assert!(leases.contains("\"task_id\":1"), "a request under way is answered: {leases}");
}

#[test]
fn an_upload_that_drips_is_cut_off_and_others_go_on() {
    let server = Server::start("dripping");
    let put = |hash: &str, length: usize, expect: &str| {
        let mut stream = server.connect();
        let head = format!("PUT /v1/blobs/{hash} HTTP/1.1\r\nHost: localhost\r\n{expect}");
        write!(stream, "{head}Content-Length: {length}\r\n\r\n").unwrap();
        stream
    };
    let begun = Instant::now();
    let expect = "Expect: 100-continue\r\n";
    let mut dripping: Vec<_> =
        (0..64).map(|n| put(&format!("{n:064x}"), 1 << 20, expect)).collect();
    for stream in &mut dripping {
        // The server asks for the body when the upload has its place.
        assert_eq!(head(stream).0, 100);
        stream.write_all(b"x").unwrap();
    }
    let hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let upload = || {
        let mut stream = put(hello, 5, "");
        stream.write_all(b"hello").unwrap();
        answer(&mut stream).0
    };
    assert_eq!(upload(), 429, "all places are taken");
    // A byte a second keeps none of them: the place is lost after half a minute.
    let status = loop {
        match upload() {
            429 => {}
            status => break status,
        }
        assert!(begun.elapsed() < LONG, "the places are given back");
        std::thread::sleep(Duration::from_secs(1));
        for stream in &mut dripping {
            // Those that were cut off may be closed by now.
            let _ = stream.write_all(b"x");
        }
    };
    assert_eq!(status, 201);
    let (status, _, problem) = answer(&mut dripping[0]);
    assert_eq!(status, 408, "{problem}");
    assert!(problem.contains("65536 bytes a second"), "{problem}");
}

#[test]
fn signals_that_mean_nothing_do_not_end_the_server() {
    let (mut server, stderr) = Server::start_listening("signals", &[]);
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    let pid = server.pid().to_string();
    for (signal, name) in [("-HUP", "SIGHUP"), ("-USR1", "SIGUSR1"), ("-USR2", "SIGUSR2")] {
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let line = lines.find(|line| line.contains(name)).expect("a line says so");
        assert!(line.contains("is ignored"), "{line}");
        assert_eq!(server.post("/v1/tasks", &json!({})).0, 201, "{name}");
    }
    // Nobody reads the rest; a full pipe must not hold up the stop.
    std::thread::spawn(move || lines.for_each(drop));
    assert_eq!(server.terminate(), Some(0), "and the one that stops it does");
}
