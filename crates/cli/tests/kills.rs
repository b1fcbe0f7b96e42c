//! SIGKILL at any moment, again and again, with an oracle in another process: nothing that was
//! acknowledged is lost, nothing that was seen is undone.
#![allow(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm)]

mod oracle;
mod server;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oracle::{Client, Oracle, Watcher};
use server::Server;

const CLIENTS: usize = 4;
const OBSERVERS: usize = 2;
/// How many kills there are, unless told.
const KILLS: u64 = 20;
const KILLS_VARIABLE: &str = "TENURE_KILLS";

/// Lets clients act and observers follow for a while, and kills the server under them.
fn live_and_die(
    server: &mut Server,
    clients: &mut [Client<'_>],
    watchers: &[Watcher<'_>],
    span: Duration,
) {
    let stop = AtomicBool::new(false);
    let address = server.address.clone();
    std::thread::scope(|scope| {
        for client in clients {
            scope.spawn(|| client.work(&address, &stop, usize::MAX));
        }
        for watcher in watchers {
            scope.spawn(|| watcher.follow(&address));
        }
        std::thread::sleep(span);
        server.kill();
        stop.store(true, Ordering::Relaxed);
    });
}

fn crowd<'o>(oracle: &'o Oracle) -> (Vec<Client<'o>>, Vec<Watcher<'o>>) {
    let client = |n: usize| Client::new(oracle, &format!("client-{n}"), n as u64 + 7);
    let clients = (0..CLIENTS).map(client).collect();
    (clients, (0..OBSERVERS).map(|number| Watcher { oracle, number }).collect())
}

fn verify(server: &Server) {
    let verified = server.tenure(&["wal", "verify"]);
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success(), "the log is unsound: {said}");
}

#[test]
fn no_kill_loses_or_undoes_anything() {
    let kills = std::env::var(KILLS_VARIABLE).ok().and_then(|count| count.parse().ok());
    let kills = kills.unwrap_or(KILLS);
    let mut server = Server::start("kills");
    let oracle = Oracle::begin(&server.folder);
    let (mut clients, watchers) = crowd(&oracle);
    for kill in 0..kills {
        // Some die young, some have time to write a lot.
        let span = Duration::from_millis(20 + kill * 7_919 % 400);
        live_and_die(&mut server, &mut clients, &watchers, span);
        if kill % 5 == 0 {
            verify(&server);
        }
        server.restart();
        oracle.check(&server.address).unwrap_or_else(|faults| panic!("kill {kill}: {faults}"));
    }
    oracle.check_all(&server.address).unwrap_or_else(|faults| panic!("at the end: {faults}"));
    server.kill();
    verify(&server);
    let tally = oracle.tally();
    println!("tally: {kills} kills, lost 0, undone 0, {tally:?}");
    assert!(tally.ok > 20 && tally.reads > 0 && tally.events > 0, "{tally:?}");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The test of the test: a server that wakes up with yesterday's folder has forgotten what it
/// promised, and that must be noticed.
#[test]
fn a_server_that_forgets_is_found_out() {
    let mut server = Server::start("forgets");
    let oracle = Oracle::begin(&server.folder);
    let (mut clients, watchers) = crowd(&oracle);
    live_and_die(&mut server, &mut clients, &watchers, Duration::from_millis(500));
    let kept = server.folder.with_extension("kept");
    let _ = std::fs::remove_dir_all(&kept);
    copy(&server.folder, &kept);
    server.restart();
    oracle.check(&server.address).unwrap();
    let before = oracle.tally();
    live_and_die(&mut server, &mut clients, &watchers, Duration::from_millis(1_500));
    assert!(oracle.tally().ok > before.ok, "something was promised meanwhile");
    std::fs::remove_dir_all(&server.folder).unwrap();
    std::fs::rename(&kept, &server.folder).unwrap();
    server.restart();
    let faults = oracle.check(&server.address).unwrap_err();
    assert!(faults.contains("undone") || faults.contains("lost"), "{faults}");
}
