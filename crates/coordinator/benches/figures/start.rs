//! A start from a snapshot of many waiting tasks: how long it takes, and how much memory beside
//! that of the process that ran before.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tenure_coordinator::request::TakeSnapshot;
use tenure_coordinator::{Engine, EngineOptions, Pending};
use tenure_core::command::{CompleteTask, SubmitTasks};
use tenure_record::terms::Payload;
use tenure_wal::Durability;

use crate::calls::{self, new_task};
use crate::disk::Folder;

/// Each part runs in a process of its own, so that memory can be told apart; this says which.
const PART: &str = "TENURE_BENCH_PART";
/// How many wait, and how many have finished.
const SIZES: [(u64, u64); 3] = [(1_000_000, 0), (10_000_000, 0), (10_000_000, 10_000_000)];
const BATCH: u64 = 10_000;
const ROUNDS: usize = 3;

pub(crate) fn start() {
    if let Ok(part) = std::env::var(PART) {
        return run_part(&part);
    }
    // Once for all parts; in their own memory it would be seen.
    crate::warm_memory();
    for (waiting, finished) in SIZES {
        let folder = Folder::new("start");
        let data = folder.path().join("data");
        in_process(&format!("fill {waiting} {finished} {}", data.display()));
        for _ in 0..ROUNDS {
            in_process(&format!("open {}", data.display()));
        }
    }
}

fn in_process(part: &str) {
    let program = std::env::current_exe().expect("a program knows its own path");
    let ended = Command::new(program).arg("start").env(PART, part).status();
    assert!(ended.is_ok_and(|status| status.success()), "{part:?} did not end well");
}

fn run_part(part: &str) {
    match part.split_once(' ') {
        Some(("fill", rest)) => {
            let mut words = rest.splitn(3, ' ');
            let mut number = || words.next().and_then(|word| word.parse().ok()).expect("a number");
            let (waiting, finished) = (number(), number());
            fill(&PathBuf::from(words.next().expect("a folder")), waiting, finished);
        }
        Some(("open", folder)) => open(Path::new(folder)),
        _ => unreachable!("nobody asks for {part:?}"),
    }
}

/// Puts so many there, and takes a snapshot.
pub(crate) fn fill(data: &Path, waiting: u64, finished: u64) {
    let tenure = EngineOptions::default().durability(Durability::Os).open(data, |_| {});
    let tenure = tenure.expect("a new folder opens");
    for _ in 0..finished / BATCH {
        submit(&tenure, "done", BATCH);
        let leases = calls::lease(&tenure, "worker", "done", 1_000);
        let mut leases: Vec<_> = leases.expect("there is work");
        while !leases.is_empty() {
            let completes: Vec<_> =
                leases.iter().map(|grant| complete(&tenure, grant.lease())).collect();
            completes.into_iter().for_each(|ticket| drop(ticket.wait().expect("it is in time")));
            let more = calls::lease(&tenure, "worker", "done", 1_000);
            leases = more.expect("it runs");
        }
    }
    (0..waiting / BATCH).for_each(|_| submit(&tenure, "mail", BATCH));
    let steady = kib("VmRSS");
    let snapshot = tenure.ask(TakeSnapshot).wait().expect("it is written");
    println!(
        "{waiting} waiting and {finished} finished: {} MB in memory; a snapshot of {} MB in {} ms",
        steady >> 10,
        snapshot.bytes >> 20,
        snapshot.took_ms,
    );
    tenure.close().expect("it ends well");
}

fn submit(tenure: &Engine, queue: &str, count: u64) {
    let task = new_task(queue, [b'x'; 100]).expect("it is small");
    let tasks = vec![task; usize::try_from(count).expect("it fits")];
    let submit = SubmitTasks { tasks };
    tenure.ask(submit).wait().expect("it is taken");
}

fn complete(tenure: &Engine, lease: tenure_core::command::LeaseRef) -> Pending<CompleteTask> {
    let output = Payload::parse("output", b"null".to_vec()).expect("it is small");
    let complete = CompleteTask { lease, output, artifacts: Vec::new(), worker: None };
    tenure.ask(complete)
}

fn open(data: &Path) {
    let begin = Instant::now();
    let tenure = EngineOptions::default().open(data, |_| {}).expect("it is sound");
    let took = begin.elapsed();
    println!("  start in {:.2} s, at most {} MB in memory", took.as_secs_f64(), kib("VmHWM") >> 10);
    tenure.close().expect("it ends well");
}

/// A line of what the kernel knows of this process.
pub(crate) fn kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}
