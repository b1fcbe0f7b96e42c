//! A program that embeds Tenure is killed with SIGKILL again and again: what its calls returned is true.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tenure::{LeaseRequest, NewTask, Position, TaskId, TaskState, Tenure};

const CHILD_FOLDER: &str = "TENURE_TEST_CHILD_FOLDER";
const ROUNDS: usize = 8;

/// Not a test of its own: the program that is killed. It says each thing after it was told.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else { return };
    let tenure = Tenure::open(PathBuf::from(folder)).unwrap();
    std::thread::scope(|scope| {
        for caller in 0..4 {
            let tenure = &tenure;
            scope.spawn(move || {
                let worker = format!("worker-{caller}");
                loop {
                    work(tenure, &worker);
                }
            });
        }
    });
}

fn work(tenure: &Tenure, worker: &str) {
    let id = tenure.submit(NewTask::new("mail").payload("{}")).wait().unwrap().task_id;
    say(&format!("submitted {id}"));
    let request = LeaseRequest::new(worker, ["mail"]).max(2).wait(Duration::from_secs(1));
    for grant in tenure.lease(request).wait().unwrap() {
        say(&format!("leased {} {}", grant.task_id, grant.lease_id));
        if grant.lease_id.0 % 5 != 0 {
            tenure.complete(grant.lease(), "1").wait().unwrap();
            say(&format!("completed {}", grant.task_id));
        }
    }
}

/// Whole lines, also when a kill comes in between.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n>{line}<\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

#[derive(Default)]
struct Told {
    tasks: BTreeMap<u64, TaskState>,
    largest_lease: u64,
    lines: usize,
}

#[test]
fn what_a_killed_process_was_told_is_true() {
    let folder = std::env::temp_dir().join(format!("tenure-killed-{}", std::process::id()));
    let mut told = Told::default();
    for round in 0..ROUNDS {
        run_and_kill(&folder, &mut told, 150 + 40 * round);
        let tenure = Tenure::open(&folder).unwrap();
        for (id, state) in &told.tasks {
            let task = tenure.get(TaskId(*id)).wait().unwrap();
            // More may have happened than was told, but nothing less.
            assert!(*state == TaskState::Waiting || task.attempt > 0, "task {id} was leased");
            if *state == TaskState::Completed {
                assert_eq!(
                    (task.state, &task.output.read().unwrap()[..]),
                    (*state, &b"1"[..]),
                    "task {id}"
                );
            }
        }
        // A lease that is given now is larger than every one that was ever seen.
        tenure.submit(NewTask::new("other")).wait().unwrap();
        let grant = &tenure.lease(LeaseRequest::new("parent", ["other"])).wait().unwrap()[0];
        assert!(grant.lease_id.0 > told.largest_lease);
        told.largest_lease = grant.lease_id.0;
        tenure.close().unwrap();
    }
    let tenure = Tenure::open(&folder).unwrap();
    let mut watch = tenure.watch(Position::START);
    let mut completions = BTreeMap::<u64, u32>::new();
    while let Some(change) = watch.next(Duration::ZERO).unwrap() {
        let Some(change) = change.task() else { continue };
        *completions.entry(change.task_id.0).or_default() +=
            u32::from(change.step.to == TaskState::Completed);
    }
    assert!(completions.values().all(|count| *count <= 1), "a task is completed once");
    assert!(told.lines > ROUNDS * 100, "the children did something");
    tenure.close().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

fn run_and_kill(folder: &Path, told: &mut Told, lines: usize) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(CHILD_FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut read = |told: &mut Told| {
        let line = out.next()?.ok()?;
        if let Some(said) = line.strip_prefix('>').and_then(|line| line.strip_suffix('<')) {
            told.note(said);
        }
        Some(())
    };
    let enough = told.lines + lines;
    while told.lines < enough {
        read(told).expect("the child lives until it is killed");
    }
    child.kill().unwrap();
    // What it said before it died counts too.
    while read(told).is_some() {}
    child.wait().unwrap();
}

impl Told {
    fn note(&mut self, said: &str) {
        self.lines += 1;
        let words: Vec<_> = said.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        match words[0] {
            "submitted" => {
                // Another thread may have been faster to say what became of it.
                self.tasks.entry(number(1)).or_insert(TaskState::Waiting);
            }
            "leased" => {
                self.tasks.insert(number(1), TaskState::Leased);
                self.largest_lease = self.largest_lease.max(number(2));
            }
            "completed" => {
                self.tasks.insert(number(1), TaskState::Completed);
            }
            other => panic!("the child does not say {other:?}"),
        }
    }
}
