//! The server under load it cannot bear (T13), with readers that do not read, and while it stops.
//!
//! Proves P15.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::evidence;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::server::{Server, lacks_strace, post_to};
use serde_json::{Value, json};

/// Lines, as a user sees them on stderr.
fn lines_of(args: &[&str], act: impl FnOnce(&Server)) -> String {
    let (mut server, mut stderr) = Server::start_listening("lines", args);
    let reader = std::thread::spawn(move || {
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        said
    });
    act(&server);
    assert_eq!(server.terminate(), Some(0));
    reader.join().unwrap()
}

fn tell_a_story(server: &Server) {
    server.post("/v1/tasks", &json!({"queue": "mail", "priority": 7}));
    server.post("/v1/leases", &json!({"worker": "anna", "queues": ["mail"]}));
    server.post("/v1/tasks/1/heartbeat", &json!({"lease_id": 1, "message": "\u{1b}[31mred"}));
    server.post("/v1/tasks/1/complete", &json!({"lease_id": 1}));
    assert_eq!(server.post("/v1/tasks/1/cancel", &json!({})).0, 409);
    assert_eq!(server.post("/v1/tasks/1/complete", &json!({"lease_id": 9})).0, 409);
}

#[test]
fn every_transition_and_every_refusal_has_a_line() {
    let said = lines_of(&["--log", "transitions"], tell_a_story);
    for wanted in [
        "task=1 queue=\"mail\" event=\"TaskCreated\" to=\"WAITING\"",
        "event=\"LeaseGranted\" from=\"WAITING\" to=\"LEASED\" worker=\"anna\" attempt=1 priority=7 \
         lease=1 lsn=2 at=\"",
        "event=\"TaskCompleted\" from=\"LEASED\" to=\"COMPLETED\"",
        "refused task=1 event=\"CancelTask\" from=\"COMPLETED\" code=\"task_terminal\"",
        "refused task=1 event=\"CompleteTask\" lease=9 code=\"lease_lost\"",
    ] {
        assert!(said.contains(wanted), "{wanted} is not in:\n{said}");
    }
    assert!(!said.contains('\u{1b}'), "strangers do not paint terminals:\n{said}");
    let quiet = lines_of(&["--log", "quiet"], tell_a_story);
    assert!(!quiet.contains("TaskCreated") && !quiet.contains("refused"), "{quiet}");
}

#[test]
fn lines_can_be_json_and_those_beyond_the_budget_are_counted() {
    let said = lines_of(&["--log", "transitions", "--log-format", "json"], |server| {
        let tasks: Vec<_> = (0..3_000).map(|_| json!({"queue": "many"})).collect();
        assert_eq!(server.post("/v1/tasks/batch", &json!({"tasks": tasks})).0, 201);
    });
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_tasks = lines.iter().filter(|line| line["event"] == "TaskCreated").count();
    assert_eq!(of_tasks, 1_000, "the budget of a second");
    let left_out = lines.iter().filter_map(|line| line["message"].as_str());
    let left_out: Vec<_> = left_out.filter(|text| text.starts_with("left out")).collect();
    assert_eq!(left_out, ["left out 2,000 lines in the last second"], "{said:.2000}");
}

/// T13; P15, P16.
#[test]
fn a_server_that_cannot_keep_up_refuses_new_work_unread_and_hears_its_workers() {
    if lacks_strace() {
        return;
    }
    // The disk takes very long from the sixth sync on, so what comes in piles up.
    let runner = "strace -D -f -qq -o /dev/null -e trace=fdatasync -e \
                  inject=fdatasync:delay_enter=1500000:when=6+";
    let runner: Vec<_> = runner.split_whitespace().map(str::to_owned).collect();
    let mut server = Server::start_under("overload", &runner).unwrap();
    let (_, task) = server.post("/v1/tasks", &json!({"queue": "work", "lease_ms": 600_000}));
    let task = task["id"].clone();
    server.post("/v1/leases", &json!({"worker": "anna", "queues": ["work"]}));
    let (taken, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let large = json!({"payload": "x".repeat(1_000_000)}).to_string();
    let (begun, is_seen) = (Instant::now(), AtomicBool::new(false));
    // The load goes on until a refusal was seen, or it could be over before one is asked for.
    let submit = || loop {
        match post_to(&server.address, "/v1/tasks", &large) {
            (201, _) => taken.fetch_add(1, Ordering::Relaxed),
            (429, problem) => {
                assert_eq!(problem["code"], "overloaded");
                refused.fetch_add(1, Ordering::Relaxed)
            }
            other => panic!("{other:?}"),
        };
        if is_seen.load(Ordering::Relaxed) || begun.elapsed() > Duration::from_secs(40) {
            return;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(submit);
        }
        // While it is so, new work is refused before its body is sent.
        let announced = "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: 1000000\r\n\r\n";
        let mut said = String::new();
        while !said.starts_with("HTTP/1.1 429") && begun.elapsed() < Duration::from_secs(40) {
            let mut stream = server.connect();
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            stream.write_all(announced.as_bytes()).unwrap();
            let mut some = [0; 1024];
            let size = stream.read(&mut some).unwrap_or(0);
            said = String::from_utf8_lossy(&some[..size]).into_owned();
        }
        is_seen.store(true, Ordering::Relaxed);
        assert!(said.starts_with("HTTP/1.1 429"), "{said}");
        assert!(said.to_ascii_lowercase().contains("retry-after: 1"), "{said}");
        let beat = format!("/v1/tasks/{task}/heartbeat");
        let (status, beat) = post_to(&server.address, &beat, "{\"lease_id\": 1}");
        assert_eq!(status, 200, "a worker is heard: {beat}");
    });
    let (taken, refused) = (taken.into_inner(), refused.into_inner());
    let counts =
        [("overloads of a slow disk", 1), ("taken", taken as u64), ("refused", refused as u64)];
    evidence::print("T13", &counts);
    assert!(taken > 0 && refused > 0);
    server.assert_well("overload", 700);
    let metrics = server.text("/metrics");
    let counted = metrics.lines().find(|line| line.starts_with("tenure_requests_refused_unread"));
    assert!(counted.is_some_and(|line| !line.ends_with(" 0")), "{counted:?}");
    server.kill();
}

/// The ids of events, up to so many.
fn ids(stream: TcpStream) -> impl Iterator<Item = String> {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.filter_map(|line| line.strip_prefix("id: ").map(str::to_owned))
}

fn follow(server: &Server, after: &str) -> TcpStream {
    let mut stream = server.connect();
    write!(stream, "GET /v1/events?after={after} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream
}

/// P2.
#[test]
fn a_follower_misses_and_repeats_nothing_over_kills() {
    let mut server = Server::start("resume");
    let (mut seen, mut last) = (Vec::new(), "0".to_owned());
    for round in 0..6 {
        let tasks: Vec<_> = (0..7).map(|_| json!({})).collect();
        assert_eq!(server.post("/v1/tasks/batch", &json!({"tasks": tasks})).0, 201);
        server.post("/v1/leases", &json!({"worker": "w", "queues": ["default"], "max": 3}));
        // It is cut off in the middle of a record, each time at another place.
        for id in ids(follow(&server, &last)).take(4 + round) {
            seen.push(id.clone());
            last = id;
        }
        server.kill();
        server.restart();
    }
    let all: Vec<_> = ids(follow(&server, "0")).take(60).collect();
    seen.extend(ids(follow(&server, &last)).take(60 - seen.len()));
    assert_eq!(seen, all);
}

/// P15.
#[test]
fn a_follower_that_never_reads_is_bounded_let_go_and_can_come_back() {
    let server = Server::start("deaf");
    let reason = "r".repeat(4_000);
    let deaf: Vec<_> = (0..20).map(|_| follow(&server, "0")).collect();
    let before = server.memory_mib();
    for _ in 0..8 {
        let tasks: Vec<_> = (0..1_000).map(|_| json!({"max_failures": 1})).collect();
        server.post("/v1/tasks/batch", &json!({"tasks": tasks}));
        let lease = json!({"worker": "w", "queues": ["default"], "max": 1_000});
        let (_, leases) = server.post("/v1/leases", &lease);
        let leases = leases["leases"].as_array().unwrap().iter();
        let fails: Vec<_> = leases
            .map(|lease| {
                json!({"task_id": lease["task_id"], "lease_id": lease["lease_id"], "reason": reason})
            })
            .collect();
        assert_eq!(server.post("/v1/reports", &json!({"fail": fails})).0, 200);
    }
    // 24,000 events with 32 MB of reasons for each of twenty.
    server.assert_well("deaf followers", before + 400);
    let begun = Instant::now();
    let count = |server: &Server, name: &str| {
        let metrics = server.text("/metrics");
        let line = metrics.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    while count(&server, "tenure_subscribers ") > 0 {
        assert!(begun.elapsed() < Duration::from_secs(90), "they are let go");
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(count(&server, "tenure_subscribers_dropped_total "), 20);
    // What was sent before is still on its way; then it ends, and goes on from the last id.
    let mut read: Vec<_> = ids(deaf.into_iter().next().unwrap()).collect();
    assert!(!read.is_empty() && read.len() < 24_000, "{}", read.len());
    let last = read.last().unwrap().clone();
    read.extend(ids(follow(&server, &last)).take(24_000 - read.len()));
    let all: Vec<_> = ids(follow(&server, "0")).take(24_000).collect();
    assert_eq!(read.len(), all.len());
    assert!(read == all, "nothing is missing or twice");
}

/// P15.
#[test]
fn pages_and_grants_stay_below_what_an_answer_may_hold() {
    let server = Server::start("pages");
    let large = "x".repeat(900_000);
    for _ in 0..6 {
        assert_eq!(server.post("/v1/tasks", &json!({"payload": large})).0, 201);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let (_, page) = server.get(&format!("/v1/tasks?limit=1000{cursor}"));
        let items = page["items"].as_array().unwrap();
        assert!((1..=2).contains(&items.len()), "{}", items.len());
        seen.extend(items.iter().map(|task| task["id"].as_u64().unwrap()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, [6, 5, 4, 3, 2, 1]);
    let lease = json!({"worker": "w", "queues": ["default"], "max": 1000});
    let (_, leases) = server.post("/v1/leases", &lease);
    assert_eq!(leases["leases"].as_array().unwrap().len(), 3, "the third passes the bound");
}

#[test]
fn a_stop_is_told_and_takes_no_longer_than_it_may() {
    let mut server = Server::start("stopping");
    // One who sends a body for ever holds a stop up, but only so long.
    let mut slow = server.connect();
    slow.write_all(
        b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Content-Length: 9\r\n\r\n{",
    )
    .unwrap();
    let mut ready = server.connect();
    let ask = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    ready.write_all(ask).unwrap();
    let mut some = [0; 1024];
    let size = ready.read(&mut some).unwrap();
    assert!(some[..size].starts_with(b"HTTP/1.1 200"));
    let begun = Instant::now();
    let pid = server.pid().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    // An idle connection is closed, or is told; it is never told that all is well.
    let told = ready.write_all(ask).and_then(|()| ready.read(&mut some));
    if let Ok(size @ 1..) = told {
        let said = String::from_utf8_lossy(&some[..size]);
        assert!(said.starts_with("HTTP/1.1 503") || said.starts_with("HTTP/1.1 200"), "{said}");
    }
    while !server.has_ended() {
        assert!(begun.elapsed() < Duration::from_secs(40), "it stops");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.restart();
    assert_eq!(server.text("/readyz"), "ok\n");
}
