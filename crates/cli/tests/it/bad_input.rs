//! What strangers may send to the real binary: every refusal is told, and the server stays well.
//!
//! Proves P15 and P21.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::server::Server;
use serde_json::{Value, json};

/// No bad input makes it hold so much.
const MIB_MAX: u64 = 400;

/// Reads one answer: status line, headers and as many bytes as they announce.
fn answer(stream: &mut TcpStream) -> (u16, String) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        // Goes on after a signal, which a plain read does not.
        let read = stream.read_exact(&mut byte);
        read.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&head)));
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.to_ascii_lowercase();
    let length = length.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// The header that goes with a body.
const JSON: &str = "Content-Type: application/json\r\n";
const GET: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn a_body_that_is_too_large_is_refused_and_the_connection_stays_usable() {
    let server = Server::start("large-bodies");
    for (path, bytes) in [("/v1/tasks", 2 << 20), ("/v1/tasks/batch", 17 << 20)] {
        let body = vec![b'x'; bytes];
        let mut plain = server.connect();
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{JSON}");
        write!(plain, "{head}Content-Length: {bytes}\r\n\r\n").unwrap();
        let mut chunked = server.connect();
        write!(chunked, "{head}Transfer-Encoding: chunked\r\n\r\n").unwrap();
        plain.write_all(&body).unwrap();
        for chunk in body.chunks(64 << 10) {
            write!(chunked, "{:x}\r\n", chunk.len()).unwrap();
            chunked.write_all(chunk).unwrap();
            chunked.write_all(b"\r\n").unwrap();
        }
        chunked.write_all(b"0\r\n\r\n").unwrap();
        for mut stream in [plain, chunked] {
            let (status, problem) = answer(&mut stream);
            assert_eq!(status, 413, "{problem}");
            assert!(problem.contains("payload_too_large"), "{problem}");
            stream.write_all(GET).unwrap();
            assert_eq!(answer(&mut stream), (200, "ok\n".to_owned()), "the same connection");
        }
    }
    server.assert_well("large bodies", MIB_MAX);
}

#[test]
fn what_is_out_of_range_is_refused_with_its_bounds() {
    let server = Server::start("ranges");
    let cases = [
        ("priority", json!(101), "from -100 to 100"),
        ("priority", json!(-101), "from -100 to 100"),
        ("lease_ms", json!(49), "from 50 to 86400000"),
        ("lease_ms", json!(86_400_001), "from 50 to 86400000"),
        ("delay_ms", json!(-1), "must not be negative"),
        ("delay_ms", json!(31_622_400_001_i64), "from 0 to 31622400000"),
        ("total_timeout_ms", json!(31_622_400_001_i64), "31622400000"),
        ("max_failures", json!(0), "from 1 to 10000"),
        ("max_expiries", json!(10_001), "from 1 to 10000"),
        ("lease_ms", json!(i64::MAX), "too large"),
    ];
    for (field, value, bounds) in cases {
        let (status, problem) = server.post("/v1/tasks", &json!({field: value}));
        let detail = problem["detail"].as_str().unwrap();
        assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{detail}");
        assert!(detail.contains(field) && detail.contains(bounds), "{detail}");
        assert!(detail.contains(&value.to_string()), "the value is named: {detail}");
    }
    let lease = |field: &str, value: i64| {
        let mut body = json!({"worker": "w", "queues": ["q"]});
        body[field] = json!(value);
        server.post("/v1/leases", &body)
    };
    for (field, value) in [("max", 0), ("max", 1_001), ("wait_ms", 60_001), ("wait_ms", -1)] {
        let (status, problem) = lease(field, value);
        assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{field} {value}");
    }
    assert_eq!(server.get("/v1/tasks/1").0, 404, "nothing was taken");
    server.assert_well("ranges", MIB_MAX);
}

#[test]
fn names_that_are_none_are_refused() {
    let server = Server::start("names");
    let long = "n".repeat(257);
    let names = ["", "a/b", "a\u{0}b", "line\nbreak", "\u{1b}[31m", "zero\u{200b}width", &long];
    for name in names {
        let refused = [
            ("queue", server.post("/v1/tasks", &json!({"queue": name}))),
            ("worker", server.post("/v1/leases", &json!({"worker": name, "queues": ["q"]}))),
            ("queue", server.post("/v1/leases", &json!({"worker": "w", "queues": [name]}))),
        ];
        for (field, (status, problem)) in refused {
            assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{name:?}");
            assert!(problem["detail"].as_str().unwrap().contains(field), "{problem}");
        }
        let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        if !encoded.is_empty() {
            assert_eq!(server.get(&format!("/v1/queues/{encoded}")).0, 400, "{name:?}");
            assert_eq!(server.delete(&format!("/v1/workers/{encoded}")).0, 400, "{name:?}");
        }
    }
    for key in ["", "a\u{7}", &long] {
        assert_eq!(server.post("/v1/tasks", &json!({"key": key})).0, 400, "{key:?}");
    }
    for id in ["0", "-1", "1.5", "x", "18446744073709551616", "%00"] {
        let (status, problem) = server.get(&format!("/v1/tasks/{id}"));
        assert_eq!((status, &problem["code"]), (404, &json!("not_found")), "{id}");
    }
    server.assert_well("names", MIB_MAX);
}

#[test]
fn a_field_that_is_unknown_is_named_everywhere() {
    let server = Server::start("fields");
    server.post("/v1/tasks", &json!({}));
    let lease = json!({"worker": "w", "queues": ["default"], "surprise": 1});
    let posts = [
        ("/v1/tasks", json!({"surprise": 1})),
        ("/v1/tasks", json!({"backoff": {"surprise": 1}})),
        ("/v1/tasks/batch", json!({"tasks": [{"surprise": 1}]})),
        ("/v1/leases", lease),
        ("/v1/tasks/1/heartbeat", json!({"lease_id": 1, "surprise": 1})),
        ("/v1/tasks/1/complete", json!({"lease_id": 1, "surprise": 1})),
        ("/v1/tasks/1/fail", json!({"lease_id": 1, "reason": "", "surprise": 1})),
        ("/v1/tasks/1/release", json!({"lease_id": 1, "surprise": 1})),
        ("/v1/tasks/1/cancel", json!({"surprise": 1})),
        ("/v1/tasks/1/retry", json!({"surprise": 1})),
        ("/v1/reports", json!({"surprise": []})),
        ("/v1/reports", json!({"complete": [{"task_id": 1, "lease_id": 1, "surprise": 1}]})),
    ];
    let refused = |(status, problem): (u16, Value), what: &str| {
        assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{what}");
        assert!(problem["detail"].as_str().unwrap().contains("surprise"), "{what}: {problem}");
    };
    for (path, body) in posts {
        refused(server.post(path, &body), path);
    }
    refused(server.put("/v1/queues/q", &json!({"surprise": 1})), "queue");
    refused(server.put("/v1/workers/w", &json!({"surprise": 1})), "worker");
    for path in ["/v1/tasks?surprise=1", "/v1/status?surprise=1", "/v1/events?surprise=1"] {
        refused(server.get(path), path);
    }
    let deep = format!("{{\"payload\": {}1{}}}", "[".repeat(64), "]".repeat(64));
    let (status, problem) = server.post_text("/v1/tasks", &deep);
    assert_eq!((status, &problem["code"]), (400, &json!("json_too_deep")), "one level too many");
    let bomb = "[".repeat(1 << 20);
    assert_eq!(server.post_text("/v1/tasks", &bomb).1["code"], "json_too_deep");
    server.assert_well("fields", MIB_MAX);
}

#[test]
fn a_stranger_is_refused_with_every_method_and_heard_out() {
    let server = Server::start("methods");
    let mut stream = server.connect();
    for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "QUERY"] {
        for (headers, wanted) in [
            ("Host: evil.example", 421),
            ("Host: 127.0.0.1.evil.example", 421),
            ("Host: localhost\r\nOrigin: http://evil.example", 403),
            ("Host: localhost\r\nOrigin: null", 403),
        ] {
            for path in ["/v1/tasks", "/", "/metrics", "/nothing"] {
                let request = format!(
                    "{method} {path} HTTP/1.1\r\n{headers}\r\nContent-Length: 2\r\n\r\n{{}}"
                );
                stream.write_all(request.as_bytes()).unwrap();
                let (status, problem) = answer(&mut stream);
                assert_eq!(status, wanted, "{method} {path} {headers}: {problem}");
            }
        }
    }
    assert_eq!(server.get("/v1/tasks/1").0, 404, "nothing was taken");
    server.assert_well("strangers", MIB_MAX);
}

#[test]
fn slow_headers_and_slow_bodies_are_cut_off() {
    let server = Server::start("slowly");
    let mut headers = server.connect();
    headers.write_all(b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
    let mut body = server.connect();
    let head = format!("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\n{JSON}");
    write!(body, "{head}Content-Length: 9\r\n\r\n{{").unwrap();
    let mut grpc = server.connect();
    grpc.write_all(&http2_post("/tenure.v1.Tasks/Submit")).unwrap();
    let begun = Instant::now();
    let mut said = String::new();
    let _ = headers.read_to_string(&mut said);
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 408"), "{said}");
    let (status, problem) = answer(&mut body);
    assert_eq!(status, 408, "{problem}");
    assert!(problem.contains("request_timeout"), "{problem}");
    assert_eq!(answer_frame(&mut grpc), 1, "headers that say why");
    assert!(begun.elapsed() < Duration::from_secs(60));
    server.assert_well("slow", MIB_MAX);
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The kind of the first frame that belongs to the first stream.
fn answer_frame(stream: &mut TcpStream) -> u8 {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let [a, b, c, kind, _, stream_id @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        stream.read_exact(&mut payload).unwrap();
        // Word about how much may be sent is no answer.
        if stream_id == [0, 0, 0, 1] && kind != 8 {
            return kind;
        }
    }
}

/// A header that is not kept in a table, by its name.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut header = vec![0, name.len() as u8];
    header.extend(name.as_bytes());
    header.push(value.len() as u8);
    header.extend(value.as_bytes());
    header
}

/// A gRPC request of which only the headers and the first byte come.
fn http2_post(path: &str) -> Vec<u8> {
    let headers = [
        literal(":method", "POST"),
        literal(":scheme", "http"),
        literal(":path", path),
        literal(":authority", "localhost"),
        literal("content-type", "application/grpc"),
        literal("te", "trailers"),
    ];
    let frames =
        [frame(4, 0, 0, &[]), frame(1, 4, 1, &headers.concat()), frame(0, 0, 1, &[0, 0, 0])];
    [PREFACE.to_vec(), frames.concat()].concat()
}

#[test]
fn garbage_on_the_port_hurts_nobody() {
    let server = Server::start("garbage");
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let mut random = Vec::new();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..8_192 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        random.extend(seed.to_le_bytes());
    }
    let after_preface = [PREFACE, &random[..]].concat();
    let long_line = [b"GET /".to_vec(), vec![b'a'; 100_000]].concat();
    let many_headers = [b"GET / HTTP/1.1\r\n".to_vec(), b"A: b\r\n".repeat(20_000)].concat();
    let lengths = b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\
        Content-Length: 6\r\n\r\nhello!"
        .to_vec();
    let both = b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\
        Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"
        .to_vec();
    let cases: [(&str, &[u8]); 9] = [
        ("a TLS hello", hello),
        ("HTTP/0.9", b"GET /\r\n"),
        ("random bytes", &random),
        ("garbage after the preface", &after_preface),
        ("an endless line", &long_line),
        ("too many headers", &many_headers),
        ("two lengths", &lengths),
        ("a length and chunks", &both),
        ("nothing", b""),
    ];
    for (what, bytes) in cases {
        for _ in 0..20 {
            let mut stream = server.connect();
            // It may be closed before all of it is sent.
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(Shutdown::Write);
            let mut said = Vec::new();
            let ended = stream.read_to_end(&mut said);
            let text = String::from_utf8_lossy(&said);
            assert!(!text.starts_with("HTTP/1.1 2") && !text.contains(" 500 "), "{what}: {text}");
            let reset = |error: &std::io::Error| error.kind() == ErrorKind::ConnectionReset;
            assert!(ended.is_ok() || ended.is_err_and(|error| reset(&error)), "{what}: no end");
        }
        server.assert_well(what, MIB_MAX);
    }
    assert_eq!(server.get("/v1/tasks/1").0, 404, "nothing was taken");
}

#[test]
fn streams_that_are_reset_at_once_are_bounded() {
    let server = Server::start("resets");
    let headers = [
        literal(":method", "GET"),
        literal(":scheme", "http"),
        literal(":path", "/v1/tasks"),
        literal(":authority", "localhost"),
    ];
    let headers = headers.concat();
    for _ in 0..4 {
        let mut stream = server.connect();
        stream.write_all(&[PREFACE.to_vec(), frame(4, 0, 0, &[])].concat()).unwrap();
        for id in (1..20_000).step_by(2) {
            let pair = [frame(1, 5, id, &headers), frame(3, 0, id, &8_u32.to_be_bytes())].concat();
            // Sooner or later it has enough of this.
            if stream.write_all(&pair).is_err() {
                break;
            }
        }
    }
    server.assert_well("rapid resets", MIB_MAX);
}

#[test]
fn payloads_are_data_and_never_markup() {
    let server = Server::start("markup");
    let evil = "<script>alert(1)</script>\u{1b}[2J";
    let body = json!({
        "queue": "<script>q", "payload": evil, "tags": {"<script>": "<script>alert(2)"},
    });
    assert_eq!(server.post("/v1/tasks", &body).0, 201);
    let (_, leases) =
        server.post("/v1/leases", &json!({"worker": "<script>w", "queues": ["<script>q"]}));
    assert_eq!(leases["leases"][0]["payload"], evil);
    let page = server.text("/");
    assert!(page.contains("&lt;script&gt;q") && page.contains("&lt;script&gt;w"), "{page}");
    assert!(!page.contains("<script>") && !page.contains('\u{1b}'), "{page}");
    for path in ["/v1/tasks/1", "/v1/tasks", "/v1/queues", "/v1/tasks/1/history", "/"] {
        let head = server.raw(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let head = head.to_ascii_lowercase();
        assert!(head.contains("x-content-type-options: nosniff"), "{path}: {head}");
        let wanted = if path == "/" { "content-security-policy" } else { "application/json" };
        assert!(head.contains(wanted), "{path}: {head}");
    }
    assert!(!server.raw("GET /v1/tasks/1 HTTP/1.1\r\nHost: localhost\r\n\r\n").contains('\u{1b}'));
}
