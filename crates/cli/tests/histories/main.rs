//! T9: what several clients and workers saw, over HTTP and gRPC and over kills of the server, is put
//! in order. For each task there must be one in which every answer is right: P1, P2, P3, P9. Lease ids
//! only grow (P4), zombies change nothing (P5), no lease ends early or late (P7).
#![allow(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm)]

mod crowd;
#[path = "../evidence/mod.rs"]
mod evidence;
mod line;
mod linear;
mod refused;
mod register;
#[path = "../server/mod.rs"]
mod server;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crowd::{Book, Client};
use line::{Ask, Line};
use server::Server;

/// How many histories there are, unless told.
const HISTORIES: u64 = 20;
const HISTORIES_VARIABLE: &str = "TENURE_HISTORIES";
/// Histories on one folder.
const HISTORIES_OF_A_LIFE: u64 = 100;
/// The server is killed so often in each.
const KILLS: u64 = 2;
const CLIENTS: u64 = 4;

/// Lets everybody act for a while; then the server is killed, or it is enough.
fn act(server: &mut Server, clients: &mut [Client<'_>], span: Duration, then: Then) {
    let stop = AtomicBool::new(false);
    let address = server.address.clone();
    std::thread::scope(|scope| {
        for (number, client) in clients.iter_mut().enumerate() {
            let (address, stop) = (&address, &stop);
            scope.spawn(move || {
                let line = match number % 2 {
                    0 => Line::http(address),
                    _ => Line::grpc(address),
                };
                while !stop.load(Ordering::Relaxed) && client.act(&line).is_ok() {}
            });
        }
        std::thread::sleep(span);
        if then == Then::Kill {
            server.kill();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Kill,
    Enough,
}

/// Which number became which task. None became two.
fn tasks_of(server: &Server, queue: &str) -> Result<BTreeMap<u64, u64>, String> {
    let (_, page) = server.get(&format!("/v1/tasks?queue={queue}&limit=1000"));
    assert_eq!(page["next_cursor"], Value::Null, "they fit one page");
    let mut ids = BTreeMap::new();
    for task in page["items"].as_array().unwrap() {
        let (nonce, id) = (task["payload"].as_u64().unwrap(), task["id"].as_u64().unwrap());
        if let Some(other) = ids.insert(nonce, id) {
            return Err(format!("key {nonce} is task {other} and task {id}"));
        }
    }
    Ok(ids)
}

/// What was counted.
#[derive(Default)]
struct Count {
    histories: u64,
    tasks: u64,
    calls: u64,
    unknown: u64,
    kills: u64,
    refused: u64,
}

impl Count {
    fn print(&self) {
        let counts = [
            ("histories", self.histories),
            ("not linearizable", self.refused),
            ("tasks", self.tasks),
            ("calls", self.calls),
            ("unknown", self.unknown),
            ("kills", self.kills),
        ];
        evidence::print("T9", &counts);
    }
}

/// One history: new tasks in a queue of their own, and a server that is killed twice.
fn tell(server: &mut Server, number: u64, count: &mut Count) -> Result<(), String> {
    let queue = format!("history-{number}");
    let book = Book::begin(queue.clone());
    let client = |n| Client::new(&book, format!("client-{n}"), number * CLIENTS + n + 1);
    let mut clients: Vec<_> = (0..CLIENTS).map(client).collect();
    for kill in 0..KILLS {
        let span = Duration::from_millis(80 + (number * KILLS + kill) * 7_919 % 170);
        act(server, &mut clients, span, Then::Kill);
        book.server_died();
        server.restart_where_it_was();
        count.kills += 1;
    }
    act(server, &mut clients, Duration::from_millis(100), Then::Enough);
    let ids = tasks_of(server, &queue)?;
    let line = Line::http(&server.address);
    for task in ids.values() {
        let read = clients[0].call(&line, &Ask::Read { task: *task });
        assert!(read.is_ok(), "the server is there");
    }
    let (calls, unknown) = book.counts();
    let by_task = book.by_task(&ids);
    count.histories += 1;
    count.calls += calls;
    count.unknown += unknown;
    count.tasks += by_task.len() as u64;
    book.check_leases()?;
    for (task, calls) in by_task {
        linear::check(&calls).map_err(|why| format!("task {task}: {why}"))?;
    }
    Ok(())
}

/// T9; P1, P2, P3, P4, P5, P7, P9.
#[test]
fn every_history_has_an_order_that_explains_it() {
    let histories = evidence::count(HISTORIES_VARIABLE, HISTORIES);
    let mut count = Count::default();
    let mut server = Server::start("histories");
    for number in 0..histories {
        if number > 0 && number.is_multiple_of(HISTORIES_OF_A_LIFE) {
            drop(server);
            server = Server::start("histories");
        }
        if let Err(why) = tell(&mut server, number, &mut count) {
            count.refused += 1;
            count.print();
            panic!("history {number}: {why}");
        }
        evidence::progress("histories", number + 1, histories);
    }
    count.print();
    assert!(count.calls > 20 * histories && count.unknown > 0, "too little was done");
}

/// The test of the test: a server that keeps keys in memory only makes two tasks of one submit when it
/// is killed, and is found out.
#[cfg(feature = "planted")]
#[test]
fn a_key_that_is_not_in_the_log_is_noticed() {
    let planted = ["env", "TENURE_PLANTED=KeyOutsideTheRecord"].map(str::to_owned);
    let found = (0..60).find_map(|number| {
        let mut server = Server::start_under("histories-planted", &planted).unwrap();
        tell(&mut server, number, &mut Count::default()).err()
    });
    assert!(found.as_ref().is_some_and(|why| why.starts_with("key ")), "{found:?}");
}
