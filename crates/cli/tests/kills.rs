//! T6: SIGKILL at any moment, again and again, with an oracle in another process: P1, nothing that
//! was acknowledged is lost; P2, nothing that was seen is undone; P3, what got no answer is wholly
//! there or not at all; P4, lease ids only grow; P6, at most one completion counts.
#![allow(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm)]

mod evidence;
mod oracle;
mod server;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oracle::{Client, Does, EXEC_QUEUE, EXEC_WORKER, Oracle, Tally, Watcher};
use server::Server;

const CLIENTS: usize = 4;
const OBSERVERS: usize = 2;
/// How many kills there are, unless told.
const KILLS: u64 = 20;
const KILLS_VARIABLE: &str = "TENURE_KILLS";
/// Kills of servers on one folder; then a new one is begun, with a new oracle.
const KILLS_OF_A_LIFE: u64 = 50;

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

fn crowd<'o>(oracle: &'o Oracle, seed: u64, does: Does) -> (Vec<Client<'o>>, Vec<Watcher<'o>>) {
    let client = |n: usize| {
        Client::new(oracle, &format!("client-{n}"), seed * 31 + n as u64 + 7).who_does(does)
    };
    let clients = (0..CLIENTS).map(client).collect();
    (clients, (0..OBSERVERS).map(|number| Watcher { oracle, number }).collect())
}

fn verify(server: &Server) {
    let verified = server.tenure(&["wal", "verify"]);
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success(), "the log is unsound: {said}");
}

/// A worker that runs programs, and comes back to a server that comes back.
struct ExecWorker(Child);

impl ExecWorker {
    fn start(server: &Server) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(["worker", "exec", "--quiet", "--slots", "2"]);
        command.args(["--queue", EXEC_QUEUE, "--name", EXEC_WORKER]);
        command.env("TENURE_SERVER", format!("http://{}", server.address));
        let nothing = (Stdio::null(), Stdio::null(), Stdio::null());
        Self(command.stdin(nothing.0).stdout(nothing.1).stderr(nothing.2).spawn().unwrap())
    }
}

impl Drop for ExecWorker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Adds up what several oracles counted.
fn add(sum: &mut Tally, more: Tally) {
    let pairs = [
        (&mut sum.ok, more.ok),
        (&mut sum.refused, more.refused),
        (&mut sum.unknown, more.unknown),
        (&mut sum.reads, more.reads),
        (&mut sum.events, more.events),
        (&mut sum.runs_completed, more.runs_completed),
        (&mut sum.programs_completed, more.programs_completed),
        (&mut sum.lost, more.lost),
        (&mut sum.undone, more.undone),
        (&mut sum.other, more.other),
    ];
    for (sum, more) in pairs {
        *sum += more;
    }
}

fn print(kills: u64, tally: Tally) {
    let counts = [
        ("kills", kills),
        ("ok", tally.ok as u64),
        ("lost", tally.lost as u64),
        ("undone", tally.undone as u64),
        ("unknown", tally.unknown as u64),
        ("other faults", tally.other as u64),
        ("refused", tally.refused as u64),
        ("reads", tally.reads as u64),
        ("events", tally.events as u64),
        ("runs completed", tally.runs_completed as u64),
        ("programs completed", tally.programs_completed as u64),
    ];
    evidence::print("T6", &counts);
}

/// Kills servers on one folder, and lets the last one come to the end of all work.
fn live(number: u64, kills: u64, done: u64, all: u64) -> (Tally, Result<(), String>) {
    let mut server = Server::start(&format!("kills-{number}"));
    let oracle = Oracle::begin(&server.folder);
    let (mut clients, watchers) = crowd(&oracle, number, Does::Everything);
    let mut worker = ExecWorker::start(&server);
    for kill in 0..kills {
        // Some die young, some have time to write a lot.
        let span = Duration::from_millis(20 + (done + kill) * 7_919 % 400);
        live_and_die(&mut server, &mut clients, &watchers, span);
        if kill % 5 == 0 {
            verify(&server);
        }
        if kill % 3 == 2 {
            // It takes its programs with it; what they were about is offered again.
            drop(worker);
            server.restart_where_it_was();
            worker = ExecWorker::start(&server);
        } else {
            server.restart_where_it_was();
        }
        if let Err(faults) = oracle.check(&server.address) {
            return (oracle.tally(), Err(format!("kill {}: {faults}", done + kill)));
        }
        evidence::progress("kills", done + kill + 1, all);
    }
    clients[0].drain(&server.address);
    let verdict = oracle.check_all(&server.address).map_err(|faults| format!("drained: {faults}"));
    assert!(verdict.is_err() || oracle.open_runs() == 0, "every run comes to its end");
    drop(worker);
    server.kill();
    verify(&server);
    (oracle.tally(), verdict)
}

/// T6; P1, P2, P3, P4, P6.
#[test]
fn no_kill_loses_or_undoes_anything() {
    let kills = evidence::count(KILLS_VARIABLE, KILLS);
    let (mut done, mut sum) = (0, Tally::default());
    for number in 0.. {
        let some = (kills - done).min(KILLS_OF_A_LIFE);
        if some == 0 {
            break;
        }
        let (tally, verdict) = live(number, some, done, kills);
        done += some;
        add(&mut sum, tally);
        if let Err(faults) = verdict {
            print(done, sum);
            panic!("{faults}");
        }
    }
    print(done, sum);
    assert!(sum.ok > 20 && sum.reads > 0 && sum.events > 0, "{sum:?}");
    assert!(sum.runs_completed > 0 && sum.programs_completed > 0, "{sum:?}");
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
    let (mut clients, watchers) = crowd(&oracle, 0, Does::Tasks);
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
