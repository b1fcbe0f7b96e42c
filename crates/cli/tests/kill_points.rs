//! The real server is killed inside the Nth call of a kind that its log makes: `strace` does it.
//! After each, everything that was acknowledged is there, and the log is sound.
//!
//! Proves P1.
#![allow(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm)]

mod oracle;
mod server;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use oracle::{Client, Oracle};
use server::{Server, folder_of, lacks_strace};

/// Acts of the one client; each of them that writes makes one or two calls of most kinds.
const ACTS: usize = 200;
/// All points are tried if this is set, up to so many of each kind.
const ALL_VARIABLE: &str = "TENURE_KILL_POINTS";
/// A call that is held up does not come to its end before the server is killed.
const DELAY_US: u64 = 3_000_000;
/// So long clients have to come to it.
const HANGS_FOR: Duration = Duration::from_millis(1_500);

/// What the server is busy with when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It begins a new folder and serves.
    First,
    /// It recovers what a kill left behind, and serves again.
    Again,
}

/// Which files count. The filling of a spare with zeros is on a thread of its own, and `strace`
/// counts for each thread, so it would hide the writes of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    Segments,
    All,
}

/// Calls of one kind.
#[derive(Clone, Copy, Debug)]
struct Calls {
    stage: Stage,
    call: &'static str,
    files: Files,
    /// At which of them the server is killed in the short form.
    short: &'static [u64],
}

const fn calls(stage: Stage, call: &'static str, files: Files, short: &'static [u64]) -> Calls {
    Calls { stage, call, files, short }
}

const CALLS: [Calls; 11] = [
    calls(
        Stage::First,
        "pwrite64",
        Files::Segments,
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    ),
    calls(Stage::First, "pwrite64", Files::All, &[1, 2, 64, 127, 128]),
    calls(Stage::First, "fdatasync", Files::All, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]),
    calls(Stage::First, "fsync", Files::All, &[1]),
    calls(Stage::First, "rename", Files::All, &[1]),
    calls(Stage::First, "openat", Files::All, &[1, 2, 3, 4, 5, 6]),
    calls(Stage::First, "mkdir", Files::All, &[1]),
    calls(Stage::Again, "pwrite64", Files::All, &[1, 2, 3, 64]),
    calls(Stage::Again, "fdatasync", Files::All, &[1, 2, 3, 4]),
    calls(Stage::Again, "openat", Files::All, &[1, 2, 3, 4, 5]),
    calls(Stage::Again, "fsync", Files::All, &[1]),
];

/// So many kills there are at least in the short form.
const KILLS_MIN: usize = 50;

/// What became of one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    Killed,
    /// There are not so many calls.
    NotReached,
}

/// Has `strace` do something to one call.
fn inject(folder: &Path, calls: Calls, what: &str) -> Vec<String> {
    let call = calls.call;
    let mut args: Vec<String> =
        ["strace", "-D", "-f", "-qq", "-o", "/dev/null"].map(str::to_owned).to_vec();
    args.extend(["-e".to_owned(), format!("trace={call}")]);
    args.extend(["-e".to_owned(), format!("inject={call}:{what}")]);
    let segments = (1..=6).map(|n| folder.join(format!("segment-{n:016x}.wal")));
    let mut paths: Vec<_> = segments.collect();
    if calls.files == Files::All {
        paths.extend([folder.to_owned(), folder.join("LOCK"), folder.join("spare.tmp")]);
    }
    args.extend(paths.iter().flat_map(|path| ["-P".to_owned(), path.display().to_string()]));
    args
}

fn try_point(calls: Calls, when: u64) -> Point {
    let Calls { stage, call, files, .. } = calls;
    let folder = folder_of(&format!("point-{stage:?}-{call}-{files:?}-{when}"));
    let _ = std::fs::remove_dir_all(&folder);
    let oracle = Oracle::begin(&folder);
    let what = format!("{stage:?}: killed in {call} number {when}");
    let mut client = Client::new(&oracle, "client", when);
    let on = AtomicBool::new(false);
    if stage == Stage::Again {
        let mut server = Server::start_on(folder.clone(), &[]).unwrap();
        client.work(&server.address, &on, ACTS / 4);
        server.kill();
        server.keep_folder();
    }
    let mut point = Point::Killed;
    let kill = inject(&folder, calls, &format!("signal=KILL:when={when}"));
    if let Some(mut server) = Server::start_on(folder.clone(), &kill) {
        client.work(&server.address.clone(), &on, ACTS);
        if !server.has_ended() {
            point = Point::NotReached;
        }
        server.kill();
        server.keep_folder();
    }
    if folder.exists() {
        let verified = Command::new(env!("CARGO_BIN_EXE_tenure"))
            .args(["wal", "verify", "--data"])
            .arg(&folder)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&verified.stderr);
        // Before the first segment has its name there is no log to verify.
        let is_empty = !folder.join("segment-0000000000000001.wal").exists();
        assert!(verified.status.success() || is_empty, "{what}: {said}");
    }
    restart(folder, &oracle, &mut client, &what);
    point
}

/// The server hangs in a write of records and is killed there. Nobody may have been told what it
/// was to write.
fn hang_and_die(name: &str, when: u64, more: &[String]) -> Result<(), String> {
    let folder = folder_of(&format!("{name}-{when}"));
    let _ = std::fs::remove_dir_all(&folder);
    let oracle = Oracle::begin(&folder);
    let mut runner = inject(&folder, CALLS[0], &format!("delay_enter={DELAY_US}:when={when}"));
    runner.extend_from_slice(more);
    let mut server = Server::start_on(folder.clone(), &runner).unwrap();
    let address = server.address.clone();
    let mut client = Client::new(&oracle, "client", when);
    std::thread::scope(|scope| {
        scope.spawn(|| client.work(&address, &AtomicBool::new(false), ACTS));
        std::thread::sleep(HANGS_FOR);
        server.kill();
    });
    server.keep_folder();
    let server = Server::start_on(folder, &[]).unwrap();
    oracle.check(&server.address)
}

#[test]
fn what_hangs_on_its_way_to_the_disk_was_not_acknowledged() {
    if lacks_strace() {
        return;
    }
    for when in [2, 5] {
        hang_and_die("hangs", when, &[]).unwrap();
    }
}

/// The test of the test: a server that replies before it writes is found out.
#[cfg(feature = "planted")]
#[test]
fn a_reply_before_the_write_is_noticed() {
    if lacks_strace() {
        return;
    }
    let planted = ["-E".to_owned(), "TENURE_PLANTED=ReleasedOneEarly".to_owned()];
    let faults = [2, 5].map(|when| hang_and_die("planted", when, &planted));
    let faults: Vec<_> = faults.into_iter().filter_map(Result::err).collect();
    assert!(faults.iter().any(|faults| faults.contains("lost")), "{faults:?}");
}

/// Starts it again, checks, and sees that it goes on.
fn restart(folder: PathBuf, oracle: &Oracle, client: &mut Client<'_>, what: &str) {
    let server = Server::start_on(folder, &[]).unwrap_or_else(|| panic!("{what}: no restart"));
    oracle.check(&server.address).unwrap_or_else(|faults| panic!("{what}: {faults}"));
    client.work(&server.address, &AtomicBool::new(false), 5);
    oracle.check_all(&server.address).unwrap_or_else(|faults| panic!("{what}: {faults}"));
}

/// Tries points on two threads, as one alone mostly waits.
fn try_all(points: Vec<(Calls, u64)>) -> Vec<(Calls, Point)> {
    let points = Mutex::new(points.into_iter());
    let tried = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = points.lock().unwrap().next();
                    let Some((calls, when)) = next else { return };
                    let point = try_point(calls, when);
                    tried.lock().unwrap().push((calls, point));
                }
            });
        }
    });
    tried.into_inner().unwrap()
}

#[test]
fn no_call_is_deadly_for_what_was_acknowledged() {
    if lacks_strace() {
        return;
    }
    let all = std::env::var(ALL_VARIABLE).ok().and_then(|count| count.parse::<u64>().ok());
    let points = CALLS.iter().flat_map(|calls| {
        let numbers = match all {
            Some(count) => (1..=count).collect(),
            None => calls.short.to_vec(),
        };
        numbers.into_iter().map(|when| (*calls, when))
    });
    let tried = try_all(points.collect());
    let mut sum = 0;
    for Calls { stage, call, files, .. } in CALLS {
        let is_of = |of: &Calls| (of.stage, of.call, of.files) == (stage, call, files);
        let of_call: Vec<_> = tried.iter().filter(|(of, _)| is_of(of)).collect();
        let killed = of_call.iter().filter(|(_, point)| *point == Point::Killed).count();
        println!("{stage:?}, {call}, {files:?}: killed at {killed} of {} points", of_call.len());
        assert!(killed > 0, "{call} is never called");
        sum += killed;
    }
    println!("tally: killed at {sum} points of {}", tried.len());
    assert!(sum >= KILLS_MIN, "only {sum} kills");
}
