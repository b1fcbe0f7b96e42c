//! T4: the real server is killed inside the Nth call of a kind that its log makes: `strace` does it.
//! T8: that call fails instead, once or for ever. After each, everything that was acknowledged is
//! there (P1), nothing is half there (P3), and the log is sound; a server whose write failed has ended
//! and said so (P13).
#![allow(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm)]

mod evidence;
mod oracle;
mod server;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use oracle::{Client, Oracle};
use server::{Server, folder_of, lacks_strace};

/// Acts of the one client; each of them that writes makes one or two calls of most kinds.
const ACTS: usize = 200;
/// All points are tried if this is set, up to so many of each kind.
const ALL_VARIABLE: &str = "TENURE_KILL_POINTS";
/// A call that is held up does not come to its end before the server is killed.
const DELAY_US: u64 = 3_000_000;
/// A server that cannot write ends within this.
const ENDS_WITHIN: Duration = Duration::from_secs(20);
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
/// After so many numbers that no call has, there are no more.
const MISSES_MAX: usize = 3;
/// The exit code of a server whose log cannot be written.
const WRITE_FAILED: i32 = 74;

/// What is done to a call.
const KILL: &str = "signal=KILL";
/// How calls fail in the short form, and which: once, or from then on.
const FAILURES: [(&str, &str, &[&str]); 8] = [
    ("pwrite64", "error=EIO", &["2", "5"]),
    ("pwrite64", "error=ENOSPC", &["2", "5"]),
    ("pwrite64", "error=EINTR", &["3"]),
    ("fdatasync", "error=EIO", &["2", "5"]),
    ("fdatasync", "error=ENOSPC", &["4+"]),
    ("fsync", "error=EIO", &["1"]),
    ("openat", "error=EMFILE", &["2", "4+"]),
    ("rename", "error=EIO", &["1"]),
];

/// What became of one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    /// The server is at its end.
    Ended,
    /// It lives: there are not so many calls, or it can bear that one fails.
    Alive,
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

fn try_point(calls: Calls, when: &str, how: &str) -> Point {
    let Calls { stage, call, files, .. } = calls;
    let folder = folder_of(&format!("point-{stage:?}-{call}-{files:?}-{when}-{how}"));
    let _ = std::fs::remove_dir_all(&folder);
    let oracle = Oracle::begin(&folder);
    let what = format!("{stage:?}: {how} in {call} number {when}");
    let seed = when.trim_end_matches('+').parse().unwrap();
    let mut client = Client::new(&oracle, "client", seed);
    let on = AtomicBool::new(false);
    if stage == Stage::Again {
        let mut server = Server::start_on(folder.clone(), &[]).unwrap();
        client.work(&server.address, &on, ACTS / 4);
        server.kill();
        server.keep_folder();
    }
    let mut point = Point::Ended;
    let disturbed = inject(&folder, calls, &format!("{how}:when={when}"));
    if let Some(mut server) = Server::start_on(folder.clone(), &disturbed) {
        client.work(&server.address.clone(), &on, ACTS);
        if !ends(&mut server, &client) {
            point = Point::Alive;
        } else if how != KILL {
            assert_eq!(server.exit_code(), Some(WRITE_FAILED), "{what}: it says why it ended");
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

/// Whether it has ended or is about to: who was let down by it need not wait for long.
fn ends(server: &mut Server, client: &Client<'_>) -> bool {
    let begun = Instant::now();
    while client.was_let_down() && begun.elapsed() < ENDS_WITHIN && !server.has_ended() {
        std::thread::sleep(Duration::from_millis(5));
    }
    server.has_ended()
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

/// Points of one kind of call, one after the other.
type Series = (Calls, Vec<u64>);

/// Kills on two threads, as one alone mostly waits. Gives how often it was killed and how often not.
fn kill_all(series: Vec<Series>) -> Vec<(Calls, usize, usize)> {
    let all: usize = series.iter().map(|(_, numbers)| numbers.len()).sum();
    let (series, done) = (Mutex::new(series.into_iter()), AtomicUsize::new(0));
    let tried = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = series.lock().unwrap().next();
                    let Some((calls, numbers)) = next else { return };
                    let (mut killed, mut missed) = (0, 0);
                    for when in numbers {
                        match try_point(calls, &when.to_string(), KILL) {
                            Point::Ended => killed += 1,
                            Point::Alive => missed += 1,
                        }
                        let done = done.fetch_add(1, Ordering::Relaxed) as u64 + 1;
                        evidence::progress("points", done, all as u64);
                        if missed == MISSES_MAX {
                            break;
                        }
                    }
                    tried.lock().unwrap().push((calls, killed, missed));
                }
            });
        }
    });
    tried.into_inner().unwrap()
}

/// T4; P1, P3.
#[test]
fn no_call_is_deadly_for_what_was_acknowledged() {
    if lacks_strace() {
        return;
    }
    let all = std::env::var(ALL_VARIABLE).ok().and_then(|count| count.parse::<u64>().ok());
    let series: Vec<Series> = match all {
        Some(count) => CALLS.iter().map(|calls| (*calls, (1..=count).collect())).collect(),
        None => CALLS
            .iter()
            .flat_map(|calls| calls.short.iter().map(|when| (*calls, vec![*when])))
            .collect(),
    };
    let tried = kill_all(series);
    let (mut sum, mut points) = (0, 0);
    for Calls { stage, call, files, .. } in CALLS {
        let is_of = |of: &Calls| (of.stage, of.call, of.files) == (stage, call, files);
        let of_call = tried.iter().filter(|(of, ..)| is_of(of));
        let add = |(a, b): (usize, usize), (_, killed, missed): &(Calls, usize, usize)| {
            (a + killed, b + killed + missed)
        };
        let (killed, of) = of_call.fold((0, 0), add);
        println!("{stage:?}, {call}, {files:?}: killed at {killed} of {of} points");
        assert!(killed > 0, "{call} is never called");
        (sum, points) = (sum + killed, points + of);
    }
    let counts = [
        ("kills inside calls", sum as u64),
        ("lost", 0),
        ("undone", 0),
        ("points tried", points as u64),
    ];
    evidence::print("T4", &counts);
    assert!(sum >= KILLS_MIN, "only {sum} kills");
}

/// T8; P1, P3, P13.
#[test]
fn no_failing_call_loses_what_was_acknowledged() {
    if lacks_strace() {
        return;
    }
    let all = std::env::var(ALL_VARIABLE).ok().and_then(|count| count.parse::<u64>().ok());
    let (mut failed, mut ended) = (0, 0);
    for (call, how, short) in FAILURES {
        let calls = CALLS.iter().find(|calls| calls.call == call).unwrap();
        let numbers: Vec<String> = match all {
            Some(count) => (1..=count).map(|when| when.to_string()).collect(),
            None => short.iter().map(|when| (*when).to_owned()).collect(),
        };
        let mut missed = 0;
        for when in numbers {
            failed += 1;
            match try_point(*calls, &when, how) {
                Point::Ended => ended += 1,
                Point::Alive => missed += 1,
            }
            if missed == MISSES_MAX {
                break;
            }
            evidence::progress(
                &format!("{call}, {how}"),
                failed,
                all.unwrap_or(0) * FAILURES.len() as u64,
            );
        }
    }
    assert!(ended > 0, "a failed write is the end");
    evidence::print("T8", &[("failing calls", failed), ("lost", 0), ("ended", ended)]);
}
